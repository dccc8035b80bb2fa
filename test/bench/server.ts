/** Servers as processes of their own, started as their users start them; what they spend and hold is read from outside. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Core, pinned } from "./cores.js";

const START_WITHIN_MS = 30_000;
/** What Linux has shown to programs since 2.6, whatever its own clock. */
const TICK_MICROSECONDS = 10_000;

export interface Question {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON by POST. */
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

export interface ServerSettings {
  readonly command: readonly string[];
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Its work is done by processes that it forks and whose titles have these words. */
  readonly workers?: string;
  readonly core?: Core;
}

/** What is left in it is removed when the benchmark ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  process.once("exit", () => {
    rmSync(folder, { recursive: true, force: true });
  });
  return folder;
}

/** A running process, listening on 127.0.0.1, its log thrown away. It ends with the benchmark at the latest. */
export class Server {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #command: string;
  readonly #workers: string | undefined;

  constructor({ command, port, env = {}, workers, core = "server" }: ServerSettings) {
    this.port = port;
    this.#command = command.join(" ");
    this.#workers = workers;
    const [program = "", ...args] = pinned(core, command);
    this.#child = spawn(program, args, {
      stdio: "ignore",
      env: { PATH: process.env["PATH"], HOST: "127.0.0.1", PORT: String(port), ...env },
    });
    process.setMaxListeners(0);
    process.once("exit", () => {
      // A frozen process would not hear that it is to end.
      this.thaw();
      this.#child.kill();
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Over a connection of its own, and without fetch, whose `Cache-Control: no-cache` beside If-None-Match keeps 304 away. */
  ask({ path, headers = {}, body }: Question): Promise<Answer> {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const options = {
      host: "127.0.0.1",
      port: this.port,
      path: path.replace("{n}", String(Math.floor(Math.random() * 1e9))),
      agent: false,
      method: sent === undefined ? "GET" : "POST",
      headers: { ...headers, ...(sent !== undefined && { "Content-Type": "application/json" }) },
    };
    return new Promise((done, failed) => {
      const asked = request(options, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part)).once("error", failed);
        response.once("end", () => {
          const { statusCode: status = 0, headers } = response;
          done({ status, etag: headers.etag, headers, body: Buffer.concat(parts) });
        });
      });
      asked.once("error", failed).end(sent);
    });
  }

  /** The first answer with this status. Throws when the process has ended or none comes in time. */
  async firstAnswer(question: Question, status: number): Promise<Answer> {
    const deadline = performance.now() + START_WITHIN_MS;
    while (performance.now() < deadline && !this.#ended) {
      const answer = await this.ask(question).catch(() => null);
      if (answer?.status === status) return answer;
      await sleep(2);
    }
    throw new Error(`no answer ${status} to ${question.path} from ${this.#command}`);
  }

  /** Since the start, with all threads. */
  usage(): Usage {
    const usages = this.#pids().map(usageOf);
    return {
      cpuMicroseconds: usages.reduce((sum, { cpuMicroseconds }) => sum + cpuMicroseconds, 0),
      rssMb: usages.reduce((sum, { rssMb }) => sum + rssMb, 0),
    };
  }

  /** Takes no time of the others from now on, until it is thawed. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    if (this.#ended) return;
    this.thaw();
    const gone = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill();
    await gone;
  }

  get #ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #pids(): string[] {
    const pid = String(this.#child.pid);
    if (this.#workers === undefined) return [pid];
    return spawnSync("pgrep", ["-P", pid, "-f", this.#workers], { encoding: "utf8" })
      .stdout.trim()
      .split("\n");
  }
}

/** Of one process, with all threads, since it started. */
export function usageOf(pid: string): Usage {
  if (!existsSync("/proc/self/stat")) return usageByPs(pid);
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name of the program, in brackets, may hold anything; utime and stime are the 12th and 13th field behind it.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const residentKb = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return {
    cpuMicroseconds: (Number(fields[11]) + Number(fields[12])) * TICK_MICROSECONDS,
    rssMb: Number(residentKb) / 1024,
  };
}

/** On the BSDs and macOS `ps` tells hundredths of seconds; on Linux it would tell whole ones. */
function usageByPs(pid: string): Usage {
  const told = spawnSync("ps", ["-o", "time=,rss=", "-p", pid], { encoding: "utf8" }).stdout.trim();
  const [time = "", residentKb] = told.split(/\s+/);
  const seconds = time.split(/[:-]/).reduce((sum, part) => sum * 60 + Number(part), 0);
  return { cpuMicroseconds: seconds * 1e6, rssMb: Number(residentKb) / 1024 };
}
