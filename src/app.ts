/** The composition root: every part is built here by hand, every middleware and route is listed in its order. */
import { createHash, randomUUID } from "node:crypto";
import type { Server } from "node:http";
import { hostname } from "node:os";
import { join } from "node:path";
import express from "express";
import { type AccountFact, createAccount, decodeKeptFact, decodeKeptTier } from "./account/account.js";
import { createCustomerTokens } from "./account/customer-tokens.js";
import { createActFile, createSharedActs } from "./audit/act-stores.js";
import { createAudit } from "./audit/audit.js";
import { createPool, type FailureKind } from "./cache/cache.js";
import { type Channel, createInvalidation } from "./cache/invalidation.js";
import { redisPool } from "./cache/redis-pool.js";
import type { SharedPool } from "./cache/replicas.js";
import { type Clock, createStamps } from "./clock.js";
import type { Config } from "./config/env.js";
import { type ErrorCode, PROBLEMS, ServiceError } from "./errors.js";
import { createFleet } from "./fleet.js";
import { CHECKOUT_PATH, createDemoCheckout } from "./http/checkout.js";
import { createClientLimit } from "./http/client-limit.js";
import { createColdLimit } from "./http/cold-limit.js";
import { asks, createAccessLog, requestContext } from "./http/context.js";
import { customerRoutes } from "./http/customers.js";
import { docsRouter } from "./http/docs.js";
import { addressOf, clientOf } from "./http/edge/client.js";
import {
  knownExpectation,
  rightHost,
  securityHeaders,
  visitorHeaders,
  websiteOrigins,
} from "./http/edge/headers.js";
import { serve } from "./http/edge/server.js";
import { createTokenGuesses } from "./http/edge/token-guesses.js";
import { unreadableRequests } from "./http/edge/unreadable.js";
import { createSharedCounts, type SharedCounts } from "./http/edge/shared-counts.js";
import { createSharedLimit } from "./http/edge/shared-limit.js";
import { fastPath } from "./http/fast-path.js";
import { createEventStreams } from "./http/event-stream.js";
import { healthRoutes } from "./http/health.js";
import { openApiDocument } from "./http/openapi.js";
import {
  fleetFigures,
  healthChecks,
  presentOverview,
  priceWarnings,
  type Redis,
  savedCalls,
  stateReaders,
} from "./http/overview.js";
import { parseQuery, type PurgeWish } from "./http/parse.js";
import { pageRoutes } from "./http/pages.js";
import { explainProblem, problemHandler, refuseUnreadable } from "./http/problems.js";
import { visitorQuestions } from "./http/questions.js";
import { quickRefusals } from "./http/quick-refusals.js";
import { render, sendRendered } from "./http/rendered.js";
import { route } from "./http/routes.js";
import { securityTxt } from "./http/security-txt.js";
import { createSearchStream, SEARCH_PATIENCE_MS } from "./http/search-stream.js";
import { staffRoutes } from "./http/staff.js";
import { visitorRoutes } from "./http/visitors.js";
import type { Log } from "./logger.js";
import { createMetrics } from "./metrics.js";
import type { Ask, Quota, QuotaSnapshot } from "./quota/quota.js";
import { createQuotas } from "./quota/quotas.js";
import { connectRedis } from "./redis.js";
import { createLivePolicy } from "./retail/live-policy.js";
import { promisesInForce } from "./retail/lost-margin.js";
import { createPriceEpochs } from "./retail/price-epoch.js";
import {
  createPriceFile,
  createSharedPriceFacts,
  decodeKeptQuote,
  decodeLearnedUnder,
  type LearnedUnder,
  noPriceFacts,
} from "./retail/price-facts.js";
import { createPriceList, type Quote, quoteCaution } from "./retail/price-list.js";
import { createPromises, newPromiseKey } from "./retail/promise.js";
import { createSharedPromises } from "./retail/shared-promises.js";
import { fixedSecret, type Secret } from "./secret.js";
import { createStateDir } from "./state-dir.js";
import { createAssessor } from "./storefront/assessment.js";
import {
  checkCaution,
  createNameFacts,
  decodeKeptPremium,
  decodeKeptPricedCheck,
  decodeKeptStatus,
  type NameStatus,
  type PremiumMark,
  premiumCaution,
  type PricedCheck,
  statusCaution,
  type VisitorAsk,
} from "./storefront/name-facts.js";
import { createShops } from "./storefront/shop.js";
import type { Tier } from "./upstream/contract.js";
import { createCredentials, type CredentialSource } from "./upstream/credentials.js";
import { createUpstream } from "./upstream/operations.js";
import { keepTrying } from "./upstream/trials.js";
import { createRecentCalls } from "./upstream/recent-calls.js";

