/** Assembles everything except HTTP: quota, upstream, cache, retail prices, storefront, account and audit log. */
import { hash, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Account, createAccount } from "./account/account.js";
import { createActFile, createSharedActs } from "./audit/act-stores.js";
import { type Audit, createAudit } from "./audit/audit.js";
import { createInvalidation } from "./cache/invalidation.js";
import { createSavedLists } from "./cache/saved-facts.js";
import { type Clock, createStamps, onWallClockSetBack } from "./clock.js";
import type { Config } from "./config/env.js";
import { watchSecretFiles } from "./config/secret-files.js";
import type { Log } from "./logger.js";
import { createPools, type PoolFigures } from "./pools.js";
import type { Quota } from "./quota/quota.js";
import { createQuotas } from "./quota/quotas.js";
import type { RedisLink } from "./redis.js";
import { createLivePolicy, type LivePolicy } from "./retail/live-policy.js";
import { createPriceEpochs, type PriceEpochs } from "./retail/price-epoch.js";
import { createPriceFile, createSharedPriceFacts, noPriceFacts, savedPrices } from "./retail/price-facts.js";
import { createPriceList, type PriceList } from "./retail/price-list.js";
import { createPromises, newPromiseKey, type Promises } from "./retail/promise.js";
import { createSharedPromises } from "./retail/shared-promises.js";
import { createSavedFile } from "./saved-file.js";
import { fixedSecret } from "./secret.js";
import { createStateDir } from "./state-dir.js";
import { createAssessor } from "./storefront/assessment.js";
import { createNameFacts } from "./storefront/name-facts.js";
import { createPremiumMarks, PREMIUM_KEPT_MS, savedMarks } from "./storefront/premium-marks.js";
import { createShops, type Shop } from "./storefront/shop.js";
import { createCredentials, type Credentials } from "./upstream/credentials.js";
import { createUpstream, type Upstream } from "./upstream/operations.js";
import { createRecentCalls, type RecentCalls } from "./upstream/recent-calls.js";
import { keepTrying } from "./upstream/trials.js";

export interface EngineSettings {
  readonly config: Config;
  readonly mode: "sandbox" | "upstream";
  readonly upstream: NonNullable<Config["upstream"]>;
  /** Shared by all replicas; null if there is none. The engine closes it. */
  readonly redis: RedisLink | null;
  /** Called after each upstream call. */
  readonly onCall: (operation: string, outcome: string, durationMs: number) => void;
  readonly clock: Clock;
  /** Counts suspensions of the machine, for the ages of facts. */
  readonly factClock: Clock;
  readonly log: Log;
}

type Purgeable = "prices" | "availability" | "account" | "all";

export interface Engine {
  readonly policies: LivePolicy;
  readonly credentials: Credentials;
  readonly upstream: Upstream;
  readonly recentCalls: RecentCalls;
  readonly pools: PoolFigures;
  readonly epochs: PriceEpochs;
  readonly prices: PriceList;
  readonly account: Account;
  readonly promises: Promises;
  readonly audit: Audit;
  /** Null: replicas share nothing. */
  readonly redis: RedisLink | null;
  /** The shop under the retail policy in effect. */
  shop(): Shop;
  /** The quota of the credential in use, or of the one before until a new one has been used; null while the service starts. */
  quota(): Quota | null;
  /** Identifies the credential in use. */
  credentialInUse(): string;
  /** Why nothing can be saved in STATE_DIR; null if it can, and with Redis, where it is not checked. */
  stateProblem(): string | null;
  /** Purges the caches of all replicas; resolves with how many facts of each kind this one had. */
  purge(what: Purgeable): Promise<Readonly<Record<string, number>>>;
  /** Opens the quota and restores what is known from before: marks and prices. */
  open(): Promise<void>;
  /** Starts the background work; returns a function that stops it. */
  work(): () => void;
  /** Releases the quota and its ledger once calls in flight have settled, then Redis. */
  close(): Promise<void>;
}

