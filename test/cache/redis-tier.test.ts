/** The shared tier and the news in a real Redis: claims that live and die, facts that are only found by those they are for, marks that get lost. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createNews, type News, type Topic } from "../../src/cache/news.js";
import { redisTier } from "../../src/cache/redis-tier.js";
import type { Claim, SharedPlace, SharedTier } from "../../src/cache/shared-tier.js";
import { systemClock } from "../../src/clock.js";
import { connectRedis, type RedisLink } from "../../src/redis.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog, until } from "../support/service.js";

const FACT = { value: "1", asOfMs: Date.UTC(2026, 2, 20) };

describeWithRedis("in a real Redis", () => {
  let server: RedisServer;
  let links: RedisLink[];
  let clock: FakeClock;
  let link: RedisLink;

  async function connect(): Promise<RedisLink> {
    const one = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    links.push(one);
    await until(() => one.reachable(), "the connection");
    return one;
  }
  beforeEach(async () => {
    server = await startRedis();
    links = [];
    clock = new FakeClock();
    link = await connect();
  });
  afterEach(async () => {
    for (const one of links) one.close();
    await server.close();
  });

  describe("the tier", () => {
    let source: string;

    beforeEach(() => {
      source = "here";
    });

    function tierOf(purges: Topic | null = null): SharedTier<string> {
      const decode = (data: unknown) => (typeof data === "string" ? data : undefined);
      return redisTier({ link, name: "words", purges, source: () => source, decode, clock });
    }

    const placeOf = (key: string, tier = tierOf()): SharedPlace<string> => {
      const place = tier.place(key);
      if (place === null) throw new Error("there is nobody to share with");
      return place;
    };

    async function claimed(place: SharedPlace<string>): Promise<Claim> {
      const claim = await place.claim();
      if (claim === null) throw new Error("another one has the claim");
      return claim;
    }

    const claimKey = async (): Promise<string> =>
      /af-storefront:words:\S+:asked/.exec(await server.command("KEYS", "*"))?.[0] ?? "";

    const lifeMs = async (key: string): Promise<number> =>
      Number((await server.command("PTTL", key)).slice(1));

    test("finds a fact under its own key and source alone, until its time is over", async () => {
      await placeOf("a").write(FACT, 5_000);
      expect(await placeOf("a").read()).toEqual(FACT);
      expect(await placeOf("b").read()).toBeNull();
      expect(await lifeMs(await factKey())).toBeLessThanOrEqual(5_000);
      source = "there";
      expect(await placeOf("a").read()).toBeNull();
    });

    const factKey = async (): Promise<string> =>
      /af-storefront:words:\S+/.exec(await server.command("KEYS", "*"))?.[0] ?? "";

    test("does not write what was learned while the source changed", async () => {
      const place = placeOf("a");
      source = "there";
      await place.write(FACT, 5_000);
      expect(await server.command("DBSIZE")).toBe(":0\r\n");
    });

    test.each(["", "{", "null", "[]", '{"asOfMs":1}', '{"asOfMs":0,"value":"1"}', '{"asOfMs":5,"value":7}'])(
      "takes %j for nothing",
      async (text) => {
        await placeOf("a").write(FACT, 5_000);
        await server.command("SET", await factKey(), text);
        expect(await placeOf("a").read()).toBeNull();
      },
    );

    test("gives a claim to one, keeps it alive while that one lives, and frees it when it is let go", async () => {
      const claim = await claimed(placeOf("a"));
      expect(await placeOf("a").claim()).toBeNull();
      const key = await claimKey();
      expect(await lifeMs(key)).toBeGreaterThan(0);
      for (let times = 0; times < 5; times += 1) {
        await server.command("PEXPIRE", key, "200");
        await clock.advance(300);
        await until(async () => (await lifeMs(key)) > 500, "the renewal");
      }
      expect(await placeOf("a").claim()).toBeNull();
      await claim.letGo();
      expect(clock.pending).toBe(0);
      await (await claimed(placeOf("a"))).letGo();
    });

    test("does not take away a claim that has gone to another one meanwhile", async () => {
      const late = await claimed(placeOf("a"));
      await server.command("DEL", await claimKey());
      const next = await claimed(placeOf("a"));
      await clock.advance(300);
      await late.letGo();
      expect(await placeOf("a").claim()).toBeNull();
      await next.letGo();
    });

    test("is not there before its pool's mark is known, nor while Redis is gone", async () => {
      const news = createNews(link, clock);
      const tier = tierOf(news.topic("words"));
      expect(tier.place("a")).toBeNull();
      await news.known(1_000);
      expect(tier.place("a")).not.toBeNull();
      await server.kill();
      await until(() => !link.reachable(), "the loss");
      expect(tier.place("a")).toBeNull();
      news.close();
    });

    test("does not find after a purge what was written before it, nor what was on its way", async () => {
      const news = createNews(link, clock);
      const tier = tierOf(news.topic("words"));
      await news.known(1_000);
      const early = placeOf("a", tier);
      await early.write(FACT, 5_000);
      tier.purge();
      await early.write(FACT, 5_000);
      expect(await placeOf("a", tier).read()).toBeNull();
      news.close();
    });
  });

  describe("the news", () => {
    let heard: number[];
    let news: News[];
    beforeEach(() => {
      heard = [];
      news = [];
    });
    afterEach(() => {
      for (const one of news) one.close();
    });

    async function reader(over = link): Promise<Topic> {
      const one = createNews(over, clock);
      news.push(one);
      const topic = one.topic("words");
      await one.known(1_000);
      return topic;
    }

    async function listener(): Promise<Topic> {
      const topic = await reader(await connect());
      topic.onTold((atMs) => heard.push(atMs));
      return topic;
    }

    test("reach the others with their moment, and not the one who told them", async () => {
      const teller = await reader();
      const told: number[] = [];
      teller.onTold((atMs) => told.push(atMs));
      const other = await listener();
      expect(other.mark()).toBe(teller.mark());
      teller.tell(1234);
      await until(() => heard.length === 1, "the news");
      expect(heard).toEqual([1234]);
      expect(other.mark()).toBe(teller.mark());
      expect(told).toEqual([]);
    });

    test("are told once Redis is back, and reach even those that no message reached, once", async () => {
      const teller = await reader();
      await listener();
      await server.kill();
      await until(() => links.every((one) => !one.reachable()), "the loss");
      teller.tell(1234);
      await server.start();
      await until(async () => {
        await clock.advance(5_000);
        return heard.length > 0;
      }, "the news");
      expect(heard).toEqual([1234]);
    });

    test("that could not be told are told in spite of what Redis says when it is back", async () => {
      const teller = await reader();
      await listener();
      await server.kill();
      await until(() => links.every((one) => !one.reachable()), "the loss");
      teller.tell(1234);
      await server.start();
      await server.command("SET", "af-storefront:mark:words", "5-older");
      await until(() => heard.includes(1234), "the news");
      await news[0]?.told();
      expect(await server.command("GET", "af-storefront:mark:words")).toContain(teller.mark());
    });

    test("that were told before a replica has found Redis are its first", async () => {
      const teller = await reader();
      teller.tell(1234);
      await news[0]?.told();
      const one = createNews(await connect(), clock);
      news.push(one);
      one.topic("words").onTold((atMs) => heard.push(atMs));
      await one.known(1_000);
      expect(heard).toEqual([1234]);
    });

    test("are none when Redis has lost its memory: the replicas remind it", async () => {
      const teller = await reader();
      const other = await listener();
      const mark = teller.mark();
      await server.command("FLUSHALL");
      await clock.advance(5_000);
      await until(async () => (await server.command("KEYS", "*")).includes("mark:words"), "the mark");
      expect([teller.mark(), other.mark(), heard]).toEqual([mark, mark, []]);
      teller.tell(99);
      await until(() => heard.length === 1, "the news");
    });

    test("that are garbage count as news without a moment, and do no lasting harm", async () => {
      const teller = await reader();
      await listener();
      await server.command("PUBLISH", "af-storefront:news", "garbage");
      await server.command("PUBLISH", "af-storefront:news", "nobody x");
      await server.command("SET", "af-storefront:mark:words", "x y");
      await clock.advance(5_000);
      await until(() => heard.length === 1, "the news");
      await until(() => teller.mark() === "x y", "the mark");
      teller.tell(1234);
      await until(() => heard.length === 2, "the news");
      expect(heard).toEqual([0, 1234]);
    });
  });
});
