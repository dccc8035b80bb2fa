/** The composition root: every part is built here by hand, every middleware and route is listed in its order. */
import { randomUUID } from "node:crypto";
import type { Server } from "node:http";
import { join } from "node:path";
import express from "express";
import { type AccountFact, createAccount, decodeKeptFact, decodeKeptTier } from "./account/account.js";
import { createCustomerTokens } from "./account/customer-tokens.js";
import { createPool } from "./cache/cache.js";
import { createNews, type Topic } from "./cache/news.js";
import { redisTier } from "./cache/redis-tier.js";
import type { SharedTier } from "./cache/shared-tier.js";
import type { Clock } from "./clock.js";
import type { Config } from "./config.js";
import { type ErrorCode, PROBLEMS, ServiceError } from "./errors.js";
import { createClientLimit } from "./http/client-limit.js";
import { createColdLimit } from "./http/cold-limit.js";
import { asks, createAccessLog, requestContext } from "./http/context.js";
import { customerRoutes } from "./http/customers.js";
import { docsRouter } from "./http/docs.js";
import { oneHost, securityHeaders, serve, visitorHeaders, websiteOrigins } from "./http/edge.js";
import { fastPath } from "./http/fast-path.js";
import { createEventStreams } from "./http/event-stream.js";
import { healthRoutes } from "./http/health.js";
import { openApiDocument } from "./http/openapi.js";
import { healthChecks, presentOverview, priceWarnings, type Redis } from "./http/overview.js";
import type { PurgeWish } from "./http/parse.js";
import { pageRoutes } from "./http/pages.js";
import { explainProblem, problemHandler } from "./http/problems.js";
import { visitorQuestions } from "./http/questions.js";
import { quickRefusals } from "./http/quick-refusals.js";
import { route } from "./http/routes.js";
import { createSearchStream, SEARCH_PATIENCE_MS } from "./http/search-stream.js";
import { staffRoutes } from "./http/staff.js";
import { visitorRoutes } from "./http/visitors.js";
import type { Log } from "./logger.js";
import { createMetrics } from "./metrics.js";
import type { Wholesale } from "./money.js";
import type { Ask, Quota, QuotaSnapshot } from "./quota/quota.js";
import { createQuotas } from "./quota/quotas.js";
import { connectRedis } from "./redis.js";
import { createRetailPolicy } from "./retail/policy.js";
import { createPriceFacts, decodeKeptWholesale, noPriceFacts } from "./retail/price-facts.js";
import { createPriceList } from "./retail/price-list.js";
import { createPromises, newPromiseKey } from "./retail/promise.js";
import { fixedSecret, type Secret } from "./secret.js";
import { createAvailabilityDesk, type VisitorAsk } from "./storefront/availability.js";
import { createQuoteDesk } from "./storefront/quotes.js";
import { createSuggestionDesk } from "./storefront/suggestions.js";
import { createUpstream } from "./upstream/client.js";
import { type Check, decodeKeptCheck, type Tier } from "./upstream/contract.js";
import { createCredentials, type CredentialSource } from "./upstream/credentials.js";
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

/** A failing operation is tried again after half of a window, and never later than this. */
const TRIAL_AFTER_MS = 30_000;

/** How long a start waits for what other replicas know. */
const REDIS_AT_START_MS = 1_000;

