/**
 * Runs the real service and the real sandbox in this process, on a clock that only the history advances. Two runs of the same history and seed
 * take the same course.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import perfHooks from "node:perf_hooks";
import { z } from "zod";
import { type App, createApp } from "../../src/app.js";
import { type Config, readConfig } from "../../src/config/env.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";
import { Network } from "./network.js";
import { RETAIL, WORLD } from "./world.js";

/** The start of every history, at a whole minute and in the past. */
export const EPOCH_MS = Date.UTC(2025, 2, 20);
/** The time since the start of the history. The monotonic clock leaves out suspensions of the machine. */
export function trueTime(clock: FakeClock): number {
  return clock.now() - EPOCH_MS;
}

const STAFF_TOKEN = "staff-token-of-the-histories";
/** Linux keeps files in memory here, and every history writes some. */
const IN_MEMORY = "/dev/shm";
/** If nothing is sent for this many turns of the event loop, everything waits for the clock or for a held answer. */
const QUIET_TURNS = 4;

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

export interface SentRequest {
  /** Closes the connection, so that no reply comes. */
  leave(): void;
}

/** What all histories share, because none of them can change it. */
export class Simulator {
  readonly network = new Network();
  readonly #folder = mkdtempSync(join(existsSync(IN_MEMORY) ? IN_MEMORY : tmpdir(), "truth-"));
  readonly #config: Config;
  readonly #undo: (() => void)[];
  #histories = 0;

  constructor() {
    const file = (name: string, text: string): string => {
      writeFileSync(join(this.#folder, name), text);
      return join(this.#folder, name);
    };
    const cache = readFileSync("config/cache.yaml", "utf8");
    const result = readConfig(
      {
        RETAIL_CONFIG: file("retail.yaml", RETAIL),
        SANDBOX_CONFIG: file("world.yaml", WORLD),
        // The shipped times, but small caches: no history fills large ones, and each would allocate them.
        CACHE_CONFIG: file("cache.yaml", cache.replaceAll(/entries: \d+/g, "entries: 100")),
        UPSTREAM_BASE_URL: "http://127.0.0.1:4000",
        UPSTREAM_SERVICE_KEY: "truth-demo-key",
        UPSTREAM_SERVICE_SECRET: "truth-demo-secret",
        UPSTREAM_RATE_LIMIT: "120",
        QUOTA_COLD_START: "assume-free",
        CLIENT_RATE_PER_MINUTE: "1000000",
        CLIENT_COLD_PER_MINUTE: "1000000",
        PROMISE_PRIVATE_KEY: newPromiseKey(),
        STAFF_TOKENS: `histories:${createHash("sha256").update(STAFF_TOKEN).digest("hex")}:read+operate`,
      },
      new FakeClock(EPOCH_MS),
    );
    if (!result.ok) throw new Error(result.faults.join("\n"));
    this.#config = result.config;
    this.#undo = [this.network.install(), withoutProcessMetrics()];
  }

  /** Creates a world with a service that hasn't started yet. */
  async open(): Promise<SimulatedService> {
    this.#histories += 1;
    const stateDir = join(this.#folder, String(this.#histories));
    const settled = { run: (): void => {} };
    const clock = new FakeClock(EPOCH_MS, async () => {
      await this.#settle();
      settled.run();
    });
    const sandbox = await startSandbox({
      configFile: join(this.#folder, "world.yaml"),
      now: () => trueTime(clock),
      after: (delayMs, run) => clock.after(delayMs, run),
    });
    this.network.route("http://127.0.0.1:4000", sandbox.server);
    return new SimulatedService(this.network, { ...this.#config, stateDir }, clock, sandbox, settled);
  }

  close(): void {
    for (const undo of this.#undo) undo();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #settle(): Promise<void> {
    let seen = -1;
    for (let quiet = 0; quiet < QUIET_TURNS;) {
      await new Promise((turn) => setImmediate(turn));
      const isQuiet = seen === this.network.activity;
      seen = this.network.activity;
      quiet = isQuiet ? quiet + 1 : 0;
    }
  }
}

/**
 * Disables the metrics of the process (garbage collection, event loop) and returns a function that restores them. Each service observes them
 * until the process ends, so after thousands of histories the process would do little else.
 */
function withoutProcessMetrics(): () => void {
  const { PerformanceObserver, monitorEventLoopDelay } = perfHooks;
  class NoopObserver extends PerformanceObserver {
    override observe(): void {}
  }
  perfHooks.PerformanceObserver = NoopObserver;
  const noop = monitorEventLoopDelay();
  noop.enable = () => true;
  perfHooks.monitorEventLoopDelay = () => noop;
  return () => {
    Object.assign(perfHooks, { PerformanceObserver, monitorEventLoopDelay });
  };
}

/** The service of one history, including its restarts. */
export class SimulatedService {
  readonly clock: FakeClock;
  readonly sandbox: Sandbox;
  readonly log: string[] = [];
  readonly #network: Network;
  readonly #config: Config;
  #app: App | null = null;

  readonly #settled: { run: () => void };

  constructor(
    network: Network,
    config: Config,
    clock: FakeClock,
    sandbox: Sandbox,
    settled: { run: () => void },
  ) {
    this.#settled = settled;
    this.#network = network;
    this.#config = config;
    this.clock = clock;
    this.sandbox = sandbox;
  }

  /** Calls `run` whenever everything has settled, before the clock advances. */
  onSettled(run: () => void): void {
    this.#settled.run = run;
  }

  async start(): Promise<void> {
    const { upstream } = this.#config;
    if (upstream === null) throw new Error("histories need an upstream");
    this.#app = createApp({
      config: this.#config,
      version: "1.2.3",
      mode: "upstream",
      upstream,
      staffTokens: this.#config.staffTokens,
      redis: null,
      clock: this.clock,
      log: recordingLog(this.log),
    });
    await this.#app.start();
    await this.clock.advance(0);
  }

  /** Stops as on SIGTERM, except that waiting clients are disconnected. */
  async stop(): Promise<void> {
    const app = this.#app;
    if (app === null) return;
    this.#app = null;
    app.stop();
    this.#network.disconnect(app.server);
    this.#network.disconnect(this.sandbox.server);
    await app.close();
    await this.clock.advance(0);
  }

  async close(): Promise<void> {
    await this.stop();
    await this.sandbox.close();
    rmSync(this.#config.stateDir, { recursive: true, force: true });
  }

  setUpstream(isReachable: boolean): void {
    this.#network.setReachable(this.sandbox.server, isReachable);
  }

  /** Sends a request over its own connection. Calls `replied` with the complete reply, unless the connection ends first. */
  ask(path: string, body: unknown, replied: (reply: Reply) => void, staff = false): SentRequest {
    const app = this.#app;
    if (app === null) throw new Error("the service isn't running");
    const text = body === undefined ? undefined : JSON.stringify(body);
    const outgoing = request({
      path,
      method: text === undefined ? "GET" : "POST",
      createConnection: () => this.#network.connect(app.server),
      headers: {
        ...(text !== undefined && { "Content-Type": "application/json", "Content-Length": text.length }),
        ...(staff && { Authorization: `Bearer ${STAFF_TOKEN}` }),
      },
    });
    outgoing.on("error", () => undefined);
    outgoing.on("response", (response) => {
      let received = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => (received += chunk));
      response.on("error", () => undefined);
      response.on("end", () => {
        if (!response.complete) return;
        const parsed: unknown = received === "" ? null : JSON.parse(received);
        replied({ status: z.int().parse(response.statusCode), body: parsed });
      });
    });
    outgoing.end(text);
    return { leave: () => outgoing.destroy() };
  }
}
