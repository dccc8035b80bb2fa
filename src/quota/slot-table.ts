/**
 * Allows at most `budget` calls in any rolling window, counted when they arrive. A call arrives between its send and its end, so a slot that rests
 * for a window after the end can't have two arrivals in one window. Decides how many calls may be made, not whose. All times are monotonic.
 */
import type { Clock } from "../clock.js";

export type SlotId = number;

export interface BudgetSettings {
  /** Calls per window that the upstream allows. */
  readonly limit: number;
  /** How many of these are left unused. */
  readonly headroom: number;
  readonly windowMs: number;
}

/** What the next owner of the table must know; in ms from the time of writing. */
export interface Rests {
  readonly windowMs: number;
  /** How long each slot must still rest; null: its call may be on its way. */
  readonly slots: readonly (number | null)[];
  readonly pausedForMs: number;
}

/** How a call ended: answered, abandoned although it may still arrive, or never sent. */
export type Outcome = "answered" | "abandoned" | "unsent";

interface SlotTableSettings extends BudgetSettings {
  /** Default: every slot is free. */
  readonly rests?: Rests | null | undefined;
  readonly clock: Clock;
  /** Called at first, before each call is sent, and after every other change. If it throws, nothing is sent. */
  readonly record?: ((rests: Rests) => void) | undefined;
  /** Called when a change that isn't needed to continue couldn't be recorded. */
  readonly onFault?: ((what: string, error: unknown) => void) | undefined;
}

/** A call that was abandoned, or in flight when its process died, may still arrive for this long. */
export function graceMsOf(windowMs: number): number {
  return windowMs / 6;
}

/** How long a slot rests: a window, plus a thousandth because two synchronized clocks may each be off by 500 ppm. */
export function occupiedMsOf(windowMs: number): number {
  return windowMs + Math.ceil(windowMs / 1000);
}

/** The longest pause: if the upstream asks for more, it is tried again after this. */
const MAX_PAUSE_MS = 300_000;
const DAY_MS = 86_400_000;

interface Slot {
  readonly id: SlotId;
  /** When it has rested; -Infinity = it was never used. */
  usableAt: number;
  /** Null unless in flight. */
  takenAt: number | null;
  /** Whether the call for which it rests is only assumed. */
  isAssumed: boolean;
}

export class SlotTable {
  readonly limit: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly #settings: SlotTableSettings;
  readonly #slots: readonly Slot[];
  /** The slots that aren't in flight, in the order in which they become usable. */
  readonly #resting: Slot[];
  /** Oldest first. */
  readonly #inFlight = new Set<Slot>();
  /** Until when nothing must be called, and each operation by itself. */
  #pausedUntilAt = -Infinity;
  readonly #pauses = new Map<string, number>();
  #callMs = 0;
  #day = -1;
  #largest = 0;

