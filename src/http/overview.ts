/** The state of the service: in detail for staff, coarsely for `/health`. */
import type { PoolStats } from "../cache/cache.js";
import type { Clock } from "../clock.js";
import type { Engine, EngineSettings } from "../engine.js";
import { type FleetFault, type FleetFigures, type Replica, totalOf } from "../fleet.js";
import type { PoolFigures } from "../pools.js";
import type { QuotaSnapshot } from "../quota/quota.js";
import type { RedisState } from "../redis.js";
import type { PromisesInForce } from "../retail/lost-margin.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/staff.js";
import type { HealthCheck, HealthParts } from "./health.js";
import { instant } from "./presenters.js";
import { presentEndedEpoch, presentStaffPrices } from "./staff-presenters.js";

/** Whether Redis is in use, refuses commands, is unreachable or not configured. */
export type RedisStatus = RedisState | "none";

interface OverviewParts {
  readonly engine: Pick<
    Engine,
    "credentials" | "upstream" | "recentCalls" | "pools" | "prices" | "epochs" | "policies"
  >;
  readonly mode: EngineSettings["mode"];
  readonly quota: QuotaSnapshot;
  readonly redis: RedisStatus;
  readonly promises: PromisesInForce;
  readonly saved: ReturnType<typeof savedCalls>;
  /** Requests over a client's rate limit, and over its cold limit. */
  readonly rateLimited: { readonly requests: number; readonly cold: number };
  /** All replicas. */
  readonly members: readonly Replica[];
}

function statsOf({ availability, prices, tier, account }: PoolFigures) {
  return {
    availability: availability.stats(),
    prices: prices.stats(),
    tier: tier.stats(),
    account: account.stats(),
  };
}

/** The upstream calls avoided by the cache, shared lookups, other replicas and local validation. */
export function savedCalls(pools: PoolFigures, refusedLocally: number) {
  const all = Object.values(statsOf(pools));
  const sum = (of: (counts: PoolStats["counts"]) => number): number =>
    all.reduce((total, { counts }) => total + of(counts), 0);
  return {
    cache: sum(({ hit }) => hit),
    coalesced: sum(({ inflight }) => inflight),
    shared: sum(({ shared }) => shared),
    refusedLocally,
  };
}

/** The figures that this replica publishes to the others. */
export function fleetFigures(
  quota: QuotaSnapshot | null,
  promises: PromisesInForce,
  { cache: cacheHits, ...saved }: OverviewParts["saved"],
): FleetFigures {
  const lanes = Object.values(quota?.lanes ?? {});
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

/** How many prices are sold, known, and doubtful. */
export function priceCounts(prices: Engine["prices"]) {
  const facts = prices.facts();
  const doubtful = facts.filter(({ isDoubtful }) => isDoubtful).length;
  return { sold: prices.size, known: facts.length, doubtful };
}

/** For staff. Figures outside `fleet` and `fleetTotal` are those of this replica; the quota's use is that of all replicas. */
export function presentOverview({
  engine,
  members,
  ...parts
}: OverviewParts): AnswerOf<typeof overviewShape> {
  const { upstream, recentCalls } = engine;
  const { lastSuccessAtMs, lastFailureAtMs, openCircuits } = upstream.health();
  const { fingerprint, sinceMs, faults } = engine.policies.state();
  return {
    mode: parts.mode,
    quota: parts.quota,
    rateLimited: parts.rateLimited,
    redis: parts.redis,
    caches: statsOf(engine.pools),
    upstream: {
      lastSuccessAt: lastSuccessAtMs === null ? null : instant(lastSuccessAtMs),
      lastFailureAt: lastFailureAtMs === null ? null : instant(lastFailureAtMs),
      openCircuits,
      recent: { windowMs: recentCalls.windowMs, operations: recentCalls.figures() },
    },
    unexpected: upstream.unexpected.list().map(({ operation, what, count, firstSeenMs }) => ({
      operation,
      what,
      count,
      firstSeen: instant(firstSeenMs),
    })),
    credentials: engine.credentials.states(),
    prices: {
      ...priceCounts(engine.prices),
      epochsEnded: engine.epochs.ended().map(presentEndedEpoch),
      config: { fingerprint, since: instant(sinceMs), faults },
    },
    promises: parts.promises,
    saved: parts.saved,
    fleet: members.map(({ sinceMs, ...member }) => ({ ...member, since: instant(sinceMs) })),
    fleetTotal: totalOf(members),
  };
}

const WARNINGS_VALID_MS = 1_000;

/** The warnings of the staff price list, recomputed at most once a second, because anyone can request `/health` at any rate. */
export function priceWarnings(
  { prices, policies }: Pick<Engine, "prices" | "policies">,
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
  readonly engine: Pick<Engine, "credentials" | "upstream" | "prices" | "stateProblem">;
  readonly redis: RedisStatus;
  readonly fleet: FleetFault | null;
  readonly quota: QuotaSnapshot | null;
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

const REDIS_CHECKS: Readonly<Record<RedisStatus, HealthCheck>> = {
  shared: { status: "pass" },
  refusing: { status: "warn", output: "Refuses commands. Each replica uses its own share of the quota." },
  gone: { status: "warn", output: "Unreachable. Each replica uses its own share of the quota." },
  none: { status: "pass", output: "Not configured." },
};

const FLEET_CHECKS: Readonly<Record<FleetFault, HealthCheck>> = {
  oversized: { status: "warn", output: "More replicas run than REPLICAS_MAX allows." },
  "settings differ": { status: "warn", output: "The replicas have different settings." },
};

function upstreamCheck({ engine: { credentials, upstream } }: HealthFacts): HealthCheck {
  const { isFailing, openCircuits } = upstream.health();
  if (credentials.states().every(({ refused }) => refused))
    return { status: "fail", output: "Every credential is refused." };
  if (openCircuits.length > 0)
    return { status: "warn", output: "Calls keep failing; only trial requests are made." };
  return isFailing ? { status: "warn", output: "The last call failed." } : { status: "pass" };
}

/** How long a refusal affects the check. */
const REFUSED_RECENTLY_MS = 4_000;

function quotaCheck({ engine, quota }: HealthFacts): HealthCheck {
  const stateProblem = engine.stateProblem();
  if (stateProblem !== null) return { status: "warn", output: stateProblem };
  const refusedAgoMs = quota?.waits.refusedAgoMs ?? null;
  if (refusedAgoMs !== null && refusedAgoMs <= REFUSED_RECENTLY_MS)
    return { status: "warn", output: "Visitors are being asked to try again later." };
  const spent = quota !== null && (quota.pausedForMs > 0 || quota.used >= quota.budget);
  return spent ? { status: "warn", output: "No call can be made at the moment." } : { status: "pass" };
}

function pricesCheck({ engine: { prices }, warnings }: HealthFacts): HealthCheck {
  const known = prices.facts();
  if (known.length === 0) return { status: "warn", output: "No prices are known yet." };
  const whole = known.length === prices.size && !known.some(({ stale }) => stale);
  if (!whole) return { status: "warn", output: "Some prices are missing or old." };
  // Anyone can read this, so it must reveal nothing about wholesale prices.
  return warnings.length > 0
    ? { status: "warn", output: "Price warnings exist; see the staff price list." }
    : { status: "pass" };
}
