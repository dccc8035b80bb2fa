/** What each lane got: totals since the start for people, and the calls of the last window for the reserved shares. */
import { type Owed, owedOf, perLane } from "./priority.js";
import { type Lane, type LaneFigures, LANES } from "../quota.js";

interface Totals {
  served: number;
  refused: number;
  left: number;
  retried: number;
  retriedServed: number;
  waitedMsTotal: number;
  longestWaitMs: number;
}

export class Tally {
  readonly #windowMs: number;
  readonly #totals = new Map<Lane, Totals>();
  /** Oldest first: at most the budget of one window. */
  readonly #recent: { readonly lane: Lane; readonly at: number }[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
    for (const lane of LANES)
      this.#totals.set(lane, {
        served: 0,
        refused: 0,
        left: 0,
        retried: 0,
        retriedServed: 0,
        waitedMsTotal: 0,
        longestWaitMs: 0,
      });
  }

  served(lane: Lane, now: number, waitedMs: number, retried: boolean): void {
    const totals = this.#of(lane);
    totals.served += 1;
    if (retried) totals.retriedServed += 1;
    totals.waitedMsTotal += waitedMs;
    totals.longestWaitMs = Math.max(totals.longestWaitMs, waitedMs);
    this.#recent.push({ lane, at: now });
    this.#forget(now);
  }

  refused(lane: Lane): void {
    this.#of(lane).refused += 1;
  }

  left(lane: Lane): void {
    this.#of(lane).left += 1;
  }

  retried(lane: Lane): void {
    this.#of(lane).retried += 1;
  }

  /** What the lanes are owed of a window's calls in so many slots. */
  owed(now: number, slots: number): Owed {
    this.#forget(now);
    return owedOf(slots, this.#recent);
  }

  figures(queued: Readonly<Record<Lane, number>>): Record<Lane, LaneFigures> {
    return perLane((lane) => ({ queued: queued[lane], ...this.#of(lane) }));
  }

  #forget(now: number): void {
    const kept = this.#recent.findIndex((call) => call.at > now - this.#windowMs);
    this.#recent.splice(0, kept < 0 ? this.#recent.length : kept);
  }

  #of(lane: Lane): Totals {
    const totals = this.#totals.get(lane);
    if (totals === undefined) throw new RangeError(`there is no lane ${lane}`);
    return totals;
  }
}
