/**
 * `npm run bench -- fleet [--rounds N]`: four processes of the service over one real Redis, each behind a network of its own, asked for more
 * new names than there is budget, through N faults (300) in a random order and two at a time; counted strictly at the sandbox.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
import { type LinkProxy, startLinkProxy } from "../support/link-proxy.js";
import { freePort, type RedisServer, startRedis } from "../support/redis-server.js";
import { median, table } from "./table.js";

const LIMIT = 60;
const BUDGET = 57;
const WINDOW_MS = 5000;
const REPLICAS = 4;
const FAULTS = 300;
/** From the end of a fault until the window that is measured: what nobody knows has come to rest. */
const SETTLE_WINDOWS = 1.8;
/** Visitors of each replica, as a multiple of the whole budget. */
const LOAD = 0.5;
/** Visitors who follow what they are told give up after so many times. */
const MOST_TRIES = 3;
const KNOWN_NAME = "google.af";
const LONG_AFTER_MS = 5000;

interface Answer {
  /** 0: there was none. */
  readonly status: number;
  readonly tookMs: number;
  /** Of a refusal: when to come back. */
  readonly retryAfterMs: number;
}

/** One process and its connection to Redis; started again it takes its old port. */
class Replica {
  readonly proxy: LinkProxy;
  readonly #port: number;
  readonly #env: Readonly<Record<string, string>>;
  readonly #agent = new Agent({ keepAlive: true });
  #child: ChildProcess | null = null;
  /** Whether it should answer. */
  isThere = false;

  private constructor(sandbox: Sandbox, proxy: LinkProxy, port: number) {
    const { key, secret } = sandbox.credential();
    this.proxy = proxy;
    this.#port = port;
    this.#env = {
      PORT: String(port),
      HOST: "127.0.0.1",
      UPSTREAM_BASE_URL: sandbox.url,
      UPSTREAM_SERVICE_KEY: key,
      UPSTREAM_SERVICE_SECRET: secret,
      UPSTREAM_RATE_LIMIT: String(LIMIT),
      UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
      UPSTREAM_TIMEOUT_MS: "500",
      QUOTA_MAX_WAIT_MS: "1000",
      REDIS_URL: proxy.url,
      REPLICAS_MAX: String(REPLICAS),
      STATE_DIR: join(tmpdir(), "bench-unused"),
      CLIENT_RATE_PER_MINUTE: "1000000",
      CLIENT_COLD_PER_MINUTE: "1000000",
      TRUST_PROXY_HOPS: "1",
      LOG_LEVEL: "error",
    };
  }

  static async start(sandbox: Sandbox, redis: RedisServer): Promise<Replica> {
    const replica = new Replica(sandbox, await startLinkProxy(redis), await freePort());
    await replica.start();
    return replica;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, ["dist/main.js"], { stdio: "ignore", env: this.#env });
    this.#child = child;
    process.once("exit", () => child.kill("SIGKILL"));
    while ((await this.ask("/livez")).status !== 200) {
      if (child.exitCode !== null) throw new Error("a replica has ended");
      await sleep(20);
    }
    this.isThere = true;
  }

  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    this.isThere = false;
    if (child === null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await gone;
  }

  stop(): void {
    this.isThere = false;
    this.#child?.kill("SIGSTOP");
  }

  wake(): void {
    this.#child?.kill("SIGCONT");
    this.isThere = this.#child !== null;
  }

  ask(path: string, from = "10.0.0.1"): Promise<Answer> {
    const began = performance.now();
    return new Promise((done) => {
      const end = (status: number, retryAfterMs = NaN): void => {
        done({ status, tookMs: performance.now() - began, retryAfterMs });
      };
      const asked = request(
        {
          host: "127.0.0.1",
          port: this.#port,
          path,
          agent: this.#agent,
          headers: { "x-forwarded-for": from },
        },
        (response) => {
          response.resume().once("end", () => {
            end(response.statusCode ?? 0, 1000 * Number(response.headers["retry-after"]));
          });
          response.once("error", () => {
            end(0);
          });
        },
      );
      asked.setTimeout(LONG_AFTER_MS, () => asked.destroy());
      asked.once("error", () => {
        end(0);
      });
      asked.end();
    });
  }

  async close(): Promise<void> {
    this.wake();
    await this.kill();
    await this.proxy.close();
    this.#agent.destroy();
  }
}

/** A fault as it was seen. */
export interface FaultSeen {
  readonly fault: string;
  /** Of the budget: while it lasted, and in a window after it. */
  readonly useDuring: number;
  readonly useAfter: number;
}

export interface FleetSeen {
  readonly faults: readonly FaultSeen[];
  readonly calmUse: number;
  readonly largestWindow: number;
  readonly rejections: number;
  /** Known names: ms each took, without faults and through them, and how many failed. */
  readonly calmHitsMs: readonly number[];
  readonly hitsMs: readonly number[];
  readonly hitsFailed: number;
}

