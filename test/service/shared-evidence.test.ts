/** No replica contradicts what another has learned about a name or the tier: with several replicas at one Redis, and after a restart. */
import { expect } from "@jest/globals";
import { z } from "zod";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { AheadClock } from "../support/ahead-clock.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import {
  bearer,
  callsOf,
  PRICING,
  type Service,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";
import { atMost, concurrentTest, type World } from "../support/stories.js";
import { upstreamAt } from "../support/upstream.js";
import { registration, renewal, shopAt, transfer } from "../truth/shop.js";

const CHECK_IS_OLD_MS = 10_000;

interface Replicas extends World {
  readonly redis: RedisServer;
  readonly clock: AheadClock;
  readonly sandbox: Sandbox;
  /** Exists until the end. */
  readonly folder: string;
  /** Starts a replica, with a folder of its own by default. */
  start(stateDir?: string): Promise<Service>;
  /** The same, and waits until it knows all prices. */
  replica(stateDir?: string): Promise<Service>;
}

async function open(): Promise<Replicas> {
  const redis = await startRedis();
  const sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
  const clock = new AheadClock();
  const folder = temporaryFolder();
  const running: Service[] = [];
  const env = {
    REDIS_URL: redis.url,
    ...upstreamAt(sandbox),
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    QUOTA_COLD_START: "assume-free",
    UPSTREAM_RATE_LIMIT: "400",
    UPSTREAM_RATE_WINDOW_MS: "20000",
    REPLICAS_MAX: "3",
  };
  async function start(stateDir?: string): Promise<Service> {
    const here = stateDir === undefined ? env : { ...env, STATE_DIR: stateDir };
    const service = await startService({ clock, at: sandbox, env: here, warm: false });
    running.push(service);
    return service;
  }

  return {
    redis,
    clock,
    sandbox,
    folder: folder.path,
    start,
    async replica(stateDir) {
      const service = await start(stateDir);
      await until(
        async () => (await service.ask("/v1/prices")).text.split('"price"').length === 29,
        "the load of the prices",
      );
      return service;
    },
    async close() {
      await Promise.all(running.map((service) => service.close()));
      await sandbox.close();
      await redis.close();
      folder.remove();
    },
  };
}

const status = async (service: Service, domain: string, years: number): Promise<string> =>
  (await shopAt(service).availability(domain, years)).status;

/** Two replicas, of which one has found the name to be available before the first learned, with another term, that it is taken. */
async function taken({ sandbox, replica }: Replicas, checkedBy: "one" | "two") {
  const replicas = { one: await replica(), two: await replica() };
  expect(await status(replicas[checkedBy], "fresh-name.af", 1)).toBe("available");
  sandbox.control.setTaken("fresh-name.af", true);
  expect(await status(replicas.one, "fresh-name.af", 2)).toBe("taken");
  return replicas;
}

const health = z.object({ checks: z.object({ redis: z.tuple([z.object({ status: z.string() })]) }) });
const hasRedis = async (service: Service): Promise<boolean> =>
  health.parse((await service.ask("/health")).body).checks.redis[0].status === "pass";

