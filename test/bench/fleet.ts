/**
 * `npm run bench -- fleet [--rounds N]`: three processes of the service over a real Redis, asked round robin for four times the budget, go through N
 * faults (33), and then a rolling restart; then others through the failover of a Redis behind Sentinel. The sandbox counts calls strictly. A window
 * has ten seconds; the lease has its own times.
 */
import { get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { freePort } from "../support/free-port.js";
import { startRedis } from "../support/redis-server.js";
import { startSentinel } from "../support/sentinel.js";
import { until } from "../support/service.js";
import { type ServiceProcess, spawnService } from "../support/service-process.js";
import { upstreamAt } from "../support/upstream.js";
import { selected } from "./rounds.js";
import { table } from "./table.js";

const WINDOW_MS = 10_000;
const BUDGET = 57;
/** Longer than a new owner without a note waits: for the end of the former one's right to call, and a window. */
const BETWEEN_MS = 20_000;
const KNOWN_EVERY_MS = 250;
const KNOWN = ["/v1/availability?domain=google.af", "/v1/prices"];
const REPLICAS = [0, 1, 2];
const SETTABLE_CLOCK = new URL("settable-clock.js", import.meta.url).href;

interface Counts {
  answered: number;
  refused: number;
  unavailable: number;
  failed: number;
  /** Questions about things that the replica knew to be fresh when it was last asked, and how many of them weren't answered. */
  known: number;
  knownLost: number;
}

interface FleetOptions {
  readonly rounds?: number;
  /** Words, one of which a fault's name contains. */
  readonly only?: string;
}

/** What tests of the fleet can do to its Redis. */
interface Backing {
  urlOf(n: number): string;
  readonly faults: Faults;
  close(): Promise<unknown>;
}
type Faults = Readonly<Record<string, (owner: () => Promise<number>) => Promise<unknown>>>;

export async function benchFleet({ rounds = 33, only = "" }: FleetOptions = {}): Promise<void> {
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
  async function during(on: readonly string[], off: readonly string[], ms: number): Promise<void> {
    await redis.command(...on);
    await sleep(ms);
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
      "Redis read-only for 8 s": () =>
        during(["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"], 8_000),
      "Redis out of memory for 8 s": () =>
        during(["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"], 8_000),
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
  const promiseKey = newPromiseKey();
  const replicas = REPLICAS.map(start);
  await Promise.all(replicas.map(({ listening }) => listening));
  const replica = (n: number): ServiceProcess => {
    const found = replicas[n];
    if (found === undefined) throw new Error(`there is no replica ${n}`);
    return found;
  };

  let counts: Counts = { answered: 0, refused: 0, unavailable: 0, failed: 0, known: 0, knownLost: 0 };
  /** Those that are stopped, or are just being restarted. */
  const away = new Set<number>();
  /** What each has answered since its start, if it was fresh the last time. */
  const fresh = REPLICAS.map(() => new Set<string>());
  const over = new AbortController();
  let lastAnswerAt = performance.now();
  let longestGapMs = 0;

  async function askNew(n: number, name: string): Promise<void> {
    const isAway = away.has(n);
    const answer = await replica(n)
      .ask(`/v1/availability?domain=${name}.af`)
      .catch(() => null);
    if (answer?.status === 200) {
      counts.answered += 1;
      longestGapMs = Math.max(longestGapMs, performance.now() - lastAnswerAt);
      lastAnswerAt = performance.now();
    } else if (answer?.status === 503)
      counts[answer.text.includes('"quota_exhausted"') ? "refused" : "unavailable"] += 1;
    else if (!isAway && !away.has(n)) counts.failed += 1;
  }
  async function askKnown(n: number, path: string): Promise<void> {
    const isAway = away.has(n);
    const answer = await replica(n)
      .ask(path)
      .catch(() => null);
    if (isAway || away.has(n)) return;
    const before = fresh[n]?.has(path) === true;
    if (answer?.status === 200)
      fresh[n]?.[answer.headers["cache-control"] === "no-store" ? "delete" : "add"](path);
    if (before) counts.known += 1;
    if (before && answer?.status !== 200) counts.knownLost += 1;
  }
  async function newNames(): Promise<void> {
    for (let n = 0; !over.signal.aborted; n += 1) {
      void askNew(n % 3, `fleet-${n}`);
      await sleep(WINDOW_MS / (4 * BUDGET));
    }
  }
  async function knownThings(): Promise<void> {
    for (; !over.signal.aborted; await sleep(KNOWN_EVERY_MS))
      for (const n of REPLICAS) for (const path of KNOWN) void askKnown(n, path);
  }

  async function owner(): Promise<number> {
    let found = -1;
    await until(async () => {
      for (const n of REPLICAS) {
        const health = await replica(n)
          .ask("/health")
          .catch(() => null);
        if (health?.text.includes("This replica is the owner") === true) found = n;
      }
      return found >= 0;
    }, "an owner");
    return found;
  }
  const follower = async (): Promise<number> => ((await owner()) + 1) % 3;
  async function restarted(n: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (signal === "SIGKILL") away.add(n);
    replica(n).child.kill(signal);
    if (signal === "SIGTERM") setTimeout(() => away.add(n), 2_500);
    await replica(n).exited;
    away.add(n);
    fresh[n]?.clear();
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
    "kill -9 of a follower": async () => restarted(await follower(), "SIGKILL"),
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
  const ROLLING = "rolling restart";

  /** Until the first event of a stream about known names, in ms; the median of twenty. */
  async function streamStartMs(n: number): Promise<number> {
    const port = await replica(n).listening;
    const path = "/v1/search?q=google&tlds=.af";
    const times: number[] = [];
    for (let count = 0; count < 20; count += 1) {
      const from = performance.now();
      await new Promise<void>((done, failed) => {
        const asked = get({ port, path, headers: { Accept: "text/event-stream" } }, (stream) => {
          stream.once("data", () => {
            done();
            asked.destroy();
          });
        });
        asked.on("error", failed);
      });
      times.push(performance.now() - from);
    }
    return times.toSorted((a, b) => a - b)[10] ?? 0;
  }

  const rows: string[][] = [];
  async function play(name: string): Promise<void> {
    counts = { answered: 0, refused: 0, unavailable: 0, failed: 0, known: 0, knownLost: 0 };
    longestGapMs = 0;
    if (name === ROLLING) for (const n of REPLICAS) await restarted(n, "SIGTERM");
    else await faults[name]?.(owner);
    await sleep(BETWEEN_MS);
    const used = sandbox.stats().credentials.find(({ key }) => key === sandbox.credential().key);
    rows.push([
      name,
      ...[counts.answered, counts.refused, counts.unavailable, counts.failed].map(String),
      `${counts.knownLost} of ${counts.known}`,
      (longestGapMs / 1000).toFixed(1),
      `${used?.largestWindow ?? 0} of ${BUDGET}`,
      String(used?.rejected429 ?? 0),
    ]);
  }

  const names = selected(
    Object.keys(faults).map((name) => ({ name })),
    only,
  );
  const playing = Promise.all([newNames(), knownThings()]);
  try {
    await sleep(WINDOW_MS);
    const [own, handedOn] = [await streamStartMs(await owner()), await streamStartMs(await follower())];
    console.log(
      `a stream starts after ${own.toFixed(1)} ms at the owner, ${handedOn.toFixed(1)} ms handed on`,
    );
    for (let round = 0; round < rounds; round += 1) await play(names[round % names.length]?.name ?? "");
    await play(ROLLING);
  } finally {
    over.abort();
    await playing;
    await Promise.all(replicas.map(({ stop }) => stop()));
    await sandbox.close();
    await backing.close();
  }
  console.log(
    table(
      [
        "fault",
        "answered",
        "quota_exhausted",
        "unavailable",
        "failed",
        "known things lost",
        "longest gap s",
        "largest window",
        "rejections",
      ],
      rows,
    ),
  );
}
