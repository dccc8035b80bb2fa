/** Real processes that share a real Redis: they keep one budget while processes are killed, survive the loss of Redis, and report it in /health. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { z } from "zod";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { freePort } from "../support/free-port.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { type ServiceProcess, spawnService, temporaryFolder, until } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const LIMIT = 24;
const HEADROOM = 2;
const WINDOW_MS = 3000;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

describeWithRedis("processes that share a Redis", () => {
  let redis: RedisServer;
  let sandbox: Sandbox;
  let folder: ReturnType<typeof temporaryFolder>;
  let running: ServiceProcess[];

  beforeEach(async () => {
    redis = await startRedis();
    sandbox = await startSandbox({ rateLimit: { limit: LIMIT, windowMs: WINDOW_MS } });
    folder = temporaryFolder();
    running = [];
  });
  afterEach(async () => {
    for (const { child, exited } of running) {
      child.kill("SIGKILL");
      await exited;
    }
    await sandbox.close();
    await redis.close();
    folder.remove();
  });

  /** Starts a process. By listening on the port of an earlier one, it proves that the earlier one is dead. */
  async function start(port = 0): Promise<ServiceProcess> {
    const service = spawnService({
      ...upstreamAt(sandbox),
      UPSTREAM_RATE_LIMIT: String(LIMIT),
      UPSTREAM_RATE_HEADROOM: String(HEADROOM),
      UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
      UPSTREAM_TIMEOUT_MS: "500",
      QUOTA_MAX_WAIT_MS: "1000",
      REDIS_URL: redis.url,
      PORT: String(port),
      REPLICAS_MAX: "2",
      // The processes must not need it.
      STATE_DIR: "/dev/null/state",
      CLIENT_RATE_PER_MINUTE: "1000000",
      CLIENT_COLD_PER_MINUTE: "1000000",
    });
    running.push(service);
    await service.listening;
    return service;
  }

  const healthShape = z.object({ checks: z.object({ redis: z.tuple([z.object({ status: z.string() })]) }) });
  async function redisHealth({ ask }: ServiceProcess): Promise<string> {
    return healthShape.parse((await ask("/health")).body).checks.redis[0].status;
  }

  const credential = () => sandbox.stats().credentials[0];
  const accepted = (): number => credential()?.accepted ?? 0;

  test("keep within one budget while they are killed and Redis is flushed", async () => {
    const port = await freePort();
    const replicas = [await start(port), await start()];
    const flooding = new AbortController();
    let names = 0;
    const flood = async (index: number): Promise<void> => {
      while (!flooding.signal.aborted) {
        names += 1;
        await replicas[index]?.ask(`/v1/availability?domain=name-${names}.af`).catch(() => sleep(20));
      }
    };
    const floods = [0, 0, 0, 0, 1, 1, 1, 1].map(flood);
    await sleep(2 * WINDOW_MS);
    for (const empty of [false, true]) {
      replicas[0]?.child.kill("SIGKILL");
      if (empty) await redis.command("FLUSHALL");
      replicas[0] = await start(port);
      await sleep(WINDOW_MS);
    }
    const before = accepted();
    await sleep(2 * WINDOW_MS);
    flooding.abort();
    await Promise.all(floods);
    expect(credential()).toMatchObject({ rejected429: 0 });
    expect(credential()?.largestWindow).toBeLessThanOrEqual(LIMIT - HEADROOM);
    // The bench prints the exact use; this leaves room for a busy machine.
    expect(accepted() - before).toBeGreaterThan(LIMIT - HEADROOM);
  });

  test("report in /health that Redis is down, still answer what they know, and report when it is back", async () => {
    const service = await start();
    expect(await redisHealth(service)).toBe("pass");
    await until(
      async () => (await service.ask("/v1/availability?domain=kabul.af")).status === 200,
      "a successful answer",
    );
    await redis.kill();
    await until(async () => (await redisHealth(service)) === "warn", "the warning");
    expect((await service.ask("/livez")).status).toBe(200);
    expect((await service.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
    await redis.start();
    await until(async () => (await redisHealth(service)) === "pass", "the recovery");
  });

  test("hand over their budget when they are stopped gracefully", async () => {
    const first = await start();
    await until(
      async () => (await first.ask("/v1/availability?domain=kabul.af")).status === 200,
      "a successful answer",
    );
    expect(await first.stop()).toBe(0);
    const second = await start();
    await until(
      async () => (await second.ask("/v1/availability?domain=herat.af")).status === 200,
      "a successful answer",
    );
    expect(credential()).toMatchObject({ rejected429: 0 });
  });
});
