/** The composition root: every part is built here by hand, every middleware and route is listed in its order. */
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import cors from "cors";
import express, { type Express, type RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import helmet from "helmet";
import { type AccountFact, createAccount } from "./account/account.js";
import { createPool, type PoolStats } from "./cache/cache.js";
import type { Clock } from "./clock.js";
import type { Config } from "./config.js";
import { type ErrorCode, PROBLEMS, ServiceError } from "./errors.js";
import { ClientWindows, CLIENT_WINDOW_MS } from "./http/client-windows.js";
import { asks, contextOf, requestContext } from "./http/context.js";
import { docsRouter } from "./http/docs.js";
import { healthRoutes } from "./http/health.js";
import { openApiDocument } from "./http/openapi.js";
import type { PurgeWish } from "./http/parse.js";
import { instant } from "./http/presenters.js";
import { explainProblem, problemHandler, unreadableRequest } from "./http/problems.js";
import { route } from "./http/routes.js";
import { staffRoutes } from "./http/staff.js";
import { visitorRoutes } from "./http/visitors.js";
import type { Log } from "./logger.js";
import { createMetrics } from "./metrics.js";
import type { Wholesale } from "./money.js";
import { openFileLedger } from "./quota/ledger-file.js";
import { memoryLedger } from "./quota/ledger-memory.js";
import { createQuota } from "./quota/lanes.js";
import type { Ask, Quota, QuotaSnapshot } from "./quota/quota.js";
import { createRetailPolicy } from "./retail/policy.js";
import { createPriceFacts, noPriceFacts } from "./retail/price-facts.js";
import { createPriceList } from "./retail/price-list.js";
import type { Secret } from "./secret.js";
import { createAvailabilityDesk, type VisitorAsk } from "./storefront/availability.js";
import { createQuoteDesk } from "./storefront/quotes.js";
import { createUpstream, type Upstream } from "./upstream/client.js";
import type { Check, Tier } from "./upstream/contract.js";
import {
  createCredentials,
  type Credential,
  type Credentials,
  type CredentialSource,
} from "./upstream/credentials.js";

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
  /** Lets the quota and its ledger go, once calls in flight have settled. */
  close(): Promise<void>;
}

