/** A real Redis that refuses commands: this is noticed, counted and logged once per kind, and Redis isn't used until it recovers. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { chmodSync, mkdirSync, rmdirSync } from "node:fs";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { type RedisLink, RedisGoneError } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { bearer, recordingLog, type Service, startService, until } from "../support/service.js";
import { concurrentTest, type World } from "../support/stories.js";
import { upstreamAt } from "../support/upstream.js";

interface RefusalCase {
  readonly kind: string;
  readonly begin: (redis: RedisServer) => Promise<unknown>;
  readonly end: (redis: RedisServer) => Promise<unknown>;
}

const CASES: readonly RefusalCase[] = [
  {
    kind: "READONLY",
    begin: (redis) => redis.command("REPLICAOF", "127.0.0.1", "1"),
    end: (redis) => redis.command("REPLICAOF", "NO", "ONE"),
  },
  {
    kind: "OOM",
    begin: (redis) => redis.command("CONFIG", "SET", "maxmemory", "1"),
    end: (redis) => redis.command("CONFIG", "SET", "maxmemory", "0"),
  },
  {
    kind: "NOPERM",
    begin: (redis) => redis.command("ACL", "SETUSER", "default", "-set"),
    end: (redis) => redis.command("ACL", "SETUSER", "default", "+set"),
  },
  {
    kind: "NOAUTH",
    async begin(redis) {
      await redis.command("CONFIG", "SET", "requirepass", "secret");
      // Connected clients stay authenticated.
      await redis.kill();
      await redis.start("--requirepass", "secret");
    },
    async end(redis) {
      await redis.kill();
      await redis.start();
    },
  },
  {
    kind: "MISCONF",
    async begin(redis) {
      const folder = `${redis.folder}/gone`;
      mkdirSync(folder);
      chmodSync(folder, 0o777);
      await redis.command("CONFIG", "SET", "stop-writes-on-bgsave-error", "yes");
      await redis.command("CONFIG", "SET", "save", "3600 1");
      await redis.command("CONFIG", "SET", "dir", folder);
      rmdirSync(folder);
      await redis.command("BGSAVE");
    },
    end: (redis) => redis.command("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"),
  },
  {
    kind: "NOREPLICAS",
    begin: (redis) => redis.command("CONFIG", "SET", "min-replicas-to-write", "1"),
    end: (redis) => redis.command("CONFIG", "SET", "min-replicas-to-write", "0"),
  },
  {
    kind: "LOADING",
    async begin(redis) {
      await redis.command("DEBUG", "POPULATE", "20000");
      await redis.command("SAVE");
      await redis.kill();
      await redis.start("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024");
    },
    end: (redis) => redis.command("CONFIG", "SET", "key-load-delay", "0"),
  },
  {
    kind: "MOVED",
    async begin(redis) {
      await redis.kill();
      await redis.start("--cluster-enabled", "yes");
    },
    async end(redis) {
      await redis.kill();
      await redis.start();
    },
  },
  {
    kind: "other",
    async begin(redis) {
      await redis.kill();
      await redis.start("--rename-command", "EVALSHA", "");
    },
    async end(redis) {
      await redis.kill();
      await redis.start();
    },
  },
];

const refusedLines = (log: readonly string[]): string[] =>
  log.filter((line) => line.includes('"redis.refused"'));

/** A Redis, and one link to it. */
interface Refusing extends World {
  readonly redis: RedisServer;
  readonly link: RedisLink;
  readonly log: readonly string[];
}

async function open(): Promise<Refusing> {
  const redis = await startRedis("--enable-debug-command", "yes", "--enable-protected-configs", "yes");
  const log: string[] = [];
  const link = connectRedis({ url: fixedSecret(redis.url), clock: systemClock, log: recordingLog(log) });
  await until(() => link.reachable(), "the connection");
  return {
    redis,
    link,
    log,
    async close() {
      link.close();
      await redis.close();
    },
  };
}

describeWithRedis("a Redis that refuses commands", () => {
  const testConcurrently = concurrentTest(open);

  for (const { kind, begin, end } of CASES)
    testConcurrently(
      `with ${kind} is noticed even while no commands are sent, logged once, and used again when it recovers`,
      async ({ redis, link, log }) => {
        for (const round of [1, 2]) {
          await begin(redis);
          await until(() => link.state() === "refusing", "the refusal");
          expect(link.reachable()).toBe(false);
          await expect(link.get("k")).rejects.toBeInstanceOf(RedisGoneError);
          await until(() => (link.refusals()[kind] ?? 0) >= round, "the count");
          await end(redis);
          await until(() => link.state() === "shared", "the recovery");
          expect(link.reachable()).toBe(true);
          expect(refusedLines(log)).toEqual(
            Array.from({ length: round }, () =>
              JSON.stringify({ level: "error", event: "redis.refused", kind }),
            ),
          );
        }
      },
    );

  testConcurrently(
    "for one value of the wrong type is reported, but still used for other keys",
    async ({ redis, link }) => {
      await redis.command("LPUSH", "list", "1");
      await expect(link.get("list")).rejects.toBeInstanceOf(RedisGoneError);
      expect(link.state()).toBe("refusing");
      expect(await link.get("k")).toBeNull();
      await until(() => link.state() === "shared", "the recovery");
      expect(link.refusals()["other"]).toBe(1);
    },
  );
});

const healthShape = z.object({ checks: z.object({ redis: z.tuple([z.object({ status: z.string() })]) }) });

describeWithRedis("the service with a Redis that refuses commands", () => {
  let redis: RedisServer;
  let sandbox: Sandbox;
  let service: Service;

  beforeEach(async () => {
    redis = await startRedis();
    sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 3000 } });
    service = await startService({
      clock: systemClock,
      at: sandbox,
      env: {
        ...upstreamAt(sandbox),
        UPSTREAM_RATE_WINDOW_MS: "3000",
        QUOTA_COLD_START: "assume-free",
        REPLICAS_MAX: "2",
        REDIS_URL: redis.url,
      },
    });
  });
  afterEach(async () => {
    await service.close();
    await sandbox.close();
    await redis.close();
  });

  const health = async (): Promise<string> =>
    healthShape.parse((await service.ask("/health")).body).checks.redis[0].status;

  test("reports it in /health, counts it, and continues with its own share", async () => {
    expect(await health()).toBe("pass");
    await redis.command("REPLICAOF", "127.0.0.1", "1");
    await until(async () => (await health()) === "warn", "the warning");
    let names = 0;
    await until(async () => {
      names += 1;
      return (await service.ask(`/v1/availability?domain=new-name-${names}.af`)).status === 200;
    }, "the check of a new name with the local share");
    const metrics = await service.ask("/metrics", { headers: bearer("metrics") });
    expect(metrics.text).toMatch(/^redis_refused_total\{kind="READONLY"\} [1-9]/m);
    await redis.command("REPLICAOF", "NO", "ONE");
    await until(async () => (await health()) === "pass", "the recovery");
  });
});
