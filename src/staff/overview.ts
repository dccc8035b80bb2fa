/** The state of the service: in detail for staff, coarsely for `/health`. */
import type { PageStats } from "../facts/page.js";
import { type Clock, instant } from "../clock.js";
import type { Engine, EngineSettings } from "../engine.js";
import type { QuotaSnapshot } from "../quota/line.js";
import type { RedisState } from "../redis/redis.js";
import { type PromisesInForce, promisesInForce } from "../retail/lost-margin.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/overview.js";
import { presentPriceChange, presentStaffPrices } from "./presenters.js";

/** Which part this replica has: `alone` without others, `none` while no owner is known. */
export interface Ownership {
  readonly role: "alone" | "owner" | "follower" | "none";
  readonly sinceAt: number;
  /** Whether the owner was reached last time; null if nothing was handed on. */
  readonly reachesOwner: boolean | null;
}

/** Whether X-Forwarded-For has as many addresses as TRUST_PROXY_HOPS expects. */
export type ProxyFit = "fits" | "more" | "fewer";

/** What the reports about the service are made of. */
export interface ServiceParts {
  readonly engine: Engine;
  readonly mode: EngineSettings["mode"];
  readonly owner: () => Ownership;
  readonly proxy: () => ProxyFit;
  /** Requests refused since startup: beyond a client's limit, beyond its cold limit, and locally, without an upstream call. */
  readonly refusals: () => { readonly requests: number; readonly cold: number; readonly locally: number };
  readonly clock: Clock;
}

/** Null while the service starts. */
export function quotaOf({ engine }: ServiceParts): QuotaSnapshot | null {
  return engine.quota()?.snapshot() ?? null;
}

/** The upstream calls avoided by the cache, shared lookups and local validation. */
export function savedCalls({ engine, refusals }: ServiceParts) {
  const all = Object.values(engine.notebook.stats());
  const sum = (of: (counts: PageStats["counts"]) => number): number =>
    all.reduce((total, { counts }) => total + of(counts), 0);
  return {
    cache: sum(({ hit }) => hit),
    coalesced: sum(({ inflight }) => inflight),
    refusedLocally: refusals().locally,
  };
}

/** Requests over a client's rate limit, and over its cold limit. */
export function rateLimited({ refusals }: ServiceParts) {
  const { requests, cold } = refusals();
  return { requests, cold };
}

export function validPromises({ engine, clock }: ServiceParts): PromisesInForce {
  const { carts, prices, policies } = engine;
  return promisesInForce(carts.inForce(), prices.all(), policies.current(), clock.now());
}

/** How many prices are sold, known, and doubtful. */
export function priceCounts({ engine: { prices } }: ServiceParts) {
  const facts = prices.all();
  const doubtful = facts.filter(({ isCurrent }) => !isCurrent).length;
  return { sold: prices.size, known: facts.length, doubtful };
}

/** The warnings of the staff price list. */
export function priceWarnings({ engine: { prices, policies }, clock }: ServiceParts): readonly string[] {
  return presentStaffPrices(prices, policies.current(), policies.state(), clock.now()).warnings;
}

/** For staff. */
export function presentOverview(
  parts: ServiceParts,
  quota: QuotaSnapshot,
): Omit<AnswerOf<typeof overviewShape>, "alarms" | "notices"> {
  const { upstream, recentCalls, notebook, policies, credentials, redis } = parts.engine;
  const { lastSuccessAt, lastFailureAt, openCircuits } = upstream.health();
  const { fingerprint, sinceAt, faults } = policies.state();
  const owner = parts.owner();
  return {
    mode: parts.mode,
    quota,
    rateLimited: rateLimited(parts),
    redis: redis?.state() ?? "none",
    caches: notebook.stats(),
    upstream: {
      lastSuccessAt: lastSuccessAt === null ? null : instant(lastSuccessAt),
      lastFailureAt: lastFailureAt === null ? null : instant(lastFailureAt),
      openCircuits,
      recent: { windowMs: recentCalls.windowMs, operations: recentCalls.figures() },
    },
    unexpected: upstream.unexpected.list().map(({ operation, what, count, firstSeenMs }) => ({
      operation,
      what,
      count,
      firstSeen: instant(firstSeenMs),
    })),
    credentials: credentials.states(),
    prices: {
      ...priceCounts(parts),
      epochsEnded: notebook.changes.noted().map(presentPriceChange),
      config: { fingerprint, since: instant(sinceAt), faults },
    },
    promises: validPromises(parts),
    saved: savedCalls(parts),
    owner: { role: owner.role, since: instant(owner.sinceAt) },
    proxy: parts.proxy(),
  };
}

