/** Servers in separate processes, started as their users start them. Their CPU time and memory are read from outside. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type Agent, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pinned } from "./cores.js";

const START_WITHIN_MS = 30_000;
/** The clock tick that Linux reports to programs, whatever the kernel's own tick is. */
const TICK_MICROSECONDS = 10_000;

export interface HttpRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON in a POST. */
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  readonly etag: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Usage {
  readonly cpuMicroseconds: number;
  readonly rssMb: number;
}

interface ServerSettings {
  readonly command: readonly string[];
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** A folder that is removed when the benchmark ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  process.once("exit", () => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** A running process that listens on 127.0.0.1. Its log is discarded. It ends with the benchmark at the latest. */
export class Server {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #command: string;

  constructor({ command, port, env = {} }: ServerSettings) {
    this.port = port;
    this.#command = command.join(" ");
    const [program = "", ...args] = pinned("server", command);
    this.#child = spawn(program, args, {
      stdio: "ignore",
      env: { PATH: process.env["PATH"], HOST: "127.0.0.1", PORT: String(port), ...env },
    });
    process.setMaxListeners(0);
    process.once("exit", () => {
      // A frozen process wouldn't handle the signal.
      this.thaw();
      this.#child.kill();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Uses a new connection unless there is an agent, and not fetch, because fetch adds `Cache-Control: no-cache` to If-None-Match, which prevents a 304. */
  ask({ path, headers = {}, body }: HttpRequest, agent: Agent | false = false): Promise<Answer> {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const options = {
      host: "127.0.0.1",
      port: this.port,
      path: path.replace("{n}", String(Math.floor(Math.random() * 1e9))),
      agent,
      method: sent === undefined ? "GET" : "POST",
      headers: { ...headers, ...(sent !== undefined && { "Content-Type": "application/json" }) },
    };
    return new Promise((done, failed) => {
      const outgoing = httpRequest(options, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part)).once("error", failed);
        response.once("end", () => {
          const { statusCode: status = 0, headers } = response;
          done({ status, etag: headers.etag, headers, body: Buffer.concat(parts) });
        });
      });
      outgoing.once("error", failed).end(sent);
    });
  }

  /** Repeats the request until the answer has this status. Throws if the process has ended or there is no such answer in time. */
  async firstAnswer(request: HttpRequest, status: number): Promise<Answer> {
    const deadline = performance.now() + START_WITHIN_MS;
    while (performance.now() < deadline && !this.#ended) {
      const answer = await this.ask(request).catch(() => null);
      if (answer?.status === status) return answer;
      await sleep(2);
    }
    throw new Error(`no answer ${status} to ${request.path} from ${this.#command}`);
  }

  /** The usage since the start, of all threads. */
  usage(): Usage {
    return usageOf(String(this.#child.pid));
  }

  /** Stops the process until it is thawed, so that it takes no time from the others. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    if (this.#ended) return;
    this.thaw();
    const exited = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill();
    await exited;
  }

  get #ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/** The usage of one process since it started, of all threads. */
function usageOf(pid: string): Usage {
  if (!existsSync("/proc/self/stat")) return usageByPs(pid);
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The program's name, in parentheses, may contain anything. utime and stime are the 12th and 13th fields after it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const residentKb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return {
    cpuMicroseconds: (Number(fields[11]) + Number(fields[12])) * TICK_MICROSECONDS,
    rssMb: Number(residentKb) / 1024,
  };
}

/** On the BSDs and macOS, `ps` reports hundredths of seconds; on Linux it would report whole ones. */
function usageByPs(pid: string): Usage {
  const output = spawnSync("ps", ["-o", "time=,rss=", "-p", pid], { encoding: "utf8" }).stdout.trim();
  const [time = "", residentKb] = output.split(/\s+/);
  const seconds = time.split(/[:-]/).reduce((sum, part) => sum * 60 + Number(part), 0);
  return { cpuMicroseconds: seconds * 1e6, rssMb: Number(residentKb) / 1024 };
}
