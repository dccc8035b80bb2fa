/** The connection to a real Redis that stops, hangs and recovers. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type RedisLink, RedisGoneError, redisScript } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";

describeWithRedis("the connection to Redis", () => {
  let server: RedisServer;
  let link: RedisLink;
  const log: string[] = [];

  beforeEach(async () => {
    server = await startRedis();
    link = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog(log) });
    await until(() => link.reachable(), "the connection");
  });
  afterEach(async () => {
    link.close();
    await server.close();
    log.length = 0;
  });

  test("stores values, claims free keys, and runs scripts that Redis has forgotten", async () => {
    const script = redisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    expect(await link.run(script, "n", [2])).toBe(2);
    await server.command("SCRIPT", "FLUSH");
    expect(await link.run(script, "n", [3])).toBe(5);
    await link.set("k", "v", 1000);
    expect(await link.get("k")).toBe("v");
    expect(await link.claim("k", "other", 1000)).toBe(false);
    expect(await link.claim("free", "mine", 1000)).toBe(true);
  });

  test("fails fast when Redis is killed, and reconnects by itself when Redis is restarted", async () => {
    await server.kill();
    await until(() => !link.reachable(), "the loss");
    await expect(link.get("k")).rejects.toBeInstanceOf(RedisGoneError);
    let reconnections = 0;
    link.onReachable(() => {
      reconnections += 1;
    });
    await server.start();
    await until(() => link.reachable(), "the reconnection");
    expect(reconnections).toBe(1);
    expect(await link.get("k")).toBeNull();
    expect(log.filter((line) => line.includes("redis.lost"))).toHaveLength(1);
  });

  test("doesn't wait for a hung Redis, and uses it again once it answers", async () => {
    server.hang();
    await expect(link.get("k")).rejects.toBeInstanceOf(RedisGoneError);
    await until(() => !link.reachable(), "the loss");
    server.wake();
    await until(() => link.reachable(), "the reconnection");
    expect(await link.get("k")).toBeNull();
  });

  test("notices a hung Redis even while no commands are sent", async () => {
    server.hang();
    await until(() => !link.reachable(), "the loss");
    server.wake();
  });

  test("still delivers an answer that came while the process was busy for longer than the deadline", async () => {
    const answer = link.get("k");
    const until = performance.now() + 300;
    while (performance.now() < until);
    expect(await answer).toBeNull();
    expect(link.reachable()).toBe(true);
  });

  test("keeps using a new address when a command fails that the former one never answered", async () => {
    const [clock, other] = [new FakeClock(), await startRedis()];
    let address = server.url;
    const moving = connectRedis({ url: { current: () => address }, clock, log: recordingLog([]) });
    await until(() => moving.reachable(), "the connection");
    server.hang();
    const unanswered = expect(moving.get("k")).rejects.toBeInstanceOf(RedisGoneError);
    address = other.url;
    await clock.advance(250);
    await until(() => moving.reachable(), "the new connection");
    await unanswered;
    expect(moving.reachable()).toBe(true);
    expect(await moving.get("k")).toBeNull();
    moving.close();
    server.wake();
    await other.close();
  });

  test("delivers messages, and reports when some may have been missed", async () => {
    const received: string[] = [];
    let gaps = 0;
    link.subscribe(
      "channel",
      (message) => received.push(message),
      () => {
        gaps += 1;
      },
    );
    await until(() => gaps === 1, "the subscription");
    await link.publish("channel", "one");
    await until(() => received.length === 1, "the message");
    await server.kill();
    await until(() => !link.reachable(), "the loss");
    await server.start();
    await until(() => gaps === 2 && link.reachable(), "the second subscription");
    await link.publish("channel", "two");
    await until(() => received.length === 2, "the second message");
    expect(received).toEqual(["one", "two"]);
  });

  test("never logs the address, which may contain a password", async () => {
    await server.kill();
    await until(() => !link.reachable(), "the loss");
    expect(log.join("\n")).not.toContain(server.url.slice(7));
  });
});
