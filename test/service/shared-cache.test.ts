/** Several replicas with one Redis and one upstream: they share what they learn, purge together, and serve alone without Redis. */
import { describe, expect, test } from "@jest/globals";
import { Agent } from "node:http";
import { z } from "zod";
import { type Clock, systemClock } from "../../src/clock.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { AheadClock } from "../support/ahead-clock.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import {
  type Answer,
  asker,
  bearer,
  callsOf,
  CHECK,
  PRICING,
  problemOf,
  type Service,
  type ServiceProcess,
  spawnService,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";
import { atMost, inWorld, concurrentTest, type World } from "../support/stories.js";
import { upstreamAt } from "../support/upstream.js";

const DOMAINS = "GET /api/v1/domains";
const SOLD = 28;
/**
 * Each of two replicas requests two prices at a time. Those requested before the change is known are requested again. If both replicas notice
 * the change at once, so are those that the first one has requested by the time the other's evidence arrives.
 */
const IN_FLIGHT = 4 + 2;
/** The mark of a new process. It sorts after every other first mark, because all are equally long. */
const NEW_MARK = `0 ${"~".repeat(36)}`;

const pathOf = (domain: string): string => `/v1/availability?domain=${domain}`;

function poolShape() {
  const counts = z.object({ shared: z.number() });
  return z.object({ entries: z.number(), inflight: z.number(), counts });
}
const overviewShape = z.object({
  caches: z.object({ availability: poolShape(), prices: poolShape(), account: poolShape() }),
});
const pricesShape = z.object({
  prices: z.array(z.object({ tld: z.string(), action: z.string(), years: z.number(), price: z.unknown() })),
});

async function overview({ ask }: Service) {
  return overviewShape.parse((await ask("/v1/staff/overview", { headers: bearer("read") })).body);
}

async function pricesOf({ ask }: Service) {
  // Rejected while no price is known.
  return pricesShape.safeParse((await ask("/v1/prices")).body).data?.prices ?? [];
}

const untilPricesKnown = (service: Service): Promise<void> =>
  until(async () => (await pricesOf(service)).length === SOLD, "the load of all prices");

const purge = (service: Service, what: string): Promise<Answer> =>
  service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body: { what } });

/** The answer without `asOf`: another replica can only estimate the time, and may show the minute before. */
function withoutAsOf({ body }: Answer): unknown {
  const { asOf: _, ...rest } = z.looseObject({ asOf: z.string() }).parse(body);
  return rest;
}

/** Waits until the replica has forgotten all names. */
const untilForgotten = (service: Service): Promise<void> =>
  until(async () => (await overview(service)).caches.availability.entries === 0, "the purge");

async function haveSamePrices(one: Service, two: Service): Promise<boolean> {
  return JSON.stringify(await pricesOf(one)) === JSON.stringify(await pricesOf(two));
}

interface ReplicaOptions {
  readonly reseller?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
}

/** One Redis, one upstream, and replicas of the service that use both. */
interface Replicas extends World {
  readonly redis: RedisServer;
  readonly sandbox: Sandbox;
  /** Closed at the end of the test. */
  readonly running: Service[];
  liveAt(reseller?: string): Readonly<Record<string, string>>;
  /** Starts another replica. It may not have all prices yet. */
  replica(options?: ReplicaOptions): Promise<Service>;
  /** Starts two replicas, which share the price list and the domain list. */
  pair(options?: ReplicaOptions): Promise<[Service, Service]>;
  calls(route: string): number;
  keysLike(pattern: string): Promise<string[]>;
  /** The keys of a pool's facts, without those of claims. */
  factsOf(pool: string): Promise<string[]>;
  claims(): Promise<string[]>;
  untilSharing(one: Service, two: Service): Promise<void>;
}

