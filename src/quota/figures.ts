/** Counts the calls of each lane, what refused visitors were told, and whether it was true. */
import { type Lane, perLane } from "./lane.js";
import type { LaneFigures, RefusalCause, WaitFigures } from "./quota.js";

/** A refusal: its cause, when to come back, and whether it is a place. */
export interface Told {
  readonly cause: RefusalCause;
  readonly inMs: number;
  readonly kept: boolean;
}

type Totals = Record<Exclude<keyof LaneFigures, "queued">, number>;

/** Retry times are counted over the last ten to twenty windows. */
const RECENT_WINDOWS = 10;
const MAX_COUNTED_SECONDS = 600;

export class QuotaFigures {
  readonly #windowMs: number;
  readonly #totals = perLane<Totals>(() => ({
    served: 0,
    refused: 0,
    left: 0,
    retried: 0,
    retriedServed: 0,
    waitedMsTotal: 0,
    longestWaitMs: 0,
  }));
  readonly #causes: Record<RefusalCause, number> = { reserved: 0, busy: 0, early: 0, late: 0, fault: 0 };
  /** The times of cart calls within the last window, oldest first. */
  readonly #carts: number[] = [];
  #made = 0;
  #claimed = 0;
  #honoured = 0;
  #refusedAt = -Infinity;
  /** The number of refusals by retry time in seconds, in the newer and the older half of the recent time. */
  #told = new Uint32Array(MAX_COUNTED_SECONDS + 1);
  #toldBefore = new Uint32Array(MAX_COUNTED_SECONDS + 1);
  #toldSince = 0;
  /** Calls that were possible while a visitor waited, but weren't made; counted as time, in calls. */
  #idle = 0;
  #idleSince: number | null = null;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  served(lane: Lane, now: number, waitedMs: number, hadPlace: boolean): void {
    const totals = this.#totals[lane];
    totals.served += 1;
    if (hadPlace) {
      totals.retriedServed += 1;
      this.#honoured += 1;
    }
    totals.waitedMsTotal += waitedMs;
    totals.longestWaitMs = Math.max(totals.longestWaitMs, waitedMs);
    if (lane === "checkout") this.#carts.push(now);
  }

  refused(lane: Lane, { cause, inMs, kept }: Told, now: number): void {
    this.#totals[lane].refused += 1;
    if (lane === "suggestion") return;
    this.#causes[cause] += 1;
    if (kept && cause !== "early") this.#made += 1;
    this.#refusedAt = now;
    this.#age(now);
    const seconds = Math.min(MAX_COUNTED_SECONDS, Math.ceil(inMs / 1000));
    this.#told[seconds] = (this.#told[seconds] ?? 0) + 1;
  }

  left(lane: Lane, hadPlace: boolean): void {
    this.#totals[lane].left += 1;
    if (hadPlace) this.#claimed -= 1;
  }

  claimed(lane: Lane): void {
    this.#totals[lane].retried += 1;
    this.#claimed += 1;
  }

  /** Whether a visitor waits although a call is due, from now on. */
  isIdle(now: number, idle: boolean, callsPerMs: number): void {
    if (this.#idleSince !== null) this.#idle += (now - this.#idleSince) * callsPerMs;
    this.#idleSince = idle ? now : null;
  }

  /** Cart calls within the last window. */
  carts(now: number): number {
    const carts = this.#carts;
    while (carts[0] !== undefined && carts[0] <= now - this.#windowMs) carts.shift();
    return carts.length;
  }

  lanes(queued: Readonly<Record<Lane, number>>): Record<Lane, LaneFigures> {
    return perLane((lane) => ({ queued: queued[lane], ...this.#totals[lane] }));
  }

  waits(now: number, unclaimed: number): WaitFigures {
    this.#age(now);
    const told = this.#told.map((count, seconds) => count + (this.#toldBefore[seconds] ?? 0));
    const count = told.reduce((sum, one) => sum + one, 0);
    const quantile = (part: number): number => {
      let left = Math.ceil(count * part);
      return told.findIndex((here) => (left -= here) <= 0);
    };
    const longest = told.findLastIndex((here) => here > 0);
    return {
      retryAfter: {
        count,
        p50Seconds: quantile(0.5),
        p99Seconds: quantile(0.99),
        maxSeconds: Math.max(0, longest),
      },
      reservations: { made: this.#made, claimed: this.#claimed, honoured: this.#honoured, unclaimed },
      refused: { ...this.#causes },
      idleCalls: Math.round(this.#idle * 10) / 10,
      refusedAgoMs: this.#refusedAt === -Infinity ? null : now - this.#refusedAt,
    };
  }

  #age(now: number): void {
    const halfMs = RECENT_WINDOWS * this.#windowMs;
    if (now - this.#toldSince < halfMs) return;
    const isOld = now - this.#toldSince >= 2 * halfMs;
    this.#toldBefore = isOld ? new Uint32Array(MAX_COUNTED_SECONDS + 1) : this.#told;
    this.#told = new Uint32Array(MAX_COUNTED_SECONDS + 1);
    this.#toldSince = now;
  }
}
