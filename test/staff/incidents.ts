/** What alarms and alerts are for. Each incident is really caused, in the sandbox or the service's environment, and then ended. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { FakeClock } from "../support/fake-clock.js";
import { RETAIL } from "../support/retail.js";
import { type RedisServer, startRedis } from "../support/redis-server.js";
import {
  inTime,
  type Service,
  type ServiceOptions,
  startService,
  temporaryFolder,
} from "../support/service.js";
import { purge, staffRead } from "../support/staff.js";

/** Few prices, because all of them are asked for again every ten minutes. */
const FEW = RETAIL.replace(
  /^catalog:[^]*?(?=^rules:)/m,
  "catalog: [{ tld: .af, years: { registration: [1, 2], renewal: [1], transfer: [1] } }]\n",
);

export interface Scene {
  readonly service: Service;
  readonly clock: FakeClock;
  /** The file that the service reads as RETAIL_CONFIG. */
  readonly file: string;
  /** The service's Redis, if it uses one. */
  readonly redis: RedisServer | null;
}

/** How a scene is set up. */
export type SceneSetup = Partial<Pick<ServiceOptions, "reseller" | "warm">> & {
  readonly env?: Readonly<Record<string, string>>;
  readonly withRedis?: boolean;
};

export interface Incident extends SceneSetup {
  readonly alarm?: { readonly kind: string; readonly text: RegExp };
  /** Each with the minutes within which it fires. */
  readonly alerts?: Readonly<Record<string, number>>;
  readonly cause: (scene: Scene) => Promise<void>;
  /** Runs every minute while the incident lasts. */
  readonly meanwhile?: (scene: Scene) => Promise<void>;
  readonly cure: (scene: Scene) => Promise<void>;
}

/** Starts a service with an embedded sandbox, calls `act` and closes everything. */
export async function inScene(
  { env, reseller, warm, withRedis = false }: SceneSetup,
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const folder = temporaryFolder();
  const redis = withRedis ? await startRedis() : null;
  const file = join(folder.path, "retail.yaml");
  writeFileSync(file, FEW);
  const clock = new FakeClock();
  const service = await startService({
    clock,
    env: { RETAIL_CONFIG: file, ...(redis && { REDIS_URL: redis.url }), ...env },
    ...(reseller !== undefined && { reseller }),
    ...(warm !== undefined && { warm }),
  });
  try {
    await act({ service, clock, file, redis });
  } finally {
    await service.close();
    await redis?.close();
    folder.remove();
  }
}

let searches = 0;
/** Simultaneous visitors, each of whom searches for a new name. */
export async function crowd({ service, clock }: Scene, visitors: number): Promise<void> {
  const names = Array.from({ length: visitors }, () => `crowd-${(searches += 1)}.af`);
  await inTime(clock, Promise.all(names.map((name) => service.ask(`/v1/availability?domain=${name}`))));
}

const CART = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
/** A total below that of a shorter term would be doubtful, so every term becomes dearer. */
const DEAR = Array.from(
  { length: 10 },
  (_, at) => ({ tld: ".af", action: "registration", years: at + 1, amountCents: 9000 * (at + 1) }) as const,
);

const requestCart = ({ service, clock }: Scene) =>
  inTime(clock, service.ask("/v1/quotes", { method: "POST", body: CART }));

export const moreVisitorsThanCalls: Incident = {
  alarm: { kind: "refused", text: /^In the last minute, visitors were asked to try again later/ },
  alerts: { StorefrontVisitorsRefused: 12 },
  env: { UPSTREAM_RATE_LIMIT: "13", QUOTA_MAX_WAIT_MS: "100" },
  cause: (scene) => crowd(scene, 18),
  meanwhile: (scene) => crowd(scene, 18),
  cure: ({ clock }) => clock.advance(61_000),
};

export const upstreamLimits: Incident = {
  // To the minute: a minute from a quarter past is rounded up.
  alarm: {
    kind: "paused",
    text: /^The registry reported that its limit is exceeded\. Calls are paused until 00:\d\d UTC\.$/,
  },
  cause: async (scene) => {
    scene.service.sandbox.control.setRateLimit({ limit: 1, windowMs: 60_000 });
    await crowd(scene, 2);
  },
  cure: async ({ service, clock }) => {
    service.sandbox.control.setRateLimit({ limit: 1000, windowMs: 60_000 });
    await clock.advance(61_000);
  },
};

export const upstreamFails: Incident = {
  alarm: {
    kind: "registry",
    text: /^The registry keeps failing, so only trial requests are made: .*check/,
  },
  alerts: { StorefrontCircuitOpen: 5, StorefrontUpstreamFailing: 17 },
  cause: async (scene) => {
    scene.service.sandbox.control.setFault("all", { fault: "status-503" });
    for (let times = 0; times < 8; times += 1) await crowd(scene, 1);
  },
  cure: async ({ service, clock }) => {
    service.sandbox.control.clearFaults();
    await clock.advance(15_000);
  },
};

