/** The state of the service: in detail for staff, coarsely for `/health`. */
import type { Notebook } from "../facts/notebook.js";
import type { PageStats } from "../facts/page.js";
import { type Clock, instant } from "../clock.js";
import type { Engine, EngineSettings } from "../engine.js";
import type { QuotaSnapshot } from "../quota/line.js";
import type { RedisState } from "../redis/redis.js";
import type { PromisesInForce } from "../retail/lost-margin.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/overview.js";
import { presentPriceChange, presentStaffPrices } from "./presenters.js";

/** Whether Redis is in use, refuses commands, is unreachable or not configured. */
export type RedisStatus = RedisState | "none";

/** Which part this replica has: `alone` without others, `none` while no owner is known. */
export interface Ownership {
  readonly role: "alone" | "owner" | "follower" | "none";
  readonly sinceMs: number;
  /** Whether the owner was reached last time; null if nothing was handed on. */
  readonly reachesOwner: boolean | null;
}

/** Whether X-Forwarded-For has as many addresses as TRUST_PROXY_HOPS expects. */
export type ProxyFit = "fits" | "more" | "fewer";

interface OverviewParts {
  readonly engine: Pick<
    Engine,
    "credentials" | "upstream" | "recentCalls" | "notebook" | "prices" | "policies"
  >;
  readonly mode: EngineSettings["mode"];
  readonly quota: QuotaSnapshot;
  readonly redis: RedisStatus;
  readonly promises: PromisesInForce;
  readonly saved: ReturnType<typeof savedCalls>;
  /** Requests over a client's rate limit, and over its cold limit. */
  readonly rateLimited: { readonly requests: number; readonly cold: number };
  readonly owner: Ownership;
  readonly proxy: ProxyFit;
}

/** The upstream calls avoided by the cache, shared lookups and local validation. */
export function savedCalls(notebook: Pick<Notebook, "stats">, refusedLocally: number) {
  const all = Object.values(notebook.stats());
  const sum = (of: (counts: PageStats["counts"]) => number): number =>
    all.reduce((total, { counts }) => total + of(counts), 0);
  return {
    cache: sum(({ hit }) => hit),
    coalesced: sum(({ inflight }) => inflight),
    refusedLocally,
  };
}

/** How many prices are sold, known, and doubtful. */
export function priceCounts(prices: Engine["prices"]) {
  const facts = prices.all();
  const doubtful = facts.filter(({ isCurrent }) => !isCurrent).length;
  return { sold: prices.size, known: facts.length, doubtful };
}

/** For staff. */
export function presentOverview({
  engine,
  ...parts
}: OverviewParts): Omit<AnswerOf<typeof overviewShape>, "alarms" | "notices"> {
  const { upstream, recentCalls } = engine;
  const { lastSuccessAtMs, lastFailureAtMs, openCircuits } = upstream.health();
  const { fingerprint, sinceMs, faults } = engine.policies.state();
  return {
    mode: parts.mode,
    quota: parts.quota,
    rateLimited: parts.rateLimited,
    redis: parts.redis,
    caches: engine.notebook.stats(),
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
      epochsEnded: engine.notebook.changes.noted().map(presentPriceChange),
      config: { fingerprint, since: instant(sinceMs), faults },
    },
    promises: parts.promises,
    saved: parts.saved,
    owner: { role: parts.owner.role, since: instant(parts.owner.sinceMs) },
    proxy: parts.proxy,
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

export interface HealthCheck {
  readonly status: "pass" | "warn" | "fail";
  readonly output?: string;
}

export type HealthChecks = Readonly<
  Record<"upstream" | "quota" | "redis" | "prices" | "owner" | "proxy", HealthCheck>
>;

interface HealthFacts {
  readonly engine: Pick<Engine, "credentials" | "upstream" | "prices" | "stateProblem">;
  readonly redis: RedisStatus;
  readonly owner: Ownership;
  readonly proxy: ProxyFit;
  readonly quota: QuotaSnapshot | null;
  /** The warnings of the staff price list. */
  readonly warnings: readonly string[];
}

export function healthChecks(facts: HealthFacts): HealthChecks {
  return {
    upstream: upstreamCheck(facts),
    quota: quotaCheck(facts),
    redis: REDIS_CHECKS[facts.redis],
    prices: pricesCheck(facts),
    owner: ownerCheck(facts.owner),
    proxy: PROXY_CHECKS[facts.proxy],
  };
}

const REDIS_CHECKS: Readonly<Record<RedisStatus, HealthCheck>> = {
  shared: { status: "pass" },
  refusing: { status: "warn", output: "Refuses commands, so calls may stop." },
  gone: { status: "warn", output: "Unreachable, so no calls are made." },
  none: { status: "pass", output: "Not configured." },
};

const PROXY_CHECKS: Readonly<Record<ProxyFit, HealthCheck>> = {
  fits: { status: "pass" },
  more: { status: "warn", output: "TRUST_PROXY_HOPS is lower than the number of proxies in front." },
  fewer: { status: "warn", output: "Requests arrive past the proxies that TRUST_PROXY_HOPS expects." },
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

function ownerCheck({ role, sinceMs, reachesOwner }: Ownership): HealthCheck {
  const since = `since ${instant(sinceMs)}`;
  if (role === "alone") return { status: "pass", output: "Without replicas." };
  if (role === "owner") return { status: "pass", output: `This replica is the owner, ${since}.` };
  if (role === "none") return { status: "warn", output: `No owner is known, ${since}.` };
  return reachesOwner === false
    ? { status: "warn", output: `Another replica is the owner, ${since}; it can't be reached.` }
    : { status: "pass", output: `Another replica is the owner, ${since}.` };
}

function pricesCheck({ engine: { prices }, owner, warnings }: HealthFacts): HealthCheck {
  if (owner.role === "follower") return { status: "pass", output: "Known to the owner." };
  const known = prices.all();
  if (known.length === 0) return { status: "warn", output: "No prices are known yet." };
  const whole = known.length === prices.size && !known.some(({ stale }) => stale);
  if (!whole) return { status: "warn", output: "Some prices are missing or old." };
  // Anyone can read this, so it must reveal nothing about wholesale prices.
  return warnings.length > 0
    ? { status: "warn", output: "Price warnings exist; see the staff price list." }
    : { status: "pass" };
}
