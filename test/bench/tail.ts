/**
 * `npm run bench -- tail`: how long the slowest visitors wait for a known answer while the service refuses others, compared with a bare node:http
 * server that gets as many requests of each kind in the same run. The quota is the usual one, 57 calls a minute.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { HIT, startBare, startService } from "./candidates.js";
import { coresInWords, pinned, pinThisProcess } from "./cores.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type Comparison, interleaved, selected } from "./rounds.js";
import type { Server } from "./server.js";
import { figure, median, table } from "./table.js";

interface Kind {
  readonly path: string;
  readonly perSecond: number;
  /** Each on a connection of its own. */
  readonly isolated: boolean;
}

interface Scenario {
  readonly name: string;
  /** The first kind is measured. */
  readonly kinds: readonly Kind[];
}

const hits = (perSecond: number): Kind => ({ path: HIT.path, perSecond, isolated: false });
const REFUSED: Kind = { path: "/v1/availability?domain=tail-{n}.af", perSecond: 500, isolated: false };
const NEW_CONNECTIONS: Kind = { path: HIT.path, perSecond: 50, isolated: true };
const SCENARIOS: readonly Scenario[] = [
  { name: "500 hits a second", kinds: [hits(500)] },
  { name: "2,000 hits a second", kinds: [hits(2000)] },
  { name: "500 beside 50 new connections", kinds: [hits(500), NEW_CONNECTIONS] },
  { name: "500 beside 500 refused new names", kinds: [hits(500), REFUSED] },
];

/** V8 fully optimizes a code path only after some ten thousand requests. */
const SETTLE_SECONDS = 30;
/** After the other one's turn, a server is no longer in the CPU's caches, and the service makes the calls that its quota has meanwhile. */
const RESUME_SECONDS = 1;

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
  for (const node of nodes) {
    const rows = await rowsOf(node, selected(SCENARIOS, only), rounds, seconds);
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
  console.log(
    "if the sender itself was late by milliseconds, the machine was too busy for a result; longest: of all rounds",
  );
}

async function rowsOf(
  node: NodeProgram,
  scenarios: readonly Scenario[],
  rounds: number,
  seconds: number,
): Promise<string[][]> {
  const bare = await startBare(node);
  const service = await startService({ node });
  for (const server of [bare, service]) {
    await server.firstAnswer(HIT, 200);
    await ask(server, [hits(500), REFUSED, NEW_CONNECTIONS], SETTLE_SECONDS);
  }
  const rows: string[][] = [];
  for (const { name, kinds } of scenarios) {
    const reports = new Map([bare, service].map((server) => [server, [] as Report[]]));
    for (const server of interleaved(rounds, [bare, service])) {
      await ask(server, kinds, RESUME_SECONDS);
      const report = await ask(server, kinds, seconds);
      if (report.lost > 0 || report.others > 0)
        throw new Error(`${report.lost} requests weren't answered, ${report.others} answers weren't 200`);
      reports.get(server)?.push(report);
    }
    const ofBare = reports.get(bare) ?? [];
    rows.push(
      row(name, "bare node:http", ofBare, ofBare),
      row(name, "service", reports.get(service) ?? [], ofBare),
    );
  }
  await Promise.all([bare.stop(), service.stop()]);
  return rows;
}

function row(load: string, server: string, reports: readonly Report[], bare: readonly Report[]) {
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
