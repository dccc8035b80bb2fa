/** The pools of facts: what each keeps, for how long, and which of two overlapping facts wins. */
import type { AccountFact } from "./staff/account-facts.js";
import { createPool, type FailureKind, type Pool, type PoolStats } from "./cache/cache.js";
import type { Clock } from "./clock.js";
import type { CacheConfig } from "./config/cache.js";
import { ServiceError } from "./errors.js";
import type { Ask } from "./quota/quota.js";
import { type Quote, quoteCaution } from "./retail/price-quotes.js";
import {
  checkCaution,
  type NameStatus,
  type PricedCheck,
  statusCaution,
  type VisitorAsk,
} from "./storefront/name-facts.js";
import { PREMIUM_KEPT_MS, type PremiumMark, premiumCaution } from "./storefront/premium-marks.js";
import type { Tier } from "./upstream/contract.js";
import { failureCodeOf } from "./upstream/failures.js";

export interface Pools {
  readonly availability: Pool<PricedCheck, VisitorAsk>;
  readonly statuses: Pool<NameStatus, VisitorAsk>;
  readonly premium: Pool<PremiumMark, never>;
  readonly prices: Pool<Quote, Ask>;
  readonly tier: Pool<Tier, Ask>;
  readonly account: Pool<AccountFact, Ask>;
}

/** The pools whose figures staff see. */
export type PoolFigures = Readonly<
  Record<"availability" | "prices" | "tier" | "account", { stats(): PoolStats }>
>;

export interface PoolSettings {
  readonly cache: CacheConfig;
  readonly clock: Clock;
  readonly stamp: () => number;
  /** Called whenever a fact that answers depend on is added or dropped. */
  readonly onChange: () => void;
}

export function createPools({ cache, clock, stamp, onChange }: PoolSettings): Pools {
  const { failureMs } = cache.availability;
  return {
    availability: createPool({
      ...cache.availability,
      freshness: ({ status }) => cache.availability[status],
      caution: checkCaution,
      failureKind,
      clock,
      onChange,
      stamp,
    }),
    statuses: createPool({
      ...cache.availability,
      // "Available" is never read from this pool, but must outlive every "taken" that it ended.
      freshness: () => cache.availability.taken,
      caution: statusCaution,
      clock,
      onChange,
      stamp,
    }),
    premium: createPool({
      entries: cache.availability.entries,
      freshness: () => ({ freshMs: PREMIUM_KEPT_MS, usableMs: PREMIUM_KEPT_MS }),
      failureMs,
      caution: premiumCaution,
      clock,
      onChange,
      stamp,
    }),
    prices: createPool({
      ...cache.prices,
      freshness: () => cache.prices,
      caution: quoteCaution,
      failureKind,
      clock,
      onChange,
    }),
    tier: createPool({
      ...cache.tier,
      freshness: () => cache.tier,
      failureKind,
      clock,
      onChange,
    }),
    account: createPool({
      ...cache.account,
      freshness: () => cache.account,
      failureKind,
      clock,
      onChange,
    }),
  };
}

/**
 * Refusals because of the quota are neither remembered nor shared. They pass quickly, so remembering them would refuse visitors who could be
 * served; and their wait and reservation belong to the first caller, so each of the others makes its own request.
 */
function failureKind(error: unknown): FailureKind {
  if (!(error instanceof ServiceError)) return "shared";
  if (error.code === "rate_limited" || error.code === "quota_exhausted") return "own";
  return failureCodeOf(error) === null ? "shared" : "remembered";
}
