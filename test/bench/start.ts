/** `npm run bench -- start`: from the start of the process to its first answer, beside an Express that does nothing else. */
import { installPeers, startPeer, startService } from "./candidates.js";
import { coresInWords } from "./cores.js";
import { interleaved } from "./rounds.js";
import type { Question, Server } from "./server.js";
import { figure, median, table } from "./table.js";

const PRICE: Question = { path: "/v1/quotes?tld=.af&action=registration&years=1" };

export async function benchStart({ rounds = 15 }: { rounds?: number }): Promise<void> {
  installPeers();
  const express: number[] = [];
  const alive: number[] = [];
  const price: number[] = [];
  const asExpress = (): Promise<void> =>
    starting(() => startPeer("express.mjs"), [[{ path: "/v1/availability" }, express]]);
  const asService = (): Promise<void> =>
    starting(startService, [
      [{ path: "/livez" }, alive],
      [PRICE, price],
    ]);
  for (const begin of interleaved(rounds, [asExpress, asService])) await begin();
  const bare = median(express);
  console.log(
    `\nFrom start to first answer, Node ${process.version}: medians of ${rounds} starts of each, in turn; ${coresInWords()}`,
  );
  console.log(
    table(
      ["server", "ms", "× bare Express"],
      [
        { name: "bare Express 5: any answer", times: express },
        { name: "service with its sandbox: /livez", times: alive },
        { name: "service with its sandbox: first retail price", times: price },
      ].map(({ name, times }) => [name, figure(median(times)), figure(median(times) / bare)]),
    ),
  );
}

/** Notes after how many ms each question, one after the other, was answered with 200. */
async function starting(
  start: () => Promise<Server>,
  questions: readonly (readonly [Question, number[]])[],
): Promise<void> {
  const startedAt = performance.now();
  const server = await start();
  for (const [question, times] of questions) {
    await server.firstAnswer(question, 200);
    times.push(performance.now() - startedAt);
  }
  await server.stop();
}