export const credentialRefused: Incident = {
  alarm: { kind: "credential", text: /^The registry refuses every credential/ },
  alerts: { StorefrontCredentialRefused: 4 },
  cause: async (scene) => {
    scene.service.sandbox.control.setApiAccess("demo", false);
    await crowd(scene, 1);
  },
  cure: async (scene) => {
    scene.service.sandbox.control.setApiAccess("demo", true);
    await scene.clock.advance(80_000);
    await crowd(scene, 1);
  },
};

export const badPriceFile: Incident = {
  alarm: {
    kind: "price_file",
    text: /^The changed price file isn't used: rules\[0\]\.markupPercent: is a bare number/,
  },
  alerts: { StorefrontRetailConfigRejected: 3 },
  cause: async ({ file, clock }) => {
    writeFileSync(file, FEW.replace('markupPercent: "25"', "markupPercent: 25"));
    await clock.advance(1_500);
  },
  cure: async ({ file, clock }) => {
    writeFileSync(file, FEW);
    await clock.advance(1_500);
  },
};

export const doubtfulPrices: Incident = {
  alarm: { kind: "doubtful", text: /^\d+ of \d+ prices are doubtful\./ },
  alerts: { StorefrontPricesDoubtful: 18 },
  cause: async (scene) => {
    scene.service.sandbox.control.setFault("quote", { fault: "status-503" });
    await purge(scene.service, "prices");
  },
  cure: async ({ service, clock }) => {
    service.sandbox.control.clearFaults();
    await clock.advance(120_000);
  },
};

export const marginLost: Incident = {
  alarm: {
    kind: "margin",
    text: /^1 signed promise has fallen below the minimum price\. Margin lost: \d+\.\d\d USD/,
  },
  alerts: { StorefrontMarginLost: 4 },
  cause: async (scene) => {
    const { service, clock } = scene;
    await requestCart(scene);
    for (const price of DEAR) service.sandbox.control.setPrice("demo", price);
    await purge(scene.service, "prices");
    await clock.advance(10_000);
  },
  cure: ({ clock }) => clock.advance(15 * 60_000),
};

/** Missing since startup. */
export const pricesMissing: Incident = {
  alerts: { StorefrontPricesMissing: 18 },
  reseller: "locked",
  warm: false,
  cause: () => Promise.resolve(),
  cure: async ({ service, clock }) => {
    service.sandbox.control.setApiAccess("locked", true);
    await clock.advance(120_000);
  },
};

export const notListening: Incident = {
  alerts: { StorefrontDown: 3 },
  cause: async ({ service }) => {
    const closed = new Promise((done) => service.server.close(done));
    service.server.closeAllConnections();
    await closed;
  },
  cure: ({ service }) =>
    new Promise((done) => {
      service.server.listen(service.port, "127.0.0.1", done);
    }),
};

