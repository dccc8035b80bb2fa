/**
 * `npm run bench -- tail`: how long the slowest visitors wait for a known answer while the service refuses others, looks up new names and
 * renews prices, compared with a bare node:http server that gets as many requests of each kind in the same run.
 */
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import { HIT, liveAt, startPeer, startService, startUpstream } from "./candidates.js";
import { coresInWords, pinned, pinThisProcess } from "./cores.js";
import { load } from "./load.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type Comparison, interleaved } from "./rounds.js";
import { type Server, temporaryFolder } from "./server.js";
import { figure, median, table } from "./table.js";

interface Kind {
  readonly path: string;
  readonly perSecond: number;
  readonly isolated: boolean;
}

/** Bare node:http or the service, on one Node. */
interface Subject {
  readonly node: NodeProgram;
  readonly name: "bare node:http" | "service";
  readonly server: Server;
  /** Whether one of its prices must be renewed every second. */
  readonly renewsPrices: boolean;
  /** Purges the prices, which are then loaded again; null for a server without prices. */
  readonly purge: (() => Promise<void>) | null;
}

interface Scenario {
  readonly name: string;
  /** The first kind is measured. */
  readonly kinds: readonly Kind[];
  readonly renewsPrices?: boolean;
  readonly purges?: boolean;
}

/** The quota of the service, per second. */
const CALLS_PER_SECOND = 20;
const REFUSED_PER_SECOND = 500;
/** The prices of the sandbox's list. */
const PRICES = 28;
const PURGE_EVERY_MS = 1000;
const WARM_UP_SECONDS = 6;
/** A server that was stopped is no longer in the CPU's caches. */
const THAW_SECONDS = 1;
/** How long new names are requested to use up the remaining quota. */
const SPEND_SECONDS = 3;

const hits = (perSecond: number): Kind => ({ path: HIT.path, perSecond, isolated: false });
const names = (perSecond: number): Kind => ({
  path: "/v1/availability?domain=tail-{n}.af",
  perSecond,
  isolated: false,
});
const newConnections: Kind = { path: HIT.path, perSecond: 50, isolated: true };

const MISSES = names(CALLS_PER_SECOND / 2);
const REFUSED = names(CALLS_PER_SECOND + REFUSED_PER_SECOND);
const SCENARIOS: readonly Scenario[] = [
  { name: "500 hits a second alone", kinds: [hits(500)] },
  { name: "2,000 hits a second alone", kinds: [hits(2000)] },
  { name: "500 beside 10 misses", kinds: [hits(500), MISSES] },
  { name: "500 beside 50 new connections", kinds: [hits(500), newConnections] },
  { name: "500 beside a price renewal", kinds: [hits(500)], renewsPrices: true },
  { name: "500 beside a purge of all prices", kinds: [hits(500)], purges: true },
  { name: "500 beside 20 misses and 500 refused", kinds: [hits(500), REFUSED] },
  {
    name: "500 beside all of it but the purge",
    kinds: [hits(500), REFUSED, newConnections],
    renewsPrices: true,
  },
];

const OPEN_LOOP = fileURLToPath(new URL("open-loop.js", import.meta.url));
const run = promisify(execFile);

const reportSchema = z.object({
  /** Requests without an answer. */
  lost: z.number(),
  /** Answers other than 200. */
  others: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  p999Ms: z.number(),
  longestMs: z.number(),
  /** How late the sender itself was. */
  lateP99Ms: z.number(),
});
type Report = Readonly<z.infer<typeof reportSchema>>;