/** How long startup waits for Redis. */
const REDIS_AT_START_MS = 1_000;

export function createEngine(settings: EngineSettings): Engine {
  const { config, mode, redis, clock, factClock, log } = settings;
  const isSandbox = mode === "sandbox";
  const stamp = createStamps(factClock);
  const policies = createLivePolicy({ config: config.retail, file: config.retailFile, clock, log });
  const credentials = createCredentials(settings.upstream.active, settings.upstream.standby, clock, stamp);

  /** Where this process listens. Only one can at a time, so the next one there is its successor. Null without a fixed port. */
  const place = config.listen.port > 0 ? `${hostname()} ${config.listen.host} ${config.listen.port}` : null;
  const quotas = createQuotas({
    ...config.quota,
    longestCallMs: config.upstreamTimeoutMs,
    ...(place !== null && { place }),
    home: isSandbox
      ? "memory"
      : redis
        ? { redis, directory: config.stateDir }
        : { directory: config.stateDir },
    clock,
    log,
  });
  const credentialInUse = (): string => (credentials.usable() ?? credentials.states()[0])?.fingerprint ?? "";
  let lastQuota: Quota | null = null;
  const quota = (): Quota | null => (lastQuota = quotas.opened(credentialInUse()) ?? lastQuota);
  const roomInMs = (): number => quota()?.roomInMs() ?? 0;

  const recentCalls = createRecentCalls(clock);
  const upstream = createUpstream({
    baseUrl: settings.upstream.baseUrl,
    timeoutMs: config.upstreamTimeoutMs,
    currencies: () => policies.current().wholesaleCurrencies,
    credentials,
    quotaOf: ({ fingerprint }) => quotas.of(fingerprint),
    openedQuotaOf: ({ fingerprint }) => quotas.opened(fingerprint),
    windowMs: config.quota.windowMs,
    clock,
    stamp,
    log,
    onCall: (operation, outcome, durationMs) => {
      settings.onCall(operation, outcome, durationMs);
      recentCalls.note(operation, outcome, durationMs);
    },
  });

  /** With Redis, facts are kept there; those about the embedded sandbox end with the process. */
  const savesFacts = !isSandbox && redis === null;
  const stateDir = savesFacts ? createStateDir(config.stateDir, clock) : null;
  const acts =
    redis === null
      ? createActFile(join(config.stateDir, "audit.jsonl"), clock, log)
      : createSharedActs(redis, log);
  const audit = createAudit(acts, clock, log);
  policies.onChange((outcome) => {
    const { fingerprint } = policies.state();
    audit.note({ who: null, what: "retail_config", subject: fingerprint, outcome });
  });

  const invalidation = redis && createInvalidation(redis, clock);
  // The embedded sandbox exists only in this process, so nobody else's facts are about it.
  const upstreamId = isSandbox ? randomUUID() : settings.upstream.baseUrl;
  const source = (): string => `${upstreamId} ${credentials.active().fingerprint}`;
  const pools = createPools({
    cache: config.cache,
    shared: redis && invalidation && { link: redis, invalidation },
    upstreamId,
    source,
    clock: factClock,
    stamp,
  });

  const priceFile = createSavedFile({
    path: join(config.stateDir, "price-facts.json"),
    shape: savedPrices,
    source,
    clock,
    log,
  });
  const premiumFiles = createSavedLists({
    directory: config.stateDir,
    name: "premium-names",
    replica: place === null ? randomUUID() : hash("sha256", place, "hex").slice(0, 16),
    keptMs: PREMIUM_KEPT_MS,
    shape: savedMarks,
    source: () => upstreamId,
    clock,
    log,
  });
  const epochs = createPriceEpochs({ channel: invalidation?.channel("prices") ?? null, stamp, clock, log });
  const prices = createPriceList({
    policies,
    pool: pools.prices,
    ask: upstream.quote,
    epochs,
    saved: isSandbox
      ? noPriceFacts
      : redis === null
        ? createPriceFile(priceFile, () => credentials.active().sinceMs, factClock)
        : createSharedPriceFacts(pools.learnedUnder, epochs.current, stamp),
    freshMs: config.cache.prices.freshMs,
    roomInMs,
    hasOutage: () => upstream.health().openCircuits.length > 0,
    windowMs: config.quota.windowMs,
    clock: factClock,
    log,
  });
  const account = createAccount({
    upstream,
    facts: pools.account,
    tiers: pools.tier,
    factsFreshMs: config.cache.account.freshMs,
    tierFreshMs: config.cache.tier.freshMs,
    onTier: epochs.noteTier,
    awaitsTierSinceMs: prices.awaitsTierSinceMs,
    roomInMs,
    clock: factClock,
    log,
  });
  const marks = createPremiumMarks({
    pool: pools.premium,
    files: isSandbox ? null : premiumFiles,
    clock: factClock,
  });
  redis?.onReachable(() => void marks.shareAgain());
  const names = createNameFacts({
    pools: { statuses: pools.statuses, checks: pools.availability },
    marks,
    check: upstream.check,
    epochs,
  });
  const promises = createPromises({
    keys: config.promiseKeys ?? (isSandbox ? fixedSecret(newPromiseKey()) : null),
    validMs: () => policies.current().promiseValidMs,
    shared: redis && createSharedPromises(redis, clock),
    clock,
    log,
  });
  const shop = createShops(policies.current, {
    prices,
    names,
    marks,
    assessor: createAssessor({ names, marks, prices, epochs }),
    ownedSinceMs: account.ownedSinceMs,
    promises,
    // Facts saved in files are dated by the wall clock, which may have been set back since.
    signableSinceMs: redis === null ? stamp() : -Infinity,
    hasSpare: () => quota()?.hasSpare() ?? true,
    clock,
    factClock,
    log,
  });

  function purgePrices(): number {
    epochs.end({ kind: "purge" });
    return prices.facts().length;
  }
  function purgeNames(): number {
    pools.statuses.purge();
    return pools.availability.purge();
  }

  return {
    policies,
    credentials,
    upstream,
    recentCalls,
    pools,
    epochs,
    prices,
    account,
    promises,
    audit,
    redis,
    shop,
    quota,
    credentialInUse,
    stateProblem: () => stateDir?.problem() ?? null,
    async purge(what) {
      const isMeant = (kind: Purgeable): boolean => what === kind || what === "all";
      const purged = {
        ...(isMeant("prices") && { prices: purgePrices() }),
        ...(isMeant("availability") && { availability: purgeNames() }),
        ...(isMeant("account") && { account: pools.account.purge() + pools.tier.purge() }),
      };
      await invalidation?.published();
      return purged;
    },
    async open() {
      marks.restore();
      await Promise.all([
        redis?.firstContact(REDIS_AT_START_MS),
        quotas.openAll(credentials.states().map(({ fingerprint }) => fingerprint)),
      ]);
      await invalidation?.known(REDIS_AT_START_MS);
      await prices.restore();
    },
    work() {
      const stops = [
        prices.keepWarm(),
        account.keepWarm(),
        policies.watch(),
        onWallClockSetBack(clock, () => {
          const { statuses, availability, prices: quotes, tier, account: facts } = pools;
          for (const pool of [statuses, availability, quotes, tier, facts]) pool.redate();
        }),
        watchSecretFiles(config.secretFiles, clock, log),
        keepTrying({
          upstream,
          quote: prices.tryQuote,
          tier: account.tryTier,
          sold: () => policies.current().combinations()[0],
          roomInMs,
          clock,
        }),
        stateDir?.watch(),
      ];
      return () => {
        for (const stop of stops) stop?.();
      };
    },
    async close() {
      audit.flush();
      marks.flush();
      await Promise.all([quotas.close(), stateDir?.checked(), priceFile.saved(), premiumFiles.saved()]);
      invalidation?.close();
      redis?.close();
    },
  };
}
