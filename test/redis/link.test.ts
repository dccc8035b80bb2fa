/** The connection to a real Redis that stops, hangs and recovers, to one behind a real Sentinel during a failover, and to servers that can't be used. */
import { afterEach, expect, test } from "@jest/globals";
import { type Clock, systemClock } from "../../src/clock.js";
import { RedisGoneError } from "../../src/redis/redis.js";
import { connectRedis } from "../../src/redis/link.js";
import { fixedSecret, type Secret } from "../../src/secret.js";
import { freePort } from "../support/free-port.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { type Sentinel, startSentinel } from "../support/sentinel.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";
import { spawnService } from "../support/service-process.js";

const PASSWORD = "correct horse";
const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function redis(...args: readonly string[]): Promise<RedisServer> {
  const server = await startRedis(...args);
  closers.push(() => server.close());
  return server;
}

const redisOn = (port: number, ...args: readonly string[]) =>
  redis("--port", String(port), "--bind", "127.0.0.1", ...args);

async function sentinelOf(redisPort: number, password: string | null): Promise<Sentinel> {
  const sentinel = await startSentinel(redisPort, password);
  closers.push(() => sentinel.close());
  return sentinel;
}

function connect(url: Secret, clock: Clock = systemClock) {
  const log: string[] = [];
  const link = connectRedis({ url, clock, log: recordingLog(log) });
  closers.push(() => {
    link.close();
  });
  return { link, log, untilShared: (what: string) => until(() => link.state() === "shared", what) };
}

describeWithRedis("the connection to Redis", () => {
  async function connected() {
    const server = await redis();
    const connection = connect(fixedSecret(server.url));
    await connection.untilShared("the connection");
    return { server, ...connection };
  }

  test("fails fast when Redis is killed, and reconnects by itself when Redis is restarted", async () => {
    const { server, link, log, untilShared } = await connected();
    await server.kill();
    await until(() => link.state() !== "shared", "the loss");
    await expect(link.command("GET", "k")).rejects.toBeInstanceOf(RedisGoneError);
    let reconnections = 0;
    link.onReachable(() => {
      reconnections += 1;
    });
    await server.start();
    await untilShared("the reconnection");
    expect(reconnections).toBe(1);
    expect(await link.command("GET", "k")).toBeNull();
    expect(log.filter((line) => line.includes("redis.lost"))).toHaveLength(1);
    // It may contain a password.
    expect(log.join("\n")).not.toContain(server.url.slice(7));
  });

  test("doesn't wait for a hung Redis, and uses it again once it answers", async () => {
    const { server, link, untilShared } = await connected();
    server.hang();
    await expect(link.command("GET", "k")).rejects.toBeInstanceOf(RedisGoneError);
    await until(() => link.state() !== "shared", "the loss");
    server.wake();
    await untilShared("the reconnection");
    expect(await link.command("GET", "k")).toBeNull();
  });

  test("keeps using a new address when a command fails that the former one never answered", async () => {
    const [clock, server, other] = [new FakeClock(), await redis(), await redis()];
    let address = server.url;
    const { link, untilShared } = connect({ current: () => address }, clock);
    await untilShared("the connection");
    server.hang();
    const unanswered = expect(link.command("GET", "k")).rejects.toBeInstanceOf(RedisGoneError);
    address = other.url;
    await clock.advance(250);
    await untilShared("the new connection");
    await unanswered;
    expect(link.state()).toBe("shared");
    expect(await link.command("GET", "k")).toBeNull();
    server.wake();
  });
});

describeWithRedis("Redis behind Sentinel", () => {
  test("is found by its name, with a password, and found again after a failover", async () => {
    const auth = ["--requirepass", PASSWORD, "--masterauth", PASSWORD];
    const [first, second, silent] = [await freePort(), await freePort(), await freePort()];
    const master = await redisOn(first, ...auth);
    await redisOn(second, ...auth, "--replicaof", "127.0.0.1", String(first));
    const sentinel = await sentinelOf(first, PASSWORD);
    const at = `127.0.0.1:${silent},127.0.0.1:${sentinel.port}/main`;
    const url = `redis+sentinel://:${encodeURIComponent(PASSWORD)}@${at}`;
    const { link, untilShared } = connect(fixedSecret(url));
    await untilShared("the connection");
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
    const { link } = connect(fixedSecret(`redis://127.0.0.1:${sentinel.port}`));
    await expect(link.firstContact(10_000)).rejects.toThrow("REDIS_URL: is a Sentinel");
  });
});

describeWithRedis("a Redis Cluster", () => {
  test("prevents startup with a one-line message", async () => {
    const cluster = await redis("--cluster-enabled", "yes");
    const service = spawnService({ REDIS_URL: cluster.url });
    expect(await service.exited).toBe(1);
    expect(service.stderr).toEqual([
      expect.stringMatching(/^REDIS_URL: is a Redis Cluster, which can't be used/),
    ]);
  });

  test("that replaces a Redis is never used", async () => {
    const server = await redis();
    const { link, log, untilShared } = connect(fixedSecret(server.url));
    await untilShared("the connection");
    await server.kill();
    await server.start("--cluster-enabled", "yes");
    await until(() => log.some((line) => line.includes("redis.refused")), "the refusal");
    await expect(link.command("GET", "k")).rejects.toThrow("gone");
    expect(log.filter((line) => line.includes('"redis.refused","kind":"cluster"'))).toHaveLength(1);
  });
});
