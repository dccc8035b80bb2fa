/** The connection to a real Redis that stops, hangs and recovers. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type RedisLink, RedisGoneError } from "../../src/redis/redis.js";
import { connectRedis } from "../../src/redis/link.js";
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
    await until(() => link.state() === "shared", "the connection");
  });
  afterEach(async () => {
    link.close();
    await server.close();
    log.length = 0;
  });

  test("fails fast when Redis is killed, and reconnects by itself when Redis is restarted", async () => {
    await server.kill();
    await until(() => link.state() !== "shared", "the loss");
    await expect(link.command("GET", "k")).rejects.toBeInstanceOf(RedisGoneError);
    let reconnections = 0;
    link.onReachable(() => {
      reconnections += 1;
    });
    await server.start();
    await until(() => link.state() === "shared", "the reconnection");
    expect(reconnections).toBe(1);
    expect(await link.command("GET", "k")).toBeNull();
    expect(log.filter((line) => line.includes("redis.lost"))).toHaveLength(1);
    // It may contain a password.
    expect(log.join("\n")).not.toContain(server.url.slice(7));
  });

  test("doesn't wait for a hung Redis, and uses it again once it answers", async () => {
    server.hang();
    await expect(link.command("GET", "k")).rejects.toBeInstanceOf(RedisGoneError);
    await until(() => link.state() !== "shared", "the loss");
    server.wake();
    await until(() => link.state() === "shared", "the reconnection");
    expect(await link.command("GET", "k")).toBeNull();
  });

  test("keeps using a new address when a command fails that the former one never answered", async () => {
    const [clock, other] = [new FakeClock(), await startRedis()];
    let address = server.url;
    const moving = connectRedis({ url: { current: () => address }, clock, log: recordingLog([]) });
    await until(() => moving.state() === "shared", "the connection");
    server.hang();
    const unanswered = expect(moving.command("GET", "k")).rejects.toBeInstanceOf(RedisGoneError);
    address = other.url;
    await clock.advance(250);
    await until(() => moving.state() === "shared", "the new connection");
    await unanswered;
    expect(moving.state() === "shared").toBe(true);
    expect(await moving.command("GET", "k")).toBeNull();
    moving.close();
    server.wake();
    await other.close();
  });
});