export interface HealthCheck {
  readonly status: "pass" | "warn" | "fail";
  readonly output?: string;
}

export type HealthChecks = Readonly<
  Record<"upstream" | "quota" | "redis" | "prices" | "owner" | "proxy", HealthCheck>
>;

const PRICES_EVERY_MS = 1_000;

/** Anyone may ask for the checks, as often as they like, so prices are looked at only after a change, or a second. */
export function createHealthChecks(parts: ServiceParts): () => HealthChecks {
  const { engine, clock } = parts;
  let last = { changes: -1, lookedAt: -Infinity, check: pricesCheck(parts) };

  function pricesNow(): HealthCheck {
    if (parts.owner().role === "follower") return { status: "pass", output: "Known to the owner." };
    const [changes, now] = [engine.changes(), clock.monotonic()];
    if (changes !== last.changes || now - last.lookedAt >= PRICES_EVERY_MS)
      last = { changes, lookedAt: now, check: pricesCheck(parts) };
    return last.check;
  }

  return () => ({
    upstream: upstreamCheck(parts),
    quota: quotaCheck(parts),
    redis: REDIS_CHECKS[engine.redis?.state() ?? "none"],
    prices: pricesNow(),
    owner: ownerCheck(parts.owner()),
    proxy: PROXY_CHECKS[parts.proxy()],
  });
}

const REDIS_CHECKS: Readonly<Record<RedisState | "none", HealthCheck>> = {
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

function upstreamCheck({ engine: { credentials, upstream } }: ServiceParts): HealthCheck {
  const { isFailing, openCircuits } = upstream.health();
  if (credentials.states().every(({ refused }) => refused))
    return { status: "fail", output: "Every credential is refused." };
  if (openCircuits.length > 0)
    return { status: "warn", output: "Calls keep failing; only trial requests are made." };
  return isFailing ? { status: "warn", output: "The last call failed." } : { status: "pass" };
}

/** How long a refusal affects the check. */
const REFUSED_RECENTLY_MS = 4_000;

function quotaCheck(parts: ServiceParts): HealthCheck {
  const stateProblem = parts.engine.stateProblem();
  const quota = quotaOf(parts);
  if (stateProblem !== null) return { status: "warn", output: stateProblem };
  const refusedAgoMs = quota?.waits.refusedAgoMs ?? null;
  if (refusedAgoMs !== null && refusedAgoMs <= REFUSED_RECENTLY_MS)
    return { status: "warn", output: "Visitors are being asked to try again later." };
  const spent = quota !== null && (quota.pausedForMs > 0 || quota.used >= quota.budget);
  return spent ? { status: "warn", output: "No call can be made at the moment." } : { status: "pass" };
}

function ownerCheck({ role, sinceAt, reachesOwner }: Ownership): HealthCheck {
  const since = `since ${instant(sinceAt)}`;
  if (role === "alone") return { status: "pass", output: "Without replicas." };
  if (role === "owner") return { status: "pass", output: `This replica is the owner, ${since}.` };
  if (role === "none") return { status: "warn", output: `No owner is known, ${since}.` };
  return reachesOwner === false
    ? { status: "warn", output: `Another replica is the owner, ${since}; it can't be reached.` }
    : { status: "pass", output: `Another replica is the owner, ${since}.` };
}

function pricesCheck(parts: ServiceParts): HealthCheck {
  const { prices } = parts.engine;
  const known = prices.all();
  if (known.length === 0) return { status: "warn", output: "No prices are known yet." };
  const whole = known.length === prices.size && !known.some(({ stale }) => stale);
  if (!whole) return { status: "warn", output: "Some prices are missing or old." };
  // Anyone can read this, so it must reveal nothing about wholesale prices.
  return priceWarnings(parts).length > 0
    ? { status: "warn", output: "Price warnings exist; see the staff price list." }
    : { status: "pass" };
}
