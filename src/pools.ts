/** The pools of facts: what each keeps, for how long, and which of two overlapping facts wins. */
import { type AccountFact, decodeStoredFact, decodeStoredTier } from "./account/account-facts.js";
import { createPool, type FailureKind, type Pool, type PoolStats } from "./cache/cache.js";
import type { Channel, Invalidation } from "./cache/invalidation.js";
import { redisPool } from "./cache/redis-pool.js";
import type { SharedPool } from "./cache/replicas.js";
import type { Clock } from "./clock.js";
import type { CacheConfig } from "./config/cache.js";
import { ServiceError } from "./errors.js";
import type { Ask } from "./quota/quota.js";
import type { RedisLink } from "./redis.js";
import { decodeStoredQuote, decodeLearnedUnder, type LearnedUnder } from "./retail/price-facts.js";
import { type Quote, quoteCaution } from "./retail/price-quotes.js";
import {
  checkCaution,
  decodeStoredPricedCheck,
  decodeStoredStatus,
  type NameStatus,
  type PricedCheck,
  statusCaution,
  type VisitorAsk,
} from "./storefront/name-facts.js";
import {
  decodeStoredPremium,
  PREMIUM_KEPT_MS,
  type PremiumMark,
  premiumCaution,
} from "./storefront/premium-marks.js";
import type { Tier } from "./upstream/contract.js";
import { failureCodeOf } from "./upstream/failures.js";

export interface Pools {
  readonly availability: Pool<PricedCheck, VisitorAsk>;
  readonly statuses: Pool<NameStatus, VisitorAsk>;
  readonly premium: Pool<PremiumMark, never>;
  readonly prices: Pool<Quote, Ask>;
  readonly learnedUnder: Pool<LearnedUnder, never>;
  readonly tier: Pool<Tier, Ask>;
  readonly account: Pool<AccountFact, Ask>;
}

/** The pools whose figures staff see. */
export type PoolFigures = Readonly<
  Record<"availability" | "prices" | "tier" | "account", { stats(): PoolStats }>
>;

export interface PoolSettings {
  readonly cache: CacheConfig;
  /** Null without other replicas. */
  readonly shared: { readonly link: RedisLink; readonly invalidation: Invalidation } | null;
  /** Identifies the upstream. */
  readonly upstreamId: string;
  /** Identifies the upstream and the active credential, and so the account that facts belong to. */
  readonly source: () => string;
  readonly clock: Clock;
  readonly stamp: () => number;
}

/** The clock of Redis: the wall clocks of replicas may differ, and each may be set. */
function clockOf(link: RedisLink, clock: Clock): Clock {
  return {
    now: () => clock.now() + link.aheadMs(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, run) => clock.after(delayMs, run),
  };
}

export function createPools({ cache, shared, upstreamId, source, clock, stamp }: PoolSettings): Pools {
  function sharedPool<V>(
    name: string,
    decode: (data: unknown, key: string) => V | undefined,
    purges: Channel | null,
    of = source,
  ): SharedPool<V> | null {
    if (shared === null) return null;
    const { link } = shared;
    return redisPool({ link, name, purges, source: of, decode, clock: clockOf(link, clock) });
  }
  const channel = (name: string): Channel | null => shared?.invalidation.channel(name) ?? null;
  const namePurges = channel("availability");
  const { failureMs } = cache.availability;
  return {
    availability: createPool({
      ...cache.availability,
      freshness: ({ status }) => cache.availability[status],
      caution: checkCaution,
      failureKind,
      clock,
      stamp,
      shared: sharedPool("availability", decodeStoredPricedCheck, namePurges),
    }),
    statuses: createPool({
      ...cache.availability,
      // "Available" is never read from this pool, but must outlive every "taken" that it ended.
      freshness: () => cache.availability.taken,
      caution: statusCaution,
      clock,
      stamp,
      shared: sharedPool("statuses", decodeStoredStatus, namePurges),
    }),
    premium: createPool({
      entries: cache.availability.entries,
      freshness: () => ({ freshMs: PREMIUM_KEPT_MS, usableMs: PREMIUM_KEPT_MS }),
      failureMs,
      caution: premiumCaution,
      clock,
      stamp,
      shared: sharedPool("premium", decodeStoredPremium, null, () => upstreamId),
    }),
    prices: createPool({
      ...cache.prices,
      freshness: () => cache.prices,
      caution: quoteCaution,
      failureKind,
      clock,
      shared: sharedPool("prices", decodeStoredQuote, null),
    }),
    learnedUnder: createPool({
      entries: 1,
      freshness: () => ({ freshMs: cache.prices.usableMs, usableMs: cache.prices.usableMs }),
      failureMs,
      clock,
      shared: sharedPool("learned-under", decodeLearnedUnder, null),
    }),
    tier: createPool({
      ...cache.tier,
      freshness: () => cache.tier,
      failureKind,
      clock,
      shared: sharedPool("tier", decodeStoredTier, channel("tier")),
    }),
    account: createPool({
      ...cache.account,
      freshness: () => cache.account,
      failureKind,
      clock,
      shared: sharedPool("account", decodeStoredFact, channel("account")),
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
