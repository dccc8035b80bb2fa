/** Runs `node dist/main.js` for tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Agent } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type Ask, asker, until } from "./service.js";

export interface ServiceProcess {
  readonly child: ChildProcess;
  readonly stdout: string[];
  readonly stderr: string[];
  /** Resolves with the port once it has been logged. */
  readonly listening: Promise<number>;
  readonly exited: Promise<number | null>;
  ask: Ask;
  /** Stops it as operators do. */
  stop(): Promise<number | null>;
}

const HERE = fileURLToPath(new URL("../../", import.meta.url));
/** Benchmarks run compiled, a folder deeper. */
const ROOT = existsSync(join(HERE, "package.json")) ? HERE : join(HERE, "..");

interface SpawnOptions {
  readonly cwd?: string;
  /** Options for Node itself. */
  readonly node?: readonly string[];
  /** A command that runs the one after it. */
  readonly under?: readonly string[];
}

/** Runs `node dist/main.js` with this environment and nothing of the test's own. */
export function spawnService(
  env: Readonly<Record<string, string>>,
  { cwd = ROOT, node = [], under = [] }: SpawnOptions = {},
): ServiceProcess {
  const [program, ...args] = [...under, process.execPath, ...node, join(ROOT, "dist/main.js")];
  const child = spawn(program, args, {
    cwd,
    env: { PATH: process.env["PATH"], PORT: "0", HOST: "127.0.0.1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stdout = linesOf(child.stdout);
  const stderr = linesOf(child.stderr);
  const agent = new Agent({ keepAlive: true });
  const exited = new Promise<number | null>((done) => {
    child.once("close", (code) => {
      agent.destroy();
      done(code);
    });
  });
  const port = async (): Promise<number> => {
    let found: number | undefined;
    const listeningLine = z.object({ event: z.literal("server.listening"), port: z.int() });
    await until(() => {
      if (child.exitCode !== null) throw new Error(`the service exited: ${stderr.join("\n")}`);
      const line = stdout.find((text) => text.includes("listening"));
      if (line !== undefined) found = listeningLine.parse(JSON.parse(line)).port;
      return found !== undefined;
    }, "the start of the service");
    return found ?? 0;
  };
  const listening = port();
  listening.catch(() => undefined);
  return {
    child,
    stdout,
    stderr,
    listening,
    exited,
    ask: async (path, question) => asker(await listening, agent)(path, question),
    stop() {
      child.kill("SIGTERM");
      return exited;
    },
  };
}

function linesOf(stream: NodeJS.ReadableStream): string[] {
  const lines: string[] = [];
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
  });
  stream.on("end", () => {
    if (rest !== "") lines.push(rest);
  });
  return lines;
}
