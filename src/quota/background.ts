/**
 * Background work in rounds: one at a time, only in the refresh lane, and none after `stop`. If a round runs out of quota, the next one starts as
 * soon as there may be room.
 */
import { type Clock, pause } from "../clock.js";
import type { Ask } from "./quota.js";

export interface BackgroundSettings {
  /** The client to which the quota attributes the calls. */
  readonly client: string;
  /** Does what is due. Returns the ms until more may be due, or "no room" if some had to wait for quota. Must not reject. */
  readonly round: (ask: Ask) => Promise<number | "no room">;
  /** The ms until the first round. Default: immediately. */
  readonly firstInMs?: number;
  /** The ms until the quota has room for background work. */
  readonly backgroundRoomInMs: () => number;
  readonly clock: Clock;
}

export interface Background {
  /** Runs a round now, or right after the current one. */
  now(): void;
  /** Aborts the current round. */
  stop(): void;
}

/** Without room, the next round starts this long after room is predicted, but after `LOOK_AGAIN_MS`, because others may free some earlier. */
const SOON_MS = 100;
const LOOK_AGAIN_MS = 5_000;

export function inBackground(settings: BackgroundSettings): Background {
  const { client, round, firstInMs = 0, backgroundRoomInMs, clock } = settings;
  const end = new AbortController();
  let wake = new AbortController();

  async function run(): Promise<void> {
    const ask: Ask = { lane: "refresh", client, waitUntilAt: Infinity, signal: end.signal };
    for (let inMs = firstInMs; ;) {
      if (inMs > 0 && !wake.signal.aborted) await pause(clock, inMs, wake.signal);
      if (end.signal.aborted) return;
      wake = new AbortController();
      const left = await round(ask);
      inMs = left === "no room" ? Math.min(backgroundRoomInMs() + SOON_MS, LOOK_AGAIN_MS) : left;
    }
  }

  void run();
  return {
    now: () => {
      wake.abort();
    },
    stop() {
      end.abort();
      wake.abort();
    },
  };
}
