/**
 * The slots that only this replica may use, even without Redis: those that Redis has assigned to it and, after a while, the rest of its share. Also
 * records the uses that Redis doesn't know of.
 */
import type { Times } from "./protocol.js";

/** The assumed maximum by which Redis's clock and ours drift apart during an outage. */
const CLOCKS_MS = 1000;

/** `at` is monotonic: the latest moment at which its last call can have arrived; Infinity = in flight. */
export interface Slot {
  /** Negative: the part of the share that Redis hasn't assigned. */
  readonly id: number;
  readonly at: number;
}

/** A use of a slot that Redis doesn't know of yet. */
export interface Report {
  readonly grant: string;
  /** Monotonic; Infinity = in flight. */
  readonly at: number;
}

const byRest = (a: Slot, b: Slot): number => a.at - b.at;

export class OwnSlots {
  readonly #share: number;
  readonly #times: Times;
  readonly #slots = new Map<number, Slot>();
  readonly #reports = new Map<number, Report>();
  /** How many slots it may use without Redis; 0 = it has no share. */
  #usable = 0;
  /** By how much the recorded times of the slots may be later than the real ones. */
  #lateMs = 0;
  /** The last contact after which a slot was counted as lent. */
  #lentSince = -Infinity;

  /** Without Redis this replica uses at most `share` slots. */
  constructor(share: number, times: Times) {
    this.#share = share;
    this.#times = times;
  }

  /**
   * Replaces the slots with those that Redis has assigned; their times may be later than they were by `lateMs`. `hasShare`: whether this replica has
   * a share at all.
   */
  assign(slots: readonly Slot[], hasShare: boolean, lateMs = 0): void {
    this.#usable = hasShare ? this.#share : 0;
    this.#lateMs = lateMs;
    this.#slots.clear();
    for (const slot of slots) this.#slots.set(slot.id, slot);
  }

  /** Assumes a share for this replica, although Redis hasn't assigned one: of as many slots as its predecessor had, if that was fewer. */
  assumeShare(predecessors = Infinity): void {
    this.#usable = Math.min(this.#share, predecessors);
  }

  get usable(): number {
    return this.#usable;
  }

  get hasShare(): boolean {
    return this.#usable > 0;
  }

  all(): Slot[] {
    return [...this.#slots.values()];
  }

  busy(now: number): number {
    return this.all().filter((slot) => !this.#hasRested(slot, now)).length;
  }

  /**
   * The part of the share that is lent to the pool or was never taken from it. Without Redis, these slots return when every call on them must have
   * ended.
   */
  restOfShare(contactAt: number): Slot[] {
    const missing = Math.max(0, this.#usable - this.#slots.size);
    const taken = this.all().filter(({ id }) => id < 0).length;
    const at = this.#finishedAt(contactAt);
    return Array.from({ length: missing }, (_, index) => ({ id: -1 - taken - index, at }));
  }

  /** Takes the slot that has rested longest, without Redis; null if none has rested, or if the call can't be recorded. */
  takeAlone(grant: string, now: number, contactAt: number, writeDown: () => boolean): number | null {
    for (const slot of this.restOfShare(contactAt))
      if (this.#hasRested(slot, now)) this.#slots.set(slot.id, slot);
    const [slot] = this.all().sort(byRest);
    if (slot === undefined || !this.#hasRested(slot, now)) return null;
    this.#slots.set(slot.id, { id: slot.id, at: Infinity });
    this.report(slot.id, { grant, at: Infinity });
    if (writeDown()) return slot.id;
    this.#slots.set(slot.id, slot);
    this.#reports.delete(slot.id);
    return null;
  }

  /** Sets the latest time at which the slot's last call can have arrived. */
  settle(id: number, at: number): void {
    if (this.#slots.has(id)) this.#slots.set(id, { id, at });
  }

  /** Counts the slot that has rested longest as lent, once per contact. */
  assumeLent(contactAt: number): void {
    if (this.#lentSince === contactAt) return;
    this.#lentSince = contactAt;
    const [first] = this.all().sort(byRest);
    if (first === undefined || !this.#mayHaveRested(first.at, contactAt + this.#times.localAfterMs)) return;
    const at = this.#finishedAt(contactAt);
    this.#slots.set(first.id, { id: first.id, at });
    this.report(first.id, { grant: "", at });
  }

  /** Adds a use of an assigned slot to the reports for Redis. */
  report(id: number, report: Report): void {
    if (id > 0) this.#reports.set(id, report);
  }

  reports(): [number, Report][] {
    return [...this.#reports];
  }

  /** Removes reports that Redis has received, unless they have changed since. */
  reported(reports: readonly [number, Report][]): void {
    for (const [id, report] of reports) if (this.#reports.get(id) === report) this.#reports.delete(id);
  }

  /** The last use of each slot of the share that Redis hasn't assigned. */
  extra(): number[] {
    return this.all()
      .filter(({ id }) => id < 0)
      .map(({ at }) => at);
  }

  /**
   * The last use of each slot, for a table that has lost its last writes. Up to `givenAway` rested slots count as in flight, because the lost table
   * may have granted or lent them by `until`.
   */
  ofLostTable(until: number, givenAway: number): number[] {
    return this.all()
      .map(({ at }) => at)
      .sort((a, b) => a - b)
      .map((at, n) => (n < givenAway && this.#mayHaveRested(at, until) ? Infinity : at));
  }

  #mayHaveRested(at: number, now: number): boolean {
    return at - this.#lateMs + this.#times.occupiedMs <= now;
  }

  #hasRested({ at }: Slot, now: number): boolean {
    return at + this.#times.occupiedMs <= now;
  }

  /** The time by which every call has ended that others could start through Redis before this replica began to work without it. */
  #finishedAt(contactAt: number): number {
    return contactAt + this.#times.localAfterMs + this.#times.longestMs + CLOCKS_MS;
  }
}
