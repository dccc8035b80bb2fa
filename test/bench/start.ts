/** `npm run bench -- start`: the time from the start of the process to its first answer, compared with bare Express. */
import { installPeers, liveAt, startPeer, startService, startUpstream } from "./candidates.js";
import { coresInWords } from "./cores.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type Comparison, interleaved } from "./rounds.js";
import type { HttpRequest, Server } from "./server.js";
import { figure, median, table } from "./table.js";

const ALIVE: HttpRequest = { path: "/livez" };
const PRICE: HttpRequest = { path: "/v1/quotes?tld=.af&action=registration&years=1" };

/** A request to a server that starts, and after how many ms it was answered in each round. */
interface FirstRequest {
  readonly name: string;
  readonly request: HttpRequest;
  readonly times: number[];
}

interface Starter {
  readonly node: NodeProgram;
  readonly start: () => Promise<Server>;
  readonly requests: readonly FirstRequest[];
}

export async function benchStart({ rounds = 15, nodes = [THIS_NODE] }: Comparison): Promise<void> {
  installPeers();
  const sandbox = await startUpstream();
  const first = (name: string, request: HttpRequest): FirstRequest => ({ name, request, times: [] });
  const service = (name: string, node: NodeProgram, env: Readonly<Record<string, string>>): Starter => ({
    node,
    start: () => startService({ env, node }),
    requests: [first(`${name}: /livez`, ALIVE), first(`${name}: first retail price`, PRICE)],
  });
  const starters = nodes.flatMap((node): Starter[] => [
    {
      node,
      start: () => startPeer("express.mjs", { node }),
      requests: [first("bare Express 5: any answer", { path: "/v1/availability" })],
    },
    service("live", node, liveAt(sandbox)),
    service("with its sandbox", node, {}),
  ]);
  for (const starter of interleaved(rounds, starters)) await measure(starter);
  await sandbox.close();
  for (const node of nodes) {
    const rows = starters.filter((starter) => starter.node === node).flatMap((starter) => starter.requests);
    const bare = median(rows[0]?.times ?? []);
    console.log(
      `\nTime from start to first answer, Node ${node.version}: medians of ${rounds} interleaved starts of each; ${coresInWords()}`,
    );
    console.log(
      table(
        ["server", "ms", "× bare Express"],
        rows.map(({ name, times }) => [name, figure(median(times)), figure(median(times) / bare)]),
      ),
    );
  }
}

async function measure({ start, requests }: Starter): Promise<void> {
  const startedAt = performance.now();
  const server = await start();
  for (const { request, times } of requests) {
    await server.firstAnswer(request, 200);
    times.push(performance.now() - startedAt);
  }
  await server.stop();
}
