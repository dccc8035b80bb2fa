/** What staff see of a line: the calls of each lane, what refused visitors were told, and whether it was true. */
import { type Lane, perLane } from "./lane.js";

/**
 * Why a request was refused. `reserved`: it has a place; `busy`: it has none; `early`: it came back too early; `late`: it waited in vain; `fault`:
 * the call couldn't be recorded.
 */
export type RefusalCause = "reserved" | "busy" | "early" | "late" | "fault";

export interface Told {
  readonly cause: RefusalCause;
  /** When to come back. */
  readonly inMs: number;
  /** Whether that is a place. */
  readonly kept: boolean;
}

/** Retry times are kept of this many refusals, for this many windows. */
const MAX_TOLD = 1000;
const RECENT_WINDOWS = 20;

export class Figures {
  readonly #windowMs: number;
  readonly #lanes = perLane(() => ({
    served: 0,
    refused: 0,
    left: 0,
    retried: 0,
    retriedServed: 0,
    waitedMsTotal: 0,
    longestWaitMs: 0,
  }));
  readonly #refused: Record<RefusalCause, number> = { reserved: 0, busy: 0, early: 0, late: 0, fault: 0 };
  readonly #places = { made: 0, claimed: 0, honoured: 0 };
  /** The newest last. */
  readonly #told: { readonly at: number; readonly seconds: number }[] = [];
  #idleCalls = 0;
  #idleSince: number | null = null;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  served(lane: Lane, waitedMs: number, hadPlace: boolean): void {
    const figures = this.#lanes[lane];
    figures.served += 1;
    figures.waitedMsTotal += waitedMs;
    figures.longestWaitMs = Math.max(figures.longestWaitMs, waitedMs);
    if (!hadPlace) return;
    this.claimed(lane);
    figures.retriedServed += 1;
    this.#places.honoured += 1;
  }

  refused(lane: Lane, { cause, inMs, kept }: Told, now: number): void {
    this.#lanes[lane].refused += 1;
    if (lane === "suggestion") return;
    this.#refused[cause] += 1;
    if (kept && cause !== "early") this.#places.made += 1;
    this.#told.push({ at: now, seconds: Math.ceil(inMs / 1000) });
    if (this.#told.length > MAX_TOLD) this.#told.shift();
  }

  /** Somebody came back for a place, and waited until now. */
  claimed(lane: Lane): void {
    this.#lanes[lane].retried += 1;
    this.#places.claimed += 1;
  }

  left(lane: Lane): void {
    this.#lanes[lane].left += 1;
  }

  /** From now on, a visitor waits although a call is due, or none does. */
  isIdle(now: number, isIdle: boolean, callsPerMs: number): void {
    if (this.#idleSince !== null) this.#idleCalls += (now - this.#idleSince) * callsPerMs;
    this.#idleSince = isIdle ? now : null;
  }

  lanes(queued: Readonly<Record<Lane, number>>) {
    return perLane((lane) => ({ queued: queued[lane], ...this.#lanes[lane] }));
  }

  /** `unclaimed`: places whose holders didn't come back. */
  waits(now: number, unclaimed: number) {
    const recent = this.#told.filter(({ at }) => at > now - RECENT_WINDOWS * this.#windowMs);
    const seconds = recent.map((told) => told.seconds).sort((a, b) => a - b);
    const quantile = (part: number): number => seconds[Math.ceil(seconds.length * part) - 1] ?? 0;
    const last = this.#told.at(-1);
    return {
      retryAfter: {
        count: seconds.length,
        p50Seconds: quantile(0.5),
        p99Seconds: quantile(0.99),
        maxSeconds: quantile(1),
      },
      reservations: { ...this.#places, unclaimed },
      refused: { ...this.#refused },
      /** Calls that were due while a visitor waited, but weren't made; counted as time, in calls. */
      idleCalls: Math.round(this.#idleCalls * 10) / 10,
      refusedAgoMs: last === undefined ? null : now - last.at,
    };
  }
}
