/** How many of the slots that belong to no replica each one counts on. Any of them may take any slot, so this concerns forecasts only. */
import type { Slot } from "./own-slots.js";

/** The slots that a replica counts on, and those that it expects others to use. */
interface DividedPool {
  readonly ours: readonly Slot[];
  readonly others: readonly Slot[];
}

/**
 * Divides the slots, given in the order of their return, by demand: how many calls per window visitors want at this replica and at the others,
 * beyond the slots of their own. Rounds down, because replicas that together count on too many slots break promises.
 */
export function dividePool(pool: readonly Slot[], demand: number, demandElsewhere: number): DividedPool {
  const part = demandElsewhere === 0 ? 1 : demand / (demand + demandElsewhere);
  const ours: Slot[] = [];
  const others: Slot[] = [];
  for (const [index, slot] of pool.entries())
    if (ours.length < Math.floor((index + 1) * part)) ours.push(slot);
    else others.push(slot);
  return { ours, others };
}

/** A replica counts as having at most this many requests in the time since the last one. */
const SINCE_LAST = 2;

/**
 * Counts the calls per window that visitors want, the latest ones most. When visitors have moved to another replica, the pool would stay unused there
 * until the count has fallen, so it falls at once.
 */
export class Demand {
  readonly #windowMs: number;
  #count = 0;
  #countedAt = 0;

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  wanted(now: number): void {
    this.#count = this.#average(now) + 1;
    this.#countedAt = now;
  }

  perWindow(now: number): number {
    return Math.min(this.#average(now), (SINCE_LAST * this.#windowMs) / (now - this.#countedAt));
  }

  #average(now: number): number {
    return this.#count * Math.exp((this.#countedAt - now) / this.#windowMs);
  }
}
