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
import { HIT, liveAt, startBare, startService } from "./candidates.js";
import { coresInWords, pinned, pinThisProcess } from "./cores.js";
import { load } from "./load.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { startRecorded, type Upstream } from "./recorded.js";
import { type Comparison, interleaved, selected } from "./rounds.js";
import { type Server, temporaryFolder } from "./server.js";
import { figure, median, table } from "./table.js";

interface Kind {
  readonly path: string;
  readonly perSecond: number;
  readonly isolated: boolean;
}

interface Subject {
  readonly name: "bare node:http" | "service";
  readonly server: Server;
  /** Whether it can be stopped while others are measured. */
  readonly pauses: boolean;
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
const PURGE_EVERY_MS = 1000;
const WARM_UP_SECONDS = 6;
/** V8 optimizes the code of calls only after some thousand of them; until then each takes nearly three times the CPU. */
const SETTLE_SECONDS = 90;
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

/** `only` selects scenarios by words in their names. */
export async function benchTail({
  rounds = 5,
  seconds = 5,
  only = "",
  nodes = [THIS_NODE],
}: Comparison): Promise<void> {
  pinThisProcess("load");
  const scenarios = selected(SCENARIOS, only);
  const upstream = await startRecorded();
  for (const node of nodes) {
    const rows = await rowsOf(node, upstream, scenarios, { rounds, seconds });
    console.log(
      `\nLatency of known answers, from the time when each request was due, Node ${node.version}: ${rounds} rounds of ${seconds} s, medians; ${coresInWords()}`,
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
        rows,
      ),
    );
  }
  await upstream.close();
  console.log(
    "if the sender itself was late by milliseconds, the machine was too busy for a result; longest: of all rounds",
  );
}

type Rounds = Readonly<Required<Pick<Comparison, "rounds" | "seconds">>>;

async function rowsOf(
  node: NodeProgram,
  upstream: Upstream,
  scenarios: readonly Scenario[],
  howLong: Rounds,
): Promise<string[][]> {
  const rows: string[][] = [];
  const bare = await bareOn(node);
  const ordinary = await serviceOn(node, upstream);
  const renewing = scenarios.filter(({ renewsPrices }) => renewsPrices === true);
  if (renewing.length < scenarios.length) await settle(ordinary);
  for (const scenario of scenarios.filter((one) => !renewing.includes(one)))
    rows.push(...(await compared(scenario, bare, ordinary, howLong)));
  const prices = await pricesOf(ordinary);
  await ordinary.server.stop();

  // Only now, because it can't be paused: afterwards it would have to renew all its prices.
  if (renewing.length > 0) {
    const service = await serviceOn(node, upstream, prices);
    await settle(service);
    for (const scenario of renewing) rows.push(...(await compared(scenario, bare, service, howLong)));
    await service.server.stop();
  }
  await bare.server.stop();
  return rows;
}

/** One row each, after rounds in turn. */
async function compared(
  { name, kinds, purges }: Scenario,
  bare: Subject,
  service: Subject,
  { rounds, seconds }: Rounds,
): Promise<string[][]> {
  const reports = new Map([bare, service].map((subject) => [subject, [] as Report[]]));
  for (const subject of interleaved(rounds, [bare, service])) {
    subject.server.thaw();
    await load(subject.server.port, HIT, THAW_SECONDS);
    if (kinds.includes(REFUSED) && subject === service) await ask(subject.server, [REFUSED], SPEND_SECONDS);
    const { purge } = subject;
    const timer = purges === true && purge ? setInterval(() => void purge(), PURGE_EVERY_MS) : undefined;
    const report = await ask(subject.server, kinds, seconds);
    clearInterval(timer);
    if (report.lost > 0 || report.others > 0)
      throw new Error(`${report.lost} requests weren't answered, ${report.others} answers weren't 200`);
    reports.get(subject)?.push(report);
    await sleep(200);
    if (subject.pauses) subject.server.freeze();
  }
  return [...reports].map(([subject, own]) => row(name, subject.name, own, reports.get(bare) ?? []));
}

async function bareOn(node: NodeProgram): Promise<Subject> {
  const server = await startBare(node);
  await warmUp(server);
  server.freeze();
  return { name: "bare node:http", server, pauses: true, purge: null };
}

/** Given the number of its prices, it renews one every second. */
async function serviceOn(node: NodeProgram, upstream: Upstream, prices?: number): Promise<Subject> {
  const token = randomBytes(24).toString("base64url");
  const renewals = prices === undefined ? 0 : 1;
  const env = {
    ...liveAt(upstream),
    STAFF_TOKENS: `bench:${createHash("sha256").update(token).digest("hex")}:operate`,
    UPSTREAM_RATE_LIMIT: String(60 * (CALLS_PER_SECOND + renewals) + 3),
    ...(prices !== undefined && { CACHE_CONFIG: configWithPricesFreshFor(prices * 1000) }),
  };
  const server = await startService({ env, node });
  await warmUp(server);
  if (prices === undefined) server.freeze();
  const purge = async (): Promise<void> => {
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await server.ask({ path: "/v1/staff/cache/purge", headers, body: { what: "prices" } });
    if (answer.status !== 200) throw new Error(`the purge was answered with ${answer.status}`);
  };
  return { name: "service", server, pauses: prices === undefined, purge };
}

async function settle({ server, pauses }: Subject): Promise<void> {
  server.thaw();
  await ask(server, [hits(500), REFUSED, newConnections], SETTLE_SECONDS);
  if (pauses) server.freeze();
}

async function pricesOf({ server }: Subject): Promise<number> {
  server.thaw();
  const { body } = await server.firstAnswer({ path: "/v1/prices" }, 200);
  const { prices } = z.object({ prices: z.array(z.unknown()) }).parse(JSON.parse(String(body)));
  return prices.length;
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
