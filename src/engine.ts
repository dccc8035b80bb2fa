/** Assembles everything except HTTP: quota, upstream, notebook, retail prices, shop, account and audit log. */
import { randomUUID } from "node:crypto";
import type { z } from "zod";
import { type Account, createAccount } from "./staff/account.js";
import { type Carts, createCarts } from "./staff/carts.js";
import { type Audit, createAudit } from "./staff/audit.js";
import { type Clock, createStamps } from "./clock.js";
import type { Config } from "./config/env.js";
import { createCustomerDomains, type CustomerDomains } from "./customers/customer-domains.js";
import { watchSecretFiles } from "./config/secret-files.js";
import { createFleet, type Fleet } from "./fleet/lease.js";
import { createRedisStore } from "./redis/store.js";
import { createTenure, type Tenure } from "./fleet/tenure.js";
import type { Log } from "./logger.js";
import { createNotebook, type Notebook } from "./facts/notebook.js";
import type { Quota } from "./quota/line.js";
import { createQuotas } from "./quota/quotas.js";
import { createRecords } from "./quota/record.js";
import type { RedisLink } from "./redis/redis.js";
import { createLivePolicy, type LivePolicy } from "./retail/live-policy.js";
import { createNameKinds, savedNames } from "./retail/name-kinds.js";
import { createPriceList, type PriceList } from "./retail/price-list.js";
import { createPromises, newPromiseKey, type Promises } from "./retail/promise.js";
import { savedPricesShape, savePrices } from "./retail/saved-prices.js";
import { fixedSecret } from "./secret.js";
import { createStateDir } from "./state-dir.js";
import { createFileStore, type Store } from "./store.js";
import { createNames } from "./shop/names.js";
import { createShops, type Shop } from "./shop/shop.js";
import { createCredentials, type Credentials } from "./upstream/credentials.js";
import { createUpstream, type Upstream } from "./upstream/operations.js";
import { createRecentCalls, type RecentCalls } from "./upstream/recent-calls.js";
import { startTrials } from "./upstream/trials.js";

export interface EngineSettings {
  readonly config: Config;
  readonly mode: "sandbox" | "upstream";
  readonly upstream: NonNullable<Config["upstream"]>;
  /** Null without other replicas. The engine closes it. */
  readonly redis: RedisLink | null;
  /** Where other replicas reach this one. */
  readonly url: () => string;
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
  readonly notebook: Notebook;
  readonly prices: PriceList;
  readonly account: Account;
  readonly customerDomains: CustomerDomains;
  readonly promises: Promises;
  readonly carts: Carts;
  readonly audit: Audit;
  readonly redis: RedisLink | null;
  /** A number that changes whenever something new is known that answers to visitors may depend on. */
  changes(): number;
  readonly store: Store;
  /** Null: this process is alone, and so always the owner. */
  readonly fleet: Fleet | null;
  /** The shop under the retail policy in effect. */
  shop(): Shop;
  /** The quota of the credential in use, or of the one before until a new one has been used; null while the service starts. */
  quota(): Quota | null;
  /** Identifies the credential in use. */
  credentialInUse(): string;
  /** Why nothing can be saved in STATE_DIR; null if it can, and with Redis, where it is not checked. */
  stateProblem(): string | null;
  /** Purges the caches; returns how many facts of each kind there were. */
  purge(what: Purgeable): Readonly<Record<string, number>>;
  /** Waits for Redis for a moment. Without other replicas: opens the quota and restores what is known from before. */
  open(): Promise<void>;
  /** Starts the background work; that of the owner, and `asOwner`, only while this process is the owner. Returns a function that stops it. */
  work(asOwner: () => () => void): () => void;
  /** While this process becomes the owner: resolves when it knows what the former one knew. Otherwise null. */
  takingOver(): Promise<void> | null;
  /** With other replicas: takes part in the election of the owner, once this process listens. */
  join(): void;
  /** With other replicas: gives up the ownership once calls in flight have settled, and leaves the next owner what it needs. */
  stepDown(): Promise<void>;
  /** Releases the quota and its ledger once calls in flight have settled, then Redis. */
  close(): Promise<void>;
}

