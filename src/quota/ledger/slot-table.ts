/**
 * Never more than `slots` calls in any rolling window, counted where they arrive: a call arrives between its send and its end, so a slot
 * that rests one window after the end can never put two arrivals into one window. Times are monotonic ms, given by the caller. Taking and
 * settling cost the same however many slots there are.
 */
import type { SlotId } from "./ledger.js";

/** A call that was given up, or was in flight when its process died, may still arrive for this long. */
export function graceMsOf(windowMs: number): number {
  return windowMs / 6;
}

/** How long a slot rests: the window, and a thousandth because two disciplined clocks may differ by 500 ppm each. */
export function occupiedMsOf(windowMs: number): number {
  return windowMs + Math.ceil(windowMs / 1000);
}

/** Taken slots stay in the array in front of the head until there are this many. */
const COMPACT_AT = 1024;

interface Slot {
  readonly id: SlotId;
  /** The latest moment at which its last call can have arrived: -Infinity = never used. */
  lastArrivalAt: number;
  /** Null while it is not in flight. */
  takenAt: number | null;
}

export class SlotTable {
  readonly windowMs: number;
  readonly occupiedMs: number;
  readonly #slots: readonly Slot[];
  /** The slots that are not in flight, from the head on, by their last arrival: in the order in which they can be used. */
  #resting: Slot[];
  #head = 0;
  /** Oldest first. */
  readonly #inFlight = new Set<Slot>();
  /** Last arrivals that were only assumed at the start, ascending; each leaves the list when its slot has rested. */
  #assumedArrivals: number[] = [];

  constructor(slots: number, windowMs: number) {
    this.windowMs = windowMs;
    this.occupiedMs = occupiedMsOf(windowMs);
    this.#slots = Array.from({ length: slots }, (_, id) => ({
      id,
      lastArrivalAt: -Infinity,
      takenAt: null,
    }));
    this.#resting = [...this.#slots];
  }

  get size(): number {
    return this.#slots.length;
  }

  /** Restores the slots from the record of an earlier run; only before the first call. */
  restore(record: readonly { readonly lastArrivalAt: number; readonly assumed: boolean }[]): void {
    for (const [id, { lastArrivalAt }] of record.entries()) this.#at(id).lastArrivalAt = lastArrivalAt;
    this.#resting = this.#slots.toSorted((a, b) => ascending(a.lastArrivalAt, b.lastArrivalAt));
    this.#assumedArrivals = record
      .flatMap(({ lastArrivalAt, assumed }) => (assumed ? [lastArrivalAt] : []))
      .sort(ascending);
  }

  /** Takes the slot that has rested longest, or none. */
  take(now: number): SlotId | undefined {
    const slot = this.#resting[this.#head];
    if (slot === undefined || !this.#hasRested(slot.lastArrivalAt, now)) return undefined;
    this.#head += 1;
    if (this.#head >= COMPACT_AT) {
      this.#resting.splice(0, this.#head);
      this.#head = 0;
    }
    slot.takenAt = now;
    this.#inFlight.add(slot);
    return slot.id;
  }

  inFlight(id: SlotId): boolean {
    return this.#at(id).takenAt !== null;
  }

  /** The call never left: the slot is as it was. Returns what its last arrival is now. */
  putBack(id: SlotId): number {
    const slot = this.#at(id);
    return this.settle(id, slot.lastArrivalAt);
  }

  /** The call ended, or may arrive until then. Returns what was recorded. */
  settle(id: SlotId, lastArrivalAt: number): number {
    const slot = this.#at(id);
    if (slot.takenAt === null) return slot.lastArrivalAt;
    slot.takenAt = null;
    slot.lastArrivalAt = lastArrivalAt;
    this.#inFlight.delete(slot);
    this.#resting.splice(
      this.#firstWhere((at) => at > lastArrivalAt),
      0,
      slot,
    );
    return lastArrivalAt;
  }

  /** Infinity = in flight. */
  lastArrivals(): number[] {
    return this.#slots.map(({ lastArrivalAt, takenAt }) => (takenAt === null ? lastArrivalAt : Infinity));
  }

  /** Slots that are not in flight. */
  get resting(): number {
    return this.#resting.length - this.#head;
  }

  /** Ms until the n-th of the resting slots can be used, ascending from 0 on; Infinity where there are not so many. */
  usableInMs(n: number, now: number): number {
    const slot = this.#resting[this.#head + n];
    return slot === undefined ? Infinity : Math.max(0, slot.lastArrivalAt + this.occupiedMs - now);
  }

  /** For each slot in flight, the ms since it was taken, longest first. */
  inFlightForMs(now: number): number[] {
    return [...this.#inFlight].map(({ takenAt }) => now - (takenAt ?? now));
  }

  /** Slots that cannot be taken now; `real` excludes those that were only assumed spent. */
  busy(now: number): { all: number; real: number } {
    const rested = this.#firstWhere((at) => !this.#hasRested(at, now)) - this.#head;
    const assumed = this.#assumedArrivals;
    while (assumed[0] !== undefined && this.#hasRested(assumed[0], now)) assumed.shift();
    const all = this.size - rested;
    return { all, real: all - assumed.length };
  }

  #hasRested(lastArrivalAt: number, now: number): boolean {
    return lastArrivalAt + this.occupiedMs <= now;
  }

  /** The position of the first resting slot for whose last arrival this holds, as it does for all after it. */
  #firstWhere(holds: (lastArrivalAt: number) => boolean): number {
    let low = this.#head;
    let high = this.#resting.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const slot = this.#resting[middle];
      if (slot === undefined || holds(slot.lastArrivalAt)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #at(id: SlotId): Slot {
    const slot = this.#slots[id];
    if (slot === undefined) throw new RangeError(`there is no slot ${id}`);
    return slot;
  }
}

/** Infinities included. */
function ascending(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
