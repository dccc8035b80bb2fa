/**
 * `npm run bench -- fleet [--rounds N]`: three processes of the service over a real Redis, asked round robin for four times the budget, go through N
 * faults (10) in random order. The sandbox counts calls strictly. A window has ten seconds; the lease has its own times.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { freePort } from "../support/free-port.js";
import { startRedis } from "../support/redis-server.js";
import { type ServiceProcess, spawnService } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";
import { table } from "./table.js";

const WINDOW_MS = 10_000;
const BUDGET = 57;
const BETWEEN_MS = 25_000;

export async function benchFleet({ rounds = 10 }: { readonly rounds?: number } = {}): Promise<void> {
  const redis = await startRedis();
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: BUDGET, windowMs: WINDOW_MS },
  });
  const env = {
    ...upstreamAt(sandbox),
    UPSTREAM_RATE_LIMIT: String(BUDGET + 3),
    UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
    QUOTA_COLD_START: "assume-free",
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    REDIS_URL: redis.url,
    LOG_LEVEL: "info",
    CLIENT_COLD_PER_MINUTE: "1000000",
    CLIENT_RATE_PER_MINUTE: "1000000",
  };
  const ports = await Promise.all([freePort(), freePort(), freePort()]);
  const start = (n: number): ServiceProcess => spawnService({ ...env, PORT: String(ports[n] ?? 0) });
  const replicas = ports.map((_port, n) => start(n));
  await Promise.all(replicas.map(({ listening }) => listening));
  const counts = { asked: 0, answered: 0, refused: 0, unavailable: 0, failed: 0 };
  let isOver = false;
  let lastAnswerAt = performance.now();
  let longestGapMs = 0;

  async function ask(n: number, name: string): Promise<void> {
    counts.asked += 1;
    const answer = await replicas[n]?.ask(`/v1/availability?domain=${name}.af`).catch(() => null);
    if (answer?.status === 200) {
      counts.answered += 1;
      longestGapMs = Math.max(longestGapMs, performance.now() - lastAnswerAt);
      lastAnswerAt = performance.now();
    } else if (answer?.status === 503)
      counts[answer.text.includes('"unavailable"') ? "unavailable" : "refused"] += 1;
    else counts.failed += 1;
  }
  async function crowd(): Promise<void> {
    for (let n = 0; ; n += 1) {
      if (isOver) break;
      void ask(n % 3, `fleet-${n}`);
      await sleep(WINDOW_MS / (4 * BUDGET));
    }
  }
  const restarted = async (n: number, signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
    replicas[n]?.child.kill(signal);
    await replicas[n]?.exited;
    replicas[n] = start(n);
    await replicas[n].listening;
  };
  const pick = (): number => Math.floor(Math.random() * 3);
  const paused = async (ms: number): Promise<void> => {
    const child = replicas[pick()]?.child;
    child?.kill("SIGSTOP");
    await sleep(ms);
    child?.kill("SIGCONT");
  };
  const FAULTS: Readonly<Record<string, () => Promise<unknown>>> = {
    "kill -9": () => restarted(pick(), "SIGKILL"),
    SIGTERM: () => restarted(pick(), "SIGTERM"),
    "SIGSTOP for 3 s": () => paused(3_000),
    "SIGSTOP for 20 s": () => paused(20_000),
    "Redis killed": async () => {
      await redis.kill();
      await sleep(3_000);
      await redis.start();
    },
    "Redis emptied": () => redis.command("FLUSHALL"),
    "Redis hangs for 6 s": async () => {
      redis.hang();
      await sleep(6_000);
      redis.wake();
    },
  };

  const playing = crowd();
  const rows: string[][] = [];
  try {
    await sleep(WINDOW_MS);
    for (let round = 0; round < rounds; round += 1) {
      const names = Object.keys(FAULTS);
      const name = names[round % names.length] ?? "";
      const before = { ...counts };
      longestGapMs = 0;
      await FAULTS[name]?.();
      await sleep(BETWEEN_MS);
      const used = sandbox.stats().credentials.find(({ key }) => key === sandbox.credential().key);
      rows.push([
        name,
        String(counts.answered - before.answered),
        String(counts.refused - before.refused),
        String(counts.unavailable - before.unavailable),
        String(counts.failed - before.failed),
        (longestGapMs / 1000).toFixed(1),
        `${used?.largestWindow ?? 0} of ${BUDGET}`,
        String(used?.rejected429 ?? 0),
      ]);
    }
  } finally {
    isOver = true;
    await playing;
    await Promise.all(replicas.map((replica) => replica.stop()));
    await sandbox.close();
    await redis.close();
  }
  console.log(
    table(
      [
        "fault",
        "answered",
        "quota_exhausted",
        "unavailable",
        "failed",
        "longest gap s",
        "largest window",
        "rejections",
      ],
      rows,
    ),
  );
}
