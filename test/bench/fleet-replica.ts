/** A process of the service that benchmarks can kill, stop and send requests to. */
import { type ChildProcess, spawn } from "node:child_process";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.js";

const TIMEOUT_MS = 5000;

export interface Answer {
  /** 0 if there was no answer. */
  readonly status: number;
  readonly tookMs: number;
  /** From Retry-After of a refusal; otherwise NaN. */
  readonly retryAfterMs: number;
}

/** A process of the service. It keeps its port when it is started again. */
export class Replica {
  readonly port: number;
  readonly #env: Readonly<Record<string, string>>;
  #program: string;
  readonly #agent = new Agent({ keepAlive: true });
  #child: ChildProcess | null = null;
  /** Whether it should answer. */
  isUp = false;
  /** How often it was killed or stopped. Requests from before an interruption may fail. */
  interruptions = 0;
  /** Whether it has answered a request for the known name since it started. A process that has just started without Redis knows no names. */
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
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (part: string) => (stderr = (stderr + part).slice(-500)));
    this.#child = child;
    child.once("exit", () => {
      if (this.#child === child) throw new Error(`a replica exited unexpectedly: ${stderr}`);
    });
    process.setMaxListeners(0);
    process.once("exit", () => child.kill("SIGKILL"));
    while ((await this.ask("/livez")).status !== 200) {
      await sleep(20);
    }
    this.isUp = true;
    this.hasAnswered = false;
  }

  /** Stops it as an operator would, and starts another program in its place. */
  async replaceBy(program: string): Promise<void> {
    await this.kill("SIGTERM");
    this.#program = program;
    await this.start();
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    this.#child = null;
    this.isUp = false;
    this.interruptions += 1;
    if (child === null) return;
    const exited = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await exited;
  }

  stop(): void {
    this.isUp = false;
    this.interruptions += 1;
    this.#child?.kill("SIGSTOP");
  }

  wake(): void {
    this.#child?.kill("SIGCONT");
    this.isUp = this.#child !== null;
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

/** Sends one visitor's request to a replica, or to a proxy in front of several. */
export function ask(
  at: { readonly port: number; readonly agent: Agent },
  path: string,
  from = "10.0.0.1",
): Promise<Answer> {
  const startedMs = performance.now();
  return new Promise((done) => {
    const end = (status: number, retryAfterMs = NaN): void => {
      done({ status, tookMs: performance.now() - startedMs, retryAfterMs });
    };
    const outgoing = request(
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
    outgoing.setTimeout(TIMEOUT_MS, () => outgoing.destroy());
    outgoing.once("error", () => {
      end(0);
    });
    outgoing.end();
  });
}
