/** `npm run bench -- start`: from the start of the process to its first answer, beside an Express that does nothing else. */
import { installPeers, liveAt, startPeer, startService, startUpstream } from "./candidates.js";
import { coresInWords } from "./cores.js";
import { type NodeProgram, THIS_NODE } from "./node-program.js";
import { type Comparison, interleaved } from "./rounds.js";
import type { Question, Server } from "./server.js";
import { figure, median, table } from "./table.js";

const ALIVE: Question = { path: "/livez" };
const PRICE: Question = { path: "/v1/quotes?tld=.af&action=registration&years=1" };

/** What is asked of one who starts, one after the other, and after how many ms each was answered. */
interface Asked {
  readonly name: string;
  readonly question: Question;
  readonly times: number[];
}

interface Starter {
  readonly node: NodeProgram;
  readonly start: () => Promise<Server>;
  readonly asked: readonly Asked[];
}

export async function benchStart({ rounds = 15, nodes = [THIS_NODE] }: Comparison): Promise<void> {
  installPeers();
  const sandbox = await startUpstream();
  const asked = (name: string, question: Question): Asked => ({ name, question, times: [] });
  const service = (name: string, node: NodeProgram, env: Readonly<Record<string, string>>): Starter => ({
    node,
    start: () => startService({ env, node }),
    asked: [asked(`${name}: /livez`, ALIVE), asked(`${name}: first retail price`, PRICE)],
  });
  const starters = nodes.flatMap((node): Starter[] => [
    {
      node,
      start: () => startPeer("express.mjs", { node }),
      asked: [asked("bare Express 5: any answer", { path: "/v1/availability" })],
    },
    service("live", node, liveAt(sandbox)),
    service("with its sandbox", node, {}),
  ]);
  for (const starter of interleaved(rounds, starters)) await starting(starter);
  await sandbox.close();
  for (const node of nodes) {
    const rows = starters.filter((starter) => starter.node === node).flatMap((starter) => starter.asked);
    const bare = median(rows[0]?.times ?? []);
    console.log(
      `\nFrom start to first answer, Node ${node.version}: medians of ${rounds} starts of each, in turn; ${coresInWords()}`,
    );
    console.log(
      table(
        ["server", "ms", "× bare Express"],
        rows.map(({ name, times }) => [name, figure(median(times)), figure(median(times) / bare)]),
      ),
    );
  }
}

async function starting({ start, asked }: Starter): Promise<void> {
  const startedAt = performance.now();
  const server = await start();
  for (const { question, times } of asked) {
    await server.firstAnswer(question, 200);
    times.push(performance.now() - startedAt);
  }
  await server.stop();
}