describeWithRedis("what a replica has learned", () => {
  const testWithReplicas = concurrentTest(open, atMost(2));

  testWithReplicas(
    "about a premium name keeps the others, even one that starts later, from signing list prices for it",
    async ({ replica }) => {
      const one = await replica();
      const two = await replica();
      expect(await shopAt(one).availability("gold.af")).toMatchObject({ premium: true });
      for (const service of [two, await replica()])
        for (const line of [transfer("gold.af"), renewal("gold.af")]) {
          const { items, signed } = await shopAt(service).cart(line, renewal("khyber.af"));
          expect(items[0]).toMatchObject({ price: null, premium: true });
          expect(signed.join()).not.toContain("gold");
        }
    },
  );

  testWithReplicas(
    "about a premium name, read for a cart, counts for another's answers from memory too",
    async ({ clock, sandbox, replica }) => {
      const [one, two] = [await replica(), await replica()];
      for (let twice = 0; twice < 2; twice += 1)
        expect(await shopAt(one).availability("kabul.af")).toMatchObject({ premium: false });
      sandbox.control.setPremium("kabul.af", { USD: 90_000 });
      clock.aheadMs += 500;
      expect(await shopAt(two).availability("kabul.af", 2)).toMatchObject({ premium: true });
      const { items } = await shopAt(one).cart(transfer("kabul.af"), renewal("khyber.af"));
      expect(items[0]).toMatchObject({ price: null, premium: true });
      expect(await shopAt(one).availability("kabul.af")).toMatchObject({ premium: true });
    },
  );

  testWithReplicas(
    "about a premium name does so even while another waits for its list price",
    async ({ clock, sandbox, replica }) => {
      const [one, two] = [await replica(), await replica()];
      // A price to be signed is at most a minute old.
      clock.aheadMs += 70_000;
      const asked = callsOf(sandbox, PRICING);
      sandbox.control.setBehaviour({ afterMs: 1500 });
      const cart = shopAt(two).cart(renewal("gold.af"), renewal("khyber.af"));
      await until(() => callsOf(sandbox, PRICING) > asked, "the price request");
      sandbox.control.setBehaviour({ afterMs: 0 });
      expect(await shopAt(one).availability("gold.af")).toMatchObject({ premium: true });
      const { items, signed } = await cart;
      expect(items).toMatchObject([{ price: null, premium: true }, { premium: false }]);
      expect(signed.join()).not.toContain("gold");
    },
  );

  testWithReplicas(
    "about a premium name while Redis is down reaches the others later, even if Redis lost all data",
    async ({ redis, replica }) => {
      const [one, two] = [await replica(), await replica()];
      expect(await shopAt(one).availability("gold.af")).toMatchObject({ premium: true });
      await redis.kill();
      await until(async () => !(await hasRedis(one)), "the loss of Redis");
      expect(await shopAt(one).availability("hotel.af")).toMatchObject({ premium: true });
      await redis.start();
      await until(async () => (await hasRedis(one)) && (await hasRedis(two)), "the return of Redis");
      for (const name of ["gold.af", "hotel.af"])
        await until(async () => {
          const { items } = await shopAt(two).cart(renewal(name), renewal("khyber.af"));
          return items[0]?.premium === true && items[0].price === null;
        }, `the sharing of ${name}`);
    },
  );

  testWithReplicas(
    "about a premium name is known after a restart of all replicas, even if Redis is unreachable or has lost all data",
    async ({ redis, folder, replica }) => {
      const refuses = async (service: Service, name: string): Promise<boolean> => {
        const { items } = await shopAt(service).cart(renewal(name), renewal("khyber.af"));
        return items[0]?.premium === true && items[0].price === null && items[1]?.premium === false;
      };
      const [one, two] = [await replica(folder), await replica(folder)];
      expect(await shopAt(one).availability("gold.af")).toMatchObject({ premium: true });
      expect(await shopAt(two).availability("hotel.af")).toMatchObject({ premium: true });
      await Promise.all([one.close(), two.close()]);
      await redis.kill();
      await redis.start();
      const after = await replica(folder);
      for (const name of ["gold.af", "hotel.af"]) expect(await refuses(after, name)).toBe(true);
      await until(
        async () => refuses(await replica(), "gold.af"),
        "the sharing with a replica without files",
      );
    },
  );

  testWithReplicas(
    "about a taken name from its premium price reaches the others too",
    async ({ sandbox, replica }) => {
      sandbox.control.setShapes({ takenPricing: "price" });
      sandbox.control.setTaken("hotel.af", true);
      const [one, two] = [await replica(), await replica()];
      expect(await status(one, "hotel.af", 1)).toBe("taken");
      const { items } = await shopAt(two).cart(renewal("hotel.af"), renewal("khyber.af"));
      expect(items.map(({ price }) => price !== null)).toEqual([false, true]);
    },
  );

  testWithReplicas("about a taken name, with any term, replaces another's 'available'", async (replicas) => {
    const { two } = await taken(replicas, "two");
    expect(await status(two, "fresh-name.af", 2)).toBe("taken");
    const { items, signed } = await shopAt(two).cart(registration("fresh-name.af"));
    expect([items[0]?.status, signed]).toEqual(["taken", []]);
    expect(await status(two, "fresh-name.af", 1)).toBe("taken");
  });

  testWithReplicas(
    "about a taken name isn't missed by one that reads an earlier check for a cart",
    async (replicas) => {
      const { two } = await taken(replicas, "one");
      await shopAt(two).cart(transfer("fresh-name.af"));
      expect(await status(two, "fresh-name.af", 1)).toBe("taken");
    },
  );

  testWithReplicas(
    "about a name taken after a check isn't missed by one that adopts that check",
    async ({ clock, sandbox, replica }) => {
      const [one, two] = [await replica(), await replica()];
      expect(await status(two, "fresh-name.af", 1)).toBe("available");
      clock.aheadMs += 4 * CHECK_IS_OLD_MS;
      expect(await status(one, "fresh-name.af", 1)).toBe("available");
      sandbox.control.setTaken("fresh-name.af", true);
      // Replicas' clocks may differ by a tenth of a second, so requests within that time overlap.
      clock.aheadMs += 500;
      expect(await status(one, "fresh-name.af", 2)).toBe("taken");
      const { items, signed } = await shopAt(two).cart(registration("fresh-name.af"));
      expect([items[0]?.status, signed]).toEqual(["taken", []]);
    },
  );

  testWithReplicas(
    "about a taken name, with any term, keeps another from signing its check of a few seconds ago",
    async (replicas) => {
      const { two } = await taken(replicas, "two");
      const { items, signed } = await shopAt(two).cart(registration("fresh-name.af"));
      expect([items[0]?.status, signed]).toEqual(["taken", []]);
    },
  );

  testWithReplicas(
    "about a taken name, with any term, counts for one that read it and then couldn't check the name itself",
    async (replicas) => {
      const { two } = await taken(replicas, "two");
      replicas.clock.aheadMs += CHECK_IS_OLD_MS;
      replicas.sandbox.control.setFault("check", { fault: "status-500" });
      const { items } = await shopAt(two).cart(registration("fresh-name.af", 2));
      expect(items).toMatchObject([{ status: "taken" }]);
      expect(await status(two, "fresh-name.af", 1)).toBe("taken");
    },
  );

  testWithReplicas(
    "about a premium name that has become ordinary lets the others sign list prices again",
    async ({ clock, sandbox, replica }) => {
      const [one, two, three] = [await replica(), await replica(), await replica()];
      expect(await shopAt(one).availability("gold.af")).toMatchObject({ premium: true });
      clock.aheadMs += 2 * 60_000;
      sandbox.control.setPremium("gold.af", null);
      expect(await shopAt(two).availability("gold.af")).toMatchObject({ premium: false });
      for (const service of [two, three, one]) {
        const { items } = await shopAt(service).cart(renewal("gold.af"));
        expect(items).toMatchObject([{ premium: false, price: { currency: "USD" } }]);
      }
    },
  );

  for (const who of ["another", "one that starts later"])
    testWithReplicas(
      `about a price that goes and comes back keeps ${who} from taking an ordinary name for premium`,
      async ({ clock, sandbox, replica }) => {
        const price = (amountCents: number): void => {
          const what = { tld: ".af", action: "registration", years: 1 } as const;
          sandbox.control.setPrice("demo", { ...what, amountCents });
        };
        const [one, two] = [await replica(), await replica()];
        await one.ask("/v1/staff/tier", { headers: bearer("read") });
        const before = await shopAt(two).availability("fresh-name.af");
        clock.aheadMs += CHECK_IS_OLD_MS;
        price(3000);
        const risen = await shopAt(one).availability("kabul.af");
        const signer = who === "another" ? two : await replica();
        await signer.ask("/v1/staff/tier", { headers: bearer("read") });
        await until(
          async () => (await shopAt(signer).quote("registration")).price.amount === risen.price?.amount,
          "the rise of the price",
        );
        clock.aheadMs += 500;
        price(2021);
        const { items } = await shopAt(signer).cart(registration("fresh-name.af"));
        expect(items).toMatchObject([{ premium: false, price: before.price }]);
      },
    );

  testWithReplicas(
    "about a name that has become available replaces another's 'taken'",
    async ({ clock, sandbox, replica }) => {
      const [one, two] = [await replica(), await replica()];
      sandbox.control.setTaken("fresh-name.af", true);
      expect(await status(two, "fresh-name.af", 1)).toBe("taken");
      clock.aheadMs += 20 * 60_000;
      sandbox.control.setTaken("fresh-name.af", false);
      expect(await status(one, "fresh-name.af", 1)).toBe("available");
      expect(await status(two, "fresh-name.af", 1)).toBe("available");
    },
  );

  for (const redisIs of ["reachable", "reached only after the restart"])
    testWithReplicas(
      `about the tier before a restart confirms no price after the restart, with Redis ${redisIs}`,
      async ({ redis, sandbox, replica, start }) => {
        const before = await replica();
        await before.ask("/v1/staff/tier", { headers: bearer("read") });
        const old = await shopAt(before).quote("renewal");
        await before.close();
        sandbox.control.setTier("demo", "Platinum");
        if (redisIs !== "reachable") redis.hang();
        const after = await start();
        redis.wake();
        const shown: (typeof old)[] = [];
        await until(async () => {
          const answer = await after.ask("/v1/quotes?tld=.af&action=renewal&years=1");
          if (answer.status === 200) shown.push(await shopAt(after).quote("renewal"));
          const { signed } = await shopAt(after)
            .cart(renewal("khyber.af"))
            .catch(() => ({ signed: [] }));
          expect(signed.join()).not.toContain(old.price.amount);
          const last = shown.at(-1);
          return last !== undefined && last.price.amount !== old.price.amount;
        }, "the price change");
        for (const { price, stale } of shown) if (price.amount === old.price.amount) expect(stale).toBe(true);
      },
    );
});