export const redisLost: Incident = {
  alarm: { kind: "redis", text: /^Redis can't be reached\./ },
  alerts: { StorefrontRedisLost: 3 },
  withRedis: true,
  cause: async ({ redis }) => redis?.kill(),
  cure: async ({ redis }) => redis?.start(),
};

export const redisRefuses: Incident = {
  alarm: { kind: "redis", text: /^Redis refuses commands\./ },
  withRedis: true,
  cause: async ({ redis, clock }) => {
    await redis?.command("CONFIG", "SET", "maxmemory", "1");
    await clock.advance(1_000);
  },
  cure: async ({ redis, clock }) => {
    await redis?.command("CONFIG", "SET", "maxmemory", "0");
    await clock.advance(5_000);
  },
};

async function visits({ service }: Scene, headers: Readonly<Record<string, string>>): Promise<void> {
  for (let n = 0; n < 50; n += 1) await service.ask("/problems/internal", { headers });
}
const FORWARDED = { "X-Forwarded-For": "192.0.2.1" };

export const unknownProxy: Incident = {
  alarm: { kind: "proxy", text: /^More proxies are in front of the service than TRUST_PROXY_HOPS says/ },
  cause: (scene) => visits(scene, FORWARDED),
  cure: (scene) => visits(scene, {}),
};

export const pastTheProxy: Incident = {
  alarm: { kind: "proxy", text: /^Requests arrive past the proxies that TRUST_PROXY_HOPS expects/ },
  env: { TRUST_PROXY_HOPS: "1" },
  cause: (scene) => visits(scene, {}),
  cure: (scene) => visits(scene, FORWARDED),
};

const { stringify } = JSON;

function isPromise(value: unknown): boolean {
  return typeof value === "object" && value !== null && "jti" in value && "items" in value;
}

/** An internal fault: a built-in function throws. */
export const signingFails: Incident = {
  alerts: { StorefrontOwnFaults: 4 },
  cause: async (scene) => {
    const value = (...args: readonly unknown[]): unknown => {
      if (isPromise(args[0])) throw new Error("no memory for another promise");
      return Reflect.apply(stringify, JSON, args);
    };
    Object.defineProperty(JSON, "stringify", { value, configurable: true, writable: true });
    await requestCart(scene);
  },
  cure: () => {
    JSON.stringify = stringify;
    return Promise.resolve();
  },
};

const listDomains = ({ service }: Scene) => staffRead(service, "domains");
/** old-bazaar.af isn't renewed automatically, and expires on 12 June. */
const onDay =
  (day: string) =>
  async (scene: Scene): Promise<void> => {
    await scene.clock.leap(Date.parse(day) - scene.clock.now());
    await listDomains(scene);
  };
const renewed = async (scene: Scene): Promise<void> => {
  const { control } = scene.service.sandbox;
  control.order("demo", { domain: "old-bazaar.af", action: "renewal", years: 1 });
  await scene.clock.leap(6 * 60_000);
  await listDomains(scene);
};
export const expiresSoon: Incident = {
  alarm: {
    kind: "expiring",
    text: /^A domain expires within 7 days without auto-renewal: old-bazaar\.af/,
  },
  cause: onDay("2026-06-08"),
  cure: renewed,
};
export const expired: Incident = {
  alarm: { kind: "expired", text: /^A domain has expired: old-bazaar\.af/ },
  cause: onDay("2026-06-14"),
  cure: renewed,
};

/** Forty orders leave less than what a dearer one costs. */
export const balanceLow: Incident = {
  alarm: {
    kind: "balance",
    text: /^The account's balance and its credit limit don't cover a typical order\./,
  },
  cause: async (scene) => {
    const { control } = scene.service.sandbox;
    for (let n = 0; n < 40; n += 1) {
      control.setTaken(`order-${n}.af`, false);
      control.order("demo", { domain: `order-${n}.af`, action: "registration", years: 3 });
    }
    for (const price of DEAR) control.setPrice("demo", price);
    await purge(scene.service, "prices");
    await scene.clock.leap(6 * 60_000);
  },
  cure: async (scene) => {
    const { control } = scene.service.sandbox;
    for (const price of DEAR) control.setPrice("demo", { ...price, amountCents: price.amountCents / 9 });
    await purge(scene.service, "prices");
    await scene.clock.leap(6 * 60_000);
  },
};

/** The registry lists a hundred domains at most. Those that another reseller takes over leave the list. */
const MANY = Array.from({ length: 90 }, (_, n) => `listed-${n}.af`);
export const listFull: Incident = {
  alarm: { kind: "list", text: /^The registry's list is full \(100 domains\)/ },
  cause: async (scene) => {
    const { control } = scene.service.sandbox;
    for (const domain of MANY) {
      control.setTaken(domain, false);
      control.order("demo", { domain, action: "registration", years: 1 });
    }
    await scene.clock.leap(6 * 60_000);
    await listDomains(scene);
  },
  cure: async (scene) => {
    const { control } = scene.service.sandbox;
    for (const domain of MANY.slice(10)) control.order("big", { domain, action: "transfer", years: 1 });
    await scene.clock.leap(6 * 60_000);
    await listDomains(scene);
  },
};

/** Pauses of five seconds, which are shorter than visitors may wait. */
export const longWaits: Incident = {
  alarm: { kind: "waits", text: /^Visitors are waiting a long time for the registry: exact/ },
  cause: async (scene) => {
    const { control } = scene.service.sandbox;
    const pauses = (): number => scene.service.log.filter((line) => line.includes("upstream.limited")).length;
    for (let times = 0; times < 2; times += 1) {
      const before = pauses();
      control.setRateLimit({ limit: 1, windowMs: 5_000 });
      while (pauses() === before) await crowd(scene, 1);
      control.setRateLimit({ limit: 1000, windowMs: 60_000 });
      await crowd(scene, 5);
    }
  },
  cure: async (scene) => {
    await scene.clock.advance(10_000);
    await crowd(scene, 5);
  },
};

/** One markup for everything, from which visitors could calculate what the reseller pays. */
export const constantMarkup: Incident = {
  alarm: { kind: "prices", text: /^Retail is nearly the same multiple of wholesale in all/ },
  cause: async ({ file, clock }) => {
    const rule = 'rules: [{ match: {}, markupPercent: "25", minMargin: "0.50" }]\n';
    writeFileSync(file, FEW.replace(/^rules:[^]*?(?=^premium:)/m, rule));
    await clock.advance(1_500);
  },
  cure: badPriceFile.cure,
};