export interface AppSettings {
  readonly config: Config;
  readonly version: string;
  readonly mode: "sandbox" | "upstream";
  readonly upstream: {
    readonly baseUrl: string;
    readonly active: CredentialSource;
    readonly standby: CredentialSource | null;
  };
  readonly staffTokens: Secret | null;
  readonly clock: Clock;
  readonly log: Log;
}

export interface App {
  readonly server: Server;
  /** Starts the background work. */
  start(): Promise<void>;
  /** From now on new requests are refused; background work ends. */
  drain(): void;
  /** Lets the quota, its ledger and Redis go, once calls in flight have settled. */
  close(): Promise<void>;
}

/** An open circuit lets a trial request through after half of a window, and never later than this. */
const HALF_OPEN_AFTER_MS = 30_000;

/** How long a start waits for what other replicas know. */
const REDIS_AT_START_MS = 1_000;

/** How long a name found to be premium is remembered. */
const PREMIUM_KEPT_MS = 30 * 24 * 3_600_000;

/** A refusal for want of quota costs nothing and passes quickly: remembering it would refuse people who could be served. */
function failureKind(error: unknown): FailureKind {
  if (!(error instanceof ServiceError)) return "shared";
  if (error.code === "rate_limited") return "own";
  return error.code.startsWith("upstream_") ? "remembered" : "shared";
}

/** Names the settings that all replicas must have in common, and the credential in use, without telling them. */
function agreedSettings({ config, mode, upstream }: AppSettings, fingerprint: string): string {
  const { quota, retail, clientPerMinute, clientColdPerMinute } = config;
  const place = mode === "sandbox" ? mode : upstream.baseUrl;
  const agreed = [place, fingerprint, quota, retail, clientPerMinute, clientColdPerMinute];
  return createHash("sha256").update(JSON.stringify(agreed)).digest("hex").slice(0, 12);
}

