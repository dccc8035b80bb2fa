/** The state of the service: in detail for staff, coarsely for `/health`. */
import type { PoolStats } from "../cache/cache.js";
import type { Clock } from "../clock.js";
import { type FleetFault, type FleetFigures, type Replica, totalOf } from "../fleet.js";
import type { PoolFigures } from "../pools.js";
import type { QuotaSnapshot } from "../quota/quota.js";
import type { RedisState } from "../redis.js";
import type { LivePolicy, RetailFileState } from "../retail/live-policy.js";
import type { PromisesInForce } from "../retail/lost-margin.js";
import type { PriceEpochs } from "../retail/price-epoch.js";
import type { PriceList } from "../retail/price-list.js";
import type { Upstream } from "../upstream/operations.js";
import type { Credentials } from "../upstream/credentials.js";
import { OPERATIONS } from "../upstream/vocabulary.js";
import type { RecentCalls } from "../upstream/recent-calls.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/staff.js";
import type { HealthCheck, HealthParts } from "./health.js";
import { instant } from "./presenters.js";
import { presentEndedEpoch, presentStaffPrices } from "./staff-presenters.js";

/** Whether Redis is in use, refuses commands, is unreachable or not configured. */
export type Redis = RedisState | "none";

interface OverviewParts {
  readonly mode: "sandbox" | "upstream";
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly recentCalls: Pick<RecentCalls, "figures" | "windowMs">;
  readonly quota: QuotaSnapshot;
  readonly redis: Redis;
  readonly pools: PoolFigures;
  readonly refusedLocally: number;
  readonly prices: Pick<PriceList, "facts" | "size">;
  readonly epochs: Pick<PriceEpochs, "ended">;
  readonly retailFile: RetailFileState;
  readonly promises: PromisesInForce;
  /** Requests over a client's rate limit, and over its cold limit. */
  readonly rateLimited: { readonly requests: number; readonly cold: number };
  /** All replicas. */
  readonly members: readonly Replica[];
}

type SavedParts = Pick<OverviewParts, "pools" | "refusedLocally">;

/** The upstream calls avoided by the cache, shared lookups, other replicas and local validation. */
export function savedCalls({ pools, refusedLocally }: SavedParts) {
  const all = [pools.availability, pools.prices, pools.tier, pools.account].map(
    (pool) => pool.stats().counts,
  );
  const sum = (of: (counts: PoolStats["counts"]) => number): number =>
    all.reduce((total, counts) => total + of(counts), 0);
  return {
    cache: sum(({ hit }) => hit),
    coalesced: sum(({ inflight }) => inflight),
    shared: sum(({ shared }) => shared),
    refusedLocally,
  };
}

type FiguresParts = SavedParts & Pick<OverviewParts, "promises"> & { readonly quota: QuotaSnapshot | null };

/** The figures that this replica publishes to the others. */
export function fleetFigures({ quota, promises, ...parts }: FiguresParts): FleetFigures {
  const lanes = Object.values(quota?.lanes ?? {});
  const { cache: cacheHits, ...saved } = savedCalls(parts);
  return {
    queued: lanes.reduce((sum, { queued }) => sum + queued, 0),
    served: lanes.reduce((sum, { served }) => sum + served, 0),
    refused: lanes.reduce((sum, { refused }) => sum + refused, 0),
    promisesInForce: promises.inForce,
    promisesBelowFloor: promises.belowFloor,
    cacheHits,
    ...saved,
  };
}

/** For staff. Figures outside `fleet` and `fleetTotal` are those of this replica; the quota's use is that of all replicas. */
export function presentOverview(parts: OverviewParts): AnswerOf<typeof overviewShape> {
  const { upstream, pools, prices, retailFile } = parts;
  const { lastSuccessAtMs, lastFailureAtMs, openCircuits } = upstream.health();
  const caches = {
    availability: pools.availability.stats(),
    prices: pools.prices.stats(),
    tier: pools.tier.stats(),
    account: pools.account.stats(),
  };
  return {
    mode: parts.mode,
    quota: parts.quota,
    rateLimited: parts.rateLimited,
    redis: parts.redis,
    caches,
    upstream: {
      lastSuccessAt: lastSuccessAtMs === null ? null : instant(lastSuccessAtMs),
      lastFailureAt: lastFailureAtMs === null ? null : instant(lastFailureAtMs),
      openCircuits,
      recent: { windowMs: parts.recentCalls.windowMs, operations: parts.recentCalls.figures() },
    },
    unexpected: upstream.unexpected.list().map(({ operation, what, count, firstSeenMs }) => ({
      operation,
      what,
      count,
      firstSeen: instant(firstSeenMs),
    })),
    credentials: parts.credentials.states(),
    prices: {
      sold: prices.size,
      known: prices.facts().length,
      doubtful: prices.facts().filter(({ isDoubtful }) => isDoubtful).length,
      epochsEnded: parts.epochs.ended().map(presentEndedEpoch),
      config: {
        fingerprint: retailFile.fingerprint,
        since: instant(retailFile.sinceMs),
        faults: retailFile.faults,
      },
    },
    promises: parts.promises,
    saved: savedCalls(parts),
    fleet: parts.members.map(({ sinceMs, ...member }) => ({ ...member, since: instant(sinceMs) })),
    fleetTotal: totalOf(parts.members),
  };
}

