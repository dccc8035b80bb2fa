/** `npm run bench -- http`: what answers cost, compared with bare node:http. */
import { CONNECTIONS, load } from "./load.js";
import { CORES_IN_WORDS, HIT, type HttpRequest, type Server, startBare, startService } from "./servers.js";
import { figure, interleaved, median, type Options, selected, table } from "./table.js";

/** V8 fully optimizes a code path only after some ten thousand requests. */
const FIRST_WARM_UP_SECONDS = 6;
const WARM_UP_SECONDS = 1;

interface Candidate {
  readonly name: string;
  readonly request: HttpRequest;
  readonly status?: number;
  readonly start?: () => Promise<Server>;
}

const BARE: Candidate = { name: "bare node:http", request: HIT, start: startBare };
const CANDIDATES: readonly Candidate[] = [
  { name: "a known answer", request: HIT },
  // Finished answers take no requests with this field.
  { name: "a known answer by Express", request: { ...HIT, headers: { "Last-Event-ID": "0" } } },
  {
    name: "a refused new name",
    request: { path: "/v1/availability?domain=new-{n}.af" },
    status: 503,
    start: () => startService({ UPSTREAM_RATE_LIMIT: "2", UPSTREAM_RATE_HEADROOM: "1" }),
  },
  { name: "a bad name", request: { path: "/v1/availability?domain=-{n}.af" }, status: 400 },
  {
    name: "a cart of five known prices",
    request: {
      path: "/v1/quotes",
      body: {
        items: ["a", "b", "c", "d", "e"].map((x) => ({
          domain: `cart-${x}.af`,
          action: "renewal",
          years: 1,
        })),
      },
    },
  },
];

/** `only` selects candidates by words in their names. Bare node:http is always measured. */
export async function benchHttp({ rounds = 5, seconds = 2, only = "" }: Options): Promise<void> {
  const entries = [];
  for (const { name, request, status = 200, start = startService } of [BARE, ...selected(CANDIDATES, only)]) {
    const server = await start();
    const { body } = await server.firstAnswer(request, status);
    await load(server.port, request, FIRST_WARM_UP_SECONDS);
    const measures: Awaited<ReturnType<typeof measure>>[] = [];
    entries.push({ name, server, request, status, bytes: body.length, measures });
  }
  for (const { server, request, status, measures } of interleaved(rounds, entries))
    measures.push(await measure(server, request, status, seconds));
  for (const { server } of entries) await server.stop();

  const rows = entries.map(({ name, bytes, measures }) => ({
    name,
    bytes,
    of: (what: keyof (typeof measures)[number]) => median(measures.map((measured) => measured[what])),
  }));
  const bare = rows[0]?.of("cpuMicroseconds") ?? NaN;
  console.log(
    `\nAnswers from memory, Node ${process.version}: ${rounds} rounds of ${seconds} s after ${WARM_UP_SECONDS} s of warm-up, medians; wrk, ${CONNECTIONS} kept-alive connections; ${CORES_IN_WORDS}`,
  );
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
      rows.map(({ name, bytes, of }) => [
        name,
        String(bytes),
        figure(of("perSecond")),
        figure(of("cpuMicroseconds")),
        figure(bare / of("cpuMicroseconds")),
        figure(of("p50Ms")),
        figure(of("p99Ms")),
        figure(of("rssMb")),
      ]),
    ),
  );
}

async function measure(server: Server, request: HttpRequest, status: number, seconds: number) {
  await load(server.port, request, WARM_UP_SECONDS);
  const before = server.usage();
  const { requests, errors, p50Ms, p99Ms, ...report } = await load(server.port, request, seconds);
  const { cpuMicroseconds, rssMb } = server.usage();
  const expected = status < 400 ? requests - errors : errors;
  // A client's first request in each minute is never limited.
  if (expected < 0.999 * requests) throw new Error(`only ${expected} of ${requests} answers were ${status}`);
  return {
    perSecond: requests / report.seconds,
    cpuMicroseconds: (cpuMicroseconds - before.cpuMicroseconds) / requests,
    p50Ms,
    p99Ms,
    rssMb,
  };
}
