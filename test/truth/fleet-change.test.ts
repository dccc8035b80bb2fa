/** The whole price list changes under four replicas that are asked for more than the budget: with Redis, and while Redis is gone. */
import { expect } from "@jest/globals";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
import { claimsOf } from "../support/promise.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { bearer, type Service, startService, until } from "../support/service.js";
import { sideBySide, type World } from "../support/stories.js";

const LIMIT = { limit: 200, windowMs: 20_000 };
const REPLICAS = 4;
const SOLD = 28;
/** What `.af` for a year costs a visitor before, and a renewal after. */
const BEFORE = "26.99";
const RENEWAL_AFTER = "24.99";

const shown = z.object({ price: z.object({ amount: z.string() }).nullable(), stale: z.boolean() });
const cartShape = z.object({ promise: z.string().nullable() });
const staffPrices = z.object({
  prices: z.array(z.object({ doubtful: z.literal(true).optional(), changed: z.unknown().optional() })),
});

/** As long as a window and a half takes: longer than any step of these stories may. */
async function eventually(what: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; looks < 300; looks += 1) {
    if (await what()) return;
    await pause(100);
  }
  throw new Error("it has not happened");
}

const hasEvidence = (log: readonly string[]): boolean =>
  log.some((line) => line.includes("prices.epoch.ended"));

async function pricesOf({ ask }: Service) {
  return staffPrices.parse((await ask("/v1/staff/prices", { headers: bearer("read") })).body).prices;
}

/** One Redis, one upstream, and four replicas that are asked for more than the budget. */
interface Shops extends World {
  readonly redis: RedisServer;
  readonly sandbox: Sandbox;
  readonly replicas: readonly Service[];
  /** Gives the reseller another tier, and with it other prices. */
  change(): void;
  /** Whether a replica has evidence of that change. */
  knows(replica: Service): boolean;
  /** What was shown or signed that should not have been. */
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
  // A replica that has the prices but hasn't met the others' epoch yet doubts them, and ends its own epoch when it does.
  const isReady = (prices: Awaited<ReturnType<typeof pricesOf>>): boolean =>
    prices.length === SOLD && prices.every(({ doubtful }) => !doubtful);
  await eventually(async () => (await Promise.all(replicas.map(pricesOf))).every(isReady));
  const over = new AbortController();
  const wrong: string[] = [];
  let signed = 0;
  /** The lines of each log before the change: a replica that was slow to start has ended an epoch of its own. */
  let linesBefore: readonly number[] | null = null;
  const change = (): void => {
    linesBefore = replicas.map(({ log }) => log.length);
    sandbox.control.setTier("demo", "Platinum");
  };
  const knows = (replica: Service): boolean =>
    linesBefore !== null && hasEvidence(replica.log.slice(linesBefore[replicas.indexOf(replica)]));

  /** New names, so fast that all replicas together ask for twice the budget; from its evidence on a replica must show no old price as certain. */
  async function searches(replica: Service, at: number): Promise<void> {
    for (let n = 0; !over.signal.aborted; n += 1) {
      const knew = knows(replica);
      const { status, body } = await replica.ask(`/v1/availability?domain=load-${at}-${n}.af`);
      const answer = status === 200 ? shown.parse(body) : null;
      if (knew && answer?.price?.amount === BEFORE && !answer.stale) wrong.push(`shown by ${at}`);
      await pause(200);
    }
  }

  async function carts(replica: Service): Promise<void> {
    const body = { items: [{ domain: "herat.af", action: "renewal", years: 1 }] };
    while (!over.signal.aborted) {
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
      over.abort();
      await Promise.all(load);
      await Promise.all(replicas.map((replica) => replica.close()));
      await sandbox.close();
      await redis.close();
    },
  };
}

const refusals = (sandbox: Sandbox) =>
  sandbox.stats().credentials.filter(({ rejected429 }) => rejected429 > 0);

const allRight = async (replicas: readonly Service[]): Promise<boolean> =>
  (await Promise.all(replicas.map(pricesOf)))
    .flat()
    .every(({ doubtful, changed }) => !doubtful && changed !== undefined);

describeWithRedis("a changed price list", () => {
  const test = sideBySide(open);

  test("reaches all replicas by what one of them learns; none shows or signs an old price after it", async ({
    sandbox,
    replicas,
    change,
    knows,
    wrong,
    signed,
  }) => {
    change();
    await until(() => replicas.every(knows), "the evidence");
    await eventually(() => allRight(replicas));
    await eventually(() => Promise.resolve(signed() >= REPLICAS));
    expect(wrong).toEqual([]);
    expect(refusals(sandbox)).toEqual([]);
  });

  test("that some learn of while Redis is gone reaches the others when it is back, though it has forgotten everything", async ({
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
    await until(() => replicas.some(knows), "the evidence");
    await redis.start();
    await eventually(() => Promise.resolve(replicas.every(knows)));
    await eventually(() => allRight(replicas));
    await eventually(() => Promise.resolve(signed() >= REPLICAS));
    expect(wrong).toEqual([]);
    expect(refusals(sandbox)).toEqual([]);
  });
});
