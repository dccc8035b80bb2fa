/**
 * Never more than `slots` calls in any rolling window, counted where they arrive: a call arrives between its send and its end, so a slot
 * that rests one window after the end can never put two arrivals into one window. Times are monotonic ms, given by the caller.
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

interface Slot {
  /** The latest moment at which its call can have arrived: -Infinity = never used, Infinity = in flight. */
  lastArrivalAt: number;
  takenAt: number;
  /** What `lastArrivalAt` was before it was taken, should the call never leave. */
  before: number;
  /** Spent only because nothing better was known at the start. */
  assumed: boolean;
}

export class SlotTable {
  readonly windowMs: number;
  readonly occupiedMs: number;
  readonly #slots: readonly Slot[];

  constructor(slots: number, windowMs: number) {
    this.windowMs = windowMs;
    this.occupiedMs = occupiedMsOf(windowMs);
    this.#slots = Array.from({ length: slots }, () => ({
      lastArrivalAt: -Infinity,
      takenAt: -Infinity,
      before: -Infinity,
      assumed: false,
    }));
  }

  get size(): number {
    return this.#slots.length;
  }

  /** Sets a slot as a record of an earlier run tells it. */
  restore(id: SlotId, lastArrivalAt: number, assumed: boolean): void {
    const slot = this.#at(id);
    slot.lastArrivalAt = lastArrivalAt;
    slot.assumed = assumed;
  }

  /** Takes the slot that has rested longest, or none. */
  take(now: number): SlotId | undefined {
    let best = -1;
    let bestAt = Infinity;
    for (const [id, slot] of this.#slots.entries()) {
      if (slot.lastArrivalAt < bestAt) {
        best = id;
        bestAt = slot.lastArrivalAt;
      }
    }
    if (best < 0 || bestAt + this.occupiedMs > now) return undefined;
    const slot = this.#at(best);
    slot.before = slot.lastArrivalAt;
    slot.lastArrivalAt = Infinity;
    slot.takenAt = now;
    return best;
  }

  inFlight(id: SlotId): boolean {
    return this.#at(id).lastArrivalAt === Infinity;
  }

  /** The call never left: the slot is as it was. Answers what its last arrival is now. */
  putBack(id: SlotId): number {
    const slot = this.#at(id);
    if (slot.lastArrivalAt === Infinity) slot.lastArrivalAt = slot.before;
    return slot.lastArrivalAt;
  }

  /** The call ended, or may arrive until then. Answers what was recorded. */
  settle(id: SlotId, lastArrivalAt: number): number {
    const slot = this.#at(id);
    if (slot.lastArrivalAt === Infinity) {
      slot.lastArrivalAt = lastArrivalAt;
      slot.assumed = false;
    }
    return slot.lastArrivalAt;
  }

  lastArrivals(): number[] {
    return this.#slots.map((slot) => slot.lastArrivalAt);
  }

  /** Ms until each slot that is not in flight can be used. */
  usableInMs(now: number): number[] {
    return this.#slots
      .filter((slot) => slot.lastArrivalAt !== Infinity)
      .map((slot) => Math.max(0, slot.lastArrivalAt + this.occupiedMs - now));
  }

  inFlightForMs(now: number): number[] {
    return this.#slots.filter((slot) => slot.lastArrivalAt === Infinity).map((slot) => now - slot.takenAt);
  }

  /** Slots that cannot be taken now; `real` leaves out those that were only assumed spent. */
  busy(now: number): { all: number; real: number } {
    const busy = this.#slots.filter((slot) => slot.lastArrivalAt + this.occupiedMs > now);
    const assumed = busy.filter((slot) => slot.assumed && slot.lastArrivalAt !== Infinity);
    return { all: busy.length, real: busy.length - assumed.length };
  }

  #at(id: SlotId): Slot {
    const slot = this.#slots[id];
    if (slot === undefined) throw new RangeError(`there is no slot ${id}`);
    return slot;
  }
}