export function createApp(settings: AppSettings): App {
  const { config, clock, log } = settings;
  const metrics = createMetrics();
  const policy = createRetailPolicy(config.retail);

  const credentials = createCredentials(settings.upstream.active, settings.upstream.standby, clock);
  const redis = config.redisUrl === null ? null : connectRedis({ url: config.redisUrl, clock, log });
  const quotas = createQuotas({
    ...config.quota,
    longestCallMs: config.upstreamTimeoutMs,
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
    currencies: policy.wholesaleCurrencies,
    credentials,
    quotaOf: ({ fingerprint }) => quotas.of(fingerprint),
    openedQuotaOf: ({ fingerprint }) => quotas.opened(fingerprint),
    trialAfterMs: Math.min(TRIAL_AFTER_MS, config.quota.windowMs / 2),
    clock,
    log,
    onCall: (operation, outcome, durationMs) => {
      metrics.upstreamCall(operation, outcome, durationMs);
      recentCalls.note(operation, outcome, durationMs);
    },
  });

  const news = redis && createNews(redis, clock);
  // An embedded sandbox lives and dies with the process: nobody else's facts are about it.
  const place = settings.mode === "sandbox" ? randomUUID() : settings.upstream.baseUrl;
  /** Names the upstream and the credential that facts belong to. */
  const source = (): string => `${place} ${credentials.states()[0]?.fingerprint ?? ""}`;
  function shared<V>(
    name: string,
    decode: (data: unknown, key: string) => V | undefined,
    purges: Topic | null = news?.topic(name) ?? null,
  ): SharedTier<V> | null {
    return redis && redisTier({ link: redis, name, purges, source, decode, clock });
  }

  const { cache } = config;
  const pools = {
    availability: createPool<Check, VisitorAsk>({
      ...cache.availability,
      freshness: ({ status }) => cache.availability[status],
      clock,
      shared: shared("availability", decodeKeptCheck),
    }),
    prices: createPool<Wholesale, Ask>({
      ...cache.prices,
      freshness: () => cache.prices,
      clock,
      shared: shared("prices", decodeKeptWholesale, null),
    }),
    tier: createPool<Tier, Ask>({
      ...cache.tier,
      freshness: () => cache.tier,
      clock,
      shared: shared("tier", decodeKeptTier),
    }),
    account: createPool<AccountFact, Ask>({
      ...cache.account,
      freshness: () => cache.account,
      clock,
      shared: shared("account", decodeKeptFact),
    }),
  };
  const prices = createPriceList({
    combinations: policy.combinations(),
    pool: pools.prices,
    ask: upstream.quote,
    saved:
      settings.mode === "sandbox" || redis !== null
        ? noPriceFacts
        : createPriceFacts(join(config.stateDir, "price-facts.json"), source, log),
    renewals: news?.topic("renewals") ?? null,
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
    onTierChanged: (asOfMs) => void prices.renewAll(asOfMs),
    roomInMs,
    clock,
    log,
  });
  const availability = createAvailabilityDesk({
    policy,
    prices,
    pool: pools.availability,
    check: upstream.check,
    ownedSinceMs: account.ownedSinceMs,
    clock,
    log,
  });
  const promises = createPromises({
    keys: config.promiseKeys ?? (settings.mode === "sandbox" ? fixedSecret(newPromiseKey()) : null),
    validMs: config.retail.promise.validMs,
    clock,
    log,
  });
  const quotes = createQuoteDesk(policy, prices, availability, promises, () => clock.now());
  const suggestions = createSuggestionDesk({
    affixes: config.retail.suggestions,
    desk: availability,
    hasSpare: () => quotaInUse()?.hasSpare() ?? true,
    clock,
    log,
  });

  let phase: "starting" | "ready" | "draining" = "starting";
  let refusedLocally = 0;
  const onProblem = (code: ErrorCode): void => {
    if (PROBLEMS[code].status < 429) refusedLocally += 1;
  };
  const cold = createColdLimit({
    perMinute: config.clientColdPerMinute,
    isContested: (asker) => quotaInUse()?.isContested(asker) ?? false,
    clock,
  });
  const { maxWaitMs } = config.quota;
  const ask = asks(cold, maxWaitMs);
  // Who got the last call of a patient search is given the time that a call may take.
  const streams = createEventStreams({ longestMs: SEARCH_PATIENCE_MS + config.upstreamTimeoutMs, clock });
  const searchStream = createSearchStream({ availability, suggestions, streams, ask, clock });
  const purge = async (what: PurgeWish): Promise<Record<string, number>> => {
    const purged = {
      ...((what === "prices" || what === "all") && { prices: prices.renewAll() }),
      ...((what === "availability" || what === "all") && { availability: pools.availability.purge() }),
      ...((what === "account" || what === "all") && { account: pools.account.purge() + pools.tier.purge() }),
    };
    await news?.told();
    return purged;
  };
  const redisState = (): Redis => (redis === null ? "none" : redis.reachable() ? "shared" : "gone");
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
      rateLimited: { requests: limit.refused(), cold: cold.refused() },
    });
  const warnings = priceWarnings(prices, policy, clock);
  metrics.quota(quota);
  metrics.saved(() => overview().saved);
  metrics.rateLimited(() => overview().rateLimited);
  metrics.surprises(() => upstream.surprises.totals());

  const app = express();
  app.disable("x-powered-by");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.disable("etag");
  app.set("query parser", "simple");
  app.set("trust proxy", config.trustProxyHops);

  const accessLog = createAccessLog(log, metrics, clock);
  const limit = createClientLimit(config.clientPerMinute, clock);
  const questions = visitorQuestions({
    policy,
    prices,
    availability,
    searchStream,
    ask,
    refuse: quickRefusals({ availability, upstream, cold, maxWaitMs }),
    now: () => clock.now(),
  });

  app.use(requestContext(accessLog, clock));
  app.use(securityHeaders);
  app.use(oneHost);
  app.use(
    healthRoutes({
      version: settings.version,
      description:
        settings.mode === "sandbox" ? "Embedded sandbox: no real registry data." : "Live upstream.",
      phase: () => phase,
      checks: () =>
        healthChecks({
          redis: redisState(),
          credentials,
          upstream,
          quota: quota(),
          known: prices.facts(),
          sold: prices.size,
          warnings: warnings(),
        }),
    }),
  );
  // The pattern ends before a slash: Express matches whole segments only.
  app.use(/^\/v1(?!\/staff\/)/, websiteOrigins(config.corsOrigins));
  app.use((_request, response, next) => {
    if (phase !== "draining") return next();
    response.set("Connection", "close");
    throw new ServiceError("shutting_down", "This process is stopping.", { retryAfterMs: 1000 });
  });
  app.use("/v1", ...limit.handlers);
  app.use(visitorRoutes({ policy, quotes, questions, ask }));
  if (config.customers !== null) {
    const tokens = createCustomerTokens({ ...config.customers, clock, log });
    app.use(customerRoutes({ tokens, account, policy, prices, ask, now: () => clock.now() }));
  }
  app.use(
    staffRoutes({
      tokens: settings.staffTokens,
      account,
      policy,
      prices,
      promises,
      metrics,
      ask,
      overview,
      purge,
      now: () => clock.now(),
    }),
  );
  route(app, "/.well-known/jwks.json", {
    GET: (_request, response) => response.set("Cache-Control", "no-store").json(promises.publicKeys()),
  });
  route(app, "/problems/:code", { GET: explainProblem });
  app.use(pageRoutes({ storefront: config.demoStorefront }));
  app.use(docsRouter(() => openApiDocument({ version: settings.version })));
  app.use(() => {
    throw new ServiceError("not_found", "There is nothing under this address.");
  });
  app.use(problemHandler(log, onProblem));

  const answeredAtOnce = fastPath({
    questions,
    headersFor: visitorHeaders(config.corsOrigins),
    limit,
    isServing: () => phase !== "draining",
    accessLog,
    onProblem,
    clock,
  });

  let stopWork = (): void => {};
  return {
    server: serve(app, answeredAtOnce),
    async start() {
      await quotas.openAll(credentials.states().map(({ fingerprint }) => fingerprint));
      await news?.known(REDIS_AT_START_MS);
      await prices.restore();
      phase = "ready";
      const stops = [prices.keepWarm(), account.keepWarm()];
      stopWork = () => {
        for (const stop of stops) stop();
      };
    },
    drain() {
      phase = "draining";
      streams.endAll();
      stopWork();
    },
    async close() {
      await quotas.close();
      news?.close();
      redis?.close();
    },
  };
}