export interface FleetFaultsSettings {
  readonly faults: number;
  readonly random?: () => number;
  /** Only these, by name. */
  readonly only?: (fault: string) => boolean;
}

export const FLEET_BUDGET = BUDGET;

/** Plays the faults one after another and returns what the sandbox has counted. */
export async function fleetThroughFaults(settings: FleetFaultsSettings): Promise<FleetSeen> {
  const { random = Math.random, only = () => true } = settings;
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: WINDOW_MS },
    latency: { jitterMs: 0.01 * WINDOW_MS },
  });
  const redis = await startRedis();
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => Replica.start(sandbox, redis)));
  const over = new AbortController();
  const windows = (count: number): Promise<void> => sleep(count * WINDOW_MS);
  const some = (from: number, to: number): Promise<void> => windows(from + random() * (to - from));
  const anyReplica = (): Replica => {
    const replica = replicas[Math.floor(random() * REPLICAS)];
    if (replica === undefined) throw new Error("there is no replica");
    return replica;
  };

  const hits = { ms: [] as number[], failed: 0 };
  let asked = 0;
  /** Asks for a name, and again when it was told to. */
  async function visit(replica: Replica): Promise<void> {
    asked += 1;
    const from = `10.${asked >> 16}.${(asked >> 8) & 255}.${asked & 255}`;
    const path = `/v1/availability?domain=fleet-${asked}.af`;
    for (let tries = 0; tries < MOST_TRIES && !over.signal.aborted; tries += 1) {
      const { status, retryAfterMs } = await replica.ask(path, from);
      if (status !== 503 || Number.isNaN(retryAfterMs)) return;
      await sleep(retryAfterMs);
    }
  }
  async function flood(replica: Replica): Promise<void> {
    const visits = new Set<Promise<unknown>>();
    while (!over.signal.aborted) {
      const one: Promise<unknown> = visit(replica).then(() => visits.delete(one));
      visits.add(one);
      await sleep((WINDOW_MS / (LOAD * BUDGET)) * (0.5 + random()));
    }
    await Promise.all(visits);
  }
  async function hit(): Promise<void> {
    while (!over.signal.aborted) {
      const replica = anyReplica();
      const wasThere = replica.isThere;
      const { status, tookMs } = await replica.ask(`/v1/availability?domain=${KNOWN_NAME}`);
      if (wasThere && replica.isThere) {
        if (status === 200) hits.ms.push(tookMs);
        else hits.failed += 1;
      }
      await sleep(50);
    }
  }
  const accepted = (): number => sandbox.stats().credentials.reduce((sum, one) => sum + one.accepted, 0);
  async function use(act: () => Promise<void>): Promise<number> {
    const [before, began] = [accepted(), performance.now()];
    await act();
    return (accepted() - before) / ((BUDGET * (performance.now() - began)) / WINDOW_MS);
  }

  const all: Readonly<Record<string, () => Promise<void>>> = {
    "a replica is killed and started": async () => {
      const replica = anyReplica();
      await replica.kill();
      await some(0, 1);
      await replica.start();
    },
    "a replica is stopped past a window": async () => {
      const replica = anyReplica();
      replica.stop();
      await some(1.1, 2);
      replica.wake();
    },
    "a replica is cut off from Redis": async () => {
      const { proxy } = anyReplica();
      proxy.cut();
      await some(0.3, 2.5);
      proxy.heal();
    },
    "connections are reset every 150 ms": async () => {
      for (const { proxy } of replicas) proxy.resetAfter(150);
      await some(1, 2);
      for (const { proxy } of replicas) proxy.resetAfter(null);
    },
    "100 ms to Redis and back": async () => {
      for (const { proxy } of replicas) proxy.roundTrip(100);
      await some(2, 4);
      for (const { proxy } of replicas) proxy.roundTrip(0);
    },
    "Redis is read-only": async () => {
      await redis.command("REPLICAOF", "127.0.0.1", "1");
      await some(0.5, 2);
      await redis.command("REPLICAOF", "NO", "ONE");
    },
    "Redis is out of memory": async () => {
      await redis.command("CONFIG", "SET", "maxmemory", "1");
      await some(0.5, 2);
      await redis.command("CONFIG", "SET", "maxmemory", "0");
    },
    "Redis hangs": async () => {
      redis.hang();
      await some(0.3, 2);
      redis.wake();
    },
    "Redis is killed and started empty": async () => {
      await redis.kill();
      rmSync(join(redis.folder, "dump.rdb"), { force: true });
      await some(0, 1.5);
      await redis.start();
    },
    "Redis is started with an old snapshot": async () => {
      await redis.command("SAVE");
      await some(0.2, 1.5);
      await redis.kill();
      await redis.start();
    },
    "a fifth replica comes and is killed": async () => {
      const fifth = await Replica.start(sandbox, redis);
      for (let n = 0; n < 10; n += 1) {
        void fifth.ask(`/v1/availability?domain=fifth-${(asked += 1)}.af`);
        await some(0.1, 0.2);
      }
      await fifth.close();
    },
  };
  const names = Object.keys(all).filter(only);
  const twoAtOnce = names.length > 1 && only("two at once");
  const queue = Array.from({ length: settings.faults }, (_, n) =>
    twoAtOnce && n % (names.length + 1) === names.length
      ? "two at once"
      : (names[n % (names.length + 1)] ?? ""),
  )
    .filter((name) => name !== "")
    .map((name) => ({ name, order: random() }))
    .sort((a, b) => a.order - b.order);
  async function play(name: string): Promise<void> {
    const pair = TOGETHER[Math.floor(random() * TOGETHER.length)] ?? [];
    const together = name === "two at once" ? pair : [name];
    await Promise.all(together.map(async (each) => all[each]?.()));
  }

  const floods = replicas.map(flood);
  while ((await anyReplica().ask(`/v1/availability?domain=${KNOWN_NAME}`)).status !== 200) await sleep(50);
  for (const replica of replicas)
    while ((await replica.ask(`/v1/availability?domain=${KNOWN_NAME}`)).status !== 200) await sleep(50);
  floods.push(hit());
  await windows(4);
  hits.ms.length = 0;
  const calmUse = await use(() => windows(3));
  const calmHitsMs = hits.ms.splice(0);
  const faults: FaultSeen[] = [];
  for (const { name } of queue) {
    const useDuring = await use(() => play(name));
    await windows(SETTLE_WINDOWS);
    const useAfter = await use(() => windows(1.2));
    faults.push({ fault: name, useDuring, useAfter });
  }
  over.abort();
  await Promise.all(floods);
  const { key } = sandbox.credential();
  const seen = sandbox.stats().credentials.find((one) => one.key === key);
  await Promise.all(replicas.map((replica) => replica.close()));
  await redis.close();
  await sandbox.close();
  return {
    faults,
    calmUse,
    largestWindow: seen?.largestWindow ?? 0,
    rejections: seen?.rejected429 ?? 0,
    calmHitsMs,
    hitsMs: hits.ms,
    hitsFailed: hits.failed,
  };
}

