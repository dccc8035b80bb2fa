/**
 * `npm run bench -- fleet [--rounds N] [--seconds S]`: four processes of the service over a real Redis, asked for more new names than the budget
 * allows, go through N faults (300) in random order, one or two at a time, with a window of S seconds (8). The sandbox counts calls strictly.
 * Four such fleets share the faults: one is asked directly, two are behind nginx, and one has its Redis behind Sentinel.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Agent } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { timesOf } from "../../src/quota/ledger/protocol.js";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { type Balance, startNginx } from "../support/nginx.js";
import { startPeer } from "./candidates.js";
import { ask, Replica } from "./fleet-replica.js";
import { type Faults, oneRedis, redisBehindSentinel, type SharedRedis } from "./fleet-redis.js";
import { selected } from "./rounds.js";
import { median, table } from "./table.js";
import { upstreamAt } from "../support/upstream.js";

const LIMIT = 60;
const BUDGET = 57;
const SHORT_WINDOW_MS = 5000;
/** In a shorter window, delays of seconds, such as noticing a fault, weigh more than in the real window of a minute. */
const BENCH_WINDOW_MS = 8000;
const REPLICAS = 4;
const FAULTS = 300;
/** From the end of a fault until the measured window. By then, slots whose use is unknown have rested. */
const SETTLE_WINDOWS = 1.8;
/** If less of the budget is used after a fault, its samples are printed. */
const NORMAL_USE = 0.85;
const SAMPLE_EVERY_MS = 250;
const CALM_WINDOWS = 3;
/** More would overload two cores, and the benchmark would measure the machine. */
const FLEETS_AT_ONCE = 2;
/** For a run with many faults, in which the latency of known names is compared with that without faults. */
const LONG_CALM_WINDOWS = 12;
/** Visitors of each replica, as a multiple of the whole budget. */
const LOAD = 0.5;
/** Visitors retry at the time in Retry-After, and give up after this many attempts. */
const MAX_ATTEMPTS = 3;
const CALL_TIMEOUT_MS = 500;
const KNOWN_NAME = "google.af";

/** What was observed during a fault and after it. */
export interface FaultSeen {
  readonly fault: string;
  /** The share of the budget that was used during the fault, and in a window after it. */
  readonly useDuring: number;
  readonly useAfter: number;
  /** Several times a second from the end of the fault: calls, refused visitors, and the slot table. */
  readonly samples: readonly string[];
}

/** In milliseconds, without faults and during them. */
interface Latencies {
  readonly calm: readonly number[];
  readonly duringFaults: readonly number[];
}

export interface FleetSeen {
  readonly faults: readonly FaultSeen[];
  readonly calmUse: number;
  readonly largestWindow: number;
  /** The faults during or after which the largest window grew beyond the budget, each with the size of that window. */
  readonly exceededBy: readonly string[];
  /** The longest time for which the sandbox, which runs in this process, couldn't take calls. */
  readonly sandboxLagMs: number;
  readonly rejections: number;
  /** The latencies of known names, and of a bare node:http server that is asked in alternation with them and shows the effect of the machine. */
  readonly hits: Latencies;
  readonly bare: Latencies;
  /** The status (0: no answer) and the fault of each failed request for a known name. */
  readonly hitsFailed: readonly string[];
}

export interface FleetFaultsSettings {
  readonly faults: number;
  /** The upstream's window. Delays of seconds, such as noticing a fault, weigh more in a shorter one. */
  readonly windowMs?: number;
  readonly random?: () => number;
  /** How many windows are measured before the first fault (3). At most as many pass before that, until the use is normal and the code is compiled. */
  readonly calmWindows?: number;
  /** Which faults to play, by name. */
  readonly only?: (fault: string) => boolean;
  /** Default: one server, which each replica reaches over its own network. */
  readonly startRedis?: () => Promise<SharedRedis>;
  /** How nginx distributes requests for new names. By default, visitors ask the replicas directly. */
  readonly behindNginx?: Balance;
  /** Called after each fault. */
  readonly onFault?: (seen: FaultSeen) => void;
}

export const FLEET_BUDGET = BUDGET;

