/**
 * The shared side of a pool in a real Redis: claims live as long as their replica, facts are found only under their own key and source, and
 * which facts hold doesn't depend on the order in which replicas write them.
 */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createPool, type Pool } from "../../src/cache/cache.js";
import type { Asker } from "../../src/cache/single-flight.js";
import type { Caution, Fact } from "../../src/cache/facts.js";
import { type Channel, createInvalidation } from "../../src/cache/invalidation.js";
import { CLOCKS_DIFFER_MS, redisPool } from "../../src/cache/redis-pool.js";
import type { Claim, SharedKey, SharedPool } from "../../src/cache/replicas.js";
import { createStamps, systemClock } from "../../src/clock.js";
import type { RedisLink } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog, until } from "../support/service.js";
import { caller, factNow, Source } from "./support/loads.js";

/** Late enough that all facts of the tests are in the past. */
const NOW_MS = 100_000;
const FACT = { value: "1", askedMs: 1_000, answeredMs: 1_200 };

const caution: Caution<string> = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

describeWithRedis("in a real Redis,", () => {
  let server: RedisServer;
  let link: RedisLink;
  let clock: FakeClock;
  let stamp: () => number;
  let source: string;

  beforeEach(async () => {
    server = await startRedis();
    clock = new FakeClock();
    await clock.advance(NOW_MS);
    stamp = createStamps(clock);
    source = "here";
    link = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    await until(() => link.reachable(), "the connection");
  });
  afterEach(async () => {
    link.close();
    await server.close();
  });

  /** The shared pool of one replica. */
  function replica(purges: Channel | null = null, time: FakeClock = clock): SharedPool<string> {
    const decode = (data: unknown) => (typeof data === "string" ? data : undefined);
    return redisPool({ link, name: "words", purges, source: () => source, decode, clock: time });
  }

  const keyOf = (key: string, shared: SharedPool<string>): SharedKey<string> => {
    const at = shared.at(key);
    if (at === null) throw new Error("the key isn't shared");
    return at;
  };

  const poolOf = (shared: SharedPool<string>): Pool<string, Asker> =>
    createPool({
      entries: 100,
      freshness: () => ({ freshMs: 300_000, usableMs: 600_000 }),
      failureMs: 300,
      caution,
      clock,
      stamp,
      shared,
    });

  const factKey = async (): Promise<string> =>
    /af-storefront:words:\w+/.exec(await server.command("KEYS", "*"))?.[0] ?? "";
  const claimKey = async (): Promise<string> =>
    /af-storefront:words:\S+:asked/.exec(await server.command("KEYS", "*"))?.[0] ?? "";
  const lifeMs = async (key: string): Promise<number> => Number((await server.command("PTTL", key)).slice(1));
  /** The time of a fact as it is stored in Redis. */
  const wallMs = (monotonicMs: number): number => clock.now() - clock.monotonic() + monotonicMs;

  describe("a key", () => {
    let here: SharedPool<string>;
    const at = (key: string): SharedKey<string> => keyOf(key, here);

    beforeEach(() => {
      here = replica();
    });

    async function claimed(key: SharedKey<string>): Promise<Claim> {
      const claim = await key.claim();
      if (claim === null) throw new Error("another replica has the claim");
      return claim;
    }

    test("finds a fact only under its own key and source, until it expires", async () => {
      expect(await at("a").write(FACT, 5_000)).toEqual([FACT]);
      expect(await at("a").read()).toEqual([FACT]);
      expect(await at("b").read()).toEqual([]);
      expect(await lifeMs(await factKey())).toBeLessThanOrEqual(5_000);
      source = "there";
      expect(await at("a").read()).toEqual([]);
    });

    test("reveals neither the key nor the source in Redis", async () => {
      await at("kabul.af").write(FACT, 5_000);
      await claimed(at("kabul.af"));
      expect(await server.command("KEYS", "*")).not.toMatch(/kabul|here/);
    });

    test("doesn't store a fact learned while the source changed", async () => {
      const key = at("a");
      source = "there";
      expect(await key.write(FACT, 5_000)).toEqual([]);
      expect(await server.command("DBSIZE")).toBe(":0\r\n");
    });

    test("stores a fact once per replica, however often it is written", async () => {
      const at = keyOf("word", replica());
      await at.write(FACT, 60_000);
      expect(await at.write(FACT, 60_000)).toEqual([FACT]);
      await keyOf("word", replica()).write(FACT, 60_000);
      expect(await at.read()).toHaveLength(2);
    });

    test("expires with the last of its facts", async () => {
      await at("a").write(FACT, 50_000);
      await at("a").write({ value: "2", askedMs: 1_100, answeredMs: 1_300 }, 1_000);
      expect(await lifeMs(await factKey())).toBeGreaterThan(40_000);
    });

    const stored = { value: '"1"', askedAtMs: 5, answeredAtMs: 6, by: "x" };
    const unreadable = [
      "",
      "{",
      "null",
      "7",
      "[]",
      "{}",
      '{"askedAtMs":1}',
      JSON.stringify([{ ...stored, askedAtMs: 0 }]),
      JSON.stringify([{ ...stored, askedAtMs: "5" }]),
      JSON.stringify([{ ...stored, by: undefined }]),
      JSON.stringify([{ ...stored, value: 1 }]),
      JSON.stringify([{ ...stored, value: "7" }]),
      JSON.stringify([{ ...stored, value: "{" }]),
    ];

    test.each(unreadable)("ignores %j", async (text) => {
      await at("a").write(FACT, 5_000);
      await server.command("SET", await factKey(), text);
      expect(await at("a").read()).toEqual([]);
    });

    test.each(unreadable)("accepts a new fact in place of %j", async (text) => {
      await at("a").write(FACT, 5_000);
      await server.command("SET", await factKey(), text);
      expect(await at("a").write(FACT, 5_000)).toContainEqual(FACT);
      expect(await at("a").read()).toContainEqual(FACT);
    });

    test("gives a claim to one replica, renews it while that one lives, and ends it when it is released", async () => {
      const claim = await claimed(at("a"));
      expect(await at("a").claim()).toBeNull();
      const key = await claimKey();
      expect(await lifeMs(key)).toBeGreaterThan(0);
      for (let times = 0; times < 5; times += 1) {
        await server.command("PEXPIRE", key, "200");
        await clock.advance(300);
        await until(async () => (await lifeMs(key)) > 500, "the renewal");
      }
      expect(await at("a").claim()).toBeNull();
      await claim.release();
      expect(clock.pending).toBe(0);
      await (await claimed(at("a"))).release();
    });

    test("doesn't release a claim that another replica has taken in the meantime", async () => {
      const late = await claimed(at("a"));
      await server.command("DEL", await claimKey());
      const next = await claimed(at("a"));
      await clock.advance(300);
      await late.release();
      expect(await at("a").claim()).toBeNull();
      await next.release();
    });

    test("is unavailable before its pool's mark is known and while Redis is unreachable", async () => {
      const invalidation = createInvalidation(link, clock);
      const shared = replica(invalidation.channel("words"));
      expect(shared.at("a")).toBeNull();
      await invalidation.known(1_000);
      expect(shared.at("a")).not.toBeNull();
      await server.kill();
      await until(() => !link.reachable(), "the loss");
      expect(shared.at("a")).toBeNull();
      invalidation.close();
    });

    test("doesn't find facts after a purge that were written or in flight before it", async () => {
      const invalidation = createInvalidation(link, clock);
      const shared = replica(invalidation.channel("words"));
      await invalidation.known(1_000);
      const early = keyOf("a", shared);
      await early.write(FACT, 5_000);
      shared.purge();
      await early.write(FACT, 5_000);
      expect(await keyOf("a", shared).read()).toEqual([]);
      invalidation.close();
    });
  });

  describe("a fact of another replica", () => {
    test("has its interval widened by the clock tolerance; a replica's own fact is exact", async () => {
      const [here, there] = [replica(), replica()];
      await keyOf("a", here).write(FACT, 5_000);
      expect(await keyOf("a", here).read()).toEqual([FACT]);
      const widened = {
        ...FACT,
        askedMs: FACT.askedMs - CLOCKS_DIFFER_MS,
        answeredMs: FACT.answeredMs + CLOCKS_DIFFER_MS,
      };
      expect(await keyOf("a", there).read()).toMatchObject([widened]);
    });

    test("is in the reader's own time, however long either process has been running", async () => {
      const young = new FakeClock(clock.now());
      await keyOf("a", replica()).write(
        { value: "1", askedMs: NOW_MS - 3_000, answeredMs: NOW_MS - 2_000 },
        5_000,
      );
      expect(await keyOf("a", replica(null, young)).read()).toMatchObject([
        { value: "1", askedMs: -3_000 - CLOCKS_DIFFER_MS, answeredMs: -2_000 + CLOCKS_DIFFER_MS },
      ]);
    });

    test("stays one fact however often it is read, although clock readings differ slightly", async () => {
      await keyOf("a", replica()).write(FACT, 5_000);
      const pool = poolOf(replica());
      await pool.consult("a");
      const changes = pool.changes();
      clock.stepWall(0.4);
      await pool.consult("a");
      expect(pool.changes()).toBe(changes);
    });

    test("is never in the future if its clock is ahead, and is ignored if its clock is too far ahead", async () => {
      const ahead = new FakeClock(clock.now() + 2 * CLOCKS_DIFFER_MS);
      const there = replica(null, ahead);
      const here = replica();
      await keyOf("a", there).write({ value: "1", askedMs: 0, answeredMs: 1 }, 5_000);
      expect(await keyOf("a", here).read()).toMatchObject([
        { value: "1", askedMs: NOW_MS - CLOCKS_DIFFER_MS },
      ]);
      await keyOf("b", there).write({ value: "1", askedMs: 1, answeredMs: 2 }, 5_000);
      expect(await keyOf("b", here).read()).toEqual([]);
      await clock.advance(1);
      expect(await keyOf("b", here).read()).toHaveLength(1);
      const pool = poolOf(here);
      await pool.consult("a");
      await clock.advance(600_001);
      expect(pool.peek("a")).toBeUndefined();
    });
  });

  describe("of two facts,", () => {
    const early = { value: "taken", askedMs: 10_000, answeredMs: 12_000 };
    const late = (afterMs: number) => ({ value: "available", askedMs: 12_000 + afterMs, answeredMs: 14_000 });

    /** What two replicas, and a third one that has learned nothing, hold after both facts have been learned. */
    async function heldBy(by: "one" | "two", first: Fact<string>, then: Fact<string>) {
      const [one, two, three] = [poolOf(replica()), poolOf(replica()), poolOf(replica())];
      await one.learn("a", first);
      await (by === "one" ? one : two).learn("a", then);
      return Promise.all([one, two, three].map((pool) => pool.consult("a")));
    }

    test.each(["early first", "late first"])("the later one stays, in either order: %s", async (order) => {
      const facts = [early, late(1)] as const;
      const [first, then] = order === "early first" ? facts : ([facts[1], facts[0]] as const);
      for (const held of await heldBy("one", first, then))
        expect(held).toMatchObject({ value: "available", settled: true });
    });

    test.each(["early first", "late first"])(
      "the later one stays if they are from two replicas and further apart than clocks may differ: %s",
      async (order) => {
        const facts = [early, late(CLOCKS_DIFFER_MS + 1)] as const;
        const [first, then] = order === "early first" ? facts : ([facts[1], facts[0]] as const);
        for (const held of await heldBy("two", first, then))
          expect(held).toMatchObject({ value: "available", settled: true });
      },
    );

    test.each(["early first", "late first"])(
      "the more cautious one holds if they are from two replicas and no further apart than that: %s",
      async (order) => {
        const facts = [early, late(CLOCKS_DIFFER_MS)] as const;
        const [first, then] = order === "early first" ? facts : ([facts[1], facts[0]] as const);
        for (const held of await heldBy("two", first, then))
          expect(held).toMatchObject({ value: "taken", settled: false });
      },
    );

    test("those that stand in Redis are the same for every order in which replicas write them", async () => {
      const writes = fc
        .array(
          fc.record({
            by: fc.nat({ max: 2 }),
            askedMs: fc.integer({ min: 1, max: 4_000 }),
            tookMs: fc.integer({ min: 0, max: 1_500 }),
          }),
          { minLength: 1, maxLength: 6 },
        )
        .chain((facts) =>
          fc.record({
            facts: fc.constant(facts),
            order: fc.shuffledSubarray(
              facts.map((_, index) => index),
              { minLength: facts.length, maxLength: facts.length },
            ),
          }),
        );
      let run = 0;
      await fc.assert(
        fc.asyncProperty(writes, async ({ facts, order }) => {
          run += 1;
          const replicas = [replica(), replica(), replica()];
          for (const index of order) {
            const { by, askedMs, tookMs } = facts[index] ?? { by: 0, askedMs: 1, tookMs: 0 };
            const shared = replicas[by] ?? replica();
            await keyOf(`key ${run}`, shared).write(
              { value: `${index}`, askedMs, answeredMs: askedMs + tookMs },
              60_000,
            );
          }
          const standing = await keyOf(`key ${run}`, replica()).read();
          const expected = facts.flatMap((one, index) => {
            const isReplaced = facts.some(
              (other) =>
                other.askedMs - (other.by === one.by ? 0 : CLOCKS_DIFFER_MS) > one.askedMs + one.tookMs,
            );
            return isReplaced ? [] : [`${index}`];
          });
          expect(standing.map(({ value }) => value).sort()).toEqual(expected);
        }),
        { numRuns: 150 },
      );
    });

    test("the intervals in Redis contain the original ones", async () => {
      await keyOf("a", replica()).write({ value: "1", askedMs: 1_000.7, answeredMs: 1_200.2 }, 5_000);
      expect(await server.command("GET", await factKey())).toContain(String(wallMs(1_000)));
      expect(await server.command("GET", await factKey())).toContain(String(wallMs(1_201)));
    });
  });

  describe("a purge", () => {
    test("keeps the result of a load in flight out of every pool", async () => {
      const invalidation = [createInvalidation(link, clock), createInvalidation(link, clock)];
      const [one, two] = invalidation.map((each) => poolOf(replica(each.channel("words"))));
      if (one === undefined || two === undefined) throw new Error("a replica is missing");
      await Promise.all(invalidation.map((each) => each.known(1_000)));
      const load = new Source(stamp);
      const waiting = one.get("a", caller(), load.load);
      await until(() => load.loads === 1, "the load");
      const early = factNow("old", stamp);
      two.purge();
      const before = one.changes();
      await until(() => one.changes() > before, "the purge");
      await load.answer("old");
      await expect(waiting).resolves.toMatchObject({ value: "old" });
      await one.learn("a", early);
      await two.learn("a", early);
      for (const pool of [one, two]) await expect(pool.consult("a")).resolves.toBeUndefined();
      await one.learn("a", factNow("new", stamp));
      await expect(two.consult("a")).resolves.toMatchObject({ value: "new" });
      for (const each of invalidation) each.close();
    });
  });
});
