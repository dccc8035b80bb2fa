/**
 * Allows at most `slots` calls in any rolling window, counted when they arrive. A call arrives between its send and its end, so a slot that rests
 * for a window after the end can't have two arrivals in one window. Times are monotonic ms, passed in by the caller.
 */
export type SlotId = number;

/** A call that was abandoned, or in flight when its process died, may still arrive for this long. */
export function graceMsOf(windowMs: number): number {
  return windowMs / 6;
}

/** How long a slot rests: a window, plus a thousandth because two synchronized clocks may each be off by 500 ppm. */
export function occupiedMsOf(windowMs: number): number {
  return windowMs + Math.ceil(windowMs / 1000);
}

/** Taken slots stay in the array before the head until there are this many. */
const COMPACT_AT = 1024;

interface Slot {
  readonly id: SlotId;
  /** The latest time at which its last call can have arrived; -Infinity = never used. */
  lastArrivalAt: number;
  /** Null unless in flight. */
  takenAt: number | null;
}

export class SlotTable {
  readonly windowMs: number;
  readonly occupiedMs: number;
  readonly #slots: readonly Slot[];
  /** The slots that aren't in flight, from the head, by their last arrival: the order in which they become usable. */
  #resting: Slot[];
  #head = 0;
  /** Oldest first. */
  readonly #inFlight = new Set<Slot>();
  /** Last arrivals that were only assumed at startup, ascending; each is removed when its slot has rested. */
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

  /** Restores the slots from the record of an earlier run; call it only before the first `take`. */
  restore(record: readonly { readonly lastArrivalAt: number; readonly assumed: boolean }[]): void {
    for (const [id, { lastArrivalAt }] of record.entries()) this.#at(id).lastArrivalAt = lastArrivalAt;
    this.#resting = this.#slots.toSorted((a, b) => ascending(a.lastArrivalAt, b.lastArrivalAt));
    this.#assumedArrivals = record
      .flatMap(({ lastArrivalAt, assumed }) => (assumed ? [lastArrivalAt] : []))
      .sort(ascending);
  }

  /** Takes the slot that has rested longest; undefined if none is usable. */
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

  /** Settles a slot whose call was never sent: its last arrival doesn't change. Returns the recorded last arrival. */
  putBack(id: SlotId): number {
    const slot = this.#at(id);
    return this.settle(id, slot.lastArrivalAt);
  }

  /** Settles a slot whose call has ended or may still arrive until `lastArrivalAt`. Returns the recorded last arrival. */
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

  /** When the n-th slot can be used next, counted from 0, if calls take `callMs`; -Infinity = it was never used. Never decreases with n. */
  freeAt(n: number, callMs: number): number {
    const slot = this.#resting[this.#head + n];
    if (slot !== undefined) return slot.lastArrivalAt + this.occupiedMs;
    // Slots in flight return after almost all resting ones, in the order in which they were taken.
    const resting = this.#resting.length - this.#head;
    const last = this.#resting.at(-1)?.lastArrivalAt ?? -Infinity;
    for (const [position, { takenAt }] of [...this.#inFlight].entries())
      if (position === n - resting) return Math.max(last, (takenAt ?? 0) + callMs) + this.occupiedMs;
    return Infinity;
  }

  /** The number of slots that can't be taken now; `real` excludes those that were only assumed spent. */
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

  /** Binary search: the position of the first resting slot whose last arrival satisfies `holds`, which must be true for all later ones too. */
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

/** Also compares infinities. */
function ascending(a: number, b: number): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