export function createApp(settings: AppSettings): App {
  const { config, clock, log } = settings;
  const metrics = createMetrics();
  const policy = createRetailPolicy(config.retail);

  const credentials = createCredentials(settings.upstream.active, settings.upstream.standby, clock);
  const quotas = quotasOf(settings);
  const upstream = createUpstream({
    baseUrl: settings.upstream.baseUrl,
    timeoutMs: config.upstreamTimeoutMs,
    credentials,
    quotaOf: quotas.of,
    clock,
    log,
    onCall: metrics.upstreamCall,
  });

  /** Background work leaves at least half the budget to those who wait. */
  const hasRoom = (): boolean => {
    const snapshot = quotas.snapshot(credentials);
    return snapshot === null || snapshot.used < snapshot.budget / 2;
  };

  const { cache } = config;
  const pools = {
    availability: createPool<Check, VisitorAsk>({
      ...cache.availability,
      freshness: ({ status }) => cache.availability[status],
      clock,
    }),
    prices: createPool<Wholesale, Ask>({ ...cache.prices, freshness: () => cache.prices, clock }),
    tier: createPool<Tier, Ask>({ ...cache.tier, freshness: () => cache.tier, clock }),
    account: createPool<AccountFact, Ask>({ ...cache.account, freshness: () => cache.account, clock }),
  };
  const account = createAccount({
    upstream,
    facts: pools.account,
    tiers: pools.tier,
    freshMs: cache.account.freshMs,
    hasRoom,
    clock,
    log,
  });
  const prices = createPriceList({
    combinations: policy.combinations(),
    pool: pools.prices,
    ask: upstream.quote,
    saved:
      settings.mode === "sandbox"
        ? noPriceFacts
        : createPriceFacts(
            join(config.stateDir, "price-facts.json"),
            () => `${settings.upstream.baseUrl} ${credentials.states()[0]?.fingerprint ?? ""}`,
            log,
          ),
    freshMs: cache.prices.freshMs,
    hasRoom,
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
  const quotes = createQuoteDesk(policy, prices, availability, () => clock.now());

  let phase: "starting" | "ready" | "draining" = "starting";
  let refusedLocally = 0;
  const ask = asks(new ClientWindows(clock), config.clientColdPerMinute, config.quota.maxWaitMs);
  const purge = (what: PurgeWish): Record<string, number> => ({
    ...((what === "prices" || what === "all") && { prices: prices.renewAll() }),
    ...((what === "availability" || what === "all") && { availability: pools.availability.purge() }),
    ...((what === "account" || what === "all") && { account: pools.account.purge() + pools.tier.purge() }),
  });
  const overview = (): object =>
    presentOverview(settings, { credentials, upstream, quotas, pools, refusedLocally });
  metrics.gauge(
    "quota_calls",
    "Calls of the active credential in the current window, and the budget.",
    "what",
    () => {
      const snapshot = quotas.snapshot(credentials);
      return snapshot === null
        ? {}
        : { used: snapshot.used, budget: snapshot.budget, largest_window_today: snapshot.largestWindowToday };
    },
  );

  const app = express();
  app.disable("x-powered-by");
  app.enable("case sensitive routing");
  app.enable("strict routing");
  app.disable("etag");
  app.set("query parser", "simple");
  app.set("trust proxy", config.trustProxyHops);

  app.use(requestContext(log, metrics, clock));
  app.use(securityHeaders());
  app.use(oneHost);
  app.use(
    healthRoutes({
      version: settings.version,
      description:
        settings.mode === "sandbox" ? "Embedded sandbox: no real registry data." : "Live upstream.",
      phase: () => phase,
      checks: () =>
        healthChecks({ config, credentials, upstream, quotas, known: prices.facts(), sold: prices.size }),
    }),
  );
  app.use((_request, response, next) => {
    if (phase !== "draining") return next();
    response.set("Connection", "close");
    throw new ServiceError("shutting_down", "This process is stopping.", { retryAfterMs: 1000 });
  });
  app.use("/v1", clientLimit(config, clock));
  app.use(/^\/v1\/(?!staff\/)/, websiteOrigins(config.corsOrigins));
  app.use(visitorRoutes({ policy, prices, availability, quotes, ask, now: () => clock.now() }));
  app.use(
    staffRoutes({
      tokens: settings.staffTokens,
      account,
      policy,
      prices,
      metrics,
      ask,
      overview,
      purge,
      now: () => clock.now(),
    }),
  );
  route(app, "/problems/:code", { GET: explainProblem });
  app.use(docsRouter(openApiDocument({ version: settings.version })));
  app.use(() => {
    throw new ServiceError("not_found", "There is nothing under this address.");
  });
  app.use(
    problemHandler(log, (code: ErrorCode) => {
      if (PROBLEMS[code].status < 429) refusedLocally += 1;
    }),
  );

  let stopWork = (): void => {};
  return {
    server: serve(app),
    async start() {
      const credential = credentials.usable();
      if (credential !== null) await quotas.of(credential);
      phase = "ready";
      const stops = [prices.keepWarm(), account.keepWarm()];
      stopWork = () => {
        for (const stop of stops) stop();
      };
    },
    drain() {
      phase = "draining";
      stopWork();
    },
    close: quotas.close,
  };
}

/** One quota per credential, opened at its first use. */
function quotasOf({ config, mode, clock, log }: AppSettings) {
  const open = new Map<string, Promise<Quota>>();
  const ready = new Map<string, Quota>();
  // Each replica keeps to a share of its own, so that all together never exceed the budget.
  const { limit, headroom, windowMs, coldStart, replicasMax } = config.quota;
  const share = Math.floor((limit - headroom) / replicasMax);
  const shareHeadroom = Math.floor(headroom / replicasMax);
  const budget = { limit: share + shareHeadroom, headroom: shareHeadroom, windowMs };
  const onFault = (what: string, error: unknown): void => {
    log.error("quota.ledger.failed", { what, reason: error instanceof Error ? error.name : "unknown" });
  };

  async function create({ fingerprint }: Credential): Promise<Quota> {
    const ledger =
      mode === "sandbox"
        ? memoryLedger({ ...budget, clock })
        : await openFileLedger({
            ...budget,
            directory: config.stateDir,
            fingerprint,
            coldStart,
            clock,
            onFault,
          });
    const quota = createQuota({ ledger, clock, onFault });
    ready.set(fingerprint, quota);
    return quota;
  }
  return {
    of(credential: Credential): Promise<Quota> {
      const known = open.get(credential.fingerprint);
      if (known) return known;
      const opening = create(credential);
      open.set(credential.fingerprint, opening);
      opening.catch(() => open.delete(credential.fingerprint));
      return opening;
    },
    /** The figures of the credential in use; null before its first use. */
    snapshot(credentials: Credentials): QuotaSnapshot | null {
      const fingerprint = credentials.usable()?.fingerprint ?? credentials.states()[0]?.fingerprint ?? "";
      return ready.get(fingerprint)?.snapshot() ?? null;
    },
    async close(): Promise<void> {
      await Promise.all([...ready.values()].map((quota) => quota.close()));
    },
  };
}

type Quotas = ReturnType<typeof quotasOf>;

interface OverviewParts {
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly quotas: Quotas;
  readonly pools: Readonly<Record<"availability" | "prices" | "tier" | "account", { stats(): PoolStats }>>;
  readonly refusedLocally: number;
}

function presentOverview(
  { mode }: AppSettings,
  { credentials, upstream, quotas, pools, refusedLocally }: OverviewParts,
): object {
  const { lastSuccessAtMs, lastFailureAtMs } = upstream.health();
  const stats = {
    availability: pools.availability.stats(),
    prices: pools.prices.stats(),
    tier: pools.tier.stats(),
    account: pools.account.stats(),
  };
  const sum = (of: (pool: PoolStats) => number): number =>
    Object.values(stats).reduce((total, pool) => total + of(pool), 0);
  return {
    mode,
    quota: quotas.snapshot(credentials),
    caches: stats,
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

interface HealthFacts {
  readonly config: Config;
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly quotas: Quotas;
  readonly known: readonly { readonly stale: boolean }[];
  readonly sold: number;
}

function healthChecks({ config, credentials, upstream, quotas, known, sold }: HealthFacts) {
  const { lastSuccessAtMs, lastFailureAtMs } = upstream.health();
  const quota = quotas.snapshot(credentials);
  const failing = lastFailureAtMs !== null && lastFailureAtMs > (lastSuccessAtMs ?? 0);
  return {
    upstream:
      credentials.usable() === null
        ? ({ status: "fail", output: "Every credential is refused." } as const)
        : failing
          ? ({ status: "warn", output: "The last call failed." } as const)
          : ({ status: "pass" } as const),
    quota:
      quota !== null && (quota.pausedForMs > 0 || quota.used >= quota.budget)
        ? ({ status: "warn", output: "No call can be made at the moment." } as const)
        : ({ status: "pass" } as const),
    redis: config.quota.redisConfigured
      ? ({ status: "warn", output: "Not shared: each replica keeps to its own share of the quota." } as const)
      : ({ status: "pass", output: "Not configured." } as const),
    prices:
      known.length === sold && !known.some(({ stale }) => stale)
        ? ({ status: "pass" } as const)
        : ({
            status: "warn",
            output: known.length === 0 ? "No price is known yet." : "Some prices are missing or old.",
          } as const),
  };
}

/** An API needs no resources of its own, so its policy allows none; pages bring their own. */
function securityHeaders(): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    crossOriginResourcePolicy: { policy: "cross-origin" },
  });
}

/** Node takes two Host headers; a proxy may have believed the other one. */
const oneHost: RequestHandler = (request, _response, next) => {
  const hosts = request.rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === "host");
  if (hosts.length > 1)
    throw new ServiceError("invalid_request", "The request has more than one Host header.");
  next();
};

