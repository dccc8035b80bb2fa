/** Four replicas with far more requests than budget, while they and their Redis are killed, hung, emptied and restarted. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { createQuota } from "../../src/quota/scheduler/scheduler.js";
import { openRedisLedger } from "../../src/quota/ledger/redis.js";
import type { Quota } from "../../src/quota/quota.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog, until } from "../support/service.js";
import { concurrentTest, type World } from "../support/stories.js";
import { ask } from "./support/asks.js";
import { largestWindow } from "./support/rolling.js";
import { killableClock, unexpected } from "./support/shared-ledger.js";

const BUDGET = 16;
const WINDOW_MS = 1000;
const REPLICAS = 4;
const LONGEST_CALL_MS = 60;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

interface Replica {
  readonly place: string;
  stop(): void;
}

/** One Redis, and replicas that always have more requests than slots. */
interface Fleet extends World {
  readonly server: RedisServer;
  /** When calls arrived, in ms. */
  readonly arrivals: readonly number[];
  readonly running: Replica[];
  start(place: string): Promise<void>;
  /** The share of the budget that was used between these times. */
  used(fromMs: number, toMs: number): number;
}

async function open(): Promise<Fleet> {
  const server = await startRedis();
  const directory = await mkdtemp(join(tmpdir(), "replicas-"));
  const arrivals: number[] = [];
  const running: Replica[] = [];

  /** Makes a call, which arrives at a random moment before it ends. */
  async function call(): Promise<void> {
    const durationMs = Math.random() * (LONGEST_CALL_MS - 20);
    const before = Math.random() * durationMs;
    await sleep(before);
    arrivals.push(performance.now());
    await sleep(durationMs - before);
  }

  /** Starts a replica that always has more requests than slots, until it is stopped as `kill -9` does. */
  async function start(place: string): Promise<void> {
    const redis = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    const death = new AbortController();
    const { clock, end } = killableClock();
    const replica = {
      place,
      stop() {
        death.abort();
        end();
        redis.close();
      },
    };
    running.push(replica);
    const ledger = await openRedisLedger({
      redis,
      fingerprint: "abc",
      limit: BUDGET,
      headroom: 0,
      windowMs: WINDOW_MS,
      coldStart: "assume-spent",
      replicasMax: REPLICAS,
      longestCallMs: LONGEST_CALL_MS,
      place,
      directory,
      clock,
      onFault: unexpected,
    });
    const quota = createQuota({ ledger, clock: systemClock, onFault: () => {} });
    for (let n = 0; n < 10; n += 1) void keepRequesting(quota, `client ${n}`);

    async function keepRequesting(of: Quota, client: string): Promise<void> {
      while (!death.signal.aborted) {
        try {
          await of.run(ask({ client, maxWaitMs: 5 * WINDOW_MS }), () =>
            death.signal.aborted ? new Promise(() => {}) : call(),
          );
        } catch {
          await sleep(WINDOW_MS / 10);
        }
      }
    }
  }

  return {
    server,
    arrivals,
    running,
    start,
    used: (fromMs, toMs) =>
      arrivals.filter((at) => at >= fromMs && at < toMs).length / (((toMs - fromMs) / WINDOW_MS) * BUDGET),
    async close() {
      for (const replica of running) replica.stop();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}

describeWithRedis("four replicas", () => {
  const test = concurrentTest(open);

  test("never exceed the budget together, and use nearly all of it", async ({ arrivals, start, used }) => {
    await Promise.all(Array.from({ length: REPLICAS }, (_, n) => start(`place ${n}`)));
    await sleep(3 * WINDOW_MS);
    // The benchmark prints the exact use. A busy machine takes some of the budget, so this waits for four windows in a row with enough use.
    await until(
      () => used(performance.now() - 4 * WINDOW_MS, performance.now()) > 0.8,
      "a use of more than 0.8",
    );
    expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
  });

  test("never exceed the budget together while any of them or Redis is killed, hung, emptied or restarted", async ({
    server,
    arrivals,
    running,
    start,
    used,
  }) => {
    await Promise.all(Array.from({ length: REPLICAS }, (_, n) => start(`place ${n}`)));
    const restart = async (): Promise<void> => {
      const [killed] = running.splice(Math.floor(Math.random() * running.length), 1);
      killed?.stop();
      await start(killed?.place ?? "");
    };
    const faults: readonly (() => Promise<void>)[] = [
      restart,
      async () => {
        await server.command("FLUSHALL");
        await restart();
      },
      async () => {
        await server.kill();
        await sleep(Math.random() * 2.5 * WINDOW_MS);
        await restart();
        await server.start();
      },
      async () => {
        server.hang();
        await sleep(Math.random() * 2.5 * WINDOW_MS);
        server.wake();
      },
    ];
    for (const fault of [...faults, ...faults]) {
      await fault();
      await sleep(Math.random() * WINDOW_MS);
    }
    await sleep(2 * WINDOW_MS);
    const from = performance.now();
    await sleep(2 * WINDOW_MS);
    expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
    expect(used(from, performance.now())).toBeGreaterThan(0.5);
  });
});
