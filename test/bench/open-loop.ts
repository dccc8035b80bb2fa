/**
 * A separate process, started by tail.ts, that sends requests at fixed times, whether or not earlier ones have been answered, and prints the
 * latencies of the first kind. They count from the time when a request was due, so a stalled server can't hide the requests that waited.
 */
import { Agent, get } from "node:http";
import { z } from "zod";

/** How long a server that has fallen behind may take after the last request. */
const DRAIN_MS = 30_000;

const { port, seconds, kinds } = z
  .object({
    port: z.int(),
    seconds: z.number(),
    /** `{n}` in a path is replaced by a different number each time; an isolated request has its own connection. */
    kinds: z.array(z.object({ path: z.string(), perSecond: z.number(), isolated: z.boolean() })),
  })
  .parse(JSON.parse(process.argv[2] ?? "{}"));

const agent = new Agent({ keepAlive: true });
const latenciesMs: number[] = [];
const latenessMs: number[] = [];
let others = 0;
let lost = 0;
let asked = 0;

const startedAt = performance.now();
const sent = kinds.map(() => 0);
const total = (kinds[0]?.perSecond ?? 0) * seconds;

function askDue(now: number): void {
  for (const [at, { path, perSecond, isolated }] of kinds.entries()) {
    for (;;) {
      const count = sent[at] ?? 0;
      const due = startedAt + (count * 1000) / perSecond;
      if (count >= perSecond * seconds || due > now) break;
      sent[at] = count + 1;
      asked += 1;
      if (at === 0) latenessMs.push(now - due);
      const to = {
        host: "127.0.0.1",
        port,
        path: path.replace("{n}", `${process.pid}-${asked}`),
        agent: isolated ? false : agent,
      };
      const outgoing = get(to, (answer) => {
        answer.resume().once("end", () => {
          if (at !== 0) return;
          latenciesMs.push(performance.now() - due);
          if (answer.statusCode !== 200) others += 1;
        });
      });
      outgoing.once("error", () => {
        if (at === 0) lost += 1;
      });
    }
  }
}

const tick = (): void => {
  const now = performance.now();
  askDue(now);
  if (latenciesMs.length + lost === total || now > startedAt + seconds * 1000 + DRAIN_MS) finish();
  // A timer would be a millisecond late; a loop that never sleeps isn't.
  else setImmediate(tick);
};
tick();

function finish(): void {
  const at = (values: number[], part: number): number =>
    values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))] ?? NaN;
  const report = {
    lost: total - latenciesMs.length,
    others,
    p50Ms: at(latenciesMs, 0.5),
    p99Ms: at(latenciesMs, 0.99),
    p999Ms: at(latenciesMs, 0.999),
    longestMs: at(latenciesMs, 1),
    lateP99Ms: at(latenessMs, 0.99),
  };
  console.log(JSON.stringify(report));
  process.exit(0);
}
