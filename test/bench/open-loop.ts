/**
 * A process of its own, started by steady.ts: asks at fixed moments, whether or not earlier questions have been answered, and prints what
 * it saw. A latency counts from the moment at which its question was due, so a server that stalls cannot hide those that waited.
 */
import { connect, type Socket } from "node:net";
import { z } from "zod";

const CONNECTIONS = 50;
/** After the last question: a server that has fallen behind may take its time, but not for ever. */
const DRAIN_MS = 30_000;

const { port, path, perSecond, seconds } = z
  .object({ port: z.int(), path: z.string(), perSecond: z.number(), seconds: z.number() })
  .parse(JSON.parse(process.argv[2] ?? "{}"));
const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;

/** One kept-alive connection with at most one question under way. */
class Connection {
  readonly #socket: Socket;
  #received = "";
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
      // As browsers do: a server may close what it takes for idle at the moment at which a question is sent.
      if (this.#answered) ask(this.#answered);
    });
  }

  ask(answered: (status: number) => void): void {
    this.#answered = answered;
    this.#socket.write(request);
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

/** Used in turn, so that none is idle for as long as the server would keep it. */
const idle = new Set(Array.from({ length: CONNECTIONS }, () => new Connection()));
const latenciesMs: number[] = [];
const latenessMs: number[] = [];
let others = 0;

const total = perSecond * seconds;
// The connections must stand before the first question is due.
const startedAt = performance.now() + 100;
let sent = 0;
const ask = (answered: (status: number) => void): void => {
  const [connection = new Connection()] = idle;
  idle.delete(connection);
  connection.ask(answered);
};
const turn = (): void => {
  const now = performance.now();
  for (;;) {
    const due = startedAt + (sent * 1000) / perSecond;
    if (sent === total || due > now) break;
    sent += 1;
    latenessMs.push(now - due);
    ask((status) => {
      latenciesMs.push(performance.now() - due);
      if (status !== 200) others += 1;
    });
  }
  if (latenciesMs.length === total || now > startedAt + seconds * 1000 + DRAIN_MS) finish();
  // A timer would be a millisecond late; a loop that never sleeps is not.
  else setImmediate(turn);
};
turn();

function finish(): void {
  const at = (values: number[], part: number): number =>
    values.sort((a, b) => a - b)[Math.floor(part * values.length)] ?? NaN;
  const report = {
    lost: total - latenciesMs.length,
    others,
    p50Ms: at(latenciesMs, 0.5),
    p99Ms: at(latenciesMs, 0.99),
    lateP99Ms: at(latenessMs, 0.99),
  };
  console.log(JSON.stringify(report));
  process.exit(0);
}
