/**
 * `npm run bench -- fleet [--rounds N]`: three processes of the service over a real Redis, asked round robin for four times the budget, go through N
 * faults (33), and then a rolling restart; then others through the failover of a Redis behind Sentinel. The sandbox counts calls strictly. A window
 * has ten seconds; the lease has its own times.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { freePort } from "../support/free-port.js";
import { startRedis } from "../support/redis-server.js";
import { startSentinel } from "../support/sentinel.js";
import { until } from "../support/service.js";
import { type ServiceProcess, spawnService } from "../support/service-process.js";
import { upstreamAt } from "../support/upstream.js";
import { type Options, selected, table } from "./table.js";

const WINDOW_MS = 10_000;
const BUDGET = 57;
/** Longer than a new owner without a note waits: for the end of the former one's right to call, and a window. */
const BETWEEN_MS = 20_000;
const REPLICAS = [0, 1, 2];
const SETTABLE_CLOCK = new URL("settable-clock.js", import.meta.url).href;

type Faults = Readonly<Record<string, (owner: () => Promise<number>) => Promise<unknown>>>;

interface Backing {
  urlOf(n: number): string;
  /** What can happen to this Redis. */
  readonly faults: Faults;
  close(): Promise<unknown>;
}

export async function benchFleet({ rounds = 33, only = "" }: Options): Promise<void> {
  await played(await oneRedis(), rounds, only);
  await played(await behindSentinel(), 1, "Sentinel");
}

