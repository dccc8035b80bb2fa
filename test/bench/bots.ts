/**
 * Honest visitors compete with bots for the quota, through the whole service over HTTP and the real sandbox. Time is scaled: a window stands
 * for a minute, and all rates and waits are scaled with it. Every client has its own address and no client is limited, so only the quota's
 * fairness is measured.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { upstreamAt } from "../support/upstream.js";

export const LIMIT = 60;
export const BUDGET = 57;
/** A scaled second. Retry-After has whole real seconds, so this is long enough that each of them is only a few scaled seconds. */
export const SECOND_MS = 200;
export const MINUTE_MS = 60 * SECOND_MS;
const PATIENCE_MS = 8 * SECOND_MS;
/** Not counted, because the budget is still full at the start. */
const RAMP_MINUTES = 2;
const MINUTES = 18;

const NAMES_PER_BOT_AND_MINUTE = 6;
const SEARCHES_PER_MINUTE = 20;
const MAX_SEARCHES_PER_VISITOR = 4;
const CARTS_PER_MINUTE = 4;
const CACHED_PER_MINUTE = 60;
/** Taken in the sandbox, so it stays cached for longer than the benchmark takes. */
const CACHED_NAME = "google.af";

interface Crowd {
  readonly name: string;
  readonly bots: number;
  /** The address from which a bot sends a request; `n` differs between requests. */
  readonly address: (bot: number, n: number) => string;
  /** A refused bot retries once at the time in Retry-After, as honest visitors do, before it asks for another name. */
  readonly retries: boolean;
}

const CROWDS: readonly Crowd[] = [
  ...[5, 20, 100, 1000].map((bots) => ({
    name: String(bots),
    bots,
    address: ownAddress,
    retries: false,
  })),
  { name: "20 that honour Retry-After", bots: 20, address: ownAddress, retries: true },
  {
    name: "100, each request from a new /64 of one /48",
    bots: 100,
    address: (_, n) => `2001:db8:66:${(n & 0xffff).toString(16)}::1`,
    retries: false,
  },
];

function ownAddress(bot: number): string {
  return `10.66.${bot >> 8}.${bot & 255}`;
}

export interface HttpRequest {
  readonly from: string;
  readonly path: string;
  /** JSON, sent as a POST. */
  readonly body?: string;
  readonly token?: string;
}

export interface Answer {
  /** 0 if there was no answer. */
  readonly status: number;
  /** From Retry-After, in real time: its whole seconds aren't scaled. */
  readonly retryAfterMs: number | null;
  readonly text: string;
}

const HEALTH = z.object({
  checks: z.object({ prices: z.tuple([z.object({ status: z.string() })]) }),
});

/** The service in a separate process, with a sandbox in this one. */
export class Service {
  readonly #port = 20_000 + Math.floor(Math.random() * 20_000);
  readonly #agent = new Agent({ keepAlive: true });
  readonly #stateDir = mkdtempSync(join(tmpdir(), "bench-bots-"));
  readonly #child: ChildProcess;

  constructor(sandbox: Sandbox, env: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, ["dist/main.js"], {
      stdio: "ignore",
      env: {
        PORT: String(this.#port),
        HOST: "127.0.0.1",
        ...upstreamAt(sandbox),
        UPSTREAM_RATE_WINDOW_MS: String(MINUTE_MS),
        QUOTA_MAX_WAIT_MS: String(PATIENCE_MS),
        QUOTA_COLD_START: "assume-free",
        STATE_DIR: this.#stateDir,
        CLIENT_RATE_PER_MINUTE: "1000000",
        CLIENT_COLD_PER_MINUTE: "1000000",
        TRUST_PROXY_HOPS: "1",
        LOG_LEVEL: "error",
        ...env,
      },
    });
    process.once("exit", () => this.#child.kill("SIGKILL"));
  }

  /** Waits until every price and the cached name are known, as in a service that has been running for a while. */
  async warm(): Promise<void> {
    const from = "10.0.0.1";
    while ((await this.ask({ from, path: "/livez" })).status !== 200) await this.#pause();
    const pricesKnown = async (): Promise<boolean> => {
      const { text } = await this.ask({ from, path: "/health" });
      return HEALTH.parse(JSON.parse(text)).checks.prices[0].status === "pass";
    };
    while (!(await pricesKnown())) await this.#pause();
    while ((await this.ask({ from, path: `/v1/availability?domain=${CACHED_NAME}` })).status !== 200)
      await this.#pause();
  }

  ask(request: HttpRequest): Promise<Answer> {
    const { from, path, body, token } = request;
    return new Promise((done) => {
      const lost = (): void => {
        done({ status: 0, retryAfterMs: null, text: "" });
      };
      const outgoing = httpRequest(
        {
          host: "127.0.0.1",
          port: this.#port,
          path,
          agent: this.#agent,
          method: body === undefined ? "GET" : "POST",
          headers: {
            "x-forwarded-for": from,
            ...(body !== undefined && { "content-type": "application/json" }),
            ...(token !== undefined && { authorization: `Bearer ${token}` }),
          },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part: string) => {
            text += part;
          });
          response.once("error", lost);
          response.once("end", () => {
            const seconds = Number(response.headers["retry-after"] ?? NaN);
            const retryAfterMs = Number.isNaN(seconds) ? null : seconds * 1000;
            done({ status: response.statusCode ?? 0, retryAfterMs, text });
          });
        },
      );
      outgoing.once("error", () => {
        // The service closed the idle connection just before it was used again.
        if (outgoing.reusedSocket) done(this.ask(request));
        else lost();
      });
      outgoing.end(body);
    });
  }

  async close(): Promise<void> {
    const exited = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill("SIGKILL");
    await exited;
    this.#agent.destroy();
    rmSync(this.#stateDir, { recursive: true });
  }

  async #pause(): Promise<void> {
    if (this.#child.exitCode !== null) throw new Error("the service exited");
    await sleep(50);
  }
}

