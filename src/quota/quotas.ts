/**
 * One quota per credential, opened on first use. Replicas share its budget through Redis. Without Redis, each uses only its own share, so that
 * together they never exceed it.
 */
import type { Log } from "../logger.js";
import type { RedisLink } from "../redis.js";
import { failureReason } from "../system-error.js";
import { openFileLedger } from "./ledger/file.js";
import { memoryLedger } from "./ledger/memory.js";
import { openRedisLedger, type RedisLedgerSettings } from "./ledger/redis.js";
import { saveReservations } from "./saved-reservations.js";
import { createQuota, type CredentialQuota, type SchedulerSettings } from "./scheduler/scheduler.js";
import { shareReservations } from "./shared-reservations.js";
import type { Ledger } from "./ledger/ledger.js";
import type { Quota } from "./quota.js";

/** These apply to each credential. `headroom` is what all replicas together leave unused. */
interface QuotasSettings extends Omit<
  RedisLedgerSettings,
  "redis" | "fingerprint" | "directory" | "onFault"
> {
  /**
   * Where the ledgers are kept: in memory only for an upstream that starts together with the service. With Redis, processes leave handover files in
   * the folder.
   */
  readonly home:
    { readonly redis: RedisLink; readonly directory?: string } | { readonly directory: string } | "memory";
  readonly log: Log;
}

export interface Quotas {
  /** Opens the quotas of the credentials known at startup. Without a record of the last window, `coldStart` applies to them. */
  openAll(fingerprints: readonly string[]): Promise<void>;
  /**
   * The quota of the credential with this fingerprint; rejects while its ledger can't be opened. A credential that first appears at runtime comes
   * from a rotation: without a record, it is assumed unused.
   */
  of(fingerprint: string): Promise<Quota>;
  /** The same, synchronously; null before its first use. */
  opened(fingerprint: string): Quota | null;
  close(): Promise<void>;
}

export function createQuotas(settings: QuotasSettings): Quotas {
  const { limit, headroom, windowMs, replicasMax, home, clock, log } = settings;
  const share = Math.floor((limit - headroom) / replicasMax);
  const shareOfHeadroom = Math.floor(headroom / replicasMax);
  const own = { limit: share + shareOfHeadroom, headroom: shareOfHeadroom, windowMs };
  const opening = new Map<string, Promise<CredentialQuota>>();
  const open = new Map<string, CredentialQuota>();
  let inUse: CredentialQuota | null = null;
  const onFault = (what: string, error: unknown): void => {
    log.error("quota.ledger.failed", { what, reason: failureReason(error) });
  };

  async function ledgerOf(fingerprint: string, coldStart: QuotasSettings["coldStart"]): Promise<Ledger> {
    if (home === "memory") return memoryLedger({ ...own, clock });
    if ("redis" in home) return openRedisLedger({ ...settings, ...home, fingerprint, coldStart, onFault });
    return openFileLedger({ ...own, directory: home.directory, fingerprint, coldStart, clock, onFault });
  }

  async function create(
    fingerprint: string,
    coldStart: QuotasSettings["coldStart"],
  ): Promise<CredentialQuota> {
    const ledger = await ledgerOf(fingerprint, coldStart);
    const quota = createQuota({ ledger, clock, onFault, ...sharingOf(fingerprint) });
    open.set(fingerprint, quota);
    return quota;
  }

  /** Shares the reservations with the other replicas, or hands them to the next process; not for an upstream that ends with this process. */
  function sharingOf(fingerprint: string): Pick<SchedulerSettings, "share"> {
    if (home === "memory") return {};
    if ("redis" in home && replicasMax > 1)
      return { share: (own) => shareReservations({ redis: home.redis, fingerprint, clock }, own) };
    const { directory } = home;
    if (directory === undefined) return {};
    return { share: (own) => saveReservations({ directory, fingerprint, windowMs, clock, log }, own) };
  }

  function quotaOf(fingerprint: string, coldStart: QuotasSettings["coldStart"]): Promise<CredentialQuota> {
    const known = opening.get(fingerprint);
    if (known) return known;
    const quota = create(fingerprint, coldStart);
    opening.set(fingerprint, quota);
    quota.catch(() => opening.delete(fingerprint));
    return quota;
  }

  /** Reservations are kept when another credential is used. */
  function use(quota: CredentialQuota): Quota {
    if (inUse !== null && inUse !== quota) quota.takeOver(inUse);
    inUse = quota;
    return quota;
  }

  return {
    async openAll(fingerprints) {
      await Promise.all(fingerprints.map((fingerprint) => quotaOf(fingerprint, settings.coldStart)));
    },
    of: async (fingerprint) => use(await quotaOf(fingerprint, "assume-free")),
    opened(fingerprint) {
      const quota = open.get(fingerprint);
      return quota === undefined ? null : use(quota);
    },
    async close() {
      await Promise.all(
        [...opening.values()].map((quota) =>
          quota.then(
            (opened) => opened.close(),
            () => {},
          ),
        ),
      );
    },
  };
}