async function open(): Promise<Replicas> {
  const redis = await startRedis();
  const sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
  const running: Service[] = [];

  const liveAt = (reseller?: string): Readonly<Record<string, string>> => ({
    REDIS_URL: redis.url,
    ...upstreamAt(sandbox, reseller),
    QUOTA_COLD_START: "assume-free",
    UPSTREAM_RATE_LIMIT: "200",
    UPSTREAM_RATE_WINDOW_MS: "20000",
    REPLICAS_MAX: "3",
  });

  async function replica({ reseller, env = {}, clock = systemClock }: ReplicaOptions = {}): Promise<Service> {
    const service = await startService({
      clock,
      at: sandbox,
      env: { ...liveAt(reseller), ...env },
      warm: false,
    });
    running.push(service);
    return service;
  }

  const calls = (route: string): number => callsOf(sandbox, route);

  async function keysLike(pattern: string): Promise<string[]> {
    return (await redis.command("KEYS", pattern)).match(/^af-storefront:\S+$/gm) ?? [];
  }

  return {
    redis,
    sandbox,
    running,
    liveAt,
    replica,
    async pair(options) {
      const one = await replica(options);
      await untilPricesKnown(one);
      await until(() => calls(DOMAINS) === 1, "the load of the domain list");
      const two = await replica(options);
      await untilPricesKnown(two);
      return [one, two];
    },
    calls,
    keysLike,
    async factsOf(pool) {
      return (await keysLike(`af-storefront:${pool}:*`)).filter((key) => !key.endsWith(":asked"));
    },
    claims: () => keysLike("*:asked"),
    untilSharing: (one, two) =>
      until(async () => {
        const name = `in-touch-${Math.random().toString(36).slice(2)}.af`;
        await one.ask(pathOf(name));
        const before = calls(CHECK);
        await two.ask(pathOf(name));
        return calls(CHECK) === before;
      }, "sharing"),
    async close() {
      redis.wake();
      await Promise.all(running.map((service) => service.close()));
      await sandbox.close();
      await redis.close();
    },
  };
}

const limit = atMost(2);
const testWithReplicas = concurrentTest(open, limit);

/**
 * On a busy machine, a replica may not hear from Redis in time. It then correctly goes on alone, which says nothing about sharing, so the test
 * starts again. Any other failure is final.
 */
function testSharing(name: string, run: (replicas: Replicas) => Promise<void>): void {
  test.concurrent(name, () => limit(() => retryIfRedisWasLost(run)), 60_000);
}

async function retryIfRedisWasLost(run: (replicas: Replicas) => Promise<void>): Promise<void> {
  for (let times = 1; ; times += 1) {
    const replicas = await open();
    try {
      return await run(replicas);
    } catch (error) {
      const lost = replicas.running.some(({ log }) => log.some((line) => line.includes("redis.lost")));
      if (!lost || times === 5) throw error;
    } finally {
      await replicas.close();
    }
  }
}