class Count {
  asked = 0;
  served = 0;
  retried = 0;
  retriedServed = 0;
  /** The statuses of answers other than 200 and 503. */
  readonly others: number[] = [];
  /** From Retry-After of the refusals, in real time. */
  readonly retryTimesMs: number[] = [];

  get percent(): string {
    return ((100 * this.served) / Math.max(1, this.asked)).toFixed(1);
  }
}

class Counts {
  readonly bots = new Count();
  readonly searches = new Count();
  readonly carts = new Count();
  readonly cached = new Count();
}

/** All clients of one service, until `over` aborts. Each request is recorded in the `counts` that are current when it is made. */
class Simulation {
  counts = new Counts();
  readonly #service: Service;
  readonly #crowd: Crowd;
  readonly #over: AbortSignal;
  #asked = 0;

  constructor(service: Service, crowd: Crowd, over: AbortSignal) {
    this.#service = service;
    this.#crowd = crowd;
    this.#over = over;
    setMaxListeners(0, over);
  }

  async run(): Promise<void> {
    const searchesPerVisitor = (1 + MAX_SEARCHES_PER_VISITOR) / 2;
    await Promise.all([
      ...Array.from({ length: this.#crowd.bots }, (_, bot) => this.#runBot(bot)),
      this.#arrive(SEARCHES_PER_MINUTE / searchesPerVisitor, () => this.#visit()),
      this.#arrive(CARTS_PER_MINUTE, () => {
        const items = [{ domain: this.#newName(), action: "registration", years: 1 }];
        const body = JSON.stringify({ items });
        return this.#askWithRetry(this.counts.carts, { from: this.#newAddress(), path: "/v1/quotes", body });
      }),
      this.#arrive(CACHED_PER_MINUTE, async () => {
        const path = `/v1/availability?domain=${CACHED_NAME}`;
        await this.#ask(this.counts.cached, { from: this.#newAddress(), path });
      }),
    ]);
  }

