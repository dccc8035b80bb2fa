/**
 * The record of spent calls: decides how many may be made, not whose. With a journal, every call is written before it is sent. Nothing is called
 * while this process has no right to, during a pause, or before the calls of a former process have rested.
 */
import type { Clock } from "../clock.js";
import { graceMsOf, type SlotId, SlotTable } from "./slot-table.js";

/** The longest pause: if the upstream asks for more, it is tried again after this. */
export const MAX_PAUSE_MS = 300_000;
const DAY_MS = 86_400_000;

export interface BudgetSettings {
  /** Calls per window that the upstream allows. */
  readonly limit: number;
  /** How many of these are left unused. */
  readonly headroom: number;
  readonly windowMs: number;
}

/** How a call ended: answered, abandoned although it may still arrive, or never sent. */
export type Outcome = "answered" | "abandoned" | "unsent";

/** Storage for the table. Every method may throw. */
export interface Journal {
  /** Infinity = in flight. */
  slot(id: SlotId, lastArrivalAt: number): void;
  pause(untilAt: number): void;
  close(): Promise<void>;
}

interface LedgerSettings {
  readonly limit: number;
  readonly table: SlotTable;
  readonly clock: Clock;
  /** Monotonic: the end of a pause that the upstream has asked for, and until when other reasons forbid calls. */
  readonly pausedUntilAt?: number;
  readonly blockedUntilAt?: number;
  readonly journal?: Journal;
  /** Whether this process has the right to call now. Default: always. */
  readonly mayCall?: () => boolean;
  /** Called when a write failed that isn't needed to continue. */
  readonly onFault?: (what: string, error: unknown) => void;
}

/** How long each slot must still rest, and how long the pause lasts; in ms from the time of writing. */
export interface Rests {
  readonly windowMs: number;
  readonly slots: readonly number[];
  readonly pausedForMs: number;
}

export class Ledger {
  readonly limit: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly #settings: LedgerSettings;
  readonly #table: SlotTable;
  #pausedUntilAt: number;
  #day = -1;
  #largest = 0;
  #closed = false;
  /** The average time that a call takes, and how much it varies. */
  #callMs: { readonly mean: number; readonly deviation: number } | null = null;

  /** Nobody else may change the table from now on. */
  constructor(settings: LedgerSettings) {
    this.#settings = settings;
    this.#table = settings.table;
    this.limit = settings.limit;
    this.budget = settings.table.size;
    this.windowMs = settings.table.windowMs;
    this.#pausedUntilAt = settings.pausedUntilAt ?? -Infinity;
  }

  /** Whether a call may be sent now, as far as the right to call is concerned. */
  mayCall(): boolean {
    return this.#settings.mayCall?.() ?? true;
  }

