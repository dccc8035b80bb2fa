/** Sends requests at fixed times, whether or not earlier ones have been answered, so that a stalled server can't hide the requests that waited. */
import { Agent, get } from "node:http";

/** How long a server that has fallen behind may take after the last request. */
const DRAIN_MS = 30_000;

export interface Kind {
  /** `{n}` is replaced by a different number each time. */
  readonly path: string;
  readonly perSecond: number;
  /** Each request has its own connection. */
  readonly isolated: boolean;
}

let asked = 0;

/** The latencies of the first kind, which count from the time when a request was due. */
export function openLoop(port: number, kinds: readonly Kind[], seconds: number) {
  const agent = new Agent({ keepAlive: true });
  const latenciesMs: number[] = [];
  const latenessMs: number[] = [];
  const sent = kinds.map(() => 0);
  const total = (kinds[0]?.perSecond ?? 0) * seconds;
  /** Requests without an answer, and answers other than 200. */
  const failed = { lost: 0, others: 0 };
  const startedAt = performance.now();

  function send({ path, isolated }: Kind, dueAt: number, isMeasured: boolean): void {
    asked += 1;
    const to = {
      host: "127.0.0.1",
      port,
      path: path.replace("{n}", String(asked)),
      agent: isolated ? false : agent,
    };
    const outgoing = get(to, (answer) => {
      answer.resume().once("end", () => {
        if (!isMeasured) return;
        latenciesMs.push(performance.now() - dueAt);
        if (answer.statusCode !== 200) failed.others += 1;
      });
    });
    outgoing.once("error", () => {
      if (isMeasured) failed.lost += 1;
    });
  }

  function sendDue(now: number): void {
    for (const [at, kind] of kinds.entries())
      for (let count = sent[at] ?? 0; count < kind.perSecond * seconds; count += 1) {
        const dueAt = startedAt + (count * 1000) / kind.perSecond;
        if (dueAt > now) break;
        sent[at] = count + 1;
        if (at === 0) latenessMs.push(now - dueAt);
        send(kind, dueAt, at === 0);
      }
  }

  const of = (values: number[], part: number): number =>
    values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))] ?? NaN;
  const report = () => ({
    ...failed,
    p50Ms: of(latenciesMs, 0.5),
    p99Ms: of(latenciesMs, 0.99),
    p999Ms: of(latenciesMs, 0.999),
    longestMs: of(latenciesMs, 1),
    /** How late the sender itself was. */
    lateP99Ms: of(latenessMs, 0.99),
  });
  return new Promise<ReturnType<typeof report>>((done) => {
    const tick = (): void => {
      const now = performance.now();
      sendDue(now);
      const isOver = now > startedAt + seconds * 1000 + DRAIN_MS;
      // A timer would be a millisecond late; a loop that never sleeps isn't.
      if (!isOver && latenciesMs.length + failed.lost < total) setImmediate(tick);
      else {
        agent.destroy();
        failed.lost = total - latenciesMs.length;
        done(report());
      }
    };
    tick();
  });
}