function clientLimit(config: Config, clock: Clock): RequestHandler {
  const windows = new ClientWindows(clock);
  return rateLimit({
    windowMs: CLIENT_WINDOW_MS,
    limit: config.clientPerMinute,
    standardHeaders: "draft-8",
    legacyHeaders: false,
    keyGenerator: (request) => contextOf(request).client,
    store: windows,
    // Clients send what they like; whether a proxy is trusted is TRUST_PROXY_HOPS' matter.
    validate: { xForwardedForHeader: false, forwardedHeader: false },
    handler: (request) => {
      throw new ServiceError("rate_limited", "Too many requests from this client within a minute.", {
        retryAfterMs: windows.untilResetMs(contextOf(request).client),
      });
    },
  });
}

function websiteOrigins(origins: readonly string[]): RequestHandler {
  return cors({
    origin: [...origins],
    methods: ["GET", "HEAD", "POST"],
    allowedHeaders: ["Authorization", "Content-Type", "Last-Event-ID", "X-Request-Id"],
    exposedHeaders: ["ETag", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id"],
    maxAge: 600,
  });
}

/** Slow headers, bodies and readers must not hold sockets for minutes, as Node's own limits let them. */
function serve(app: Express): Server {
  const server = createServer(
    {
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
    },
    app,
  );
  server.setTimeout(90_000);
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
    else socket.end(unreadableRequest());
  });
  return server;
}
