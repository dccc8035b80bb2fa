/** The connection to a real Redis that stops, hangs and comes back. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type RedisLink, RedisGoneError, redisScript } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
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

  test("keeps values, claims what is free, and runs scripts that Redis has forgotten", async () => {
    const script = redisScript("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    expect(await link.run(script, "n", [2])).toBe(2);
    await server.command("SCRIPT", "FLUSH");
    expect(await link.run(script, "n", [3])).toBe(5);
    await link.set("k", "v", 1000);
    expect(await link.get("k")).toBe("v");
    expect(await link.claim("k", "other", 1000)).toBe(false);
    expect(await link.claim("free", "mine", 1000)).toBe(true);
  });

  test("fails fast when Redis is killed, and is back by itself when it is started again", async () => {
    await server.kill();
    await until(() => !link.reachable(), "the loss");
    await expect(link.get("k")).rejects.toBeInstanceOf(RedisGoneError);
    let again = 0;
    link.onReachable(() => {
      again += 1;
    });
    await server.start();
    await until(() => link.reachable(), "the return");
    expect(again).toBe(1);
    expect(await link.get("k")).toBeNull();
    expect(log.filter((line) => line.includes("redis.lost"))).toHaveLength(1);
  });

  test("does not wait for a hung Redis, and uses it again once it answers", async () => {
    server.hang();
    await expect(link.get("k")).rejects.toBeInstanceOf(RedisGoneError);
    await until(() => !link.reachable(), "the loss");
    server.wake();
    await until(() => link.reachable(), "the return");
    expect(await link.get("k")).toBeNull();
  });

  test("notices a hung Redis while nobody asks", async () => {
    server.hang();
    await until(() => !link.reachable(), "the loss");
    server.wake();
  });

  test("a process that was busy for longer than the deadline still gets the answer that came in the meantime", async () => {
    const answer = link.get("k");
    const until = performance.now() + 300;
    while (performance.now() < until);
    expect(await answer).toBeNull();
    expect(link.reachable()).toBe(true);
  });

  test("delivers messages, and reports when some may have been missed", async () => {
    const heard: string[] = [];
    let gaps = 0;
    link.subscribe(
      "news",
      (message) => heard.push(message),
      () => {
        gaps += 1;
      },
    );
    await until(() => gaps === 1, "the subscription");
    await link.publish("news", "one");
    await until(() => heard.length === 1, "the message");
    await server.kill();
    await until(() => !link.reachable(), "the loss");
    await server.start();
    await until(() => gaps === 2 && link.reachable(), "the second subscription");
    await link.publish("news", "two");
    await until(() => heard.length === 2, "the second message");
    expect(heard).toEqual(["one", "two"]);
  });

  test("never writes the address, which may hold a password", async () => {
    await server.kill();
    await until(() => !link.reachable(), "the loss");
    expect(log.join("\n")).not.toContain(server.url.slice(7));
  });
});
