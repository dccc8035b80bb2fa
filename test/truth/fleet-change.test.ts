/** The whole price list changes while four replicas get more requests than their budget allows: with Redis, and while Redis is down. */
import { expect } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { claimsOf } from "../support/promise.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { bearer, type Service, startService, until } from "../support/service.js";
import { concurrentTest, type World } from "../support/stories.js";

const LIMIT = { limit: 200, windowMs: 20_000 };
const REPLICAS = 4;
const SOLD = 28;
/** The price of `.af` for a year before the change, and of a renewal after it. */
const BEFORE = "26.99";
const RENEWAL_AFTER = "24.99";

const shown = z.object({ price: z.object({ amount: z.string() }).nullable(), stale: z.boolean() });
const cartShape = z.object({ promise: z.string().nullable() });
const staffPrices = z.object({
  prices: z.array(z.object({ doubtful: z.literal(true).optional(), changed: z.unknown().optional() })),
});

/** Waits for up to a window and a half, which is longer than any step of these tests may take. */
async function eventually(what: () => Promise<boolean>): Promise<void> {
  for (let attempts = 0; attempts < 300; attempts += 1) {
    if (await what()) return;
    await pause(100);
  }
  throw new Error("the condition wasn't met in time");
}

const hasEvidence = (log: readonly string[]): boolean =>
  log.some((line) => line.includes("prices.epoch.ended"));

async function pricesOf({ ask }: Service) {
  return staffPrices.parse((await ask("/v1/staff/prices", { headers: bearer("read") })).body).prices;
}

/** One Redis, one upstream, and four replicas that get more requests than their budget allows. */
interface Shops extends World {
  readonly redis: RedisServer;
  readonly sandbox: Sandbox;
  readonly replicas: readonly Service[];
  /** Moves the reseller to another tier, which has other prices. */
  change(): void;
  /** Whether a replica has evidence of that change. */
  knows(replica: Service): boolean;
  /** What was wrongly shown or signed. */
  readonly wrong: readonly string[];
  /** How many promises were signed by replicas that knew of the change. */
  signed(): number;
}

async function open(): Promise<Shops> {
  const redis = await startRedis();
  const sandbox = await startSandbox({ rateLimit: LIMIT });
  const { key, secret } = sandbox.credential();
  const env = {
    REDIS_URL: redis.url,
    UPSTREAM_BASE_URL: sandbox.url,
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    UPSTREAM_SERVICE_KEY: key,
    UPSTREAM_SERVICE_SECRET: secret,
    QUOTA_COLD_START: "assume-free",
    UPSTREAM_RATE_LIMIT: String(LIMIT.limit),
    UPSTREAM_RATE_WINDOW_MS: String(LIMIT.windowMs),
    REPLICAS_MAX: String(REPLICAS),
  };
  const replicas: Service[] = [];
  for (let n = 0; n < REPLICAS; n += 1)
    replicas.push(await startService({ clock: systemClock, at: sandbox, env, warm: n === 0 }));
  // A replica that has the prices but doesn't know the others' epoch yet doubts them, and ends its own epoch when it learns it.
  const isReady = (prices: Awaited<ReturnType<typeof pricesOf>>): boolean =>
    prices.length === SOLD && prices.every(({ doubtful }) => !doubtful);
  await eventually(async () => (await Promise.all(replicas.map(pricesOf))).every(isReady));
  const stopping = new AbortController();
  const wrong: string[] = [];
  let signed = 0;
  /** The length of each log before the change, because a replica that was slow to start may have ended its own epoch. */
  let linesBefore: readonly number[] | null = null;
  const change = (): void => {
    linesBefore = replicas.map(({ log }) => log.length);
    sandbox.control.setTier("demo", "Platinum");
  };
  const knows = (replica: Service): boolean =>
    linesBefore !== null && hasEvidence(replica.log.slice(linesBefore[replicas.indexOf(replica)]));

  /** Searches new names, on all replicas together at twice the budget. Once a replica has evidence, it must not show an old price as certain. */
  async function searches(replica: Service, at: number): Promise<void> {
    for (let n = 0; !stopping.signal.aborted; n += 1) {
      const knew = knows(replica);
      const { status, body } = await replica.ask(`/v1/availability?domain=load-${at}-${n}.af`);
      const answer = status === 200 ? shown.parse(body) : null;
      if (knew && answer?.price?.amount === BEFORE && !answer.stale) wrong.push(`shown by ${at}`);
      await pause(200);
    }
  }

  async function carts(replica: Service): Promise<void> {
    const body = { items: [{ domain: "herat.af", action: "renewal", years: 1 }] };
    while (!stopping.signal.aborted) {
      const knew = knows(replica);
      const answer = await replica.ask("/v1/quotes", { method: "POST", body });
      const { promise } = cartShape.catch({ promise: null }).parse(answer.body);
      if (knew && promise !== null) {
        signed += 1;
        for (const { price } of claimsOf(promise).items)
          if (price.amount !== RENEWAL_AFTER) wrong.push(`signed at ${price.amount}`);
      }
      await pause(500);
    }
  }

  const load = replicas.flatMap((replica, at) => [searches(replica, at), carts(replica)]);
  return {
    redis,
    sandbox,
    replicas,
    change,
    knows,
    wrong,
    signed: () => signed,
    async close() {
      stopping.abort();
      await Promise.all(load);
      await Promise.all(replicas.map((replica) => replica.close()));
      await sandbox.close();
      await redis.close();
    },
  };
}

const refusals = (sandbox: Sandbox) =>
  sandbox.stats().credentials.filter(({ rejected429 }) => rejected429 > 0);

const allRefreshed = async (replicas: readonly Service[]): Promise<boolean> =>
  (await Promise.all(replicas.map(pricesOf)))
    .flat()
    .every(({ doubtful, changed }) => !doubtful && changed !== undefined);

describeWithRedis("a changed price list", () => {
  const test = concurrentTest(open);

  test("reaches all replicas through what one learns, after which none shows or signs an old price", async ({
    sandbox,
    replicas,
    change,
    knows,
    wrong,
    signed,
  }) => {
    change();
    await until(() => replicas.every(knows), "the discovery of the change");
    await eventually(() => allRefreshed(replicas));
    await eventually(() => Promise.resolve(signed() >= REPLICAS));
    expect(wrong).toEqual([]);
    expect(refusals(sandbox)).toEqual([]);
  });

  test("that some discover while Redis is down reaches the others when it is back, even if it lost all data", async ({
    redis,
    sandbox,
    replicas,
    change,
    knows,
    wrong,
    signed,
  }) => {
    await redis.kill();
    change();
    await until(() => replicas.some(knows), "the discovery of the change");
    await redis.start();
    await eventually(() => Promise.resolve(replicas.every(knows)));
    await eventually(() => allRefreshed(replicas));
    await eventually(() => Promise.resolve(signed() >= REPLICAS));
    expect(wrong).toEqual([]);
    expect(refusals(sandbox)).toEqual([]);
  });
});