export function createApp(settings: AppSettings): App {
  const { config, clock, log } = settings;
  const stamp = createStamps(clock);
  const metrics = createMetrics();
  const policies = createLivePolicy({ config: config.retail, file: config.retailFile, clock, log });

  const credentials = createCredentials(settings.upstream.active, settings.upstream.standby, clock);
  const redis = config.redisUrl === null ? null : connectRedis({ url: config.redisUrl, clock, log });
  const quotas = createQuotas({
    ...config.quota,
    longestCallMs: config.upstreamTimeoutMs,
    ...(config.listen.port > 0 && { place: `${hostname()} ${config.listen.host} ${config.listen.port}` }),
    home: settings.mode === "sandbox" ? "memory" : redis ? { redis } : { directory: config.stateDir },
    clock,
    onFault: (what, error) => {
      log.error("quota.ledger.failed", { what, reason: error instanceof Error ? error.name : "unknown" });
    },
  });
  const inUse = (): string => (credentials.usable() ?? credentials.states()[0])?.fingerprint ?? "";
  const quotaInUse = (): Quota | null => quotas.opened(inUse());
  const quota = (): QuotaSnapshot | null => quotaInUse()?.snapshot() ?? null;
  const roomInMs = (): number => quotaInUse()?.roomInMs() ?? 0;
  const recentCalls = createRecentCalls(clock);
  const upstream = createUpstream({
    baseUrl: settings.upstream.baseUrl,
    timeoutMs: config.upstreamTimeoutMs,
    currencies: () => policies.current().wholesaleCurrencies,
    credentials,
    quotaOf: ({ fingerprint }) => quotas.of(fingerprint),
    openedQuotaOf: ({ fingerprint }) => quotas.opened(fingerprint),
    halfOpenAfterMs: Math.min(HALF_OPEN_AFTER_MS, config.quota.windowMs / 2),
    clock,
    stamp,
    log,
    onCall: (operation, outcome, durationMs) => {
      metrics.upstreamCall(operation, outcome, durationMs);
      recentCalls.note(operation, outcome, durationMs);
    },
  });

  const stateDir =
    settings.mode === "upstream" && redis === null ? createStateDir(config.stateDir, clock) : null;
  const audit = createAudit(
    redis === null
      ? createActFile(join(config.stateDir, "audit.jsonl"), clock, log)
      : createSharedActs(redis, log),
    clock,
    log,
  );
  policies.onChange((outcome) => {
    const { fingerprint } = policies.state();
    audit.note({ who: null, what: "retail_config", subject: fingerprint, outcome });
  });
  const invalidation = redis && createInvalidation(redis, clock);
  // An embedded sandbox lives and dies with the process: nobody else's facts are about it.
  const place = settings.mode === "sandbox" ? randomUUID() : settings.upstream.baseUrl;
  /** Names the upstream and the credential that facts belong to. */
  const source = (): string => `${place} ${credentials.states()[0]?.fingerprint ?? ""}`;
  function shared<V>(
    name: string,
    decode: (data: unknown, key: string) => V | undefined,
    purges: Channel | null = invalidation?.channel(name) ?? null,
  ): SharedPool<V> | null {
    return redis && redisPool({ link: redis, name, purges, source, decode, clock });
  }

  const { cache } = config;
  const { failureMs } = cache.availability;
  const namePurges = invalidation?.channel("availability") ?? null;
  const pools = {
    availability: createPool<PricedCheck, VisitorAsk>({
      ...cache.availability,
      freshness: ({ status }) => cache.availability[status],
      caution: checkCaution,
      failureKind,
      clock,
      stamp,
      shared: shared("availability", decodeKeptPricedCheck, namePurges),
    }),
    statuses: createPool<NameStatus, VisitorAsk>({
      ...cache.availability,
      freshness: (status) => cache.availability[status],
      caution: statusCaution,
      clock,
      stamp,
      shared: shared("statuses", decodeKeptStatus, namePurges),
    }),
    premium: createPool<PremiumMark, VisitorAsk>({
      entries: cache.availability.entries,
      freshness: () => ({ freshMs: PREMIUM_KEPT_MS, usableMs: PREMIUM_KEPT_MS }),
      failureMs,
      caution: premiumCaution,
      clock,
      stamp,
      shared: shared("premium", decodeKeptPremium, null),
    }),
    prices: createPool<Quote, Ask>({
      ...cache.prices,
      freshness: () => cache.prices,
      caution: quoteCaution,
      failureKind,
      clock,
      shared: shared("prices", decodeKeptQuote, null),
    }),
    learnedUnder: createPool<LearnedUnder, never>({
      entries: 1,
      freshness: () => ({ freshMs: cache.prices.usableMs, usableMs: cache.prices.usableMs }),
      failureMs,
      clock,
      shared: shared("learned-under", decodeLearnedUnder, null),
    }),
    tier: createPool<Tier, Ask>({
      ...cache.tier,
      freshness: () => cache.tier,
      failureKind,
      clock,
      shared: shared("tier", decodeKeptTier),
    }),
    account: createPool<AccountFact, Ask>({
      ...cache.account,
      freshness: () => cache.account,
      failureKind,
      clock,
      shared: shared("account", decodeKeptFact),
    }),
  };
  const epochs = createPriceEpochs({
    channel: invalidation?.channel("prices") ?? null,
    stamp,
    clock,
    log,
  });
  const prices = createPriceList({
    policies,
    pool: pools.prices,
    ask: upstream.quote,
    epochs,
    saved:
      settings.mode === "sandbox"
        ? noPriceFacts
        : redis === null
          ? createPriceFile(join(config.stateDir, "price-facts.json"), source, clock, log)
          : createSharedPriceFacts(pools.learnedUnder, epochs.current, stamp),
    freshMs: cache.prices.freshMs,
    roomInMs,
    clock,
    log,
  });
  const account = createAccount({
    upstream,
    facts: pools.account,
    tiers: pools.tier,
    factsFreshMs: cache.account.freshMs,
    tierFreshMs: cache.tier.freshMs,
    onTier: epochs.noteTier,
    awaitsTier: epochs.awaitsTier,
    roomInMs,
    clock,
    log,
  });
  const names = createNameFacts({
    pools: { statuses: pools.statuses, checks: pools.availability, premium: pools.premium },
    check: upstream.check,
    epochs,
  });
  const promises = createPromises({
    keys: config.promiseKeys ?? (settings.mode === "sandbox" ? fixedSecret(newPromiseKey()) : null),
    validMs: () => policies.current().promiseValidMs,
    shared: redis && createSharedPromises(redis, clock),
    clock,
    log,
  });
  const shop = createShops(policies.current, {
    prices,
    names,
    assessor: createAssessor({ names, prices, epochs }),
    ownedSinceMs: account.ownedSinceMs,
    promises,
    hasSpare: () => quotaInUse()?.hasSpare() ?? true,
    clock,
    log,
  });

  let phase: "starting" | "ready" | "draining" = "starting";
  let refusedLocally = 0;
  const onProblem = (code: ErrorCode): void => {
    if (PROBLEMS[code].status < 429) refusedLocally += 1;
  };
  const { maxWaitMs, replicasMax } = config.quota;
  const sharedCounts =
    (name: string) =>
    (onCounted: (client: string, count: number) => void): SharedCounts | null =>
      redis === null || replicasMax === 1
        ? null
        : createSharedCounts({ link: redis, name, replicasMax, clock, onCounted });
  const cold = createColdLimit({
    perMinute: config.clientColdPerMinute,
    isContested: (asker) => quotaInUse()?.isContested(asker) ?? false,
    clock,
    share: sharedCounts("cold"),
  });
  const ask = asks(cold, maxWaitMs);
  // Who got the last call of a patient search is given the time that a call may take.
  const streams = createEventStreams({ longestMs: SEARCH_PATIENCE_MS + config.upstreamTimeoutMs, clock });
  const searchStream = createSearchStream({ streams, ask, clock });
  const purgePrices = (): number => {
    epochs.end({ kind: "purge" });
    return prices.facts().length;
  };
  const purgeNames = (): number => {
    pools.statuses.purge();
    return pools.availability.purge();
  };
  const purge = async (what: PurgeWish): Promise<Record<string, number>> => {
    const purged = {
      ...((what === "prices" || what === "all") && { prices: purgePrices() }),
      ...((what === "availability" || what === "all") && { availability: purgeNames() }),
      ...((what === "account" || what === "all") && { account: pools.account.purge() + pools.tier.purge() }),
    };
    await invalidation?.published();
    return purged;
  };
  const redisState = (): Redis => redis?.state() ?? "none";
  const overview = () =>
    presentOverview({
      mode: settings.mode,
      credentials,
      upstream,
      recentCalls,
      quota: quota(),
      redis: redisState(),
      pools,
      refusedLocally,
      prices,
      epochs,
      retailFile: policies.state(),
      promises: inForce(),
      rateLimited: { requests: limit.refused(), cold: cold.refused() },
      members: fleet.members(),
    });
  const inForce = () => promisesInForce(promises.inForce(), prices.facts(), policies.current(), clock.now());
  const fleet = createFleet({
    link: redis,
    version: settings.version,
    replicasMax: config.quota.replicasMax,
    settings: () => agreedSettings(settings, inUse()),
    figures: () => fleetFigures({ pools, refusedLocally, quota: quota(), promises: inForce() }),
    clock,
    log,
  });
  const warnings = priceWarnings(prices, policies, clock);
  const health = () =>
    healthChecks({
      redis: redisState(),
      fleet: fleet.fault(),
      credentials,
      upstream,
      quota: quota(),
      stateProblem: stateDir?.problem() ?? null,
      known: prices.facts(),
      sold: prices.size,
      warnings: warnings(),
    });
  metrics.state(stateReaders({ checks: health, upstream, credentials, policies }));
  metrics.quota(quota);
  metrics.prices(() => ({
    sold: prices.size,
    known: prices.facts().length,
    doubtful: prices.facts().filter(({ isDoubtful }) => isDoubtful).length,
  }));
  metrics.promises(inForce);
  metrics.saved(() => savedCalls({ pools, refusedLocally }));
  metrics.replicas(() => fleet.members().length);
  metrics.rateLimited(() => overview().rateLimited);
  metrics.unexpected(() => upstream.unexpected.totals());
  metrics.redis(() => redis?.refusals() ?? {});

  const app = express();
  app.disable("x-powered-by");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.disable("etag");
  app.set("query parser", parseQuery);
  app.set("trust proxy", config.trustProxyHops);

  const accessLog = createAccessLog(log, metrics, clock);
  const limit = createClientLimit(config.clientPerMinute, clock, (windows) =>
    redis === null || replicasMax === 1
      ? null
      : createSharedLimit({
          link: redis,
          name: "requests",
          limit: config.clientPerMinute,
          replicasMax,
          windows,
          clock,
        }),
  );
  const guesses = createTokenGuesses(clock, log, sharedCounts("wrong-tokens"));
  const questions = visitorQuestions({
    shop,
    prices,
    searchStream,
    ask,
    refuse: quickRefusals({
      isUnknown: (name, years) => shop().availability.isUnknown(name, years),
      upstream,
      cold,
      maxWaitMs,
    }),
    now: () => clock.now(),
  });

  app.use(requestContext(accessLog, clock));
  app.use(securityHeaders);
  const checks = [rightHost, knownExpectation];
  // Asked by machines that must not be refused: not limited.
  app.use(["/livez", "/readyz", "/health"], ...checks);
  app.use(
    healthRoutes({
      version: settings.version,
      description:
        settings.mode === "sandbox" ? "Embedded sandbox: no real registry data." : "Live upstream.",
      phase: () => phase,
      checks: health,
    }),
  );
  // The pattern ends before a slash: Express matches whole segments only.
  app.use(
    [/^\/v1(?!\/staff\/)/, "/.well-known/jwks.json", "/openapi.json"],
    websiteOrigins(config.corsOrigins),
  );
  app.use(...limit.handlers);
  app.use(...checks);
  app.use((_request, response, next) => {
    if (phase !== "draining") return next();
    response.set("Connection", "close");
    throw new ServiceError("shutting_down", "This process is stopping.", { retryAfterMs: 1000 });
  });
  app.use(visitorRoutes({ shop, questions, ask }));
  if (config.customers !== null) {
    const tokens = createCustomerTokens({ ...config.customers, clock, log });
    app.use(
      customerRoutes({
        tokens,
        guesses,
        account,
        policy: policies.current,
        prices,
        isPremium: names.isPremium,
        ask,
        now: () => clock.now(),
      }),
    );
  }
  app.use(
    staffRoutes({
      tokens: settings.staffTokens,
      guesses,
      account,
      policies,
      prices,
      promises,
      metrics,
      audit,
      ask,
      overview,
      purge,
      now: () => clock.now(),
    }),
  );
  route(app, "/.well-known/jwks.json", {
    GET: (_request, response) => {
      sendRendered(response, render(promises.publicKeys(), { cacheControl: "no-store", tagged: true }));
    },
  });
  if (config.securityContact !== null)
    route(app, "/.well-known/security.txt", { GET: securityTxt(config.securityContact, () => clock.now()) });
  route(app, "/problems/:code", { GET: explainProblem });
  app.use(
    pageRoutes({
      storefront: config.demoStorefront,
      checkoutUrl: config.checkoutUrl,
      demoCheckout:
        config.checkoutUrl === CHECKOUT_PATH ? createDemoCheckout(promises, () => clock.now()) : null,
    }),
  );
  app.use(docsRouter(() => openApiDocument({ version: settings.version })));
  app.use(() => {
    throw new ServiceError("not_found", "There is nothing under this address.");
  });
  app.use(problemHandler(log, onProblem));

  const answeredAtOnce = fastPath({
    questions,
    shop,
    headersFor: visitorHeaders(config.corsOrigins),
    limit,
    isServing: () => phase !== "draining",
    accessLog,
    onProblem,
    clock,
  });

  const trials = (): (() => void) =>
    keepTrying({ upstream, term: () => policies.current().combinations()[0], roomInMs, clock });
  let stopWork = (): void => {};
  return {
    server: serve(app, {
      isAnswered: answeredAtOnce,
      isFlooding: (request) => limit.isFlooding(limit.windowOf(clientOf(addressOf(request)))),
      refuse: refuseUnreadable,
      unreadable: unreadableRequests({ accessLog, onProblem, clock }),
    }),
    async start() {
      await Promise.all([
        redis?.firstContact(REDIS_AT_START_MS),
        quotas.openAll(credentials.states().map(({ fingerprint }) => fingerprint)),
      ]);
      await invalidation?.known(REDIS_AT_START_MS);
      await prices.restore();
      phase = "ready";
      const stops = [prices.keepWarm(), account.keepWarm(), policies.watch(), trials(), stateDir?.watch()];
      stopWork = () => {
        for (const stop of stops) stop?.();
      };
    },
    drain() {
      phase = "draining";
      streams.endAll();
      stopWork();
    },
    async close() {
      audit.flush();
      await quotas.close();
      invalidation?.close();
      await fleet.close();
      redis?.close();
    },
  };
}
