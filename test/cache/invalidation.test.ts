/** Invalidation over a real Redis: marks reach every replica, even if messages or Redis are lost in the meantime. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { type Channel, createInvalidation, type Invalidation } from "../../src/cache/invalidation.js";
import { systemClock } from "../../src/clock.js";
import type { RedisLink } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";
import { startLinkProxy } from "../support/link-proxy.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog, until } from "../support/service.js";

describeWithRedis("a published mark", () => {
  let server: RedisServer;
  let links: RedisLink[];
  let clock: FakeClock;
  /** The current mark at each call of the subscriber. */
  let received: (string | null)[];
  /** The `wasPublished` of each call of the subscriber. */
  let published: boolean[];
  let opened: Invalidation[];

  beforeEach(async () => {
    server = await startRedis();
    links = [];
    clock = new FakeClock();
    received = [];
    published = [];
    opened = [];
  });
  afterEach(async () => {
    for (const one of opened) one.close();
    for (const one of links) one.close();
    await server.close();
  });

  async function connect(url = server.url): Promise<RedisLink> {
    const one = connectRedis({ url: fixedSecret(url), clock: systemClock, log: recordingLog([]) });
    links.push(one);
    await until(() => one.reachable(), "the connection");
    return one;
  }

  function open(link: RedisLink): Invalidation {
    const one = createInvalidation(link, clock);
    opened.push(one);
    return one;
  }

  async function publisher(): Promise<Channel> {
    const one = open(await connect());
    const channel = one.channel("words");
    await one.known(1_000);
    return channel;
  }

  async function subscriber(): Promise<Channel> {
    const channel = await publisher();
    channel.subscribe((wasPublished) => {
      received.push(channel.mark());
      published.push(wasPublished);
    });
    return channel;
  }

  const allLost = () => until(() => links.every((one) => !one.reachable()), "the loss");

  test("reaches the other replicas, and not its own", async () => {
    const here = await publisher();
    const own: unknown[] = [];
    here.subscribe(() => own.push(here.mark()));
    const other = await subscriber();
    expect(other.mark()).toBe(here.mark());
    here.publish();
    await until(() => received.length === 1, "the message");
    expect(received).toEqual([here.mark()]);
    expect(other.mark()).toBe(here.mark());
    expect(own).toEqual([]);
  });

  test("takes effect here immediately, and is the given one or different from all before it", async () => {
    const here = await publisher();
    const marks = [here.mark()];
    for (let times = 0; times < 3; times += 1) {
      here.publish();
      marks.push(here.mark());
    }
    expect(new Set(marks).size).toBe(4);
    here.publish("mine");
    expect(here.mark()).toBe("mine");
  });

  test("isn't received by a replica that has published the same mark itself", async () => {
    const here = await publisher();
    const other = await subscriber();
    other.publish("same");
    here.publish("same");
    await Promise.all(opened.map((one) => one.published()));
    await clock.advance(5_000);
    here.publish("next");
    await until(() => received.length > 0, "the message");
    expect(received).toEqual(["next"]);
  });

  test("follows the offered mark if Redis has none, or the mark in Redis if there is one", async () => {
    const first = open(await connect());
    const here = first.channel("words");
    here.offer("offered");
    await first.known(1_000);
    expect(here.mark()).toBe("offered");
    const later = open(await connect());
    const other = later.channel("words");
    other.offer("too late");
    await later.known(1_000);
    expect(other.mark()).toBe("offered");
  });

  test("isn't received by its own replica, even if that one publishes twice in a row", async () => {
    const here = await publisher();
    const own: unknown[] = [];
    here.subscribe(() => own.push(here.mark()));
    await subscriber();
    here.publish("first");
    here.publish("second");
    await until(() => received.includes("second"), "the message");
    // By now its own messages have come back as well.
    await until(
      async () => (await server.command("GET", "af-storefront:mark:words")).includes("second"),
      "the mark",
    );
    expect(here.mark()).toBe("second");
    expect(own).toEqual([]);
  });

  test("that coincides with another one is followed by one mark that both replicas receive", async () => {
    const [here, other] = [await subscriber(), await subscriber()];
    here.publish("mine");
    other.publish("theirs");
    await until(async () => {
      await clock.advance(5_000);
      await Promise.all(opened.map((one) => one.published()));
      const stored = await server.command("GET", "af-storefront:mark:words");
      return [here, other].every((one) => stored.includes(` ${one.mark()}`));
    }, "the agreement");
    expect(["mine", "theirs"]).not.toContain(here.mark());
    expect(received.filter((mark) => mark === here.mark())).toHaveLength(2);
  });

  test("isn't undone by a Redis that comes back with an old mark, or by a replica that missed it", async () => {
    const [here, other] = [await publisher(), await subscriber()];
    const before = here.mark() ?? "";
    here.publish("newer");
    await until(() => other.mark() === "newer", "the message");
    await server.command("SET", "af-storefront:mark:words", `0 ${before}`);
    await server.command("PUBLISH", "af-storefront:invalidation", `words 0 ${before}`);
    await clock.advance(5_000);
    await until(
      async () => (await server.command("GET", "af-storefront:mark:words")).includes("newer"),
      "the mark",
    );
    expect([here.mark(), other.mark(), received]).toEqual(["newer", "newer", ["newer"]]);
  });

  test("reaches a replica that missed it, even if that one is the first to find an emptied Redis", async () => {
    const here = await publisher();
    const proxy = await startLinkProxy(server);
    try {
      const link = await connect(proxy.url);
      const late = open(link);
      const other = late.channel("words");
      await late.known(1_000);
      other.subscribe(() => received.push(other.mark()));
      const missing = other.mark();
      proxy.cut();
      await until(() => !link.reachable(), "the loss");
      here.publish("newer");
      await opened[0]?.published();
      await server.command("FLUSHALL");
      proxy.heal();
      const stored = () => server.command("GET", "af-storefront:mark:words");
      await until(async () => (await stored()).includes(` ${missing}`), "the mark of the late replica");
      expect([other.mark(), received]).toEqual([missing, []]);
      await until(async () => {
        await clock.advance(5_000);
        return other.mark() === "newer";
      }, "the mark");
      expect([here.mark(), received]).toEqual(["newer", ["newer"]]);
      expect(await stored()).toContain(" newer");
    } finally {
      await proxy.close();
    }
  });

  test("doesn't affect another channel", async () => {
    const one = open(await connect());
    const [words, names] = [one.channel("words"), one.channel("names")];
    await one.known(1_000);
    await subscriber();
    names.publish("names-1");
    words.publish("words-1");
    await until(() => received.length === 1, "the message");
    expect(received).toEqual(["words-1"]);
    expect([words.mark(), names.mark()]).toEqual(["words-1", "names-1"]);
  });

  test("is stored once Redis is back, and reaches every replica exactly once, even without a message", async () => {
    const here = await publisher();
    await subscriber();
    await server.kill();
    await allLost();
    here.publish("1234");
    await server.start();
    await until(async () => {
      await clock.advance(5_000);
      return received.length > 0;
    }, "the message");
    expect(received).toEqual(["1234"]);
  });

  test("without Redis is stored later, whatever Redis contains, and follows a mark that is unknown here", async () => {
    const here = await publisher();
    const other = await subscriber();
    // Redis restarts with this mark, before any replica has reached it again.
    await server.command("SET", "af-storefront:mark:words", `0 ${"~".repeat(36)}`);
    await server.command("SAVE");
    await server.kill();
    await allLost();
    here.publish("1234");
    await server.start();
    await until(() => here.mark() !== "1234" && other.mark() === here.mark(), "the third mark");
    await Promise.all(opened.map((one) => one.published()));
    expect(received.at(-1)).toBe(here.mark());
    expect(await server.command("GET", "af-storefront:mark:words")).toContain(here.mark());
  });

  test("is distinguished from the initial mark of a fleet, which another replica may have set", async () => {
    const here = await subscriber();
    // Later than every other initial mark, because all of them are as long.
    const initial = "~".repeat(36);
    await server.command("SET", "af-storefront:mark:words", `0 ${initial}`);
    await until(async () => {
      await clock.advance(5_000);
      return here.mark() === initial;
    }, "the mark");
    await server.command("SET", "af-storefront:mark:words", "1 newer");
    await until(async () => {
      await clock.advance(5_000);
      return here.mark() === "newer";
    }, "the newer mark");
    expect([received, published]).toEqual([
      [initial, "newer"],
      [false, true],
    ]);
  });

  test("is the first that a replica receives if it was published before that one reached Redis", async () => {
    const here = await publisher();
    here.publish("1234");
    await opened[0]?.published();
    const one = open(await connect());
    const late = one.channel("words");
    late.subscribe(() => received.push(late.mark()));
    await one.known(1_000);
    expect(received).toEqual(["1234"]);
  });

  test("is restored, but not published again, when Redis is emptied", async () => {
    const here = await publisher();
    const other = await subscriber();
    const mark = here.mark();
    await server.command("FLUSHALL");
    await clock.advance(5_000);
    await until(async () => (await server.command("KEYS", "*")).includes("mark:words"), "the mark");
    expect([here.mark(), other.mark(), received]).toEqual([mark, mark, []]);
    here.publish();
    await until(() => received.length === 1, "the message");
  });

  test("isn't replaced by garbage, which is ignored", async () => {
    const here = await publisher();
    const other = await subscriber();
    here.publish("1234");
    await until(() => received.length === 1, "the message");
    await server.command("PUBLISH", "af-storefront:invalidation", "garbage");
    await server.command("PUBLISH", "af-storefront:invalidation", "nobody 7 x");
    await server.command("SET", "af-storefront:mark:words", "x y");
    await clock.advance(5_000);
    await until(
      async () => (await server.command("GET", "af-storefront:mark:words")).includes("1 1234"),
      "the mark",
    );
    expect([here.mark(), other.mark(), received]).toEqual(["1234", "1234", ["1234"]]);
  });

  test("isn't waited for longer than `withinMs` while Redis is unreachable", async () => {
    await server.kill();
    const link = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    links.push(link);
    const one = open(link);
    const channel = one.channel("words");
    const known = one.known(1_000);
    await clock.advance(1_000);
    await known;
    expect(channel.mark()).toBeNull();
  });
});