/** Plays the faults one after another and returns what was observed. */
export async function fleetThroughFaults(settings: FleetFaultsSettings): Promise<FleetSeen> {
  const { random = Math.random, only = () => true, startRedis = oneRedis, behindNginx } = settings;
  const { windowMs = SHORT_WINDOW_MS, calmWindows = CALM_WINDOWS, onFault = () => {} } = settings;
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs },
    latency: { jitterMs: 0.01 * windowMs },
  });
  const redis = await startRedis();
  const { occupiedMs } = timesOf(windowMs, CALL_TIMEOUT_MS);
  const stateDir = mkdtempSync(join(tmpdir(), "bench-state-"));
  const startReplica = (redisUrl: string): Promise<Replica> =>
    Replica.start({
      ...upstreamAt(sandbox),
      UPSTREAM_RATE_LIMIT: String(LIMIT),
      UPSTREAM_RATE_WINDOW_MS: String(windowMs),
      UPSTREAM_TIMEOUT_MS: String(CALL_TIMEOUT_MS),
      QUOTA_MAX_WAIT_MS: "1000",
      REDIS_URL: redisUrl,
      REPLICAS_MAX: String(REPLICAS),
      STATE_DIR: stateDir,
      CLIENT_RATE_PER_MINUTE: "1000000",
      CLIENT_COLD_PER_MINUTE: "1000000",
      TRUST_PROXY_HOPS: behindNginx === undefined ? "1" : "2",
      LOG_LEVEL: "error",
    });
  const replicas = await Promise.all(
    Array.from({ length: REPLICAS }, async () => startReplica((await redis.connect()).url)),
  );
  const nginx =
    behindNginx === undefined
      ? null
      : await startNginx(
          replicas.map(({ port }) => port),
          behindNginx,
        );
  const proxy = nginx === null ? null : { port: nginx.port, agent: new Agent({ keepAlive: true }) };
  const stop = new AbortController();
  const windows = (count: number): Promise<void> => sleep(count * windowMs);
  const pause = (from: number, to: number): Promise<void> => windows(from + random() * (to - from));
  const anyReplica = (): Replica => {
    const replica = replicas[Math.floor(random() * REPLICAS)];
    if (replica === undefined) throw new Error("there is no replica");
    return replica;
  };

  const bareServer = await startPeer("bare.mjs", { core: "any" });
  const bareAt = { port: bareServer.port, agent: new Agent({ keepAlive: true }) };
  let hitsMs: number[] = [];
  let bareMs: number[] = [];
  const hitsFailed: string[] = [];
  let currentFault = "no fault";
  let asked = 0;
  let refused = 0;
  /** Asks for a new name, and retries at the time in Retry-After. */
  async function visit(replica: Replica): Promise<void> {
    asked += 1;
    const from = `10.${asked >> 16}.${(asked >> 8) & 255}.${asked & 255}`;
    const path = `/v1/availability?domain=fleet-${asked}.af`;
    for (let attempts = 0; attempts < MAX_ATTEMPTS && !stop.signal.aborted; attempts += 1) {
      const { status, retryAfterMs } = await (proxy === null
        ? replica.ask(path, from)
        : ask(proxy, path, from));
      if (status !== 503 || Number.isNaN(retryAfterMs)) return;
      refused += 1;
      await sleep(retryAfterMs);
    }
  }
  async function flood(replica: Replica): Promise<void> {
    const visits = new Set<Promise<unknown>>();
    while (!stop.signal.aborted) {
      const one: Promise<unknown> = visit(replica).then(() => visits.delete(one));
      visits.add(one);
      await sleep((windowMs / (LOAD * BUDGET)) * (0.5 + random()));
    }
    await Promise.all(visits);
  }
  async function hit(): Promise<void> {
    while (!stop.signal.aborted) {
      const replica = anyReplica();
      const { isUp, interruptions } = replica;
      const { status, tookMs } = await replica.ask(`/v1/availability?domain=${KNOWN_NAME}`);
      if (isUp && replica.interruptions === interruptions) {
        if (status === 200) hitsMs.push(tookMs);
        else if (replica.hasAnswered) hitsFailed.push(`${status}: ${currentFault}`);
        replica.hasAnswered ||= status === 200;
      }
      bareMs.push((await ask(bareAt, "/")).tookMs);
      await sleep(50);
    }
  }
  const record = () => sandbox.stats().credentials.find((one) => one.key === sandbox.credential().key);
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const accepted = (): number => sandbox.stats().credentials.reduce((sum, one) => sum + one.accepted, 0);
  let samples: string[] = [];
  let sampledFrom = performance.now();
  async function sample(): Promise<void> {
    while (!stop.signal.aborted) {
      const before = accepted();
      refused = 0;
      await sleep(SAMPLE_EVERY_MS);
      const seconds = ((performance.now() - sampledFrom) / 1000).toFixed(2);
      const calls = `${accepted() - before} calls, ${refused} refused`;
      const slots = await Promise.race([redis.slots(occupiedMs), sleep(SAMPLE_EVERY_MS).then(() => "")]);
      samples.push(`  ${seconds} s: ${calls}; ${slots}`);
    }
  }
  async function use(act: () => Promise<void>): Promise<number> {
    const [before, startedMs] = [accepted(), performance.now()];
    await act();
    return (accepted() - before) / ((BUDGET * (performance.now() - startedMs)) / windowMs);
  }

  const all: Faults = {
    "a replica is killed and started": async () => {
      const replica = anyReplica();
      await replica.kill();
      await pause(0, 1);
      await replica.start();
    },
    "a replica is stopped past a window": async () => {
      const replica = anyReplica();
      replica.stop();
      await pause(1.1, 2);
      replica.wake();
    },
    "a fifth replica comes and is killed": async () => {
      const link = await redis.connect();
      const fifth = await startReplica(link.url);
      for (let n = 0; n < 10; n += 1) {
        void fifth.ask(`/v1/availability?domain=fifth-${(asked += 1)}.af`);
        await pause(0.1, 0.2);
      }
      await fifth.close();
      await link.close();
    },
    ...redis.faults(pause, random),
  };
  const pairs = TOGETHER.filter((pair) => pair.every((each) => each in all));
  const together = new Map(
    [...Object.keys(all).map((each) => [each]), ...pairs].map((faults) => [faults.join(" + "), faults]),
  );
  const names = [...together.keys()].filter(only);
  const queue = Array.from({ length: settings.faults }, (_, n) => names[n % names.length] ?? "")
    .map((name) => ({ name, order: random() }))
    .sort((a, b) => a.order - b.order);
  async function play(name: string): Promise<void> {
    await Promise.all((together.get(name) ?? []).map(async (each) => all[each]?.()));
  }

  const floods = replicas.map(flood);
  while ((await anyReplica().ask(`/v1/availability?domain=${KNOWN_NAME}`)).status !== 200) await sleep(50);
  for (const replica of replicas)
    while ((await replica.ask(`/v1/availability?domain=${KNOWN_NAME}`)).status !== 200) await sleep(50);
  floods.push(hit(), sample());
  await windows(4);
  for (let n = 0; n < calmWindows && (await use(() => windows(1))) < NORMAL_USE; n += 1);
  [hitsMs, bareMs] = [[], []];
  const calmUse = await use(() => windows(calmWindows));
  const [calmHitsMs, calmBareMs] = [hitsMs, bareMs];
  [hitsMs, bareMs] = [[], []];
  const faults: FaultSeen[] = [];
  const exceededBy: string[] = [];
  let largest = BUDGET;
  for (const { name } of queue) {
    currentFault = name;
    const useDuring = await use(() => play(name));
    samples = [];
    sampledFrom = performance.now();
    await windows(SETTLE_WINDOWS);
    const useAfter = await use(() => windows(1));
    const one = { fault: name, useDuring, useAfter, samples };
    faults.push(one);
    onFault(one);
    const { largestWindow = 0 } = record() ?? {};
    if (largestWindow > largest) exceededBy.push(`${name}: ${(largest = largestWindow)}`);
  }
  stop.abort();
  await Promise.all(floods);
  const seen = record();
  lag.disable();
  proxy?.agent.destroy();
  bareAt.agent.destroy();
  await bareServer.stop();
  await nginx?.close();
  await Promise.all(replicas.map((replica) => replica.close()));
  await redis.close();
  await sandbox.close();
  rmSync(stateDir, { recursive: true });
  return {
    faults,
    calmUse,
    largestWindow: seen?.largestWindow ?? 0,
    exceededBy,
    sandboxLagMs: lag.max / 1e6,
    rejections: seen?.rejected429 ?? 0,
    hits: { calm: calmHitsMs, duringFaults: hitsMs },
    bare: { calm: calmBareMs, duringFaults: bareMs },
    hitsFailed,
  };
}

