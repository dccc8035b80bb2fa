/** `npm run bench -- memory`: how much memory the service uses while a million different names are requested, and a million different clients ask. */
import { load, MILLION } from "./load.js";
import { CORES_IN_WORDS, HIT, type HttpRequest, startService } from "./servers.js";
import { figure, table } from "./table.js";

interface Flood {
  readonly name: string;
  readonly request: HttpRequest;
  readonly env?: Readonly<Record<string, string>>;
}

const FLOODS: readonly Flood[] = [
  { name: "different names", request: { path: "/v1/availability?domain=m{n}.af" } },
  {
    name: "different addresses, one known name",
    request: { ...HIT, headers: { "X-Forwarded-For": "{address}" } },
    env: { TRUST_PROXY_HOPS: "1" },
  },
];

export async function benchMemory(): Promise<void> {
  const rows = [];
  for (const flood of FLOODS) rows.push(await rowOf(flood));
  console.log(`\nMemory of the service, Node ${process.version}; ${CORES_IN_WORDS}`);
  console.log(
    table(["flood", "requests", "refused", "RSS at start MB", "half-way MB", "at end MB", "peak MB"], rows),
  );
}

async function rowOf({ name, request, env }: Flood): Promise<string[]> {
  const server = await startService(env);
  await server.firstAnswer(HIT, 200);
  const startMb = server.usage().rssMb;
  let [requests, errors, halfwayMb, endMb, peakMb] = [0, 0, 0, startMb, startMb];
  while (requests < MILLION) {
    const report = await load(server.port, request, 3);
    requests += report.requests;
    errors += report.errors;
    endMb = server.usage().rssMb;
    peakMb = Math.max(peakMb, endMb);
    if (requests <= MILLION / 2) halfwayMb = endMb;
  }
  await server.stop();
  return [
    name,
    figure(requests),
    `${figure((100 * errors) / requests)} %`,
    ...[startMb, halfwayMb, endMb, peakMb].map(figure),
  ];
}