// In each `describe`, the longest test comes first, so that the others run beside it.
describeWithRedis("replicas that share a Redis", () => {
  // Its many requests keep this process busy for longer than other tests can wait for Redis, so it runs alone.
  test(
    "check a new name once, however many visitors of each replica request it",
    () =>
      retryIfRedisWasLost(async ({ sandbox, pair, calls, claims }) => {
        const both = await pair();
        sandbox.control.setBehaviour({ beforeMs: 150, afterMs: 150 });
        const agent = new Agent({ keepAlive: true, maxSockets: 400 });
        const answers = await Promise.all(
          both.flatMap(({ port }) =>
            Array.from({ length: 200 }, () => asker(port, agent)(pathOf("kabul.af"))),
          ),
        );
        agent.destroy();
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
        expect(new Set(answers.map((answer) => JSON.stringify(withoutAsOf(answer)))).size).toBe(1);
        expect(calls(CHECK)).toBe(1);
        await until(async () => (await claims()).length === 0, "the release of the claim");
      }),
    60_000,
  );

  testSharing(
    "all refresh their prices, once, when one of them gets a changed price",
    async ({ sandbox, pair, calls }) => {
      const clock = new AheadClock();
      const [one, two] = await pair({ clock });
      const before = await pricesOf(two);
      // Known for five minutes, so that nobody requests it during the refresh: a change of the tier is a further change.
      for (const { ask } of [one, two]) await ask("/v1/staff/tier", { headers: bearer("read") });
      sandbox.control.setTier("demo", "Platinum");
      clock.aheadMs = 1_000;
      const { body } = await one.ask(pathOf("kabul.af"));
      expect(body).toMatchObject({ status: "available", premium: false });
      await until(
        async () => calls(PRICING) >= 2 * SOLD && (await haveSamePrices(one, two)),
        "the refresh of the prices",
      );
      expect((await pricesOf(two)).map(({ price }) => price)).not.toEqual(before.map(({ price }) => price));
      expect(calls(PRICING)).toBeLessThanOrEqual(2 * SOLD + IN_FLIGHT);
      const changes = [one, two].flatMap(({ log }) => log.filter((line) => line.includes("prices.changed")));
      expect(changes.length).toBeGreaterThan(1);
    },
  );

  testSharing("answer from what another one has learned, without a call", async ({ replica, calls }) => {
    const one = await replica();
    await untilPricesKnown(one);
    const two = await replica();
    const learned = await one.ask(pathOf("kabul.af"));
    await two.ask(pathOf("another-name.af"));
    const shared = await two.ask(pathOf("kabul.af"));
    expect([shared.status, withoutAsOf(shared)]).toEqual([200, withoutAsOf(learned)]);
    expect(calls(CHECK)).toBe(2);
    expect((await overview(two)).caches.availability.counts.shared).toBe(1);
  });

  testSharing(
    "take over the request of one that is killed during its call",
    async ({ sandbox, liveAt, replica, calls }) => {
      const one = await replica();
      await untilPricesKnown(one);
      const folder = temporaryFolder();
      const doomed: ServiceProcess = spawnService({ ...liveAt(), STATE_DIR: folder.path });
      try {
        await doomed.listening;
        sandbox.control.setBehaviour({ afterMs: 3_000 });
        const lost = expect(doomed.ask(pathOf("kabul.af"))).rejects.toThrow();
        await until(() => calls(CHECK) === 1, "the call");
        sandbox.control.setBehaviour({ afterMs: 0 });
        const answer = one.ask(pathOf("kabul.af"));
        await until(async () => (await overview(one)).caches.availability.inflight === 1, "the request");
        expect(calls(CHECK)).toBe(1);
        doomed.child.kill("SIGKILL");
        expect((await answer).status).toBe(200);
        expect(calls(CHECK)).toBe(2);
        await lost;
      } finally {
        doomed.child.kill("SIGKILL");
        await doomed.exited;
        folder.remove();
      }
    },
  );

  testSharing("load the price list and the domain list once", async ({ replica, pair, calls }) => {
    const [, two] = await pair();
    const three = await replica();
    // Already on the very first request.
    expect(await pricesOf(three)).toEqual(await pricesOf(two));
    for (const { ask } of [two, three])
      expect((await ask("/v1/staff/domains", { headers: bearer("read") })).body).toMatchObject({
        source: "cache",
      });
    expect([calls(PRICING), calls(DOMAINS)]).toEqual([SOLD, 1]);
  });

  testSharing(
    "load the price list once when both start without data",
    async ({ sandbox, replica, calls }) => {
      sandbox.control.setBehaviour({ beforeMs: 20 });
      const both = await Promise.all([replica(), replica()]);
      await Promise.all(both.map(untilPricesKnown));
      expect(calls(PRICING)).toBe(SOLD);
    },
  );

  describe("purge together: a purge of one", () => {
    testSharing("refreshes the prices of all, once", async ({ sandbox, pair, calls }) => {
      const clock = new AheadClock();
      const [one, two] = await pair({ clock });
      // Known for five minutes, so that nobody requests it during the refresh: a change of the tier is a further change.
      for (const { ask } of [one, two]) await ask("/v1/staff/tier", { headers: bearer("read") });
      sandbox.control.setTier("demo", "Platinum");
      const before = await pricesOf(two);
      // By more than the replicas' clocks may differ, so requests of one from now on are later than earlier ones of the other.
      clock.aheadMs = 1_000;
      await purge(one, "prices");
      await until(
        async () => calls(PRICING) >= 2 * SOLD && (await haveSamePrices(one, two)),
        "the refresh of the prices",
      );
      expect(await pricesOf(one)).not.toEqual(before);
      expect(calls(PRICING)).toBeLessThanOrEqual(2 * SOLD + IN_FLIGHT);
    });

    testSharing(
      "clears the names of all: the next visitor of either causes a new check, once",
      async ({ sandbox, pair, calls }) => {
        const both = await pair();
        const [one, two] = both;
        for (const { ask } of both) await ask(pathOf("kabul.af"));
        expect(calls(CHECK)).toBe(1);
        sandbox.control.setTaken("kabul.af", true);
        expect((await purge(one, "availability")).body).toMatchObject({ purged: { availability: 1 } });
        await untilForgotten(two);
        for (const { ask } of [two, one])
          expect((await ask(pathOf("kabul.af"))).body).toMatchObject({ status: "taken" });
        expect(calls(CHECK)).toBe(2);
      },
    );

    testSharing("discards an answer that another one is just receiving", async ({ sandbox, pair, calls }) => {
      const [one, two] = await pair();
      sandbox.control.setBehaviour({ afterMs: 300 });
      const early = two.ask(pathOf("kabul.af"));
      await until(() => calls(CHECK) === 1, "the call");
      await purge(one, "availability");
      await until(async () => (await overview(two)).caches.availability.inflight === 0, "the purge");
      expect((await early).status).toBe(200);
      sandbox.control.setBehaviour({ afterMs: 0 });
      for (const { ask } of [one, two]) expect((await ask(pathOf("kabul.af"))).status).toBe(200);
      expect(calls(CHECK)).toBe(2);
    });

    testSharing(
      "reaches one whose subscription was broken, once it is subscribed again",
      async ({ redis, pair, calls }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await redis.command("CLIENT", "KILL", "TYPE", "pubsub");
        await purge(one, "availability");
        await untilForgotten(two);
        await two.ask(pathOf("kabul.af"));
        expect(calls(CHECK)).toBe(2);
      },
    );

    testWithReplicas(
      "isn't caused by the mark of a new process at an emptied Redis: the others keep what they know",
      async ({ redis, pair, untilSharing }) => {
        const both = await pair();
        for (const { ask } of both) await ask(pathOf("kabul.af"));
        // It sorts after every other mark of a fleet that has never purged, so it is kept.
        await redis.command("SET", "af-storefront:mark:availability", NEW_MARK);
        // The replicas read it every five seconds.
        await new Promise((done) => setTimeout(done, 5500));
        await untilSharing(...both);
        for (const { ask } of both)
          expect((await ask(`${pathOf("kabul.af")}&only=known`)).body).toMatchObject({ status: "available" });
        expect(await redis.command("GET", "af-storefront:mark:availability")).toContain(NEW_MARK);
      },
    );

    testWithReplicas(
      "works without Redis there, and reaches the others when Redis is back",
      async ({ redis, pair }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await redis.kill();
        expect((await purge(one, "availability")).body).toMatchObject({ purged: { availability: 1 } });
        expect((await overview(one)).caches.availability.entries).toBe(0);
        expect((await overview(two)).caches.availability.entries).toBe(1);
        await redis.start();
        await untilForgotten(two);
      },
    );
  });

  describe("store facts in it: facts", () => {
    const price = (amount: unknown, currency: unknown) => ({ kind: "wholesale", amount, currency });
    const available = (wholesale: unknown) => ({ status: "available", epoch: "one", wholesale });
    /** A fact as another replica writes it. */
    const fact = (value: unknown, askedAtMs: unknown = Date.now()): string =>
      JSON.stringify([{ value: JSON.stringify(value), askedAtMs, answeredAtMs: askedAtMs, by: "another" }]);
    const poisons: Readonly<Record<string, () => string>> = {
      garbage: () => "\u0000\u0001 not JSON",
      "a missing value": () =>
        JSON.stringify([{ askedAtMs: Date.now(), answeredAtMs: Date.now(), by: "another" }]),
      "a JSON null": () => "null",
      "an unknown status": () => fact({ status: "maybe", epoch: "one", wholesale: price("1.00", "USD") }),
      "available without a price": () => fact({ status: "available", epoch: "one" }),
      "a negative price": () => fact(available(price("-1.00", "USD"))),
      "a price of zero": () => fact(available(price("0.00", "USD"))),
      "a price as a number": () => fact(available(price(1.5, "USD"))),
      "an invalid currency": () => fact(available(price("1.00", "dollars"))),
      "a price without an epoch": () => fact({ status: "available", wholesale: price("1.00", "USD") }),
      "a time in the future": () => fact(available(price("1.00", "USD")), Date.now() + 60_000),
      "an invalid time": () => fact(available(price("1.00", "USD")), "now"),
      "available for too long": () => fact(available(price("1.00", "USD")), Date.now() - 60_001),
      "another kind of fact": () => fact({ kind: "balance", balance: {} }),
    };

    testSharing("that can't be true are ignored", async ({ redis, sandbox, pair, calls, factsOf }) => {
      const [one, two] = await pair();
      const checksMade: unknown[] = [];
      for (const [what, text] of Object.entries(poisons)) {
        const name = `${what.replaceAll(" ", "-")}.af`.toLowerCase();
        sandbox.control.setTaken(name, false);
        const known = await factsOf("availability");
        const truth = await one.ask(pathOf(name));
        await until(
          async () => (await factsOf("availability")).length > known.length,
          "the write of the fact",
        );
        const key = (await factsOf("availability")).find((one) => !known.includes(one)) ?? "";
        await redis.command("SET", key, text(), "PX", "60000");
        const before = calls(CHECK);
        const answer = await two.ask(pathOf(name));
        expect([what, answer.status, withoutAsOf(answer)]).toEqual([what, 200, withoutAsOf(truth)]);
        checksMade.push([what, calls(CHECK) - before]);
      }
      expect(checksMade).toEqual(Object.keys(poisons).map((what) => [what, 1]));
    });

    testSharing(
      "about prices and the account that can't be true are ignored too",
      async ({ redis, replica, pair, calls, factsOf }) => {
        const [one] = await pair();
        const truth = await pricesOf(one);
        const prices = await factsOf("prices");
        expect(prices).toHaveLength(SOLD);
        for (const key of prices)
          await redis.command(
            "SET",
            key,
            fact({ wholesale: price("-1.00", "USD"), epoch: "one", former: null }),
          );
        // A fact of the account, but of the wrong kind.
        const record = {
          status: null,
          registeredAt: null,
          expiresAt: null,
          autoRenew: null,
          nameservers: [],
        };
        for (const key of await factsOf("account"))
          await redis.command(
            "SET",
            key,
            fact({ kind: "domain", record: { domain: "false.af", ...record } }),
          );
        const three = await replica();
        await untilPricesKnown(three);
        expect(await pricesOf(three)).toEqual(truth);
        expect(calls(PRICING)).toBe(2 * SOLD);
        const { status, text } = await three.ask("/v1/staff/domains", { headers: bearer("read") });
        expect([status, text.includes("false.af"), text.includes("khyber.af")]).toEqual([200, false, true]);
      },
    );

    testSharing("of another credential aren't used", async ({ replica, pair, calls }) => {
      const [one] = await pair();
      await one.ask(pathOf("kabul.af"));
      const other = await replica({ reseller: "big" });
      await untilPricesKnown(other);
      await other.ask(pathOf("kabul.af"));
      expect([calls(PRICING), calls(CHECK)]).toEqual([2 * SOLD, 2]);
      const wholesale = async ({ ask }: Service) =>
        (await ask("/v1/staff/prices", { headers: bearer("read") })).text.replaceAll(/"asOf":"[^"]*"/g, "");
      expect(await wholesale(other)).not.toBe(await wholesale(one));
    });

    testSharing("don't reveal which names were searched", async ({ redis, pair, keysLike, factsOf }) => {
      const [one] = await pair();
      for (const name of ["kabul.af", "google.af", "xn--mgba3gch31f.af"]) await one.ask(pathOf(name));
      await one.ask("/v1/search?q=kabul");
      await until(async () => (await factsOf("availability")).length >= 3, "the write of the facts");
      const keys = await keysLike("*");
      const values = await Promise.all(
        keys.filter((key) => key.includes(":availability:")).map((key) => redis.command("GET", key)),
      );
      expect([...keys, ...values].join("\n")).not.toMatch(/kabul|google|xn--/);
    });
  });

  describe("tolerate its loss:", () => {
    /** A new replica gets its own share of the budget once the others know about it: after two heartbeats. */
    const twoHeartbeats = (): Promise<void> => new Promise((done) => setTimeout(done, 1200));

    async function servesAlone(
      calls: Replicas["calls"],
      one: Service,
      two: Service,
      name: string,
    ): Promise<void> {
      // Each serves known facts, and makes its own calls for others.
      for (const service of [one, two]) {
        const before = calls(CHECK);
        expect((await service.ask(pathOf("kabul.af"))).status).toBe(200);
        expect((await service.ask("/v1/prices")).status).toBe(200);
        expect(calls(CHECK)).toBe(before);
        expect((await service.ask(pathOf(name))).status).toBe(200);
        expect(calls(CHECK)).toBe(before + 1);
      }
    }

    test("one that starts without it loads nothing that another may load, and joins the others once it is up", () =>
      inWorld(open, async ({ redis, replica, untilSharing }) => {
        await redis.kill();
        const env = { UPSTREAM_RATE_WINDOW_MS: "1000", UPSTREAM_TIMEOUT_MS: "1000" };
        const one = await replica({ env });
        expect((await one.ask("/health")).body).toMatchObject({ checks: { redis: [{ status: "warn" }] } });
        expect(problemOf(await one.ask("/v1/prices")).retryAfter).toBeGreaterThan(0);
        await redis.start();
        await untilPricesKnown(one);
        expect((await one.ask(pathOf("kabul.af"))).status).toBe(200);
        const two = await replica({ env });
        await untilPricesKnown(two);
        await untilSharing(one, two);
        expect(await pricesOf(one)).toHaveLength(SOLD);
      }));

    testWithReplicas(
      "each serves alone while it hangs, and shares again when it responds",
      async ({ redis, pair, calls, untilSharing }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await twoHeartbeats();
        redis.hang();
        await servesAlone(calls, one, two, "alone.af");
        redis.wake();
        await untilSharing(one, two);
      },
    );

    testWithReplicas(
      "each serves alone after it is killed, and shares again when another instance replaces it",
      async ({ redis, pair, calls, untilSharing }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await twoHeartbeats();
        await redis.kill();
        await servesAlone(calls, one, two, "alone.af");
        await redis.start();
        await untilSharing(one, two);
        // Neither the names nor the prices were lost.
        const before = calls(CHECK);
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        expect(calls(CHECK)).toBe(before);
        for (const service of [one, two]) expect(await pricesOf(service)).toHaveLength(SOLD);
      },
    );
  });

  testWithReplicas("don't share facts if each has its own sandbox", async ({ redis, running }) => {
    const services = await Promise.all(
      [0, 1].map(() => startService({ clock: systemClock, env: { REDIS_URL: redis.url } })),
    );
    running.push(...services);
    for (const service of services) {
      expect((await service.ask(pathOf("kabul.af"))).body).toMatchObject({ status: "available" });
      expect(service.calls(CHECK)).toBe(1);
      expect(service.calls(PRICING)).toBe(SOLD);
    }
  });
});
