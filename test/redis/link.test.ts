/** The connection to a real Redis that stops, hangs and recovers, to one behind a real Sentinel during a failover, and to servers that can't be used. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type RedisLink, RedisGoneError } from "../../src/redis/redis.js";
import { connectRedis } from "../../src/redis/link.js";
import { fixedSecret } from "../../src/secret.js";
import { freePort } from "../support/free-port.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { type Sentinel, startSentinel } from "../support/sentinel.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";
import { spawnService } from "../support/service-process.js";

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

const PASSWORD = "correct horse";
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function redisOn(port: number, ...args: readonly string[]): Promise<RedisServer> {
  const server = await startRedis("--port", String(port), "--bind", "127.0.0.1", ...args);
  closers.push(() => server.close());
  return server;
}

async function sentinelOf(redisPort: number, password: string | null): Promise<Sentinel> {
  const sentinel = await startSentinel(redisPort, password);
  closers.push(() => sentinel.close());
  return sentinel;
}

function connect(url: string): { link: RedisLink; log: string[] } {
  const log: string[] = [];
  const link = connectRedis({ url: fixedSecret(url), clock: systemClock, log: recordingLog(log) });
  closers.push(() => {
    link.close();
  });
  return { link, log };
}

describeWithRedis("Redis behind Sentinel", () => {
  test("is found by its name, with a password, and found again after a failover", async () => {
    const auth = ["--requirepass", PASSWORD, "--masterauth", PASSWORD];
    const [first, second, silent] = [await freePort(), await freePort(), await freePort()];
    const master = await redisOn(first, ...auth);
    await redisOn(second, ...auth, "--replicaof", "127.0.0.1", String(first));
    const sentinel = await sentinelOf(first, PASSWORD);
    const { link } = connect(
      `redis+sentinel://:${encodeURIComponent(PASSWORD)}@127.0.0.1:${silent},127.0.0.1:${sentinel.port}/main`,
    );
    await until(() => link.state() === "shared", "the connection");
    await link.command("SET", "k", "before");
    await until(() => sentinel.hasReplica(), "the Sentinel's discovery of the replica");

    await master.kill();
    await until(() => link.state() !== "shared", "the loss");
    await until(
      () =>
        link.command("SET", "k", "after").then(
          () => true,
          () => false,
        ),
      "a successful write",
    );
    expect(await link.command("GET", "k")).toBe("after");
  });

  test("isn't confused with the Sentinel itself, which is rejected", async () => {
    const port = await freePort();
    await redisOn(port);
    const sentinel = await sentinelOf(port, null);
    const { link } = connect(`redis://127.0.0.1:${sentinel.port}`);
    await expect(link.firstContact(10_000)).rejects.toThrow("REDIS_URL: is a Sentinel");
  });
});

describeWithRedis("a Redis Cluster", () => {
  test("prevents startup with a one-line message", async () => {
    const cluster = await startRedis("--cluster-enabled", "yes");
    closers.push(() => cluster.close());
    const service = spawnService({ REDIS_URL: cluster.url });
    expect(await service.exited).toBe(1);
    expect(service.stderr).toEqual([
      expect.stringMatching(/^REDIS_URL: is a Redis Cluster, which can't be used/),
    ]);
  });

  test("that replaces a Redis is never used", async () => {
    const redis = await startRedis();
    closers.push(() => redis.close());
    const { link, log } = connect(redis.url);
    await until(() => link.state() === "shared", "the connection");
    await redis.kill();
    await redis.start("--cluster-enabled", "yes");
    await until(() => log.some((line) => line.includes("redis.refused")), "the refusal");
    await expect(link.command("GET", "k")).rejects.toThrow("gone");
    expect(log.filter((line) => line.includes('"redis.refused","kind":"cluster"'))).toHaveLength(1);
  });
});
