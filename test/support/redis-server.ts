/** A real Redis on a unix socket in a folder of its own, and on a port if it is given one, to be stopped, hung, emptied and started again. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";

export interface RedisServer {
  /** For REDIS_URL. */
  readonly url: string;
  /** Of its process; 0 while it isn't running. */
  pid(): number;
  /** The folder that it works in. */
  readonly folder: string;
  /** Resolves when it answers; what it held is gone unless it was saved. */
  start(...more: readonly string[]): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open, nothing is answered. */
  hang(): void;
  wake(): void;
  /** One command in words; answers its raw reply. */
  command(...words: string[]): Promise<string>;
  /** Ends it for good. */
  close(): Promise<void>;
}

/** Gives it the processor before the suites that run beside it: the service gives up an answer after 100 ms. */
function prefer({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_HIGHEST);
  } catch {
    // Only root may; without it a busy machine may disturb a story.
  }
}

/** Starts one with these arguments on top, at every start, and waits until it answers. */
export async function startRedis(...args: readonly string[]): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "redis-"));
  const path = join(folder, "redis.sock");
  const commonArgs = [
    "--port",
    "0",
    "--unixsocket",
    path,
    "--dir",
    folder,
    "--save",
    "",
    "--appendonly",
    "no",
  ];
  let child: ChildProcess | null = null;

  function command(...words: string[]): Promise<string> {
    return new Promise((done, failed) => {
      const socket = connect(path);
      socket.setEncoding("utf8");
      socket.once("error", failed);
      // A server whose role is changed closes connections without an answer.
      socket.once("close", () => {
        failed(new Error("Redis closed the connection"));
      });
      socket.once("data", (reply) => {
        socket.destroy();
        done(String(reply));
      });
      const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      socket.write(`*${words.length}\r\n${parts.join("")}`);
    });
  }

  async function start(...more: readonly string[]): Promise<void> {
    child = spawn("redis-server", [...commonArgs, ...args, ...more], { stdio: "ignore" });
    prefer(child);
    for (let tries = 0; tries < 1000; tries += 1) {
      const reply = await command("PING").catch(() => "");
      if (/^(?:\+PONG|-LOADING|-NOAUTH)/.test(reply)) return;
      await new Promise((later) => setTimeout(later, 10));
    }
    throw new Error("redis-server has not started");
  }

  async function kill(): Promise<void> {
    const dying = child;
    child = null;
    if (dying === null) return;
    const gone = new Promise((done) => dying.once("exit", done));
    dying.kill("SIGKILL");
    await gone;
    rmSync(path, { force: true });
  }

  await start();
  return {
    url: `unix://${path}`,
    pid: () => child?.pid ?? 0,
    folder,
    start,
    kill,
    hang: () => child?.kill("SIGSTOP"),
    wake: () => child?.kill("SIGCONT"),
    command,
    async close() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
