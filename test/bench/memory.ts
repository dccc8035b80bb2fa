/** `npm run bench -- memory`: how much memory the service uses while a million different names are requested, and a million different clients ask. */
import { HIT, startService } from "./candidates.js";
import { coresInWords } from "./cores.js";
import { load, MILLION } from "./load.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import type { Comparison } from "./rounds.js";
import type { HttpRequest } from "./server.js";
import { figure, table } from "./table.js";

const SAMPLE_EVERY_SECONDS = 3;
/** A sample is printed after each of this many requests. */
const PRINT_EVERY = MILLION / 10;

interface Sample {
  readonly requests: number;
  readonly rssMb: number;
}

interface Flood {
  readonly name: string;
  readonly request: HttpRequest;
  readonly env: Readonly<Record<string, string>>;
}

const FLOODS: readonly Flood[] = [
  { name: "different names", request: { path: "/v1/availability?domain=m{n}.af" }, env: {} },
  {
    name: "different addresses, one known name",
    request: { ...HIT, headers: { "X-Forwarded-For": "{address}" } },
    env: { TRUST_PROXY_HOPS: "1" },
  },
];

export async function benchMemory({ nodes = [THIS_NODE] }: Comparison): Promise<void> {
  for (const node of nodes) await ofNode(node);
}

async function ofNode(node: NodeProgram): Promise<void> {
  const rows = [];
  for (const flood of FLOODS) {
    const { samples, errors } = await measure(node, flood);
    const last = samples[samples.length - 1];
    const requests = last?.requests ?? NaN;
    rows.push([
      flood.name,
      figure(requests),
      `${figure((100 * errors) / requests)} %`,
      figure(samples[0]?.rssMb ?? NaN),
      figure(last?.rssMb ?? NaN),
      figure(Math.max(...samples.map(({ rssMb }) => rssMb))),
      figure(slope(samples.filter((sample) => sample.requests >= requests / 2)) * 100_000),
    ]);
  }
  console.log(`\nMemory of the service, Node ${node.version}; ${coresInWords()}`);
  console.log(
    table(
      [
        "flood",
        "requests",
        "refused",
        "RSS at start MB",
        "at end MB",
        "peak MB",
        "growth in the second half, MB per 100,000",
      ],
      rows,
    ),
  );
}

async function measure(
  node: NodeProgram,
  { name, request, env }: Flood,
): Promise<{ samples: Sample[]; errors: number }> {
  const server = await startService({ env, node });
  await server.firstAnswer(HIT, 200);
  const samples: Sample[] = [{ requests: 0, rssMb: server.usage().rssMb }];
  let errors = 0;
  let requests = 0;
  while (requests < MILLION) {
    const report = await load(server.port, request, SAMPLE_EVERY_SECONDS);
    requests += report.requests;
    errors += report.errors;
    const { rssMb } = server.usage();
    if (
      Math.floor(requests / PRINT_EVERY) >
      Math.floor((samples[samples.length - 1]?.requests ?? 0) / PRINT_EVERY)
    )
      console.log(`${name}: ${figure(rssMb)} MB after ${figure(requests)} requests`);
    samples.push({ requests, rssMb });
  }
  await server.stop();
  return { samples, errors };
}

/** The slope of the best-fitting straight line, in MB per request. */
function slope(samples: readonly Sample[]): number {
  const mean = (what: keyof Sample): number =>
    samples.reduce((sum, sample) => sum + sample[what], 0) / samples.length;
  const [requests, rssMb] = [mean("requests"), mean("rssMb")];
  let covariance = 0;
  let variance = 0;
  for (const sample of samples) {
    covariance += (sample.requests - requests) * (sample.rssMb - rssMb);
    variance += (sample.requests - requests) ** 2;
  }
  return covariance / variance;
}