  /** Records one call before it is sent; null if none can be made now. If this throws, nothing was recorded, so nothing may be sent. */
  take(): SlotId | null {
    if (this.#closed) throw new Error("the quota ledger is closed");
    const now = this.#now;
    if (this.#heldUntilAt > now || !this.mayCall()) return null;
    const slot = this.#table.take(now);
    if (slot === undefined) return null;
    try {
      this.#settings.journal?.slot(slot, Infinity);
    } catch (error) {
      this.#table.putBack(slot);
      throw error;
    }
    this.#largestToday(now);
    return slot;
  }

  /** Ends the call of a taken slot; repeating it for the same slot has no effect. */
  settle(slot: SlotId, outcome: Outcome, tookMs = 0): void {
    if (!this.#table.inFlight(slot)) return;
    const now = this.#now;
    if (outcome !== "unsent") this.#learn(tookMs);
    const graceMs = outcome === "abandoned" ? graceMsOf(this.windowMs) : 0;
    const lastArrivalAt =
      outcome === "unsent" ? this.#table.putBack(slot) : this.#table.settle(slot, now + graceMs);
    if (this.#closed) return;
    // If the write fails, the call stays recorded as in flight, which only costs some quota after a restart.
    this.#write("a settled call could not be written to the quota ledger", () => {
      this.#settings.journal?.slot(slot, lastArrivalAt);
    });
  }

  /** Makes no calls for this long; an earlier, longer pause stands. */
  pause(forMs: number): void {
    const untilAt = this.#now + Math.min(Math.max(forMs, 0), MAX_PAUSE_MS);
    if (untilAt <= this.#pausedUntilAt) return;
    this.#pausedUntilAt = untilAt;
    this.#write("a pause could not be written to the quota ledger", () => {
      this.#settings.journal?.pause(untilAt);
    });
  }

  /** The end of the last pause that the upstream asked for; monotonic. */
  get pausedUntilAt(): number {
    return this.#pausedUntilAt;
  }

  /** How long a slot is away from the start of its call, usually. */
  get awayMs(): number {
    return this.#table.occupiedMs + this.#likelyMs;
  }

  /** When the n-th slot can be used next, counted from 0; monotonic, in the past if it is free. Never decreases with n. */
  freeAt(n: number): number {
    return Math.max(this.#heldUntilAt, this.#table.freeAt(n, this.#likelyMs));
  }

  usage(): { readonly used: number; readonly largestWindowToday: number } {
    const now = this.#now;
    const isHeld = (this.#settings.blockedUntilAt ?? -Infinity) > now;
    const used = isHeld ? this.budget : this.#table.busy(now).all;
    return { used, largestWindowToday: this.#largestToday(now) };
  }

  /** For the next process: how long each slot must rest. A slot rests also for as long as this process itself wasn't allowed to call. */
  rests(): Rests {
    const now = this.#now;
    const leastMs = Math.max(0, (this.#settings.blockedUntilAt ?? -Infinity) - now);
    const slots = this.#table
      .lastArrivals()
      .map((at) => (at === Infinity ? now + graceMsOf(this.windowMs) : at) + this.#table.occupiedMs - now)
      .map((ms) => Math.ceil(Math.max(leastMs, ms)));
    return { windowMs: this.windowMs, slots, pausedForMs: Math.max(0, this.#pausedUntilAt - now) };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#settings.journal?.close();
  }

  get #now(): number {
    return this.#settings.clock.monotonic();
  }

  get #heldUntilAt(): number {
    return Math.max(this.#pausedUntilAt, this.#settings.blockedUntilAt ?? -Infinity);
  }

  /** Twice the deviation more than the mean, so that a forecast is seldom too early. */
  get #likelyMs(): number {
    return this.#callMs === null ? 0 : this.#callMs.mean + 2 * this.#callMs.deviation;
  }

  #learn(tookMs: number): void {
    const { mean, deviation } = this.#callMs ?? { mean: tookMs, deviation: 0 };
    const off = Math.abs(tookMs - mean);
    this.#callMs = { mean: mean + (tookMs - mean) / 16, deviation: deviation + (off - deviation) / 16 };
  }

  #largestToday(now: number): number {
    const today = Math.floor(this.#settings.clock.now() / DAY_MS);
    if (today !== this.#day) this.#largest = 0;
    this.#day = today;
    this.#largest = Math.max(this.#largest, this.#table.busy(now).real);
    return this.#largest;
  }

  #write(what: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#settings.onFault?.(what, error);
    }
  }
}

interface MemorySettings
  extends BudgetSettings, Pick<LedgerSettings, "clock" | "mayCall" | "blockedUntilAt"> {
  /** How long the slots must still rest. Default: not at all. */
  readonly rests?: Rests;
}

/** A ledger in memory: for an upstream that starts together with the service, for the owner among several replicas, and for tests. */
export function memoryLedger({ limit, headroom, windowMs, rests, ...settings }: MemorySettings): Ledger {
  const budget = limit - headroom;
  const table = new SlotTable(budget, windowMs);
  const now = settings.clock.monotonic();
  // If there are fewer slots than before, they get those that rest longest.
  const slots = (rests?.slots ?? []).toSorted((a, b) => b - a).slice(0, budget);
  const free = Array.from({ length: budget - slots.length }, () => 0);
  table.restore(
    [...slots, ...free].map((ms) => ({
      lastArrivalAt: ms > 0 ? now + ms - table.occupiedMs : -Infinity,
      assumed: true,
    })),
  );
  const pausedUntilAt = now + Math.min(rests?.pausedForMs ?? -Infinity, MAX_PAUSE_MS);
  return new Ledger({ ...settings, limit, table, pausedUntilAt });
}