/** Faults that don't undo one another. */
const TOGETHER: readonly (readonly [string, string])[] = [
  ["a replica is killed and started", "Redis hangs"],
  ["a replica is killed and started", "Redis is killed and started empty"],
  ["a replica is cut off from Redis", "a replica is stopped past a window"],
  ["a replica is cut off from Redis", "Redis is started with an old snapshot"],
  ["100 ms to Redis and back", "a replica is killed and started"],
  ["a fifth replica comes and is killed", "a replica is cut off from Redis"],
  ["a fifth replica comes and is killed", "Redis is read-only"],
];

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)] ?? NaN;

/** Prints the table. */
export async function benchFleet({ rounds = FAULTS }: { readonly rounds?: number } = {}): Promise<void> {
  const seen = await fleetThroughFaults({ faults: rounds });
  const names = [...new Set(seen.faults.map(({ fault }) => fault))].sort();
  console.log(
    `\n${REPLICAS} replicas over one Redis through ${seen.faults.length} faults (window ${WINDOW_MS} ms, budget ${BUDGET} of ${LIMIT}, visitors for ${REPLICAS * LOAD} times the budget)`,
  );
  console.log(
    `worst window over all of it: ${seen.largestWindow} of ${BUDGET}; rejections: ${seen.rejections}; use without faults: ${seen.calmUse.toFixed(2)}`,
  );
  console.log(
    table(
      ["fault", "times", "use during", "least use after", "median use after"],
      names.map((name) => {
        const those = seen.faults.filter(({ fault }) => fault === name);
        const after = those.map(({ useAfter }) => useAfter);
        return [
          name,
          String(those.length),
          median(those.map(({ useDuring }) => useDuring)).toFixed(2),
          Math.min(...after).toFixed(2),
          median(after).toFixed(2),
        ];
      }),
    ),
  );
  const ratio = (part: number): string =>
    (quantile(seen.hitsMs, part) / quantile(seen.calmHitsMs, part)).toFixed(2);
  console.log(
    `use: of the budget, in 1.2 windows that begin ${SETTLE_WINDOWS} windows after the fault is over; known names through the faults: ${seen.hitsMs.length} answered, ${seen.hitsFailed} failed, p50 ${ratio(0.5)} and p99 ${ratio(0.99)} times that without faults`,
  );
}
