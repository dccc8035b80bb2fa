/** The servers that are measured: processes, started as their users start them, on a core of their own if the machine has two and `taskset` is installed. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.js";

const START_WITHIN_MS = 30_000;
/** The clock tick that Linux reports to programs, whatever the kernel's own tick is. */
const TICK_MICROSECONDS = 10_000;
const ENDLESS = "1000000000";

export interface HttpRequest {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON in a POST. */
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export const HIT: HttpRequest = { path: "/v1/availability?domain=google.af" };

/** A body of the same size as that of a hit. */
const BARE = `
  const body = Buffer.alloc(300, "x");
  const headers = { "Content-Type": "application/json", "Content-Length": body.length };
  require("node:http").createServer((_, response) => response.writeHead(200, headers).end(body)).listen(process.env.PORT, "127.0.0.1");`;

/** The limit for Node: `node:http` alone, with one prebuilt answer. */
export async function startBare(): Promise<Server> {
  return new Server([process.execPath, "-e", BARE], await freePort());
}

/** The service with its embedded sandbox, and without client limits unless `env` sets them. */
export async function startService(env: Readonly<Record<string, string>> = {}): Promise<Server> {
  return new Server([process.execPath, "dist/main.js"], await freePort(), {
    CLIENT_RATE_PER_MINUTE: ENDLESS,
    CLIENT_COLD_PER_MINUTE: ENDLESS,
    STATE_DIR: temporaryFolder(),
    ...env,
  });
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

  constructor(command: readonly string[], port: number, env: Readonly<Record<string, string>> = {}) {
    this.port = port;
    const [program = "", ...args] = pinned("server", command);
    this.#child = spawn(program, args, {
      stdio: "ignore",
      env: { PATH: process.env["PATH"], HOST: "127.0.0.1", PORT: String(port), ...env },
    });
    process.setMaxListeners(0);
    process.once("exit", () => this.#child.kill());
  }

  /** On a connection of its own. */
  ask({ path, headers = {}, body }: HttpRequest): Promise<Answer> {
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
      const outgoing = httpRequest(options, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part)).once("error", failed);
        response.once("end", () => {
          const { statusCode: status = 0, headers } = response;
          done({ status, headers, body: Buffer.concat(parts) });
        });
      });
      outgoing.once("error", failed).end(sent);
    });
  }

  /** Repeats the request until the answer has this status. */
  async firstAnswer(request: HttpRequest, status: number): Promise<Answer> {
    const deadline = performance.now() + START_WITHIN_MS;
    while (performance.now() < deadline) {
      const answer = await this.ask(request).catch(() => null);
      if (answer?.status === status) return answer;
      await sleep(2);
    }
    throw new Error(`no answer ${status} to ${request.path}`);
  }

  /** What Linux says of all threads since the start. */
  usage(): { readonly cpuMicroseconds: number; readonly rssMb: number } {
    const read = (file: string): string => readFileSync(`/proc/${String(this.#child.pid)}/${file}`, "utf8");
    const stat = read("stat");
    // The program's name, in parentheses, may contain anything. utime and stime are the 12th and 13th fields after it.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return {
      cpuMicroseconds: (Number(fields[11]) + Number(fields[12])) * TICK_MICROSECONDS,
      rssMb: Number(/^VmRSS:\s+(\d+) kB$/m.exec(read("status"))?.[1]) / 1024,
    };
  }

  async stop(): Promise<void> {
    const exited = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill();
    await exited;
  }
}

const [serverCore, loadCore] = allowedCores();
const CORES = loadCore === undefined ? null : { server: serverCore, load: loadCore };

/** Wraps `command` so that it runs on this core. Its process id is still that of the command. */
export function pinned(side: "server" | "load", command: readonly string[]): readonly string[] {
  return CORES ? ["taskset", "-c", String(CORES[side]), ...command] : command;
}

/** Moves this process to the load's core, for a benchmark in which it is the load. */
export function pinThisProcess(): void {
  if (CORES) spawnSync("taskset", ["-cp", String(CORES.load), String(process.pid)]);
}

export const CORES_IN_WORDS = CORES
  ? `servers on core ${CORES.server}, load on core ${CORES.load}`
  : "cores not pinned";

/** The cores that this process may use; empty without taskset. */
function allowedCores(): number[] {
  const { stdout } = spawnSync("taskset", ["-cp", String(process.pid)], { encoding: "utf8" });
  const ranges = /: ([\d,-]+)\s*$/.exec(stdout ?? "")?.[1]?.split(",") ?? [];
  return ranges.flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