  /** One bot, which asks for a new name at every tick. */
  async #runBot(bot: number): Promise<void> {
    const everyMs = MINUTE_MS / NAMES_PER_BOT_AND_MINUTE;
    if (!(await this.#passes(Math.random() * everyMs))) return;
    do {
      const path = `/v1/availability?domain=${this.#newName()}`;
      const from = this.#crowd.address(bot, this.#asked);
      const request = { from, path };
      const { bots } = this.counts;
      await Promise.all([
        this.#crowd.retries ? this.#askWithRetry(bots, request) : this.#ask(bots, request),
        this.#passes(everyMs),
      ]);
    } while (!this.#over.aborted);
  }

  /** One honest visitor. */
  async #visit(): Promise<void> {
    const from = this.#newAddress();
    const searches = 1 + Math.floor(Math.random() * MAX_SEARCHES_PER_VISITOR);
    for (let search = 0; search < searches && !this.#over.aborted; search += 1) {
      const path = `/v1/availability?domain=${this.#newName()}`;
      await Promise.all([
        this.#askWithRetry(this.counts.searches, { from, path }),
        this.#passes((3 + Math.random() * 5) * SECOND_MS),
      ]);
    }
  }

  /** Calls `come` at random times that are independent of each other. */
  async #arrive(perMinute: number, come: () => Promise<void>): Promise<void> {
    const all: Promise<void>[] = [];
    while (await this.#passes((-Math.log(1 - Math.random()) * MINUTE_MS) / perMinute)) all.push(come());
    await Promise.all(all);
  }

  /** Asks, and if refused retries once at the time in Retry-After. Only the first attempt counts as in time. */
  async #askWithRetry(count: Count, request: HttpRequest): Promise<void> {
    const { status, retryAfterMs, text } = await this.#ask(count, request);
    if (status !== 503 || retryAfterMs === null) return;
    count.retryTimesMs.push(retryAfterMs);
    if (!(await this.#passes(retryAfterMs))) return;
    const isServed = (await this.#service.ask(request)).status === 200;
    if (!isKept(text)) return;
    count.retried += 1;
    if (isServed) count.retriedServed += 1;
  }

  async #ask(count: Count, request: HttpRequest): Promise<Answer> {
    count.asked += 1;
    const answer = await this.#service.ask(request);
    if (answer.status === 200) count.served += 1;
    else if (answer.status !== 503) count.others.push(answer.status);
    return answer;
  }

  /** Waits, and returns whether the time passed before the end of the simulation. */
  #passes(ms: number): Promise<boolean> {
    return sleep(ms, true, { signal: this.#over }).catch(() => false);
  }

  #newName(): string {
    this.#asked += 1;
    return `name-${this.#asked}.af`;
  }

  #newAddress(): string {
    this.#asked += 1;
    return `172.${16 + ((this.#asked >> 16) & 15)}.${(this.#asked >> 8) & 255}.${this.#asked & 255}`;
  }
}

const PROBLEM = z.object({ kept: z.boolean() });

/** Whether a refusal says that a call is reserved. */
export function isKept(text: string): boolean {
  return PROBLEM.parse(JSON.parse(text)).kept;
}

function sum(counts: readonly Count[], what: "retried" | "retriedServed"): number {
  return counts.reduce((total, count) => total + count[what], 0);
}

async function simulate(crowd: Crowd) {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: MINUTE_MS },
    latency: { jitterMs: 0.2 * SECOND_MS },
  });
  const service = new Service(sandbox);
  try {
    await service.warm();
    const over = new AbortController();
    const simulation = new Simulation(service, crowd, over.signal);
    const running = simulation.run();
    await sleep(RAMP_MINUTES * MINUTE_MS);
    const counts = (simulation.counts = new Counts());
    await sleep(MINUTES * MINUTE_MS);
    over.abort();
    await running;
    const { searches, carts, cached, bots } = counts;
    const everybody = [searches, carts, cached, bots];
    const retryTimesMs = everybody.flatMap((count) => count.retryTimesMs).sort((a, b) => a - b);
    const others = everybody.flatMap((count) => count.others);
    const medianMs = retryTimesMs[retryTimesMs.length >> 1];
    const { key } = sandbox.credential();
    const credential = sandbox.stats().credentials.find((one) => one.key === key);
    return {
      bots: crowd.name,
      "honest in time %": searches.percent,
      "checkout %": carts.percent,
      "cached %": cached.percent,
      "bots served per minute": (bots.served / MINUTES).toFixed(1),
      "median Retry-After s": medianMs === undefined ? "" : medianMs / SECOND_MS,
      "reservations honoured": `${sum(everybody, "retriedServed")} / ${sum(everybody, "retried")} of ${retryTimesMs.length}`,
      "largest window": `${credential?.largestWindow ?? 0} / ${BUDGET}`,
      rejections: credential?.rejected429 ?? 0,
      "other answers": [...new Set(others)]
        .map((status) => `${others.filter((other) => other === status).length} × ${status || "none"}`)
        .join(", "),
    };
  } finally {
    await service.close();
    await sandbox.close();
  }
}

/** Prints how many honest visitors are served while bots continually ask for new names. */
export async function benchBots(): Promise<void> {
  const late = monitorEventLoopDelay({ resolution: 2 });
  late.enable();
  const rows = await Promise.all(CROWDS.map(simulate));
  late.disable();
  const lateSeconds = (nanoseconds: number): string => (nanoseconds / 1e6 / SECOND_MS).toFixed(1);
  console.log(
    `\nBots that each ask for ${NAMES_PER_BOT_AND_MINUTE} new names a minute, next to ${SEARCHES_PER_MINUTE} honest searches for new names, ${CARTS_PER_MINUTE} carts and ${CACHED_PER_MINUTE} requests for a known name a minute, for ${MINUTES} minutes`,
  );
  console.log(
    `a minute is scaled to ${MINUTE_MS} ms, and the longest wait is ${PATIENCE_MS} ms; the rows ran at the same time; event loop delay of this process in scaled time: p99 ${lateSeconds(late.percentile(99))} s, maximum ${lateSeconds(late.max)} s`,
  );
  console.table(rows);
  console.log(
    `reservations honoured: retries served / retries with a reservation, of all refusals. Refused clients retry once at the time in Retry-After, if it is before the end. Retry-After has whole real seconds, each of which is ${1000 / SECOND_MS} s of scaled time`,
  );
}
