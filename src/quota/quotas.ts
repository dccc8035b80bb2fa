/** One quota per credential, opened on first use. A place belongs to a visitor, so it outlives a change of credentials, and an orderly restart. */
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { failureReason } from "../system-error.js";
import { Line } from "./line.js";
import type { ColdStart, NoteStore, Taken } from "./note.js";
import { type BudgetSettings, SlotTable } from "./slot-table.js";
import { Tickets } from "./tickets.js";

interface QuotasSettings extends BudgetSettings {
  readonly coldStart: ColdStart;
  /** Null for an upstream that starts together with the service: nothing was called before, and nothing is left behind. */
  readonly notes: NoteStore | null;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Quotas {
  /** Opens the quotas of the credentials known at startup. Without a record of the last window, `coldStart` applies to them. */
  openAll(fingerprints: readonly string[]): Promise<void>;
  /**
   * The quota of the credential with this fingerprint; rejects while its record can't be opened, or another replica is its owner. A credential that
   * first appears at runtime comes from a rotation, so it is assumed unused.
   */
  of(fingerprint: string): Promise<Line>;
  /** The same, synchronously; null before its first use. */
  opened(fingerprint: string): Line | null;
  /** Waits for calls in flight, and leaves notes for the next owner. */
  close(): Promise<void>;
}

export function createQuotas({ notes, coldStart, clock, log, ...budget }: QuotasSettings): Quotas {
  const opening = new Map<string, Promise<Line>>();
  const open = new Map<string, Line>();
  const tickets = new Tickets();
  const onFault = (what: string, error: unknown): void => {
    log.error("quota.ledger.failed", { what, reason: failureReason(error) });
  };

  async function create(fingerprint: string, cold: ColdStart): Promise<Line> {
    const {
      note,
      record,
      mayCall = () => true,
    }: Taken = (await notes?.take(fingerprint, cold)) ?? { note: null };
    tickets.adopt(note?.places ?? [], clock.monotonic());
    const table = new SlotTable({ ...budget, rests: note, record, onFault, clock });
    const line = new Line({ table, mayCall, clock, onFault, tickets });
    open.set(fingerprint, line);
    return line;
  }

  function quotaOf(fingerprint: string, cold: ColdStart): Promise<Line> {
    const known = opening.get(fingerprint);
    if (known) return known;
    const line = create(fingerprint, cold);
    opening.set(fingerprint, line);
    line.catch(() => opening.delete(fingerprint));
    return line;
  }

  /** The calls of the next owner are in a table that this process doesn't know. */
  notes?.onLost?.((fingerprint) => {
    void opening
      .get(fingerprint)
      ?.then((line) => line.close())
      .catch(() => undefined);
    opening.delete(fingerprint);
    open.delete(fingerprint);
  });

  return {
    async openAll(fingerprints) {
      await Promise.all(fingerprints.map((fingerprint) => quotaOf(fingerprint, coldStart)));
    },
    of: (fingerprint) => quotaOf(fingerprint, "assume-free"),
    opened: (fingerprint) => open.get(fingerprint) ?? null,
    async close() {
      await Promise.all(
        [...opening].map(async ([fingerprint, opened]) => {
          const note = await opened.then((line) => line.close()).catch(() => null);
          if (note !== null) await notes?.giveUp(fingerprint, note).catch(() => undefined);
        }),
      );
    },
  };
}
