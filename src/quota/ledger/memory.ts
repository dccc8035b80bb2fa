/** A ledger on a slot table. With a journal, every call is written before it is sent; without one, the ledger is lost with the process. */
import type { Clock } from "../../clock.js";
import { graceMsOf, SlotTable } from "./slot-table.js";
import type { Outcome, Ledger, SlotId, Taken } from "./ledger.js";

/** The longest pause: if the upstream asks for more, it is tried again after this. */
export const MAX_PAUSE_MS = 300_000;

const DAY_MS = 86_400_000;

/** Storage for the table. Every method may throw. */
export interface Journal {
  /** Infinity = in flight. */
  slot(id: SlotId, lastArrivalAt: number): void;
  pause(untilMs: number): void;
  close(): Promise<void>;
}

interface TableLedgerSettings {
  readonly limit: number;
  readonly table: SlotTable;
  readonly clock: Clock;
  /** Monotonic. */
  readonly pausedUntilMs?: number;
  readonly journal?: Journal;
  /** Called when a write failed that isn't needed to continue. */
  readonly onFault?: (what: string, error: unknown) => void;
}

/** A ledger on `table`, which nobody else may change from now on. */
export function tableLedger(settings: TableLedgerSettings): Ledger {
  const { limit, table, clock, journal } = settings;
  const { windowMs, occupiedMs } = table;
  const graceMs = graceMsOf(windowMs);
  let pausedUntilMs = settings.pausedUntilMs ?? -Infinity;
  let day = -1;
  let largest = 0;
  let closed = false;

  function largestToday(now: number): number {
    const today = Math.floor(clock.now() / DAY_MS);
    if (today !== day) {
      day = today;
      largest = 0;
    }
    largest = Math.max(largest, table.busy(now).real);
    return largest;
  }

  function write(what: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      settings.onFault?.(what, error);
    }
  }

  async function take(): Promise<Taken> {
    if (closed) throw new Error("the quota ledger is closed");
    const now = clock.monotonic();
    if (pausedUntilMs > now) return { retryInMs: pausedUntilMs - now };
    const slot = table.take(now);
    if (slot === undefined) return { retryInMs: Math.min(windowMs, table.usableInMs(0, now)) };
    try {
      journal?.slot(slot, Infinity);
    } catch (error) {
      table.putBack(slot);
      throw error;
    }
    largestToday(now);
    return { slot };
  }

  async function settle(slot: SlotId, outcome: Outcome): Promise<void> {
    if (!table.inFlight(slot)) return;
    const now = clock.monotonic();
    const lastArrivalAt =
      outcome === "unsent"
        ? table.putBack(slot)
        : table.settle(slot, outcome === "abandoned" ? now + graceMs : now);
    if (closed) return;
    // If the write fails, the call stays recorded as in flight, which only costs some quota after a restart.
    write("a settled call could not be written to the quota ledger", () => {
      journal?.slot(slot, lastArrivalAt);
    });
  }

  async function pause(forMs: number): Promise<void> {
    const untilMs = clock.monotonic() + Math.min(Math.max(forMs, 0), MAX_PAUSE_MS);
    if (!(untilMs > pausedUntilMs)) return;
    pausedUntilMs = untilMs;
    write("a pause could not be written to the quota ledger", () => {
      journal?.pause(untilMs);
    });
  }

  return {
    limit,
    budget: table.size,
    windowMs,
    take,
    urgent: () => {},
    wanted: () => {},
    settle,
    pause,
    forecast: () => {
      const now = clock.monotonic();
      return {
        resting: table.resting,
        usableInMs: (n) => table.usableInMs(n, now),
        borrowableInMs: [],
        updateInMs: Infinity,
        inFlightForMs: table.inFlightForMs(now),
        pausedForMs: Math.max(0, pausedUntilMs - now),
        occupiedMs,
      };
    },
    usage: () => {
      const now = clock.monotonic();
      return { used: table.busy(now).all, largestWindowToday: largestToday(now) };
    },
    close: async () => {
      if (closed) return;
      closed = true;
      await journal?.close();
    },
  };
}

export interface BudgetSettings {
  /** Calls per window that the upstream allows. */
  readonly limit: number;
  /** How many of these are left unused. */
  readonly headroom: number;
  readonly windowMs: number;
}

/** A ledger that starts empty and is lost with the process: for an upstream that starts together with the service, and for tests. */
export function memoryLedger(settings: BudgetSettings & { readonly clock: Clock }): Ledger {
  const { limit, headroom, windowMs, clock } = settings;
  return tableLedger({ limit, table: new SlotTable(limit - headroom, windowMs), clock });
}
