/** The state of the service: with figures for staff, and in coarse words for `/health`. */
import type { PoolStats } from "../cache/cache.js";
import type { Clock } from "../clock.js";
import type { StateReaders } from "../metrics.js";
import type { QuotaSnapshot } from "../quota/quota.js";
import type { LivePolicy, RetailFileState } from "../retail/live-policy.js";
import type { PromisesInForce } from "../retail/lost-margin.js";
import type { PriceEpochs } from "../retail/price-epoch.js";
import type { PriceList } from "../retail/price-list.js";
import type { Upstream } from "../upstream/client.js";
import type { Credentials } from "../upstream/credentials.js";
import { OPERATIONS } from "../upstream/operation.js";
import type { RecentCalls } from "../upstream/recent-calls.js";
import type { HealthCheck, HealthParts } from "./health.js";
import { instant, presentEndedEpoch, presentStaffPrices } from "./presenters.js";

/** Whether Redis is in use, unreachable or not configured. */
export type Redis = "shared" | "gone" | "none";

export interface OverviewParts {
  readonly mode: "sandbox" | "upstream";
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly recentCalls: Pick<RecentCalls, "figures" | "windowMs">;
  readonly quota: QuotaSnapshot | null;
  readonly redis: Redis;
  readonly pools: Readonly<Record<"availability" | "prices" | "tier" | "account", { stats(): PoolStats }>>;
  readonly refusedLocally: number;
  readonly prices: Pick<PriceList, "facts" | "size">;
  readonly epochs: Pick<PriceEpochs, "ended">;
  readonly retailFile: RetailFileState;
  readonly promises: PromisesInForce;
}

/** For staff. `saved` counts the calls avoided by the cache, shared questions, other replicas and local validation. */
export function presentOverview({
  mode,
  credentials,
  upstream,
  recentCalls,
  quota,
  redis,
  pools,
  refusedLocally,
  prices,
  epochs,
  retailFile,
  promises,
}: OverviewParts) {
  const { lastSuccessAtMs, lastFailureAtMs, leftAlone } = upstream.health();
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
    redis,
    caches,
    upstream: {
      lastSuccessAt: lastSuccessAtMs === null ? null : instant(lastSuccessAtMs),
      lastFailureAt: lastFailureAtMs === null ? null : instant(lastFailureAtMs),
      openCircuits: leftAlone,
      recent: { windowMs: recentCalls.windowMs, operations: recentCalls.figures() },
    },
    unexpected: upstream.surprises.list().map(({ operation, what, count, firstSeenMs }) => ({
      operation,
      what,
      count,
      firstSeen: instant(firstSeenMs),
    })),
    credentials: credentials.states(),
    prices: {
      sold: prices.size,
      known: prices.facts().length,
      doubtful: prices.facts().filter(({ isDoubtful }) => isDoubtful).length,
      epochsEnded: epochs.ended().map(presentEndedEpoch),
      config: {
        fingerprint: retailFile.fingerprint,
        since: instant(retailFile.sinceMs),
        faults: retailFile.faults,
      },
    },
    promises,
    saved: {
      cache: sum(({ counts }) => counts.hit),
      coalesced: sum(({ counts }) => counts.inflight),
      shared: sum(({ counts }) => counts.shared),
      refusedLocally,
    },
  };
}

const WARNINGS_KEPT_MS = 1_000;

/** The warnings of the staff price list, recomputed at most once a second, because anyone can request `/health` at any rate. */
export function priceWarnings(
  prices: PriceList,
  policies: Pick<LivePolicy, "current" | "state">,
  clock: Clock,
): () => readonly string[] {
  let kept: readonly string[] = [];
  let keptUntilMs = -Infinity;
  return () => {
    if (clock.monotonic() >= keptUntilMs) {
      kept = presentStaffPrices(prices, policies.current(), policies.state(), clock.now()).warnings;
      keptUntilMs = clock.monotonic() + WARNINGS_KEPT_MS;
    }
    return kept;
  };
}

export interface HealthFacts {
  readonly redis: Redis;
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly quota: QuotaSnapshot | null;
  /** Why the ledger's folder isn't usable; null while it is. */
  readonly stateProblem: string | null;
  /** The known prices, and how many are sold. */
  readonly known: readonly { readonly stale: boolean }[];
  readonly sold: number;
  /** The warnings of the staff price list. */
  readonly warnings: readonly string[];
}

export function healthChecks(facts: HealthFacts): ReturnType<HealthParts["checks"]> {
  return {
    upstream: upstreamCheck(facts),
    quota: quotaCheck(facts),
    redis: REDIS_CHECKS[facts.redis],
    prices: pricesCheck(facts),
  };
}

/** The same state for the metrics. */
export function stateReaders(parts: {
  readonly checks: HealthParts["checks"];
  readonly upstream: Upstream;
  readonly credentials: Credentials;
  readonly policies: Pick<LivePolicy, "state">;
}): StateReaders {
  const { checks, upstream, credentials, policies } = parts;
  const figures = { pass: 0, warn: 1, fail: 2 };
  return {
    health: () =>
      Object.fromEntries(Object.entries(checks()).map(([name, { status }]) => [name, figures[status]])),
    circuits: () => {
      const { leftAlone } = upstream.health();
      return Object.fromEntries(OPERATIONS.map((one) => [one, Number(leftAlone.includes(one))]));
    },
    credentials: () =>
      Object.fromEntries(credentials.states().map(({ role, refused }) => [role, Number(refused)])),
    retailFaults: () => {
      const { fingerprint, faults } = policies.state();
      return { [fingerprint]: faults.length };
    },
  };
}

const REDIS_CHECKS: Readonly<Record<Redis, HealthCheck>> = {
  shared: { status: "pass" },
  gone: { status: "warn", output: "Unreachable. Each replica uses its own share of the quota." },
  none: { status: "pass", output: "Not configured." },
};

function upstreamCheck({ credentials, upstream }: HealthFacts): HealthCheck {
  const { lastSuccessAtMs, lastFailureAtMs, leftAlone } = upstream.health();
  if (credentials.states().every(({ refused }) => refused))
    return { status: "fail", output: "Every credential is refused." };
  if (leftAlone.length > 0)
    return { status: "warn", output: "Calls keep failing; only trial requests are made." };
  const failing = lastFailureAtMs !== null && lastFailureAtMs > (lastSuccessAtMs ?? 0);
  return failing ? { status: "warn", output: "The last call failed." } : { status: "pass" };
}

function quotaCheck({ quota, stateProblem }: HealthFacts): HealthCheck {
  if (stateProblem !== null) return { status: "warn", output: stateProblem };
  const spent = quota !== null && (quota.pausedForMs > 0 || quota.used >= quota.budget);
  return spent ? { status: "warn", output: "No call can be made at the moment." } : { status: "pass" };
}

function pricesCheck({ known, sold, warnings }: HealthFacts): HealthCheck {
  if (known.length === 0) return { status: "warn", output: "No prices are known yet." };
  const whole = known.length === sold && !known.some(({ stale }) => stale);
  if (!whole) return { status: "warn", output: "Some prices are missing or old." };
  // Says nothing about what the reseller pays.
  return warnings.length > 0
    ? { status: "warn", output: "Price warnings exist; see the staff price list." }
    : { status: "pass" };
}
