/** A real Redis on a Unix socket in its own folder, and on a port if the arguments name one. Tests can kill, hang and restart it. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";

export interface RedisServer {
  /** For REDIS_URL. */
  readonly url: string;
  /** The process id; 0 while it isn't running. */
  pid(): number;
  /** Its working directory. */
  readonly folder: string;
  /** Starts it and resolves when it answers. Data that wasn't saved is lost. */
  start(...more: readonly string[]): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGSTOP: connections stay open, but nothing is answered. */
  hang(): void;
  wake(): void;
  /** Sends one command and returns the raw reply. */
  command(...words: string[]): Promise<string>;
  /** Kills it and removes its folder. */
  close(): Promise<void>;
}

/** Gives Redis priority over suites that run at the same time, because the service waits only 100 ms for a reply. */
function raisePriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_HIGHEST);
  } catch {
    // Only root may do this. Without it, a busy machine may disturb a test.
  }
}

/** Starts a server and waits until it answers. It gets the additional arguments at every start. */
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
      // A server closes connections without a reply when its role changes.
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
    raisePriority(child);
    for (let attempts = 0; attempts < 1000; attempts += 1) {
      const reply = await command("PING").catch(() => "");
      if (/^(?:\+PONG|-LOADING|-NOAUTH)/.test(reply)) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error("redis-server didn't start");
  }

  async function kill(): Promise<void> {
    const running = child;
    child = null;
    if (running === null) return;
    const exited = new Promise((done) => running.once("exit", done));
    running.kill("SIGKILL");
    await exited;
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
