/**
 * `npm run bench -- tail`: how long the slowest visitors wait for a known answer while the service refuses others, compared with a bare node:http
 * server that gets as many requests of each kind in the same run. The quota is the usual one, 57 calls a minute.
 */
import { openLoop } from "./open-loop.js";
import { CORES_IN_WORDS, HIT, pinThisProcess, startBare, startService } from "./servers.js";
import { figure, interleaved, median, type Options, selected, table } from "./table.js";

type Report = Awaited<ReturnType<typeof openLoop>>;

const hits = (perSecond: number) => ({ path: HIT.path, perSecond, isolated: false });
const REFUSED = { path: "/v1/availability?domain=tail-{n}.af", perSecond: 500, isolated: false };
const NEW_CONNECTIONS = { path: HIT.path, perSecond: 50, isolated: true };
/** The first kind of each is measured. */
const SCENARIOS = [
  { name: "500 hits a second", kinds: [hits(500)] },
  { name: "2,000 hits a second", kinds: [hits(2000)] },
  { name: "500 beside 50 new connections", kinds: [hits(500), NEW_CONNECTIONS] },
  { name: "500 beside 500 refused new names", kinds: [hits(500), REFUSED] },
];

/** V8 fully optimizes a code path only after some ten thousand requests. */
const SETTLE_SECONDS = 30;
/** After the other one's turn, a server is no longer in the CPU's caches, and the service makes the calls that its quota has meanwhile. */
const RESUME_SECONDS = 1;

/** `only` selects scenarios by words in their names. */
export async function benchTail({ rounds = 5, seconds = 5, only = "" }: Options): Promise<void> {
  pinThisProcess();
  const [bare, service] = [await startBare(), await startService()];
  for (const server of [bare, service]) {
    await server.firstAnswer(HIT, 200);
    await openLoop(server.port, [hits(500), REFUSED, NEW_CONNECTIONS], SETTLE_SECONDS);
  }
  const rows: string[][] = [];
  for (const { name, kinds } of selected(SCENARIOS, only)) {
    const [ofBare, ofService]: [Report[], Report[]] = [[], []];
    for (const server of interleaved(rounds, [bare, service])) {
      await openLoop(server.port, kinds, RESUME_SECONDS);
      const report = await openLoop(server.port, kinds, seconds);
      if (report.lost > 0 || report.others > 0)
        throw new Error(`${report.lost} requests weren't answered, ${report.others} answers weren't 200`);
      (server === bare ? ofBare : ofService).push(report);
    }
    rows.push(row(name, "bare node:http", ofBare, ofBare), row(name, "service", ofService, ofBare));
  }
  await Promise.all([bare.stop(), service.stop()]);
  console.log(
    `\nLatency of known answers, from the time when each request was due, Node ${process.version}: ${rounds} rounds of ${seconds} s, medians; ${CORES_IN_WORDS}`,
  );
  const figures = ["p50 ms", "p99 ms", "p99.9 ms", "longest ms", "p99 × bare", "sender's delay, p99 ms"];
  console.log(table(["load", "server", ...figures], rows));
  console.log(
    "if the sender itself was late by milliseconds, the machine was too busy for a result; longest: of all rounds",
  );
}

function row(load: string, server: string, reports: readonly Report[], bare: readonly Report[]): string[] {
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
