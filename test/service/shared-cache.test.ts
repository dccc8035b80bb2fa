/** Several replicas, one Redis, one upstream: what one has learned all know, what one forgets all forget, and without Redis each serves. */
import { describe, expect, test } from "@jest/globals";
import { Agent } from "node:http";
import { z } from "zod";
import { type Clock, systemClock } from "../../src/clock.js";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
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
import { atMost, inWorld, sideBySide, type World } from "../support/stories.js";
import { upstreamAt } from "../support/upstream.js";

const DOMAINS = "GET /api/v1/domains";
const SOLD = 28;
/**
 * Two replicas ask for two prices at a time. What was asked before a change is known is asked again; and if both notice it at once, so is what the
 * first to notice has asked by the time that the other's evidence arrives.
 */
const UNDER_WAY = 4 + 2;
/** Later than every other first mark, which is as long. */
const NEWCOMER = `0 ${"~".repeat(36)}`;

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
  // Refused while none is known.
  return pricesShape.safeParse((await ask("/v1/prices")).body).data?.prices ?? [];
}

const knowsAll = (service: Service): Promise<void> =>
  until(async () => (await pricesOf(service)).length === SOLD, "the price list");

const purge = (service: Service, what: string): Promise<Answer> =>
  service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body: { what } });

/** An answer less the minute in which it was asked: another replica can only estimate that, and may take it for the minute before. */
function withoutTime({ body }: Answer): unknown {
  const { asOf: _, ...rest } = z.looseObject({ asOf: z.string() }).parse(body);
  return rest;
}

/** The names a replica remembers are forgotten. */
const forgets = (service: Service): Promise<void> =>
  until(async () => (await overview(service)).caches.availability.entries === 0, "forgetting");

async function sameAt(one: Service, two: Service): Promise<boolean> {
  return JSON.stringify(await pricesOf(one)) === JSON.stringify(await pricesOf(two));
}

interface ReplicaOptions {
  readonly reseller?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
}

/** One Redis, one upstream, and replicas of the service at both. */
interface Replicas extends World {
  readonly redis: RedisServer;
  readonly sandbox: Sandbox;
  /** What is closed at the end. */
  readonly running: Service[];
  liveAt(reseller?: string): Readonly<Record<string, string>>;
  /** One more replica, at work but not waited for. */
  replica(options?: ReplicaOptions): Promise<Service>;
  /** Two replicas that know the price list and the domain list, and are in touch. */
  pair(options?: ReplicaOptions): Promise<[Service, Service]>;
  calls(route: string): number;
  keysLike(pattern: string): Promise<string[]>;
  /** The keys of the facts of a pool, without those of the claims. */
  factsOf(pool: string): Promise<string[]>;
  claims(): Promise<string[]>;
  inTouch(one: Service, two: Service): Promise<void>;
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
      await knowsAll(one);
      await until(() => calls(DOMAINS) === 1, "the domain list");
      const two = await replica(options);
      await knowsAll(two);
      return [one, two];
    },
    calls,
    keysLike,
    async factsOf(pool) {
      return (await keysLike(`af-storefront:${pool}:*`)).filter((key) => !key.endsWith(":asked"));
    },
    claims: () => keysLike("*:asked"),
    inTouch: (one, two) =>
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

const turns = atMost(2);
const tell = sideBySide(open, turns);

/**
 * Where a busy machine kept a replica from hearing Redis in time, it rightly went on alone, which says nothing about sharing: then, and
 * only then, the story is told again from its beginning.
 */
function undisturbed(name: string, story: (replicas: Replicas) => Promise<void>): void {
  test.concurrent(name, () => turns(() => untilUndisturbed(story)), 60_000);
}

async function untilUndisturbed(story: (replicas: Replicas) => Promise<void>): Promise<void> {
  for (let times = 1; ; times += 1) {
    const replicas = await open();
    try {
      return await story(replicas);
    } catch (error) {
      const lost = replicas.running.some(({ log }) => log.some((line) => line.includes("redis.lost")));
      if (!lost || times === 5) throw error;
    } finally {
      await replicas.close();
    }
  }
}

