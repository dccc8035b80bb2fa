/** The whole service with a real sandbox: flooded for ten scaled windows, and killed twenty times with kill -9. The sandbox counts the calls. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { upstreamAt } from "../support/upstream.js";

const LIMIT = 60;
const BUDGET = 57;
const WINDOW_MS = 2000;
const WINDOWS = 10;
const KILLS = 20;
const CLIENTS = 120;

interface Latency {
  readonly name: string;
  /** Uniform from 0 to this, once before the sandbox counts the call and once after. */
  readonly jitterMs: number;
}

const LATENCIES: readonly Latency[] = [
  { name: "none", jitterMs: 0 },
  { name: "up to 4 % of a window", jitterMs: 0.02 * WINDOW_MS },
  { name: "up to half a window", jitterMs: 0.25 * WINDOW_MS },
];

export async function benchService(): Promise<void> {
  const rows = [];
  for (const latency of LATENCIES) {
    rows.push(await flood(latency, 0));
    rows.push(await flood(latency, KILLS));
  }
  console.log("\nThe service under a flood, counted by the sandbox (window 2 s, limit 60, budget 57)");
  console.table(rows);
  console.log(
    "`of bound`: the use divided by window / (window + mean latency), which no safe policy can exceed, because a slot rests for one window after its call.",
  );
}

async function flood({ name, jitterMs }: Latency, kills: number) {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: WINDOW_MS },
    latency: { jitterMs },
  });
  const stateDir = mkdtempSync(join(tmpdir(), "bench-state-"));
  const { key } = sandbox.credential();
  const port = 20_000 + Math.floor(Math.random() * 20_000);
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, ["dist/main.js"], {
      stdio: "ignore",
      env: {
        PORT: String(port),
        HOST: "127.0.0.1",
        ...upstreamAt(sandbox),
        UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
        STATE_DIR: stateDir,
        CLIENT_RATE_PER_MINUTE: "1000000",
        CLIENT_COLD_PER_MINUTE: "1000000",
        TRUST_PROXY_HOPS: "1",
        LOG_LEVEL: "error",
      },
    });
    while (
      !(await fetch(`http://127.0.0.1:${port}/livez`).then(
        ({ ok }) => ok,
        () => false,
      ))
    )
      await sleep(20);
    return child;
  };

  const flooding = new AbortController();
  let asked = 0;
  const ask = async (): Promise<void> => {
    while (!flooding.signal.aborted) {
      asked += 1;
      const from = `10.${asked % 200}.${(asked >> 8) % 200}.7`;
      await fetch(`http://127.0.0.1:${port}/v1/availability?domain=name-${asked}.af`, {
        headers: { "x-forwarded-for": from },
      }).then(
        (answer) => answer.arrayBuffer(),
        () => sleep(20),
      );
    }
  };
  let service = await start();
  const clients = Array.from({ length: CLIENTS }, ask);
  await sleep(2.2 * WINDOW_MS);
  const before = accepted(sandbox.stats());
  const startedAt = performance.now();
  if (kills === 0) await sleep(WINDOWS * WINDOW_MS);
  for (let kill = 0; kill < kills; kill += 1) {
    await sleep((1 + Math.random() * 4) * WINDOW_MS);
    service.kill("SIGKILL");
    await new Promise((done) => service.once("exit", done));
    service = await start();
  }
  const windows = (performance.now() - startedAt) / WINDOW_MS;
  const calls = accepted(sandbox.stats()) - before;
  flooding.abort();
  service.kill("SIGKILL");
  await Promise.all(clients);
  const credential = sandbox.stats().credentials.find((one) => one.key === key);
  await sandbox.close();
  rmSync(stateDir, { recursive: true });
  const use = calls / (BUDGET * windows);
  const bound = WINDOW_MS / (WINDOW_MS + jitterMs);
  return {
    latency: name,
    kills,
    "largest window": credential?.largestWindow,
    rejections: credential?.rejected429,
    use: use.toFixed(3),
    "of bound": (use / bound).toFixed(3),
  };
}

function accepted(stats: { credentials: readonly { accepted: number }[] }): number {
  return stats.credentials.reduce((sum, credential) => sum + credential.accepted, 0);
}
