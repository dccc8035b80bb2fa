/** `npm run bench -- http`: what answers cost, compared with bare node:http. */
import { loadavg } from "node:os";
import { type Candidate, candidates, type Running } from "./candidates.js";
import { coresInWords } from "./cores.js";
import { CONNECTIONS, load } from "./load.js";
import { type Comparison, interleaved, selected } from "./rounds.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { figure, median, table } from "./table.js";

/** V8 fully optimizes a code path only after some ten thousand requests. */
const FIRST_WARM_UP_SECONDS = 6;
const WARM_UP_SECONDS = 1;

interface Measure {
  readonly perSecond: number;
  readonly cpuMicroseconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly rssMb: number;
}

/** `only` selects candidates by words in their names. Bare node:http is always measured. */
export async function benchHttp({
  rounds = 5,
  seconds = 2,
  only = "",
  nodes = [THIS_NODE],
}: Comparison): Promise<void> {
  const [busy = 0] = loadavg();
  const entries: Entry[] = [];
  for (const node of nodes) {
    const [bare, ...others] = candidates(node);
    for (const candidate of [bare, ...selected(others, only)])
      if (candidate !== undefined) entries.push(await startCandidate(node, candidate));
  }
  for (const { running } of entries) {
    running.server.thaw();
    await load(running.server.port, running.request, FIRST_WARM_UP_SECONDS);
    running.server.freeze();
  }
  for (const entry of interleaved(rounds, entries)) entry.measures.push(await measure(entry, seconds));
  for (const { running } of entries) await running.server.stop();

  for (const node of nodes)
    print(
      node,
      entries.filter((entry) => entry.node === node),
      `${rounds} rounds of ${seconds} s after ${WARM_UP_SECONDS} s of warm-up, medians; wrk, ${CONNECTIONS} kept-alive connections; ${coresInWords()}; load average before: ${busy.toFixed(1)}`,
    );
}

/** `how` describes the conditions, which are the same for every Node. */
function print({ version }: NodeProgram, entries: readonly Entry[], how: string): void {
  const rows = entries.map(({ name, bodyBytes, measures }) => {
    const of = (what: keyof Measure): number => median(measures.map((measure) => measure[what]));
    return { name, bodyBytes, of };
  });
  const bare = rows[0]?.of("cpuMicroseconds") ?? NaN;
  console.log(`\nAnswers from memory, Node ${version}: ${how}`);
  console.log(
    table(
      [
        "candidate",
        "bytes",
        "requests/s",
        "CPU µs/request",
        "× bare node:http",
        "p50 ms",
        "p99 ms",
        "RSS MB",
      ],
      rows.map(({ name, bodyBytes, of }) => [
        name,
        String(bodyBytes),
        figure(of("perSecond")),
        figure(of("cpuMicroseconds")),
        figure(bare / of("cpuMicroseconds")),
        figure(of("p50Ms")),
        figure(of("p99Ms")),
        figure(of("rssMb")),
      ]),
    ),
  );
  console.log(
    "bytes: size of the body. × bare node:http: its CPU time per request divided by the candidate's; 1 is the limit for Node.",
  );
}

interface Entry {
  readonly node: NodeProgram;
  readonly name: string;
  readonly running: Running;
  readonly bodyBytes: number;
  readonly measures: Measure[];
}

async function startCandidate(node: NodeProgram, { name, start }: Candidate): Promise<Entry> {
  const running = await start();
  const { server, request, status } = running;
  const { body } = await server.firstAnswer(request, status);
  server.freeze();
  return { node, name, running, bodyBytes: body.length, measures: [] };
}

async function measure({ running }: Entry, seconds: number): Promise<Measure> {
  const { server, request, status } = running;
  server.thaw();
  await load(server.port, request, WARM_UP_SECONDS);
  await server.firstAnswer(request, status);
  const before = server.usage();
  const { requests, errors, ...report } = await load(server.port, request, seconds);
  const after = server.usage();
  server.freeze();
  const expected = status < 400 ? requests - errors : errors;
  // A client's first request in each minute is never limited.
  if (expected < 0.999 * requests) throw new Error(`only ${expected} of ${requests} answers were ${status}`);
  return {
    perSecond: requests / report.seconds,
    cpuMicroseconds: (after.cpuMicroseconds - before.cpuMicroseconds) / requests,
    p50Ms: report.p50Ms,
    p99Ms: report.p99Ms,
    rssMb: after.rssMb,
  };
}
