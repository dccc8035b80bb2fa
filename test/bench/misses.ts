/**
 * `npm run bench -- misses`: what a new name costs the service at small and large upstream limits, and how many a second it can serve.
 * The upstream is a sandbox on the load's core.
 */
import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { liveAt, startService, startUpstream } from "./candidates.js";
import { coresInWords, pinThisProcess } from "./cores.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type Comparison, interleaved } from "./rounds.js";
import type { Server } from "./server.js";
import { figure, median, table } from "./table.js";

/** All limits allow at least this many a second. */
const PER_SECOND = 40;
const SECONDS = 5;
const WARM_UP_SECONDS = 8;
/** How many clients ask as fast as they are answered. */
const CLIENTS = 8;
/** Long enough that all slots of a minute have been used once. */
const FULL_TABLE_SECONDS = 65;

interface Limit {
  readonly name: string;
  readonly limit: number;
  readonly windowMs: number;
}

const LIMITS: readonly Limit[] = [
  { name: "60 a second", limit: 60, windowMs: 1000 },
  { name: "6,000 a minute", limit: 6000, windowMs: 60_000 },
  { name: "100,000 a minute", limit: 100_000, windowMs: 60_000 },
];

interface Subject extends Limit {
  readonly node: NodeProgram;
  readonly server: Server;
  readonly cpuMs: number[];
  /** Answers per second with a full slot table; null if the limit would determine it. */
  perSecond: number | null;
}

export async function benchMisses({ rounds = 5, nodes = [THIS_NODE] }: Comparison): Promise<void> {
  pinThisProcess("load");
  const sandbox = await startUpstream();
  const subjects: Subject[] = [];
  for (const node of nodes) for (const limit of LIMITS) subjects.push(await start(node, limit, sandbox));
  for (const subject of interleaved(rounds, subjects)) {
    subject.server.thaw();
    await sleep(500);
    subject.cpuMs.push(await cpuOf(subject.server));
    subject.server.freeze();
  }
  for (const subject of subjects.filter(({ limit }) => limit === 100_000)) {
    subject.server.thaw();
    await atFullSpeed(subject.server, FULL_TABLE_SECONDS);
    subject.perSecond = await atFullSpeed(subject.server, SECONDS);
    subject.server.freeze();
  }
  for (const { server } of subjects) await server.stop();
  await sandbox.close();

  for (const node of nodes) {
    const own = subjects.filter((subject) => subject.node === node);
    const first = median(own[0]?.cpuMs ?? []);
    console.log(
      `\nNew names, Node ${node.version}: ${PER_SECOND} a second, medians of ${rounds} rounds of ${SECONDS} s; ${coresInWords()}`,
    );
    console.log(
      table(
        ["upstream's limit", "CPU ms each", "× first", "a second at most"],
        own.map(({ name, cpuMs, perSecond }) => [
          name,
          figure(median(cpuMs)),
          figure(median(cpuMs) / first),
          figure(perSecond ?? NaN),
        ]),
      ),
    );
  }
}

async function start(node: NodeProgram, limit: Limit, sandbox: Sandbox): Promise<Subject> {
  const env = {
    ...liveAt(sandbox),
    UPSTREAM_RATE_LIMIT: String(limit.limit),
    UPSTREAM_RATE_WINDOW_MS: String(limit.windowMs),
  };
  const server = await startService({ env, node });
  await server.firstAnswer({ path: "/livez" }, 200);
  // The price list is loaded in the meantime.
  await atFixedRate(server, WARM_UP_SECONDS);
  server.freeze();
  return { ...limit, node, server, cpuMs: [], perSecond: null };
}

/** CPU milliseconds for one new name, without what the service uses when idle. */
async function cpuOf(server: Server): Promise<number> {
  const spent = (): number => server.usage().cpuMicroseconds / 1000;
  const idleFrom = spent();
  await sleep(SECONDS * 1000);
  const from = spent();
  const asked = await atFixedRate(server, SECONDS);
  return (spent() - from - (from - idleFrom)) / asked;
}

/** Asks for new names at times that don't depend on the answers, and returns how many. */
async function atFixedRate(server: Server, seconds: number): Promise<number> {
  const startedAt = performance.now();
  const asked: Promise<void>[] = [];
  while (asked.length < seconds * PER_SECOND) {
    await sleep(startedAt + (asked.length * 1000) / PER_SECOND - performance.now());
    asked.push(newName(server));
  }
  await Promise.all(asked);
  return asked.length;
}

/** Answers per second to clients that ask again immediately, each on one connection. */
async function atFullSpeed(server: Server, seconds: number): Promise<number> {
  const agent = new Agent({ keepAlive: true });
  let answered = 0;
  const until = performance.now() + seconds * 1000;
  const ask = async (): Promise<void> => {
    while (performance.now() < until) {
      await newName(server, agent);
      answered += 1;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, ask));
  agent.destroy();
  return answered / seconds;
}

async function newName(server: Server, agent?: Agent): Promise<void> {
  const { status } = await server.ask({ path: "/v1/availability?domain=new-{n}.af" }, agent);
  if (status !== 200) throw new Error(`a new name was answered with ${status}`);
}
