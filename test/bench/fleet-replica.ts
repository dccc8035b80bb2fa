/** A process of the service as benchmarks kill, stop and ask it. */
import { type ChildProcess, spawn } from "node:child_process";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.js";

const LONG_AFTER_MS = 5000;

export interface Answer {
  /** 0: there was none. */
  readonly status: number;
  readonly tookMs: number;
  /** Of a refusal: when to come back. */
  readonly retryAfterMs: number;
}

/** One process of the service; started again it takes its old port. */
export class Replica {
  readonly port: number;
  readonly #env: Readonly<Record<string, string>>;
  #program: string;
  readonly #agent = new Agent({ keepAlive: true });
  #child: ChildProcess | null = null;
  /** Whether it should answer. */
  isThere = false;
  /** How often it was killed or stopped: a request from before can't be held against it. */
  interruptions = 0;
  /** Whether it has answered the known name since its start; one that has just started without Redis knows nothing. */
  hasAnswered = false;

  private constructor(port: number, env: Readonly<Record<string, string>>, program: string) {
    this.port = port;
    this.#program = program;
    this.#env = { HOST: "127.0.0.1", PORT: String(port), ...env };
  }

  static async start(
    env: Readonly<Record<string, string>>,
    program = join("dist", "main.js"),
  ): Promise<Replica> {
    const replica = new Replica(await freePort(), env, program);
    await replica.start();
    return replica;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [this.#program], {
      stdio: ["ignore", "ignore", "pipe"],
      env: this.#env,
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (part: string) => (said = (said + part).slice(-500)));
    this.#child = child;
    child.once("exit", () => {
      if (this.#child === child) throw new Error(`a replica has ended by itself: ${said}`);
    });
    process.setMaxListeners(0);
    process.once("exit", () => child.kill("SIGKILL"));
    while ((await this.ask("/livez")).status !== 200) {
      await sleep(20);
    }
    this.isThere = true;
    this.hasAnswered = false;
  }

  /** Ends it as an operator would, and starts another program in its place. */
  async replaceBy(program: string): Promise<void> {
    await this.kill("SIGTERM");
    this.#program = program;
    await this.start();
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    this.isThere = false;
    this.interruptions += 1;
    if (child === null) return;
    const gone = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await gone;
  }

  stop(): void {
    this.isThere = false;
    this.interruptions += 1;
    this.#child?.kill("SIGSTOP");
  }

  wake(): void {
    this.#child?.kill("SIGCONT");
    this.isThere = this.#child !== null;
  }

  ask(path: string, from?: string): Promise<Answer> {
    return ask({ port: this.port, agent: this.#agent }, path, from);
  }

  async close(): Promise<void> {
    this.wake();
    await this.kill();
    this.#agent.destroy();
  }
}

/** Asks a replica, or what stands in front of several, for one visitor. */
export function ask(
  at: { readonly port: number; readonly agent: Agent },
  path: string,
  from = "10.0.0.1",
): Promise<Answer> {
  const began = performance.now();
  return new Promise((done) => {
    const end = (status: number, retryAfterMs = NaN): void => {
      done({ status, tookMs: performance.now() - began, retryAfterMs });
    };
    const asked = request(
      { host: "127.0.0.1", path, ...at, headers: { "x-forwarded-for": from } },
      (response) => {
        response.resume().once("end", () => {
          end(response.statusCode ?? 0, 1000 * Number(response.headers["retry-after"]));
        });
        response.once("error", () => {
          end(0);
        });
      },
    );
    asked.setTimeout(LONG_AFTER_MS, () => asked.destroy());
    asked.once("error", () => {
      end(0);
    });
    asked.end();
  });
}