/** Faults that don't undo one another, played at once. */
const TOGETHER: readonly (readonly [string, string])[] = [
  ["a replica is killed and started", "Redis hangs"],
  ["a replica is killed and started", "Redis is killed and started empty"],
  ["a replica is cut off from Redis", "a replica is stopped past a window"],
  ["a replica is cut off from Redis", "Redis is started with an old snapshot"],
  ["100 ms to Redis and back", "a replica is killed and started"],
  ["a fifth replica comes and is killed", "a replica is cut off from Redis"],
  ["a fifth replica comes and is killed", "Redis is read-only"],
  ["a replica is killed and started", "the master is killed, and comes back after the failover"],
  ["a replica is stopped past a window", "the master hangs, and wakes after the failover"],
];

const quantile = (values: readonly number[], part: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) * part)] ?? NaN;

const FLEETS: readonly { readonly name: string; readonly settings: Omit<FleetFaultsSettings, "faults"> }[] = [
  { name: "asked directly", settings: {} },
  { name: "behind nginx, round robin", settings: { behindNginx: "round robin" } },
  { name: "behind nginx, least connections", settings: { behindNginx: "least connections" } },
  { name: "Redis behind Sentinel", settings: { startRedis: redisBehindSentinel } },
];

/** Prints the tables of each fleet; `only` selects by words in their names. The fleets share the rounds. */
export async function benchFleet({
  rounds = FAULTS,
  seconds = BENCH_WINDOW_MS / 1000,
  only = "",
}: { readonly rounds?: number; readonly seconds?: number; readonly only?: string } = {}): Promise<void> {
  const fleets = selected(FLEETS, only);
  const faults = Math.ceil(rounds / fleets.length);
  const windowMs = 1000 * seconds;
  async function playNext(): Promise<void> {
    const next = fleets.shift();
    if (next === undefined) return;
    const { name, settings } = next;
    let played = 0;
    const onFault = ({ fault, useDuring, useAfter, samples }: FaultSeen): void => {
      const use = `use ${useDuring.toFixed(2)}, afterwards ${useAfter.toFixed(2)}`;
      console.error(`${name}: ${(played += 1)}. ${fault}: ${use}`);
      if (useAfter < NORMAL_USE) console.error(samples.join("\n"));
    };
    const through = { faults, windowMs, calmWindows: LONG_CALM_WINDOWS, onFault, ...settings };
    print(name, windowMs, await fleetThroughFaults(through));
    await playNext();
  }
  await Promise.all(Array.from({ length: FLEETS_AT_ONCE }, playNext));
}