const WARNINGS_VALID_MS = 1_000;

/** The warnings of the staff price list, recomputed at most once a second, because anyone can request `/health` at any rate. */
export function priceWarnings(
  prices: PriceList,
  policies: Pick<LivePolicy, "current" | "state">,
  clock: Clock,
): () => readonly string[] {
  let warnings: readonly string[] = [];
  let validUntilMs = -Infinity;
  return () => {
    if (clock.monotonic() >= validUntilMs) {
      warnings = presentStaffPrices(prices, policies.current(), policies.state(), clock.now()).warnings;
      validUntilMs = clock.monotonic() + WARNINGS_VALID_MS;
    }
    return warnings;
  };
}

interface HealthFacts {
  readonly redis: Redis;
  readonly fleet: FleetFault | null;
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
    redis: facts.fleet === null ? REDIS_CHECKS[facts.redis] : FLEET_CHECKS[facts.fleet],
    prices: pricesCheck(facts),
  };
}

/** The same state for the metrics. */
export function stateReaders(parts: {
  readonly checks: HealthParts["checks"];
  readonly upstream: Upstream;
  readonly credentials: Credentials;
  readonly policies: Pick<LivePolicy, "state">;
}) {
  const { checks, upstream, credentials, policies } = parts;
  const figures = { pass: 0, warn: 1, fail: 2 };
  return {
    /** By check, as in `/health`. */
    health: () =>
      Object.fromEntries(Object.entries(checks()).map(([name, { status }]) => [name, figures[status]])),
    circuits: () => {
      const { openCircuits } = upstream.health();
      return Object.fromEntries(OPERATIONS.map((one) => [one, Number(openCircuits.includes(one))]));
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
  refusing: { status: "warn", output: "Refuses commands. Each replica uses its own share of the quota." },
  gone: { status: "warn", output: "Unreachable. Each replica uses its own share of the quota." },
  none: { status: "pass", output: "Not configured." },
};

const FLEET_CHECKS: Readonly<Record<FleetFault, HealthCheck>> = {
  oversized: { status: "warn", output: "More replicas run than REPLICAS_MAX allows." },
  "settings differ": { status: "warn", output: "The replicas have different settings." },
};

function upstreamCheck({ credentials, upstream }: HealthFacts): HealthCheck {
  const { isFailing, openCircuits } = upstream.health();
  if (credentials.states().every(({ refused }) => refused))
    return { status: "fail", output: "Every credential is refused." };
  if (openCircuits.length > 0)
    return { status: "warn", output: "Calls keep failing; only trial requests are made." };
  return isFailing ? { status: "warn", output: "The last call failed." } : { status: "pass" };
}

/** How long a refusal affects the check. */
const REFUSED_RECENTLY_MS = 4_000;

function quotaCheck({ quota, stateProblem }: HealthFacts): HealthCheck {
  if (stateProblem !== null) return { status: "warn", output: stateProblem };
  const refusedAgoMs = quota?.waits.refusedAgoMs ?? null;
  if (refusedAgoMs !== null && refusedAgoMs <= REFUSED_RECENTLY_MS)
    return { status: "warn", output: "Visitors are being asked to try again later." };
  const spent = quota !== null && (quota.pausedForMs > 0 || quota.used >= quota.budget);
  return spent ? { status: "warn", output: "No call can be made at the moment." } : { status: "pass" };
}

function pricesCheck({ known, sold, warnings }: HealthFacts): HealthCheck {
  if (known.length === 0) return { status: "warn", output: "No prices are known yet." };
  const whole = known.length === sold && !known.some(({ stale }) => stale);
  if (!whole) return { status: "warn", output: "Some prices are missing or old." };
  // Anyone can read this, so it must reveal nothing about wholesale prices.
  return warnings.length > 0
    ? { status: "warn", output: "Price warnings exist; see the staff price list." }
    : { status: "pass" };
}
