/** Counts the calls of each lane and the retry times given with refusals. */
import { type Lane, perLane } from "../lane.js";
import type { LaneFigures, RefusalCause, WaitFigures } from "../quota.js";

/** A refusal: its cause, the retry time in ms, and whether a call is reserved (`kept`). */
export interface Wait {
  readonly cause: RefusalCause;
  readonly inMs: number;
  readonly kept: boolean;
}

type Totals = Record<Exclude<keyof LaneFigures, "queued">, number>;

/** Retry times are counted over the last ten to twenty windows. */
const RECENT_WINDOWS = 10;
const MAX_COUNTED_SECONDS = 600;

/** Two, because carts arrive at random: in a single window, an average of a third of the budget is often a half. */
const CART_WINDOWS = 2;

export class LaneStats {
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
  /** The times of cart calls within the last two windows, oldest first. */
  readonly #carts: number[] = [];
  #reserved = 0;
  #claimed = 0;
  #honoured = 0;
  #refusedAt = -Infinity;
  /** The number of refusals by retry time in seconds, in the newer and the older half of the recent time. */
  #waits = new Uint32Array(MAX_COUNTED_SECONDS + 1);
  #olderWaits = new Uint32Array(MAX_COUNTED_SECONDS + 1);
  #waitsSince = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  served(lane: Lane, now: number, waitedMs: number, wasReserved: boolean): void {
    const totals = this.#totals[lane];
    totals.served += 1;
    if (wasReserved) {
      totals.retriedServed += 1;
      this.#honoured += 1;
    }
    totals.waitedMsTotal += waitedMs;
    totals.longestWaitMs = Math.max(totals.longestWaitMs, waitedMs);
    if (lane === "checkout") this.#carts.push(now);
  }

  refused(lane: Lane, wait: Wait, now: number): void {
    const { cause, inMs, kept } = wait;
    this.#totals[lane].refused += 1;
    if (lane === "suggestion") return;
    this.#causes[cause] += 1;
    if (kept && cause !== "early") this.#reserved += 1;
    this.#refusedAt = now;
    this.#ageWaits(now);
    const seconds = Math.min(MAX_COUNTED_SECONDS, Math.ceil(inMs / 1000));
    this.#waits[seconds] = (this.#waits[seconds] ?? 0) + 1;
  }

  left(lane: Lane, wasReserved: boolean): void {
    this.#totals[lane].left += 1;
    if (wasReserved) this.#claimed -= 1;
  }

  /** Counts a claimed reservation. */
  claimed(lane: Lane): void {
    this.#totals[lane].retried += 1;
    this.#claimed += 1;
  }

  /** The average number of cart calls per window, over the last two. */
  cartsPerWindow(now: number): number {
    const carts = this.#carts;
    while (carts[0] !== undefined && carts[0] <= now - CART_WINDOWS * this.#windowMs) carts.shift();
    return carts.length / CART_WINDOWS;
  }

  lanes(queued: Readonly<Record<Lane, number>>): Record<Lane, LaneFigures> {
    return perLane((lane) => ({ queued: queued[lane], ...this.#totals[lane] }));
  }

  waits(now: number, lapsed: number, idleCalls: number): WaitFigures {
    this.#ageWaits(now);
    const waits = this.#waits.map((count, seconds) => count + (this.#olderWaits[seconds] ?? 0));
    const count = waits.reduce((sum, one) => sum + one, 0);
    const quantile = (part: number): number => {
      let left = Math.ceil(count * part);
      return waits.findIndex((here) => (left -= here) <= 0);
    };
    return {
      retryAfter: {
        count,
        p50Seconds: quantile(0.5),
        p99Seconds: quantile(0.99),
        maxSeconds: Math.max(
          0,
          waits.findLastIndex((here) => here > 0),
        ),
      },
      reservations: {
        made: this.#reserved,
        claimed: this.#claimed,
        honoured: this.#honoured,
        unclaimed: lapsed,
      },
      refused: { ...this.#causes },
      idleCalls: Math.round(idleCalls * 10) / 10,
      refusedAgoMs: this.#refusedAt === -Infinity ? null : now - this.#refusedAt,
    };
  }

  #ageWaits(now: number): void {
    const halfMs = RECENT_WINDOWS * this.#windowMs;
    if (now - this.#waitsSince < halfMs) return;
    const isOld = now - this.#waitsSince >= 2 * halfMs;
    this.#olderWaits = isOld ? new Uint32Array(MAX_COUNTED_SECONDS + 1) : this.#waits;
    this.#waits = new Uint32Array(MAX_COUNTED_SECONDS + 1);
    this.#waitsSince = now;
  }
}

/**
 * Counts calls that weren't made although a visitor waited and a slot was free. Calls become due evenly; a burst counts as made in advance, so the
 * spread calls after it don't count as idle.
 */
export class IdleCalls {
  #owed = 0;
  #at = 0;
  #waits = false;
  total = 0;

  /**
   * Call on every change. `perMs`: calls that become due per ms; `waits`: whether a visitor waits from now on; `isFree`: whether a slot could be
   * used.
   */
  update(now: number, perMs: number, waits: boolean, isFree: boolean): void {
    this.#owed += (now - this.#at) * perMs;
    if (!this.#waits) this.#owed = Math.min(this.#owed, 0);
    else if (this.#owed > 1) {
      if (isFree) this.total += this.#owed - 1;
      this.#owed = 1;
    }
    this.#at = now;
    this.#waits = waits;
  }

  /** Records a call; `slots` limits how far calls can be ahead. */
  went(slots: number): void {
    this.#owed = Math.max(-slots, this.#owed - 1);
  }
}
