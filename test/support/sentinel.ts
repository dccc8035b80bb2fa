/** A real Sentinel that monitors one master. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port.js";

export interface Sentinel {
  readonly port: number;
  /** The port of the current master. */
  master(): number;
  /** Whether it knows a replica that can take over. */
  hasReplica(): boolean;
  close(): Promise<void>;
}

/** Resolves once Sentinel knows its master. It considers a master down after 300 ms, without asking other Sentinels. */
export async function startSentinel(masterPort: number, password: string | null = null): Promise<Sentinel> {
  const folder = mkdtempSync(join(tmpdir(), "sentinel-"));
  const port = await freePort();
  const file = join(folder, "sentinel.conf");
  const auth =
    password === null ? [] : [`sentinel auth-pass main "${password}"`, `requirepass "${password}"`];
  writeFileSync(
    file,
    [
      `port ${port}`,
      "bind 127.0.0.1",
      `dir ${folder}`,
      `sentinel monitor main 127.0.0.1 ${masterPort} 1`,
      "sentinel down-after-milliseconds main 300",
      "sentinel failover-timeout main 2000",
      ...auth,
    ].join("\n"),
  );
  const child: ChildProcess = spawn("redis-server", [file, "--sentinel"], { stdio: "ignore" });
  const exited = new Promise((done) => child.once("exit", done));

  function query(...words: readonly string[]): string {
    const login = password === null ? [] : ["-a", password, "--no-auth-warning"];
    const command = ["-p", String(port), ...login, "SENTINEL", ...words];
    return spawnSync("redis-cli", command, { encoding: "utf8" }).stdout;
  }

  const master = (): number => Number(query("GET-MASTER-ADDR-BY-NAME", "main").split("\n")[1]);
  while (Number.isNaN(master())) {
    if (child.exitCode !== null) throw new Error("Sentinel exited unexpectedly");
    await new Promise((done) => setTimeout(done, 20));
  }
  return {
    port,
    master,
    hasReplica: () => /runid\n[0-9a-f]{40}/.test(query("REPLICAS", "main")),
    async close() {
      child.kill("SIGKILL");
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
