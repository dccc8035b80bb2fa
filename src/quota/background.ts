/**
 * Work that nobody waits for, in rounds: never two at a time, only in the refresh lane, none after its stop. What a round leaves for want of
 * room in the quota is looked at again as soon as there may be some.
 */
import type { Clock } from "../clock.js";
import type { Ask } from "./quota.js";

export interface BackgroundSettings {
  /** Who asks, as the quota counts it. */
  readonly client: string;
  /** Does what is due, and returns the ms until more may be due, or that something had to wait for quota. Must not reject. */
  readonly round: (ask: Ask) => Promise<number | "no room">;
  /** How long until the first round, in ms. Default: at once. */
  readonly firstInMs?: number;
  /** How long until the quota has room for work that nobody waits for, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
}

export interface Background {
  /** A round now, or right after the one under way. */
  now(): void;
  /** Calls off what is under way. */
  stop(): void;
}

/** Room is looked for this long after it is foretold, and at least this often, since others may give some back. */
const SOON_MS = 100;
const LOOK_AGAIN_MS = 5_000;

export function inBackground(settings: BackgroundSettings): Background {
  const { round, firstInMs = 0, roomInMs, clock } = settings;
  const end = new AbortController();
  const ask: Ask = {
    lane: "refresh",
    client: settings.client,
    maxWaitMs: Infinity,
    signal: end.signal,
  };
  let cancelTimer = (): void => {};
  let isRunning = false;
  let onceMore = false;

  async function run(): Promise<void> {
    if (end.signal.aborted) return;
    if (isRunning) {
      onceMore = true;
      return;
    }
    cancelTimer();
    isRunning = true;
    let left: number | "no room";
    do {
      onceMore = false;
      left = await round(ask);
    } while (onceMore && !end.signal.aborted);
    isRunning = false;
    if (!end.signal.aborted) {
      const inMs = left === "no room" ? Math.min(roomInMs() + SOON_MS, LOOK_AGAIN_MS) : left;
      cancelTimer = clock.after(inMs, now);
    }
  }
  const now = (): void => void run();

  if (firstInMs > 0) cancelTimer = clock.after(firstInMs, now);
  else now();
  return {
    now,
    stop() {
      cancelTimer();
      end.abort();
    },
  };
}
