/** The upstream of the quota benchmarks: a real server that counts calls strictly when they arrive, some time after they were sent. */
import { createServer, request, type Server } from "node:http";

export const WINDOW_MS = 1000;
export const LIMIT = 60;
export const HEADROOM = 3;
export const BUDGET = LIMIT - HEADROOM;

/** A distribution of latencies in ms. A random part of each latency passes before the call is counted. */
export interface Jitter {
  readonly name: string;
  readonly draw: () => number;
}

/** Mean 2 % of the window, at most half a window. */
export const SMALL_JITTER: Jitter = {
  name: "small, with a tail up to half a window",
  draw: () => Math.min(-Math.log(1 - Math.random()) * 0.02 * WINDOW_MS, WINDOW_MS / 2),
};

export const WIDE_JITTER: Jitter = {
  name: "uniform up to half a window",
  draw: () => (Math.random() * WINDOW_MS) / 2,
};

export const JITTERS: readonly Jitter[] = [{ name: "none", draw: () => 0 }, SMALL_JITTER, WIDE_JITTER];

/** A call is a 429 if it exceeds the limit in the window that ends with it. Refused calls count too. */
export class Receiver {
  readonly arrivals: number[] = [];
  refused = 0;
  latencySumMs = 0;
  readonly #server: Server;

  constructor(jitter: Jitter) {
    this.#server = createServer((_, res) => {
      const latencyMs = jitter.draw();
      const beforeMs = latencyMs * Math.random();
      this.latencySumMs += latencyMs;
      after(beforeMs, () => {
        this.#count();
        after(latencyMs - beforeMs, () => res.end("{}"));
      });
    });
    this.#server.keepAliveTimeout = 60_000;
  }

  async listen(): Promise<number> {
    await new Promise<void>((done) => {
      this.#server.listen(0, "127.0.0.1", done);
    });
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the receiver has no port");
    return address.port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The most arrivals in any rolling window. */
  get largest(): number {
    let first = 0;
    let largest = 0;
    for (const [index, at] of this.arrivals.entries()) {
      while (at - (this.arrivals[first] ?? at) >= WINDOW_MS) first += 1;
      largest = Math.max(largest, index - first + 1);
    }
    return largest;
  }

  /** Arrivals between two times, as a share of the budget for that time. */
  use(fromMs: number, toMs: number): number {
    const calls = this.arrivals.filter((at) => at >= fromMs && at < toMs).length;
    return calls / ((BUDGET * (toMs - fromMs)) / WINDOW_MS);
  }

  #count(): void {
    const now = performance.now();
    this.arrivals.push(now);
    const recent = this.arrivals.slice(-LIMIT - 1).filter((at) => now - at < WINDOW_MS);
    if (recent.length > LIMIT) this.refused += 1;
  }
}

function after(ms: number, run: () => void): void {
  if (ms < 0.5) run();
  else setTimeout(run, ms);
}

/** Makes a call to a receiver. `answered` is called as soon as the answer begins. */
export function ask(port: number, answered: () => void): Promise<void> {
  return new Promise((done, failed) => {
    request({ host: "127.0.0.1", port, timeout: 5000 }, (response) => {
      answered();
      response.resume().once("end", done).once("error", failed);
    })
      .once("error", failed)
      .end();
  });
}