/** Each replica has a user of its own, so that one can be cut off. */
async function oneRedis(): Promise<Backing> {
  const users = REPLICAS.flatMap((n) => ["--user", `replica-${n}`, "on", ">secret", "~*", "&*", "+@all"]);
  const redis = await startRedis(...users);
  async function cutOff(all: readonly number[]): Promise<void> {
    for (const n of all) {
      await redis.command("ACL", "SETUSER", `replica-${n}`, "off");
      await redis.command("CLIENT", "KILL", "USER", `replica-${n}`);
    }
    await sleep(8_000);
    for (const n of all) await redis.command("ACL", "SETUSER", `replica-${n}`, "on");
  }
  async function during(on: readonly string[], off: readonly string[]): Promise<void> {
    await redis.command(...on);
    await sleep(8_000);
    await redis.command(...off);
  }
  return {
    urlOf: (n) => redis.url.replace("unix://", `unix://replica-${n}:secret@`),
    faults: {
      "Redis killed for 3 s": async () => {
        await redis.kill();
        await sleep(3_000);
        await redis.start();
      },
      "Redis hangs for 6 s": async () => {
        redis.hang();
        await sleep(6_000);
        redis.wake();
      },
      "Redis emptied": () => redis.command("FLUSHALL"),
      "Redis read-only for 8 s": () => during(["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]),
      "Redis out of memory for 8 s": () =>
        during(["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]),
      "owner cut off for 8 s": async (owner) => cutOff([await owner()]),
      "all cut off for 8 s": () => cutOff(REPLICAS),
    },
    close: redis.close,
  };
}

async function behindSentinel(): Promise<Backing> {
  const [first, second] = [await freePort(), await freePort()];
  const master = await startRedis("--port", String(first), "--bind", "127.0.0.1");
  const slave = ["--port", String(second), "--bind", "127.0.0.1", "--replicaof", "127.0.0.1", String(first)];
  const replica = await startRedis(...slave);
  const sentinel = await startSentinel(first);
  await until(() => sentinel.hasReplica(), "the replica of Redis");
  return {
    urlOf: () => `redis+sentinel://127.0.0.1:${sentinel.port}/main`,
    faults: { "Redis killed, and its replica promoted by Sentinel": () => master.kill() },
    close: () => Promise.all([sentinel.close(), master.close(), replica.close()]),
  };
}

async function played(backing: Backing, rounds: number, only: string): Promise<void> {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: BUDGET, windowMs: WINDOW_MS },
  });
  const ports = await Promise.all(REPLICAS.map(() => freePort()));
  const promiseKey = newPromiseKey();
  const start = (n: number): ServiceProcess =>
    spawnService(
      {
        ...upstreamAt(sandbox),
        UPSTREAM_RATE_LIMIT: String(BUDGET + 3),
        UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
        QUOTA_COLD_START: "assume-free",
        PROMISE_PRIVATE_KEY: promiseKey,
        REDIS_URL: backing.urlOf(n),
        CLIENT_COLD_PER_MINUTE: "1000000",
        CLIENT_RATE_PER_MINUTE: "1000000",
        PORT: String(ports[n] ?? 0),
      },
      { node: ["--import", SETTABLE_CLOCK] },
    );
  const replicas = REPLICAS.map(start);
  await Promise.all(replicas.map(({ listening }) => listening));
  const replica = (n: number): ServiceProcess => {
    const found = replicas[n];
    if (found === undefined) throw new Error(`there is no replica ${n}`);
    return found;
  };

  const counts = { answered: 0, refused: 0, unavailable: 0, failed: 0 };
  /** Those that are stopped, or are just being restarted. */
  const away = new Set<number>();
  const over = new AbortController();
  let lastAnswerAt = performance.now();
  let longestGapMs = 0;

  const answerOf = (n: number, path: string) =>
    replica(n)
      .ask(path)
      .catch(() => null);
  async function askNew(n: number, name: string): Promise<void> {
    const isAway = away.has(n);
    const answer = await answerOf(n, `/v1/availability?domain=${name}.af`);
    if (answer?.status === 200) {
      counts.answered += 1;
      longestGapMs = Math.max(longestGapMs, performance.now() - lastAnswerAt);
      lastAnswerAt = performance.now();
    } else if (answer?.status === 503)
      counts[answer.text.includes('"quota_exhausted"') ? "refused" : "unavailable"] += 1;
    else if (!isAway && !away.has(n)) counts.failed += 1;
  }
  async function newNames(): Promise<void> {
    for (let n = 0; !over.signal.aborted; n += 1) {
      void askNew(n % 3, `fleet-${n}`);
      await sleep(WINDOW_MS / (4 * BUDGET));
    }
  }
  async function owner(): Promise<number> {
    let found = -1;
    await until(async () => {
      for (const n of REPLICAS) {
        const health = await answerOf(n, "/health");
        if (health?.text.includes("This replica is the owner") === true) found = n;
      }
      return found >= 0;
    }, "an owner");
    return found;
  }
  async function restarted(n: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (signal === "SIGKILL") away.add(n);
    replica(n).child.kill(signal);
    if (signal === "SIGTERM") setTimeout(() => away.add(n), 2_500);
    await replica(n).exited;
    away.add(n);
    replicas[n] = start(n);
    await replica(n).listening;
    away.delete(n);
  }
  async function paused(n: number, ms: number): Promise<void> {
    away.add(n);
    replica(n).child.kill("SIGSTOP");
    await sleep(ms);
    replica(n).child.kill("SIGCONT");
    await sleep(1_000);
    away.delete(n);
  }
  const faults: Faults = {
    "kill -9 of the owner": async () => restarted(await owner(), "SIGKILL"),
    "kill -9 of a follower": async () => restarted(((await owner()) + 1) % 3, "SIGKILL"),
    "SIGTERM of the owner": async () => restarted(await owner(), "SIGTERM"),
    "owner stopped for 3 s": async () => paused(await owner(), 3_000),
    "owner stopped for 90 s": async () => paused(await owner(), 90_000),
    "owner's clock ahead by an hour for 10 s": async () => {
      const { child } = replica(await owner());
      child.kill("SIGUSR2");
      await sleep(WINDOW_MS);
      child.kill("SIGUSR2");
    },
    ...backing.faults,
  };

  const rows: string[][] = [];
  async function play(name: string, fault: () => Promise<unknown>): Promise<void> {
    Object.assign(counts, { answered: 0, refused: 0, unavailable: 0, failed: 0 });
    longestGapMs = 0;
    await fault();
    await sleep(BETWEEN_MS);
    const used = sandbox.stats().credentials.find(({ key }) => key === sandbox.credential().key);
    rows.push([
      name,
      ...[counts.answered, counts.refused, counts.unavailable, counts.failed].map(String),
      (longestGapMs / 1000).toFixed(1),
      `${used?.largestWindow ?? 0} of ${BUDGET}`,
      String(used?.rejected429 ?? 0),
    ]);
  }

  const chosen = selected(
    Object.entries(faults).map(([name, fault]) => ({ name, fault })),
    only,
  );
  const playing = newNames();
  try {
    await sleep(WINDOW_MS);
    for (let round = 0; round < rounds; round += 1) {
      const next = chosen[round % chosen.length];
      if (next !== undefined) await play(next.name, () => next.fault(owner));
    }
    await play("rolling restart", async () => {
      for (const n of REPLICAS) await restarted(n, "SIGTERM");
    });
  } finally {
    over.abort();
    await playing;
    await Promise.all(replicas.map(({ stop }) => stop()));
    await sandbox.close();
    await backing.close();
  }
  const columns = ["answered", "quota_exhausted", "unavailable", "failed"];
  console.log(table(["fault", ...columns, "longest gap s", "largest window", "rejections"], rows));
}