// Of the stories of each part the longest comes first, for the others to be told beside it.
describeWithRedis("replicas that share a Redis", () => {
  // Its crowd keeps this process busy for longer than others may wait for Redis, so it is told alone.
  test(
    "ask once for a name that nobody knows, however many visitors of each replica want to know",
    () =>
      untilUndisturbed(async ({ sandbox, pair, calls, claims }) => {
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
        expect(new Set(answers.map((answer) => JSON.stringify(withoutTime(answer)))).size).toBe(1);
        expect(calls(CHECK)).toBe(1);
        await until(async () => (await claims()).length === 0, "the claim's end");
      }),
    60_000,
  );

  undisturbed(
    "all have their prices renewed, once, when one meets a price that has changed",
    async ({ sandbox, pair, calls }) => {
      const clock = new AheadClock();
      const [one, two] = await pair({ clock });
      const before = await pricesOf(two);
      sandbox.control.setTier("demo", "Platinum");
      clock.aheadMs = 1_000;
      const { body } = await one.ask(pathOf("kabul.af"));
      expect(body).toMatchObject({ status: "available", premium: false });
      await until(async () => calls(PRICING) >= 2 * SOLD && (await sameAt(one, two)), "the new prices");
      expect((await pricesOf(two)).map(({ price }) => price)).not.toEqual(before.map(({ price }) => price));
      expect(calls(PRICING)).toBeLessThanOrEqual(2 * SOLD + UNDER_WAY);
      const changes = [one, two].flatMap(({ log }) => log.filter((line) => line.includes("prices.changed")));
      expect(changes.length).toBeGreaterThan(1);
    },
  );

  undisturbed("answer from what another one has learned, at no cost", async ({ replica, calls }) => {
    const one = await replica();
    await knowsAll(one);
    const two = await replica();
    const learned = await one.ask(pathOf("kabul.af"));
    await two.ask(pathOf("another-name.af"));
    const told = await two.ask(pathOf("kabul.af"));
    expect([told.status, withoutTime(told)]).toEqual([200, withoutTime(learned)]);
    expect(calls(CHECK)).toBe(2);
    expect((await overview(two)).caches.availability.counts.shared).toBe(1);
  });

  undisturbed(
    "take over the question of one that is killed while it asks",
    async ({ sandbox, liveAt, replica, calls }) => {
      const one = await replica();
      await knowsAll(one);
      const folder = temporaryFolder();
      const doomed: ServiceProcess = spawnService({ ...liveAt(), STATE_DIR: folder.path });
      try {
        await doomed.listening;
        sandbox.control.setBehaviour({ afterMs: 3_000 });
        const lost = expect(doomed.ask(pathOf("kabul.af"))).rejects.toThrow();
        await until(() => calls(CHECK) === 1, "the call");
        sandbox.control.setBehaviour({ afterMs: 0 });
        const answer = one.ask(pathOf("kabul.af"));
        await until(async () => (await overview(one)).caches.availability.inflight === 1, "the question");
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

  undisturbed("ask for the price list and the domain list once", async ({ replica, pair, calls }) => {
    const [, two] = await pair();
    const three = await replica();
    // From the very first request on.
    expect(await pricesOf(three)).toEqual(await pricesOf(two));
    for (const { ask } of [two, three])
      expect((await ask("/v1/staff/domains", { headers: bearer("read") })).body).toMatchObject({
        source: "cache",
      });
    expect([calls(PRICING), calls(DOMAINS)]).toEqual([SOLD, 1]);
  });

  undisturbed(
    "ask for the price list once when both start with nothing",
    async ({ sandbox, replica, calls }) => {
      sandbox.control.setBehaviour({ beforeMs: 20 });
      const both = await Promise.all([replica(), replica()]);
      await Promise.all(both.map(knowsAll));
      expect(calls(PRICING)).toBe(SOLD);
    },
  );

  describe("a purge of one", () => {
    undisturbed("refreshes the prices, once for all", async ({ sandbox, pair, calls }) => {
      const clock = new AheadClock();
      const [one, two] = await pair({ clock });
      sandbox.control.setTier("demo", "Platinum");
      const before = await pricesOf(two);
      // Longer than the replicas' clocks may differ: what one asks now is later than what the other asked before.
      clock.aheadMs = 1_000;
      await purge(one, "prices");
      await until(async () => calls(PRICING) >= 2 * SOLD && (await sameAt(one, two)), "the new prices");
      expect(await pricesOf(one)).not.toEqual(before);
      expect(calls(PRICING)).toBeLessThanOrEqual(2 * SOLD + UNDER_WAY);
    });

    undisturbed(
      "is one of all: the next visitor of either has the name checked again, once",
      async ({ sandbox, pair, calls }) => {
        const both = await pair();
        const [one, two] = both;
        for (const { ask } of both) await ask(pathOf("kabul.af"));
        expect(calls(CHECK)).toBe(1);
        sandbox.control.setTaken("kabul.af", true);
        expect((await purge(one, "availability")).body).toMatchObject({ purged: { availability: 1 } });
        await forgets(two);
        for (const { ask } of [two, one])
          expect((await ask(pathOf("kabul.af"))).body).toMatchObject({ status: "taken" });
        expect(calls(CHECK)).toBe(2);
      },
    );

    undisturbed("rejects an answer that another one is just receiving", async ({ sandbox, pair, calls }) => {
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

    undisturbed(
      "reaches those whose subscription is broken at the time, once they are subscribed again",
      async ({ redis, pair, calls }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await redis.command("CLIENT", "KILL", "TYPE", "pubsub");
        await purge(one, "availability");
        await forgets(two);
        await two.ask(pathOf("kabul.af"));
        expect(calls(CHECK)).toBe(2);
      },
    );

    tell(
      "isn't what the first process at an emptied Redis begins with: the others keep what they know",
      async ({ redis, pair, inTouch }) => {
        const both = await pair();
        for (const { ask } of both) await ask(pathOf("kabul.af"));
        // Later than every other mark of a fleet that has never purged, so it stands.
        await redis.command("SET", "af-storefront:mark:availability", NEWCOMER);
        // The replicas look at it every five seconds.
        await new Promise((done) => setTimeout(done, 5500));
        await inTouch(...both);
        for (const { ask } of both)
          expect((await ask(`${pathOf("kabul.af")}&only=known`)).body).toMatchObject({ status: "available" });
        expect(await redis.command("GET", "af-storefront:mark:availability")).toContain(NEWCOMER);
      },
    );

    tell(
      "works without Redis for that one, and reaches the others when Redis is back",
      async ({ redis, pair }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await redis.kill();
        expect((await purge(one, "availability")).body).toMatchObject({ purged: { availability: 1 } });
        expect((await overview(one)).caches.availability.entries).toBe(0);
        expect((await overview(two)).caches.availability.entries).toBe(1);
        await redis.start();
        await forgets(two);
      },
    );
  });

  describe("facts in Redis", () => {
    const price = (amount: unknown, currency: unknown) => ({ kind: "wholesale", amount, currency });
    const available = (wholesale: unknown) => ({ status: "available", epoch: "one", wholesale });
    /** A fact as another replica writes it. */
    const fact = (value: unknown, askedAtMs: unknown = Date.now()): string =>
      JSON.stringify([{ value: JSON.stringify(value), askedAtMs, answeredAtMs: askedAtMs, by: "another" }]);
    const poisons: Readonly<Record<string, () => string>> = {
      garbage: () => "\u0000\u0001 not JSON",
      "no fact": () => JSON.stringify([{ askedAtMs: Date.now(), answeredAtMs: Date.now(), by: "another" }]),
      "nothing at all": () => "null",
      "a status that there is not": () =>
        fact({ status: "maybe", epoch: "one", wholesale: price("1.00", "USD") }),
      "available without a price": () => fact({ status: "available", epoch: "one" }),
      "a negative price": () => fact(available(price("-1.00", "USD"))),
      "a price of zero": () => fact(available(price("0.00", "USD"))),
      "a price as a number": () => fact(available(price(1.5, "USD"))),
      "what is no currency": () => fact(available(price("1.00", "dollars"))),
      "a price of no epoch": () => fact({ status: "available", wholesale: price("1.00", "USD") }),
      "a time in the future": () => fact(available(price("1.00", "USD")), Date.now() + 60_000),
      "a time that is none": () => fact(available(price("1.00", "USD")), "now"),
      "available for too long": () => fact(available(price("1.00", "USD")), Date.now() - 60_001),
      "another kind of thing": () => fact({ kind: "balance", balance: {} }),
    };

    undisturbed("that cannot be true are not believed", async ({ redis, sandbox, pair, calls, factsOf }) => {
      const [one, two] = await pair();
      const told: unknown[] = [];
      for (const [what, text] of Object.entries(poisons)) {
        const name = `${what.replaceAll(" ", "-")}.af`.toLowerCase();
        sandbox.control.setTaken(name, false);
        const known = await factsOf("availability");
        const truth = await one.ask(pathOf(name));
        await until(async () => (await factsOf("availability")).length > known.length, "the fact");
        const key = (await factsOf("availability")).find((one) => !known.includes(one)) ?? "";
        await redis.command("SET", key, text(), "PX", "60000");
        const before = calls(CHECK);
        const answer = await two.ask(pathOf(name));
        expect([what, answer.status, withoutTime(answer)]).toEqual([what, 200, withoutTime(truth)]);
        told.push([what, calls(CHECK) - before]);
      }
      expect(told).toEqual(Object.keys(poisons).map((what) => [what, 1]));
    });

    undisturbed(
      "about prices and the account that cannot be true are not believed either",
      async ({ redis, replica, pair, calls, factsOf }) => {
        const [one] = await pair();
        const truth = await pricesOf(one);
        const prices = await factsOf("prices");
        expect(prices).toHaveLength(SOLD);
        for (const key of prices)
          await redis.command("SET", key, fact({ wholesale: price("-1.00", "USD"), epoch: "one" }));
        // A fact of the account, but not the one that belongs here.
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
        await knowsAll(three);
        expect(await pricesOf(three)).toEqual(truth);
        expect(calls(PRICING)).toBe(2 * SOLD);
        const { status, text } = await three.ask("/v1/staff/domains", { headers: bearer("read") });
        expect([status, text.includes("false.af"), text.includes("khyber.af")]).toEqual([200, false, true]);
      },
    );

    undisturbed("are not those of another credential", async ({ replica, pair, calls }) => {
      const [one] = await pair();
      await one.ask(pathOf("kabul.af"));
      const other = await replica({ reseller: "big" });
      await knowsAll(other);
      await other.ask(pathOf("kabul.af"));
      expect([calls(PRICING), calls(CHECK)]).toEqual([2 * SOLD, 2]);
      const wholesale = async ({ ask }: Service) =>
        (await ask("/v1/staff/prices", { headers: bearer("read") })).text.replaceAll(/"asOf":"[^"]*"/g, "");
      expect(await wholesale(other)).not.toBe(await wholesale(one));
    });

    undisturbed("do not tell which names were searched", async ({ redis, pair, keysLike, factsOf }) => {
      const [one] = await pair();
      for (const name of ["kabul.af", "google.af", "xn--mgba3gch31f.af"]) await one.ask(pathOf(name));
      await one.ask("/v1/search?q=kabul");
      await until(async () => (await factsOf("availability")).length >= 3, "the facts");
      const keys = await keysLike("*");
      const values = await Promise.all(
        keys.filter((key) => key.includes(":availability:")).map((key) => redis.command("GET", key)),
      );
      expect([...keys, ...values].join("\n")).not.toMatch(/kabul|google|xn--/);
    });
  });

  describe("without Redis", () => {
    /** A replica that has just started has a share of its own once the others know of it: after two beats. */
    const known = (): Promise<void> => new Promise((done) => setTimeout(done, 1200));

    async function servesAlone(
      calls: Replicas["calls"],
      one: Service,
      two: Service,
      name: string,
    ): Promise<void> {
      // What is known is answered, what is not is asked for by each.
      for (const service of [one, two]) {
        const before = calls(CHECK);
        expect((await service.ask(pathOf("kabul.af"))).status).toBe(200);
        expect((await service.ask("/v1/prices")).status).toBe(200);
        expect(calls(CHECK)).toBe(before);
        expect((await service.ask(pathOf(name))).status).toBe(200);
        expect(calls(CHECK)).toBe(before + 1);
      }
    }

    test("from the start on, a replica starts all the same, asks for nothing that another may ask for, and finds the others once it is there", () =>
      inWorld(open, async ({ redis, replica, inTouch }) => {
        await redis.kill();
        const env = { UPSTREAM_RATE_WINDOW_MS: "1000", UPSTREAM_TIMEOUT_MS: "1000" };
        const one = await replica({ env });
        expect((await one.ask("/health")).body).toMatchObject({ checks: { redis: [{ status: "warn" }] } });
        expect(problemOf(await one.ask("/v1/prices")).retryAfter).toBeGreaterThan(0);
        await redis.start();
        await knowsAll(one);
        expect((await one.ask(pathOf("kabul.af"))).status).toBe(200);
        const two = await replica({ env });
        await knowsAll(two);
        await inTouch(one, two);
        expect(await pricesOf(one)).toHaveLength(SOLD);
      }));

    tell(
      "that hangs, each serves alone, and shares again when it answers",
      async ({ redis, pair, calls, inTouch }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await known();
        redis.hang();
        await servesAlone(calls, one, two, "alone.af");
        redis.wake();
        await inTouch(one, two);
      },
    );

    tell(
      "that was killed, each serves alone, and shares again when another one stands in its place",
      async ({ redis, pair, calls, inTouch }) => {
        const [one, two] = await pair();
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        await known();
        await redis.kill();
        await servesAlone(calls, one, two, "alone.af");
        await redis.start();
        await inTouch(one, two);
        // Neither the names nor the prices were forgotten over it.
        const before = calls(CHECK);
        for (const { ask } of [one, two]) await ask(pathOf("kabul.af"));
        expect(calls(CHECK)).toBe(before);
        for (const service of [one, two]) expect(await pricesOf(service)).toHaveLength(SOLD);
      },
    );
  });

  tell("each with a sandbox of its own do not believe one another", async ({ redis, running }) => {
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