function all(stops: readonly ((() => void) | undefined)[]): () => void {
  return () => {
    for (const stop of stops) stop?.();
  };
}

/** A process without others is always the owner. */
function alone(stop: () => void): Tenure {
  return { takingOver: () => null, stop };
}

/** How long startup waits for Redis. */
const REDIS_AT_START_MS = 1_000;

export function createEngine(settings: EngineSettings): Engine {
  const { config, mode, redis, clock, factClock, log } = settings;
  const isSandbox = mode === "sandbox";
  const stamp = createStamps(factClock);
  let changes = 0;
  const onChange = (): void => {
    changes += 1;
  };
  const policies = createLivePolicy({ config: config.retail, file: config.retailFile, clock, log });
  policies.onChange(onChange);
  const credentials = createCredentials(settings.upstream.active, settings.upstream.standby, clock, stamp);

  const credentialInUse = (): string => (credentials.usable() ?? credentials.states()[0])?.fingerprint ?? "";
  // The embedded sandbox exists only in this process: nobody else's facts are about it, and nobody else calls it.
  const upstreamId = isSandbox ? randomUUID() : settings.upstream.baseUrl;
  const fleet =
    isSandbox || redis === null
      ? null
      : createFleet({
          ...config.quota,
          link: redis,
          url: settings.url,
          upstreamId,
          credentialInUse,
          clock,
          factClock,
          log,
        });
  const quotas = createQuotas({
    ...config.quota,
    notes: isSandbox ? null : (fleet ?? createRecords(config.stateDir, config.quota, clock)),
    clock,
    log,
  });
  let lastQuota: Quota | null = null;
  const quota = (): Quota | null => (lastQuota = quotas.opened(credentialInUse()) ?? lastQuota);
  const backgroundRoomInMs = (): number => quota()?.backgroundRoomInMs() ?? 0;

  const recentCalls = createRecentCalls(clock);
  const upstream = createUpstream({
    baseUrl: settings.upstream.baseUrl,
    timeoutMs: config.upstreamTimeoutMs,
    currencies: () => policies.current().wholesaleCurrencies,
    credentials,
    quotaOf: ({ fingerprint }) => quotas.of(fingerprint),
    windowMs: config.quota.windowMs,
    clock,
    stamp,
    log,
    onCall: (operation, outcome, durationMs) => {
      settings.onCall(operation, outcome, durationMs);
      recentCalls.note(operation, outcome, durationMs);
    },
  });

  const store = redis
    ? createRedisStore(redis, log)
    : createFileStore(config.stateDir, isSandbox, clock, log);
  const stateDir = isSandbox || redis ? null : createStateDir(config.stateDir, clock);
  const audit = createAudit(store.acts, clock, log);
  policies.onChange((outcome) => {
    const { fingerprint } = policies.state();
    audit.note({ who: null, what: "retail_config", subject: fingerprint, outcome });
  });

  const source = (): string => `${upstreamId} ${credentials.active().fingerprint}`;
  const notebook = createNotebook({ limits: config.cache, clock: factClock, stamp, onChange, log });
  const { changes: priceChanges } = notebook;

  const saved = <T>(name: string, shape: z.ZodType<T>, of: () => string) =>
    isSandbox ? null : store.saved({ name, shape, source: of });
  const pricesFile = saved("prices", savedPricesShape, source);
  const namesFile = saved("name-kinds", savedNames, () => upstreamId);
  const nameKinds = createNameKinds({
    max: config.cache.availability.entries,
    file: namesFile,
    clock: factClock,
    onChange,
  });
  const prices = createPriceList({
    policies,
    notebook,
    quote: upstream.quote,
    saved: savePrices(pricesFile, () => credentials.active().sinceAt, factClock),
    onChange,
    freshMs: config.cache.prices.freshMs,
    backgroundRoomInMs,
    hasOutage: () => upstream.health().openCircuits.length > 0,
    windowMs: config.quota.windowMs,
    clock: factClock,
    log,
  });
  const account = createAccount({
    upstream,
    notebook,
    factsFreshMs: config.cache.account.freshMs,
    tierFreshMs: config.cache.tier.freshMs,
    hasCustomers: config.customers !== null,
    wantsBalance: () => config.customers !== null || config.notify !== null || !carts.isEmpty(),
    onOwnPrices: (ascii, askedAt) => {
      nameKinds.noteSign({ ascii }, askedAt);
    },
    backgroundRoomInMs,
    clock: factClock,
    log,
  });
  const customerDomains = createCustomerDomains({ account, backgroundRoomInMs, clock: factClock, log });
  const names = createNames({
    checks: notebook.checks,
    check: upstream.check,
    onSign: nameKinds.noteSign,
  });
  const carts = createCarts({
    store: isSandbox ? null : store.carts,
    upstream: upstreamId,
    account,
    names,
    hasSpare: () => quota()?.hasSpare() ?? false,
    clock,
    factClock,
  });
  const promises = createPromises({
    keys: config.promiseKeys ?? (isSandbox ? fixedSecret(newPromiseKey()) : null),
    validMs: () => policies.current().promiseValidMs,
    keep: carts.keep,
    clock,
    log,
  });
  const shop = createShops(policies.current, {
    prices,
    names,
    nameKinds,
    changes: priceChanges,
    ownedSinceAt: account.ownedSinceAt,
    promises,
    hasSpare: () => quota()?.hasSpare() ?? true,
    clock,
    factClock,
    log,
  });

  let tenure: Tenure | null = null;

  /** What a former owner or process knew. What this one knows itself from before counts by its age, its prices no more than restored ones. */
  async function restore(): Promise<void> {
    await Promise.all([nameKinds.restore(), prices.restore(), carts.restore()]);
  }

  async function takeOver(): Promise<void> {
    await Promise.all([restore(), quotas.of(credentialInUse()).catch(() => undefined)]);
  }

  async function leaveBehind(): Promise<void> {
    audit.flush();
    await Promise.all([pricesFile?.saved(), namesFile?.saved()]);
  }

  function purgePrices(): number {
    priceChanges.notePurge();
    return prices.all().length;
  }

  return {
    policies,
    credentials,
    upstream,
    recentCalls,
    notebook,
    prices,
    account,
    customerDomains,
    promises,
    carts,
    audit,
    redis,
    changes: () => changes,
    store,
    fleet,
    shop,
    quota,
    credentialInUse,
    stateProblem: () => stateDir?.problem() ?? null,
    purge(what) {
      const isMeant = (kind: Purgeable): boolean => what === kind || what === "all";
      return {
        ...(isMeant("prices") && { prices: purgePrices() }),
        ...(isMeant("availability") && { availability: notebook.checks.purge() }),
        ...(isMeant("account") && { account: notebook.purgeAccount() }),
      };
    },
    async open() {
      await redis?.firstContact(REDIS_AT_START_MS);
      if (fleet !== null) return;
      await quotas.openAll(credentials.states().map(({ fingerprint }) => fingerprint));
      await restore();
    },
    work(asOwner) {
      const work = (): (() => void) =>
        all([
          prices.keepWarm(),
          account.keepWarm(),
          carts.follow(),
          startTrials({
            upstream,
            quote: prices.tryQuote,
            tier: account.tryTier,
            sold: () => policies.current().combinations()[0],
            backgroundRoomInMs,
            clock,
          }),
          asOwner(),
        ]);
      tenure = fleet === null ? alone(work()) : createTenure(fleet, takeOver, work);
      return all([
        tenure.stop,
        policies.watch(),
        watchSecretFiles(config.secretFiles, clock, log),
        stateDir?.watch(),
      ]);
    },
    takingOver: () => tenure?.takingOver() ?? null,
    join() {
      void fleet?.start();
    },
    async stepDown() {
      if (fleet === null) return;
      tenure?.stop();
      await leaveBehind();
      await quotas.close();
    },
    async close() {
      await leaveBehind();
      await Promise.all([quotas.close(), stateDir?.checked()]);
      fleet?.stop();
      redis?.close();
    },
  };
}
