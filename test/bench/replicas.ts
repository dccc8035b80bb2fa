/**
 * Four real replicas over one real Redis, asked for far more than the budget, while replicas are killed and Redis is stopped, hung,
 * emptied and started again; counted strictly at the sandbox.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startSandbox } from "../../src/sandbox/sandbox.js";

const LIMIT = 60;
const BUDGET = 57;
const WINDOW_MS = 5000;
const CALM_WINDOWS = 10;
const FAULTS = 16;
const REPLICAS = 4;
/** Windows after the last fault until a stretch counts as free of faults: what was unknown must have come to rest. */
const SETTLE_WINDOWS = 2.5;
const STRETCH_WINDOWS = 4;
/** Asks a second at each replica: what two cores can send and refuse without being the bottleneck themselves. */
const ASKS_PER_SECOND = 200;
const ASKING_EACH = 20;

class Redis {
  readonly #folder = mkdtempSync(join(tmpdir(), "bench-redis-"));
  readonly path = join(this.#folder, "redis.sock");
  #child: ChildProcess | null = null;

  async start(): Promise<void> {
    const options = ["--port", "0", "--unixsocket", this.path, "--dir", this.#folder, "--save", ""];
    this.#child = spawn("redis-server", options, { stdio: "ignore" });
    await sleep(200);
  }

  async kill(): Promise<void> {
    const gone = new Promise((done) => this.#child?.once("exit", done));
    this.#child?.kill("SIGKILL");
    await gone;
    rmSync(this.path, { force: true });
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(name);
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }
}

type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** One process, asked for new names without a pause until it is killed; started again it takes its old port. */
class Replica {
  readonly #port = 20_000 + Math.floor(Math.random() * 20_000);
  readonly #agent = new Agent({ keepAlive: true, maxSockets: ASKING_EACH });
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | null = null;
  asked = 0;
  refused = 0;

  constructor(sandbox: Sandbox, redis: Redis) {
    const { key, secret } = sandbox.credential();
    this.#env = {
      PORT: String(this.#port),
      HOST: "127.0.0.1",
      UPSTREAM_BASE_URL: sandbox.url,
      UPSTREAM_SERVICE_KEY: key,
      UPSTREAM_SERVICE_SECRET: secret,
      UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
      UPSTREAM_TIMEOUT_MS: "500",
      QUOTA_MAX_WAIT_MS: "1000",
      REDIS_URL: redis.path,
      REPLICAS_MAX: String(REPLICAS),
      STATE_DIR: join(tmpdir(), "bench-unused"),
      CLIENT_RATE_PER_MINUTE: "1000000",
      CLIENT_COLD_PER_MINUTE: "1000000",
      TRUST_PROXY_HOPS: "1",
      LOG_LEVEL: "error",
    };
  }

  async start(): Promise<void> {
    this.#child = spawn(process.execPath, ["dist/main.js"], { stdio: "ignore", env: this.#env });
    while ((await this.#get("/livez", "10.0.0.1")) !== 200) await sleep(20);
  }

  async kill(): Promise<void> {
    const gone = new Promise((done) => this.#child?.once("exit", done));
    this.#child?.kill("SIGKILL");
    await gone;
  }

  /** Asks at a steady pace, each time from another address for another name. */
  async flood(number: number, until: AbortSignal): Promise<void> {
    const everyMs = (1000 * ASKING_EACH) / ASKS_PER_SECOND;
    const ask = async (): Promise<void> => {
      while (!until.aborted) {
        const began = performance.now();
        this.asked += 1;
        const from = `10.${number}.${this.asked % 250}.${(this.asked >> 8) % 250}`;
        const status = await this.#get(`/v1/availability?domain=n${number}-${this.asked}.af`, from);
        if (status === 503) this.refused += 1;
        await sleep(Math.max(status === 0 ? 20 : 0, everyMs - (performance.now() - began)));
      }
    };
    await Promise.all(Array.from({ length: ASKING_EACH }, ask));
  }

  #get(path: string, from: string): Promise<number> {
    return new Promise((done) => {
      const asked = request(
        {
          host: "127.0.0.1",
          port: this.#port,
          path,
          agent: this.#agent,
          headers: { "x-forwarded-for": from },
        },
        (response) => {
          response.resume().once("end", () => {
            done(response.statusCode ?? 0);
          });
          response.once("error", () => {
            done(0);
          });
        },
      );
      asked.setTimeout(5000, () => asked.destroy());
      asked.once("error", () => {
        done(0);
      });
      asked.end();
    });
  }
}

export async function benchReplicas(): Promise<void> {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: WINDOW_MS },
    latency: { jitterMs: 0.01 * WINDOW_MS },
  });
  const redis = new Redis();
  await redis.start();
  const replicas = Array.from({ length: REPLICAS }, () => new Replica(sandbox, redis));
  await Promise.all(replicas.map((replica) => replica.start()));
  const flooding = new AbortController();
  const floods = replicas.map((replica, number) => replica.flood(number, flooding.signal));

  const restart = async (): Promise<void> => {
    const replica = replicas[Math.floor(Math.random() * REPLICAS)];
    await replica?.kill();
    await replica?.start();
  };
  const someTime = (): Promise<void> => sleep(Math.random() * 2 * WINDOW_MS);
  const faults: Readonly<Record<string, () => Promise<void>>> = {
    "a replica is killed": restart,
    "Redis is killed and started empty": async () => {
      await redis.kill();
      await someTime();
      await redis.start();
    },
    "Redis hangs and wakes": async () => {
      redis.signal("SIGSTOP");
      await someTime();
      redis.signal("SIGCONT");
    },
    "both at once": async () => {
      await redis.kill();
      await restart();
      await redis.start();
    },
  };

  const stretch = async (windows: number): Promise<number> => {
    const before = accepted(sandbox);
    const began = performance.now();
    await sleep(windows * WINDOW_MS);
    return (accepted(sandbox) - before) / ((BUDGET * (performance.now() - began)) / WINDOW_MS);
  };
  const rows = [];
  await sleep((SETTLE_WINDOWS + 1) * WINDOW_MS);
  rows.push({ fault: "none", times: 0, ...figures([await stretch(CALM_WINDOWS)]) });
  for (const [fault, happen] of Object.entries(faults)) {
    const uses: number[] = [];
    const times = FAULTS / Object.keys(faults).length;
    for (let time = 0; time < times; time += 1) {
      await happen();
      // Every other fault follows the last without a rest.
      if (time % 2 === 1) {
        await sleep(SETTLE_WINDOWS * WINDOW_MS);
        uses.push(await stretch(STRETCH_WINDOWS));
      } else await sleep(Math.random() * WINDOW_MS);
    }
    rows.push({ fault, times, ...figures(uses) });
  }
  flooding.abort();
  await Promise.all(floods);
  await Promise.all(replicas.map((replica) => replica.kill()));
  const credential = sandbox.stats().credentials.find((one) => one.key === sandbox.credential().key);
  await sandbox.close();
  await redis.close();

  const asked = replicas.reduce((sum, replica) => sum + replica.asked, 0);
  const fold = Math.round(asked / accepted(sandbox));
  console.log(
    `\n${REPLICAS} replicas over one Redis, ${asked} cold searches, ${fold} for each call made (window ${WINDOW_MS} ms, limit ${LIMIT}, budget ${BUDGET})`,
  );
  console.log(
    `worst window over all of it: ${credential?.largestWindow ?? 0} of ${BUDGET}; rejections: ${credential?.rejected429 ?? 0}`,
  );
  console.table(rows);
  console.log(
    `use: of the budget, in ${STRETCH_WINDOWS} windows that begin ${SETTLE_WINDOWS} windows after the fault is over`,
  );
}

function figures(uses: readonly number[]) {
  return { "least use": Math.min(...uses).toFixed(3), "greatest use": Math.max(...uses).toFixed(3) };
}

function accepted(sandbox: Sandbox): number {
  return sandbox.stats().credentials.reduce((sum, one) => sum + one.accepted, 0);
}
