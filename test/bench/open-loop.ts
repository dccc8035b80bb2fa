/**
 * A separate process, started by tail.ts, that sends requests at fixed times, whether or not earlier ones have been answered, and prints the
 * latencies of the first kind. They count from the time when a request was due, so a stalled server can't hide the requests that waited.
 */
import { connect, type Socket } from "node:net";
import { z } from "zod";

/** How long a server that has fallen behind may take after the last request. */
const DRAIN_MS = 30_000;
const FIRST_CONNECTIONS = 50;

const { port, seconds, kinds } = z
  .object({
    port: z.int(),
    seconds: z.number(),
    kinds: z.array(
      z.object({
        /** `{n}` is replaced by a different number each time. */
        path: z.string(),
        perSecond: z.number(),
        /** Each request has its own connection. */
        isolated: z.boolean(),
      }),
    ),
  })
  .parse(JSON.parse(process.argv[2] ?? "{}"));

/** A keep-alive connection with at most one request in flight. */
class Connection {
  readonly #socket: Socket;
  #received = "";
  #path = "";
  #answered: ((status: number) => void) | null = null;

  constructor() {
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket.setEncoding("latin1");
    this.#socket.on("data", (part: string) => {
      this.#received += part;
      this.#read();
    });
    // A close follows every error.
    this.#socket.on("error", () => {});
    this.#socket.on("close", () => {
      idle.delete(this);
      // Retry as browsers do: a server may close a connection that it considers idle just when a request is sent.
      if (this.#answered) take().ask(this.#path, this.#answered);
    });
  }

  ask(path: string, answered: (status: number) => void): void {
    this.#path = path;
    this.#answered = answered;
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  }

  end(): void {
    this.#socket.destroy();
  }

  #read(): void {
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received.slice(0, headEnd))?.[1];
    if (length === undefined) throw new Error("an answer without Content-Length");
    if (this.#received.length < headEnd + 4 + Number(length)) return;
    const status = Number(this.#received.slice(9, 12));
    const answered = this.#answered;
    this.#received = "";
    this.#answered = null;
    idle.add(this);
    answered?.(status);
  }
}

/** Used in tick, so that none is idle long enough for the server to close it. */
const idle = new Set(Array.from({ length: FIRST_CONNECTIONS }, () => new Connection()));

function take(): Connection {
  const [connection = new Connection()] = idle;
  idle.delete(connection);
  return connection;
}

const latenciesMs: number[] = [];
const latenessMs: number[] = [];
let others = 0;
let asked = 0;

// The connections must be established before the first request is due.
const startedAt = performance.now() + 100;
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
      const connection = isolated ? new Connection() : take();
      if (at === 0) latenessMs.push(now - due);
      connection.ask(path.replace("{n}", `${process.pid}-${asked}`), (status) => {
        if (isolated) connection.end();
        if (at !== 0) return;
        latenciesMs.push(performance.now() - due);
        if (status !== 200) others += 1;
      });
    }
  }
}

const tick = (): void => {
  const now = performance.now();
  askDue(now);
  if (latenciesMs.length === total || now > startedAt + seconds * 1000 + DRAIN_MS) finish();
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
