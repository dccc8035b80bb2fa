/** The service's own state: in figures for staff, in coarse words for everybody. */
import type { PoolStats } from "../cache/cache.js";
import type { QuotaSnapshot } from "../quota/quota.js";
import type { Upstream } from "../upstream/client.js";
import type { Credentials } from "../upstream/credentials.js";
import type { HealthCheck, HealthParts } from "./health.js";
import { instant } from "./presenters.js";

export interface OverviewParts {
  readonly mode: "sandbox" | "upstream";
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly quota: QuotaSnapshot | null;
  readonly pools: Readonly<Record<"availability" | "prices" | "tier" | "account", { stats(): PoolStats }>>;
  readonly refusedLocally: number;
}

/** For staff: `saved` counts the calls that memory, sharing and local validation made unnecessary. */
export function presentOverview({
  mode,
  credentials,
  upstream,
  quota,
  pools,
  refusedLocally,
}: OverviewParts) {
  const { lastSuccessAtMs, lastFailureAtMs } = upstream.health();
  const caches = {
    availability: pools.availability.stats(),
    prices: pools.prices.stats(),
    tier: pools.tier.stats(),
    account: pools.account.stats(),
  };
  const sum = (of: (pool: PoolStats) => number): number =>
    Object.values(caches).reduce((total, pool) => total + of(pool), 0);
  return {
    mode,
    quota,
    caches,
    upstream: {
      lastSuccessAt: lastSuccessAtMs === null ? null : instant(lastSuccessAtMs),
      lastFailureAt: lastFailureAtMs === null ? null : instant(lastFailureAtMs),
    },
    credentials: credentials.states(),
    saved: {
      cache: sum(({ counts }) => counts.hit),
      coalesced: sum(({ counts }) => counts.inflight),
      refusedLocally,
    },
  };
}

export interface HealthFacts {
  readonly redisConfigured: boolean;
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly quota: QuotaSnapshot | null;
  /** The prices known, and how many are sold. */
  readonly known: readonly { readonly stale: boolean }[];
  readonly sold: number;
}

export function healthChecks(facts: HealthFacts): ReturnType<HealthParts["checks"]> {
  return {
    upstream: upstreamCheck(facts),
    quota: quotaCheck(facts.quota),
    redis: facts.redisConfigured
      ? { status: "warn", output: "Not shared: each replica keeps to its own share of the quota." }
      : { status: "pass", output: "Not configured." },
    prices: pricesCheck(facts),
  };
}

function upstreamCheck({ credentials, upstream }: HealthFacts): HealthCheck {
  const { lastSuccessAtMs, lastFailureAtMs } = upstream.health();
  if (credentials.usable() === null) return { status: "fail", output: "Every credential is refused." };
  const failing = lastFailureAtMs !== null && lastFailureAtMs > (lastSuccessAtMs ?? 0);
  return failing ? { status: "warn", output: "The last call failed." } : { status: "pass" };
}

function quotaCheck(quota: QuotaSnapshot | null): HealthCheck {
  const spent = quota !== null && (quota.pausedForMs > 0 || quota.used >= quota.budget);
  return spent ? { status: "warn", output: "No call can be made at the moment." } : { status: "pass" };
}

function pricesCheck({ known, sold }: HealthFacts): HealthCheck {
  if (known.length === 0) return { status: "warn", output: "No price is known yet." };
  const whole = known.length === sold && !known.some(({ stale }) => stale);
  return whole ? { status: "pass" } : { status: "warn", output: "Some prices are missing or old." };
}