  constructor(settings: SlotTableSettings) {
    const { limit, headroom, windowMs, rests = null, clock } = settings;
    this.#settings = settings;
    this.limit = limit;
    this.budget = limit - headroom;
    this.windowMs = windowMs;
    const now = clock.monotonic();
    const inFlightMs = occupiedMsOf(windowMs) + graceMsOf(windowMs);
    // With another window, slots may have been used again while their earlier calls still count in ours.
    const known = rests?.windowMs === windowMs ? rests.slots : [];
    // If there are fewer slots than before, they get those that rest longest. Those that the record doesn't have may have been used.
    const ofSlots = known.toSorted((a, b) => (b ?? inFlightMs) - (a ?? inFlightMs));
    this.#slots = Array.from({ length: this.budget }, (_, id) => {
      const ms = rests === null ? 0 : (ofSlots[id] ?? null);
      const usableAt = ms === 0 ? -Infinity : now + (ms ?? inFlightMs);
      return { id, usableAt, takenAt: null, isAssumed: ms === null };
    });
    this.#resting = this.#slots.toSorted((a, b) => a.usableAt - b.usableAt || a.id - b.id);
    if (rests !== null) this.#pausedUntilAt = now + Math.min(rests.pausedForMs, MAX_PAUSE_MS);
    settings.record?.(this.rests());
  }

  /** Takes the slot that has rested longest, and records its call; null if none can be used now. If this throws, nothing may be sent. */
  take(): SlotId | null {
    const now = this.#now;
    const slot = this.#resting[0];
    if (slot === undefined || this.#pausedUntilAt > now || slot.usableAt > now) return null;
    this.#resting.shift();
    this.#inFlight.add(slot);
    slot.takenAt = now;
    try {
      this.#settings.record?.(this.rests());
    } catch (error) {
      this.#rest(slot, slot.usableAt);
      throw error;
    }
    slot.isAssumed = false;
    this.#largestToday(now);
    return slot.id;
  }

  /** Ends the call of a taken slot; repeating it has no effect. */
  settle(id: SlotId, outcome: Outcome): void {
    const slot = this.#slots[id];
    if (slot === undefined) throw new RangeError(`there is no slot ${id}`);
    if (slot.takenAt === null) return;
    const now = this.#now;
    if (outcome !== "unsent") this.#callMs += (now - slot.takenAt - this.#callMs) / 16;
    const graceMs = outcome === "abandoned" ? graceMsOf(this.windowMs) : 0;
    this.#rest(slot, outcome === "unsent" ? slot.usableAt : now + graceMs + occupiedMsOf(this.windowMs));
    // Without this record, the call counts as in flight, which only costs some quota after a restart.
    this.#write("a settled call could not be written to the quota ledger");
  }

  /** Makes no calls of this operation for this long; none at all if another operation is paused too. An earlier, longer pause stands. */
  pause(operation: string, forMs: number): void {
    const now = this.#now;
    const untilAt = Math.max(this.pausedUntilAt(operation), now + Math.min(Math.max(forMs, 0), MAX_PAUSE_MS));
    const others = [...this.#pauses].filter(([other, at]) => other !== operation && at > now);
    this.#pauses.set(operation, untilAt);
    if (others.length === 0) return;
    this.#pausedUntilAt = Math.max(untilAt, ...others.map(([, at]) => at));
    this.#write("a pause could not be written to the quota ledger");
  }

  /** Until when this operation must not be called; without one, until when some may not be. */
  pausedUntilAt(operation?: string): number {
    const own = [...this.#pauses].filter(([paused]) => operation === undefined || paused === operation);
    return Math.max(this.#pausedUntilAt, ...own.map(([, at]) => at));
  }

  /** How long a slot is away from the start of its call. Calls are counted as twice as long as usual, so that a forecast is seldom too early. */
  get awayMs(): number {
    return occupiedMsOf(this.windowMs) + 2 * this.#callMs;
  }

  /** When the n-th slot can be used next, counted from 0; in the past if it is free. Never decreases with n. */
  freeAt(n: number): number {
    const slot = this.#resting[n];
    if (slot !== undefined) return Math.max(this.#pausedUntilAt, slot.usableAt);
    // Slots in flight return after almost all resting ones, in the order in which they were taken.
    const last = this.#resting.at(-1)?.usableAt ?? -Infinity;
    const { takenAt } = [...this.#inFlight][n - this.#resting.length] ?? { takenAt: Infinity };
    return Math.max(this.#pausedUntilAt, last, (takenAt ?? 0) + this.awayMs);
  }

  usage(): { readonly used: number; readonly largestWindowToday: number } {
    const now = this.#now;
    return { used: this.#busy(now).length, largestWindowToday: this.#largestToday(now) };
  }

  rests(): Rests {
    const now = this.#now;
    return {
      windowMs: this.windowMs,
      // Rounded up: a slot may seem to rest a millisecond longer than it must, but never less.
      slots: this.#slots.map(({ usableAt, takenAt }) =>
        takenAt === null ? Math.max(0, Math.ceil(usableAt - now)) : null,
      ),
      pausedForMs: Math.max(0, Math.ceil(this.#pausedUntilAt - now)),
    };
  }

  get #now(): number {
    return this.#settings.clock.monotonic();
  }

  #rest(slot: Slot, usableAt: number): void {
    this.#inFlight.delete(slot);
    Object.assign(slot, { takenAt: null, usableAt });
    const after = this.#resting.findLastIndex((other) => other.usableAt <= usableAt);
    this.#resting.splice(after + 1, 0, slot);
  }

  /** The slots that can't be taken now. */
  #busy(now: number): Slot[] {
    return this.#slots.filter(({ usableAt, takenAt }) => takenAt !== null || usableAt > now);
  }

  #largestToday(now: number): number {
    const today = Math.floor(this.#settings.clock.now() / DAY_MS);
    if (today !== this.#day) this.#largest = 0;
    this.#day = today;
    const real = this.#busy(now).filter(({ isAssumed }) => !isAssumed).length;
    return (this.#largest = Math.max(this.#largest, real));
  }

  #write(what: string): void {
    try {
      this.#settings.record?.(this.rests());
    } catch (error) {
      this.#settings.onFault?.(what, error);
    }
  }
}