/** `only` selects the scenarios whose names contain it. */
export async function benchTail({
  rounds = 5,
  seconds = 5,
  only = "",
  nodes = [THIS_NODE],
}: Comparison): Promise<void> {
  pinThisProcess("load");
  const sandbox = await startUpstream();
  const subjects: Subject[] = [];
  for (const node of nodes) {
    subjects.push(await bareOn(node));
    for (const renewsPrices of [false, true]) subjects.push(await serviceOn(node, sandbox, renewsPrices));
  }
  for (const subject of subjects) pauseIfPossible(subject);

  const rows = new Map(nodes.map((node) => [node, [] as string[][]]));
  for (const scenario of SCENARIOS.filter(({ name }) => name.includes(only))) {
    const compared = subjects.filter(
      ({ name, renewsPrices }) =>
        name === "bare node:http" || renewsPrices === (scenario.renewsPrices === true),
    );
    const reports = new Map(compared.map((subject) => [subject, [] as Report[]]));
    for (const subject of interleaved(rounds, compared)) {
      subject.server.thaw();
      await load(subject.server.port, HIT, THAW_SECONDS);
      if (scenario.kinds.includes(REFUSED) && subject.name === "service")
        await ask(subject.server, [REFUSED], SPEND_SECONDS);
      const timer =
        scenario.purges === true && subject.purge
          ? setInterval(() => void subject.purge?.(), PURGE_EVERY_MS)
          : undefined;
      const report = await ask(subject.server, scenario.kinds, seconds);
      clearInterval(timer);
      if (report.lost > 0 || report.others > 0)
        throw new Error(`${report.lost} requests weren't answered, ${report.others} answers weren't 200`);
      reports.get(subject)?.push(report);
      await sleep(200);
      pauseIfPossible(subject);
    }
    for (const [subject, own] of reports) {
      const bare = subjects.find(({ name, node }) => name === "bare node:http" && node === subject.node);
      rows.get(subject.node)?.push(row(scenario.name, subject.name, own, (bare && reports.get(bare)) ?? []));
    }
  }
  for (const { server } of subjects) await server.stop();
  await sandbox.close();

  for (const [{ version }, ofNode] of rows) {
    console.log(
      `\nLatency of known answers, from the time when each request was due, Node ${version}: ${rounds} rounds of ${seconds} s, medians; ${coresInWords()}`,
    );
    console.log(
      table(
        [
          "load",
          "server",
          "p50 ms",
          "p99 ms",
          "p99.9 ms",
          "longest ms",
          "p99 × bare",
          "sender's delay, p99 ms",
        ],
        ofNode,
      ),
    );
  }
  console.log(
    "if the sender itself was late by milliseconds, the machine was too busy for a result; longest: of all rounds",
  );
}

async function bareOn(node: NodeProgram): Promise<Subject> {
  const server = await startPeer("bare.mjs", { node });
  await warmUp(server);
  return { node, name: "bare node:http", server, renewsPrices: false, purge: null };
}

/** Its upstream runs on the load's core. */
async function serviceOn(node: NodeProgram, sandbox: Sandbox, renewsPrices: boolean): Promise<Subject> {
  const token = randomBytes(24).toString("base64url");
  const env = {
    ...liveAt(sandbox),
    STAFF_TOKENS: `bench:${createHash("sha256").update(token).digest("hex")}:operate`,
    UPSTREAM_RATE_LIMIT: String(60 * (CALLS_PER_SECOND + (renewsPrices ? 1 : 0)) + 3),
    ...(renewsPrices && { CACHE_CONFIG: configWithPricesFreshFor(PRICES * 1000) }),
  };
  const server = await startService({ env, node });
  await warmUp(server);
  const purge = async (): Promise<void> => {
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await server.ask({ path: "/v1/staff/cache/purge", headers, body: { what: "prices" } });
    if (answer.status !== 200) throw new Error(`the purge was answered with ${answer.status}`);
  };
  return { node, name: "service", server, renewsPrices, purge };
}

function configWithPricesFreshFor(ms: number): string {
  const text = readFileSync("config/cache.yaml", "utf8");
  const changed = text.replace(/^(prices: .*freshMs: )\d+/m, `$1${ms}`);
  if (changed === text) throw new Error("config/cache.yaml doesn't say how long prices are fresh");
  const file = join(temporaryFolder(), "cache.yaml");
  writeFileSync(file, changed);
  return file;
}

async function warmUp(server: Server): Promise<void> {
  await server.firstAnswer(HIT, 200);
  await load(server.port, HIT, WARM_UP_SECONDS);
}

/** So that it takes no time from the others. One that renews a price every second would have to renew them all afterwards, so it goes on. */
function pauseIfPossible({ server, renewsPrices }: Subject): void {
  if (!renewsPrices) server.freeze();
}

function row(load: string, server: Subject["name"], reports: readonly Report[], bare: readonly Report[]) {
  const of = (what: keyof Report, from = reports): number => median(from.map((report) => report[what]));
  return [
    load,
    server,
    figure(of("p50Ms")),
    figure(of("p99Ms")),
    figure(of("p999Ms")),
    figure(Math.max(...reports.map(({ longestMs }) => longestMs))),
    figure(of("p99Ms") / of("p99Ms", bare)),
    figure(of("lateP99Ms")),
  ];
}

async function ask(server: Server, kinds: readonly Kind[], seconds: number): Promise<Report> {
  const job = JSON.stringify({ port: server.port, seconds, kinds });
  const [program = "", ...args] = pinned("load", [process.execPath, OPEN_LOOP, job]);
  return reportSchema.parse(JSON.parse((await run(program, args)).stdout));
}
