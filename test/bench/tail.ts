/**
 * `npm run bench -- tail`: how long the slowest visitors wait for a known answer while the service refuses, looks up and renews others,
 * beside a bare node:http server that gets as many requests of each kind in the same run.
 */
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { HIT, startPeer, startService } from "./candidates.js";
import { coresInWords, pinned } from "./cores.js";
import { load } from "./load.js";
import { interleaved } from "./rounds.js";
import type { Server } from "./server.js";
import { figure, median, table } from "./table.js";

interface Kind {
  readonly path: string;
  readonly perSecond: number;
  readonly isolated: boolean;
}

interface Scenario {
  readonly name: string;
  /** The first kind is measured. */
  readonly kinds: readonly Kind[];
  readonly renews?: boolean;
}

/** The quota of the service in all of this, a second. */
const CALLS_PER_SECOND = 20;
const REFUSED_PER_SECOND = 500;
const RENEW_EVERY_MS = 1000;
const WARM_UP_SECONDS = 6;
/** In which names without an answer spend what the quota still has. */
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
  { name: "500 beside a purge and renewal of prices", kinds: [hits(500)], renews: true },
  { name: "500 beside 20 misses and 500 refused", kinds: [hits(500), REFUSED] },
  { name: "500 beside all of it", kinds: [hits(500), REFUSED, newConnections], renews: true },
];

const OPEN_LOOP = fileURLToPath(new URL("open-loop.js", import.meta.url));
const run = promisify(execFile);

const reportSchema = z.object({
  /** Questions without an answer. */
  lost: z.number(),
  /** Answers that were not 200. */
  others: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  p999Ms: z.number(),
  longestMs: z.number(),
  /** How late the sender itself was. */
  lateP99Ms: z.number(),
});
type Report = Readonly<z.infer<typeof reportSchema>>;

/** `only`: the scenarios whose names contain it. */
export async function benchTail({
  rounds = 5,
  seconds = 5,
  only = "",
}: {
  readonly rounds?: number;
  readonly seconds?: number;
  readonly only?: string;
}): Promise<void> {
  const token = randomBytes(24).toString("base64url");
  const bare = await startPeer("bare.mjs");
  const service = await startService({
    STAFF_TOKENS: `bench:${createHash("sha256").update(token).digest("hex")}:operate`,
    UPSTREAM_RATE_LIMIT: String(60 * CALLS_PER_SECOND + 3),
  });
  for (const server of [bare, service]) {
    await server.firstAnswer(HIT, 200);
    await load(server.port, HIT, WARM_UP_SECONDS);
  }
  const renew = async (): Promise<void> => {
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await service.ask({ path: "/v1/staff/cache/purge", headers, body: { what: "prices" } });
    if (answer.status !== 200) throw new Error(`the purge was answered with ${answer.status}`);
  };

  const rows: string[][] = [];
  for (const scenario of SCENARIOS.filter(({ name }) => name.includes(only))) {
    if (scenario.kinds.includes(REFUSED)) await ask(service, [REFUSED], SPEND_SECONDS);
    const reports = { bare: [] as Report[], service: [] as Report[] };
    for (const who of interleaved(rounds, ["bare", "service"] as const)) {
      const server = who === "bare" ? bare : service;
      const timer =
        who === "service" && scenario.renews === true
          ? setInterval(() => void renew(), RENEW_EVERY_MS)
          : undefined;
      const report = await ask(server, scenario.kinds, seconds);
      clearInterval(timer);
      if (report.lost > 0 || report.others > 0)
        throw new Error(`${report.lost} answers did not come, ${report.others} were not 200`);
      reports[who].push(report);
      await sleep(200);
    }
    for (const who of ["bare", "service"] as const)
      rows.push(row(scenario.name, who, reports[who], reports.bare));
  }
  await bare.stop();
  await service.stop();

  console.log(
    `\nKnown answers, each counted from the moment at which it was due, Node ${process.version}: ${rounds} rounds of ${seconds} s, medians; ${coresInWords()}`,
  );
  console.log(
    table(
      ["load", "server", "p50 ms", "p99 ms", "p99.9 ms", "longest ms", "p99 × bare", "sender late, p99 ms"],
      rows,
    ),
  );
  console.log(
    "where the sender itself was late by milliseconds, the machine was too busy to tell; longest: over all rounds",
  );
}

function row(load: string, who: "bare" | "service", reports: readonly Report[], bare: readonly Report[]) {
  const of = (what: keyof Report, from = reports): number => median(from.map((report) => report[what]));
  return [
    load,
    who === "bare" ? "bare node:http" : "service",
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
