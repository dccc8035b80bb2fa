/** One quota per credential, opened on first use. A place belongs to a visitor, so it outlives a change of credentials, and an orderly restart. */
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { createSavedFile } from "../saved-file.js";
import { failureReason } from "../system-error.js";
import { type BudgetSettings, type Ledger, memoryLedger, type Rests } from "./ledger.js";
import { openFileLedger } from "./ledger-file.js";
import { Line } from "./line.js";
import type { Note, Quota } from "./quota.js";
import { type HandedPlace, handedPlace, Tickets } from "./tickets.js";

/** What is known of earlier calls when this process becomes the owner of a credential. */
export interface Beginning {
  /** How long slots must still rest. */
  readonly rests: Rests | null;
  /** Until then nothing may be called: a former owner's calls count as just made. Monotonic; -Infinity: at once. */
  readonly blockedUntilAt: number;
  readonly places: readonly HandedPlace[];
}

/** The right to call with a credential, of which there is one among all replicas. */
export interface Leases {
  /** Resolves when this process is the owner; rejects with `unavailable` if another one is, or if that is unknown. */
  take(fingerprint: string): Promise<Beginning>;
  /** Whether this process may send calls now. */
  mayCall(fingerprint: string): boolean;
  /** Calls `act` when another process may have become the owner. */
  onLost(act: (fingerprint: string) => void): void;
  /** Gives up the right, and leaves the note for the next owner. */
  giveUp(fingerprint: string, note: Note): Promise<void>;
}

interface QuotasSettings extends BudgetSettings {
  readonly coldStart: "assume-spent" | "assume-free";
  /** Where the ledgers are kept: in memory for an upstream that starts together with the service, and for the owner among several replicas. */
  readonly home: { readonly directory: string } | { readonly leases: Leases } | "memory";
  readonly clock: Clock;
  readonly log: Log;
}

export interface Quotas {
  /** Opens the quotas of the credentials known at startup. Without a record of the last window, `coldStart` applies to them. */
  openAll(fingerprints: readonly string[]): Promise<void>;
  /**
   * The quota of the credential with this fingerprint; rejects while its ledger can't be opened, or another replica is its owner. Without replicas,
   * a credential that first appears at runtime comes from a rotation, so it is assumed unused.
   */
  of(fingerprint: string): Promise<Quota>;
  /** The same, synchronously; null before its first use. */
  opened(fingerprint: string): Quota | null;
  /** Waits for calls in flight, and leaves notes for the next owner. */
  close(): Promise<void>;
}

const savedPlaces = z.strictObject({ atMs: z.number(), places: z.array(handedPlace) });

export function createQuotas({ home, coldStart, clock, log, ...budget }: QuotasSettings): Quotas {
  const opening = new Map<string, Promise<Quota>>();
  const open = new Map<string, Quota>();
  const tickets = new Tickets();
  const onFault = (what: string, error: unknown): void => {
    log.error("quota.ledger.failed", { what, reason: failureReason(error) });
  };
  const leases = typeof home === "object" && "leases" in home ? home.leases : null;
  const places =
    typeof home === "object" && "directory" in home
      ? createSavedFile({
          path: join(home.directory, "places.json"),
          shape: savedPlaces,
          source: () => "",
          clock,
          log,
        })
      : null;

  async function ledgerOf(fingerprint: string, cold: QuotasSettings["coldStart"]): Promise<Ledger> {
    if (home === "memory") return memoryLedger({ ...budget, clock });
    if ("directory" in home)
      return openFileLedger({
        ...budget,
        directory: home.directory,
        fingerprint,
        coldStart: cold,
        clock,
        onFault,
      });
    const { rests, blockedUntilAt, places: handed } = await home.leases.take(fingerprint);
    tickets.adopt(handed, clock.monotonic());
    const mayCall = (): boolean => home.leases.mayCall(fingerprint);
    return memoryLedger({ ...budget, ...(rests && { rests }), blockedUntilAt, mayCall, clock });
  }

  async function create(fingerprint: string, cold: QuotasSettings["coldStart"]): Promise<Quota> {
    const ledger = await ledgerOf(fingerprint, cold);
    const quota = new Line({ ledger, clock, onFault, tickets });
    open.set(fingerprint, quota);
    return quota;
  }

  function quotaOf(fingerprint: string, cold: QuotasSettings["coldStart"]): Promise<Quota> {
    const known = opening.get(fingerprint);
    if (known) return known;
    const quota = create(fingerprint, cold);
    opening.set(fingerprint, quota);
    quota.catch(() => opening.delete(fingerprint));
    return quota;
  }

  /** The calls of the former owner are in its table, which the next one doesn't know. */
  leases?.onLost((fingerprint) => {
    void opening
      .get(fingerprint)
      ?.then((quota) => quota.close())
      .catch(() => undefined);
    opening.delete(fingerprint);
    open.delete(fingerprint);
  });

  return {
    async openAll(fingerprints) {
      const saved = (await places?.load()) ?? null;
      if (saved !== null && saved.places.length > 0) {
        const agoMs = Math.max(0, clock.now() - saved.atMs);
        const later = saved.places.map((place) => ({ ...place, dueInMs: place.dueInMs - agoMs }));
        if (agoMs < budget.windowMs) tickets.adopt(later, clock.monotonic());
        places?.save({ atMs: clock.now(), places: [] });
      }
      await Promise.all(fingerprints.map((fingerprint) => quotaOf(fingerprint, coldStart)));
    },
    of: (fingerprint) => quotaOf(fingerprint, "assume-free"),
    opened: (fingerprint) => open.get(fingerprint) ?? null,
    async close() {
      await Promise.all(
        [...opening].map(async ([fingerprint, quota]) => {
          const note = await quota.then((opened) => opened.close()).catch(() => null);
          if (note !== null) await leases?.giveUp(fingerprint, note);
        }),
      );
      places?.save({ atMs: clock.now(), places: tickets.handOver(clock.monotonic()) });
      await places?.saved();
    },
  };
}