function print(fleet: string, windowMs: number, seen: FleetSeen): void {
  const names = [...new Set(seen.faults.map(({ fault }) => fault))].sort();
  console.log(
    `\n${REPLICAS} replicas, ${fleet}, through ${seen.faults.length} faults (window ${windowMs} ms, budget ${BUDGET} of ${LIMIT}, visitors at ${REPLICAS * LOAD} times the budget)`,
  );
  console.log(
    `largest window of the whole run: ${seen.largestWindow} of ${BUDGET}; rejections: ${seen.rejections}; use without faults: ${seen.calmUse.toFixed(2)}; longest delay of the sandbox: ${seen.sandboxLagMs.toFixed(0)} ms${seen.exceededBy.length > 0 ? `; exceeded in ${seen.exceededBy.join(", ")}` : ""}`,
  );
  console.log(
    table(
      ["fault", "times", "use during", "lowest use after", "median use after"],
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
  console.log(
    `use: share of the budget; after: in the window that begins ${SETTLE_WINDOWS} windows after the end of the fault; ${seen.hitsFailed.length} requests for known names failed (${[...new Set(seen.hitsFailed)].join(", ")})`,
  );
  console.log(
    table(
      [
        "asked in alternation",
        "answered",
        "p50 ms, no fault",
        "during faults",
        "p99 ms, no fault",
        "during faults",
      ],
      [latencyRow("known names", seen.hits), latencyRow("bare node:http", seen.bare)],
    ),
  );
}

function latencyRow(name: string, { calm, duringFaults }: Latencies): string[] {
  const figures = [0.5, 0.99].flatMap((part) => [quantile(calm, part), quantile(duringFaults, part)]);
  return [name, String(duringFaults.length), ...figures.map((ms) => ms.toFixed(2))];
}
