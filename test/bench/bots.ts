/**
 * Bots against honest people, through the whole service over HTTP and the real sandbox, in scaled time: a window stands for a minute, and
 * every pace and patience is scaled with it. Everybody has an address of his own and no client is limited, so what is measured is the
 * quota's fairness alone.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.js";
import { upstreamAt } from "../support/upstream.js";

export const LIMIT = 60;
export const BUDGET = 57;
/** A second of the story: long enough that the whole real seconds of Retry-After, for which calls are reserved, are a few of its seconds only. */
export const SECOND_MS = 200;
export const MINUTE_MS = 60 * SECOND_MS;
const PATIENCE_MS = 8 * SECOND_MS;
/** Not counted: the budget is still full at the start. */
const RAMP_MINUTES = 2;
const MINUTES = 18;

const NAMES_A_BOT_AND_MINUTE = 6;
const SEARCHES_A_MINUTE = 20;
const MOST_SEARCHES_A_VISITOR = 4;
const CARTS_A_MINUTE = 4;
const CACHED_A_MINUTE = 60;
/** Taken in the sandbox's world, so it stays cached for longer than all of this. */
const CACHED_NAME = "google.af";

interface Crowd {
  readonly name: string;
  readonly bots: number;
  /** The address that a bot sends its n-th request of all bots from. */
  readonly address: (bot: number, n: number) => string;
  /** A refused bot comes back at the second that it was told, as honest people do, before it asks for another name. */
  readonly obeys: boolean;
}

const CROWDS: readonly Crowd[] = [
  ...[5, 20, 100, 1000].map((bots) => ({
    name: String(bots),
    bots,
    address: ownAddress,
    obeys: false,
  })),
  { name: "20 that come back when told", bots: 20, address: ownAddress, obeys: true },
  {
    name: "100, each time from a new /64 of one /48",
    bots: 100,
    address: (_, n) => `2001:db8:66:${(n & 0xffff).toString(16)}::1`,
    obeys: false,
  },
];

function ownAddress(bot: number): string {
  return `10.66.${bot >> 8}.${bot & 255}`;
}

export interface Question {
  readonly from: string;
  readonly path: string;
  /** JSON, sent as a POST. */
  readonly body?: string;
  readonly token?: string;
}

export interface Answer {
  /** 0: there was none. */
  readonly status: number;
  /** As told, in real time: the scale does not reach the whole seconds of the field. */
  readonly retryAfterMs: number | null;
  readonly text: string;
}

const HEALTH = z.object({
  checks: z.object({ prices: z.tuple([z.object({ status: z.string() })]) }),
});

/** The service as a process of its own, with a sandbox in this one. */
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

  /** Until every price and the cached name are known, as in a service that has run for a while. */
  async warm(): Promise<void> {
    const from = "10.0.0.1";
    while ((await this.ask({ from, path: "/livez" })).status !== 200) await this.#lookAgain();
    const pricesKnown = async (): Promise<boolean> => {
      const { text } = await this.ask({ from, path: "/health" });
      return HEALTH.parse(JSON.parse(text)).checks.prices[0].status === "pass";
    };
    while (!(await pricesKnown())) await this.#lookAgain();
    while ((await this.ask({ from, path: `/v1/availability?domain=${CACHED_NAME}` })).status !== 200)
      await this.#lookAgain();
  }

  ask(question: Question): Promise<Answer> {
    const { from, path, body, token } = question;
    return new Promise((done) => {
      const lost = (): void => {
        done({ status: 0, retryAfterMs: null, text: "" });
      };
      const asked = request(
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
      asked.once("error", () => {
        // The service closed the idle connection just before it was used again.
        if (asked.reusedSocket) done(this.ask(question));
        else lost();
      });
      asked.end(body);
    });
  }

  async close(): Promise<void> {
    const gone = new Promise((done) => this.#child.once("exit", done));
    this.#child.kill("SIGKILL");
    await gone;
    this.#agent.destroy();
    rmSync(this.#stateDir, { recursive: true });
  }

  async #lookAgain(): Promise<void> {
    if (this.#child.exitCode !== null) throw new Error("the service has ended");
    await sleep(50);
  }
}

class Count {
  asked = 0;
  served = 0;
  retried = 0;
  retriedServed = 0;
  /** The statuses of answers that neither served nor refused for want of quota. */
  readonly others: number[] = [];
  /** Of those refused, in ms of real time. */
  readonly toldMs: number[] = [];

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

/** Everybody who asks one service, until told to stop. What is asked counts where `counts` points at that moment. */
class Story {
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

  async play(): Promise<void> {
    const searchesAVisitor = (1 + MOST_SEARCHES_A_VISITOR) / 2;
    await Promise.all([
      ...Array.from({ length: this.#crowd.bots }, (_, bot) => this.#pace(bot)),
      this.#arrive(SEARCHES_A_MINUTE / searchesAVisitor, () => this.#visit()),
      this.#arrive(CARTS_A_MINUTE, () => {
        const items = [{ domain: this.#newName(), action: "registration", years: 1 }];
        const body = JSON.stringify({ items });
        return this.#insist(this.counts.carts, { from: this.#newAddress(), path: "/v1/quotes", body });
      }),
      this.#arrive(CACHED_A_MINUTE, async () => {
        const path = `/v1/availability?domain=${CACHED_NAME}`;
        await this.#ask(this.counts.cached, { from: this.#newAddress(), path });
      }),
    ]);
  }

  /** One bot: a new name at every tick. */
  async #pace(bot: number): Promise<void> {
    const everyMs = MINUTE_MS / NAMES_A_BOT_AND_MINUTE;
    if (!(await this.#passes(Math.random() * everyMs))) return;
    do {
      const path = `/v1/availability?domain=${this.#newName()}`;
      const from = this.#crowd.address(bot, this.#asked);
      const asked = { from, path };
      const { bots } = this.counts;
      await Promise.all([
        this.#crowd.obeys ? this.#insist(bots, asked) : this.#ask(bots, asked),
        this.#passes(everyMs),
      ]);
    } while (!this.#over.aborted);
  }

  /** One honest visitor. */
  async #visit(): Promise<void> {
    const from = this.#newAddress();
    const searches = 1 + Math.floor(Math.random() * MOST_SEARCHES_A_VISITOR);
    for (let search = 0; search < searches && !this.#over.aborted; search += 1) {
      const path = `/v1/availability?domain=${this.#newName()}`;
      await Promise.all([
        this.#insist(this.counts.searches, { from, path }),
        this.#passes((3 + Math.random() * 5) * SECOND_MS),
      ]);
    }
  }

  /** At random moments, independent of each other. */
  async #arrive(perMinute: number, come: () => Promise<void>): Promise<void> {
    const all: Promise<void>[] = [];
    while (await this.#passes((-Math.log(1 - Math.random()) * MINUTE_MS) / perMinute)) all.push(come());
    await Promise.all(all);
  }

  /** Asks, and once more at the second that was told; only the first counts as in time. */
  async #insist(count: Count, question: Question): Promise<void> {
    const { status, retryAfterMs, text } = await this.#ask(count, question);
    if (status !== 503 || retryAfterMs === null) return;
    count.toldMs.push(retryAfterMs);
    if (!(await this.#passes(retryAfterMs))) return;
    const isServed = (await this.#service.ask(question)).status === 200;
    if (!isKept(text)) return;
    count.retried += 1;
    if (isServed) count.retriedServed += 1;
  }

  async #ask(count: Count, question: Question): Promise<Answer> {
    count.asked += 1;
    const answer = await this.#service.ask(question);
    if (answer.status === 200) count.served += 1;
    else if (answer.status !== 503) count.others.push(answer.status);
    return answer;
  }

  /** Whether the time passes before the story is over. */
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

async function tell(crowd: Crowd) {
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: MINUTE_MS },
    latency: { jitterMs: 0.2 * SECOND_MS },
  });
  const service = new Service(sandbox);
  try {
    await service.warm();
    const over = new AbortController();
    const story = new Story(service, crowd, over.signal);
    const played = story.play();
    await sleep(RAMP_MINUTES * MINUTE_MS);
    const counts = (story.counts = new Counts());
    await sleep(MINUTES * MINUTE_MS);
    over.abort();
    await played;
    const { searches, carts, cached, bots } = counts;
    const everybody = [searches, carts, cached, bots];
    const told = everybody.flatMap(({ toldMs }) => toldMs).sort((a, b) => a - b);
    const others = everybody.flatMap((count) => count.others);
    const medianToldMs = told[told.length >> 1];
    const { key } = sandbox.credential();
    const credential = sandbox.stats().credentials.find((one) => one.key === key);
    return {
      bots: crowd.name,
      "honest in time %": searches.percent,
      "checkout %": carts.percent,
      "cached %": cached.percent,
      "bots served a minute": (bots.served / MINUTES).toFixed(1),
      "retry told, median s": medianToldMs === undefined ? "" : medianToldMs / SECOND_MS,
      "reservations honoured": `${sum(everybody, "retriedServed")} / ${sum(everybody, "retried")} of ${told.length}`,
      "worst window": `${credential?.largestWindow ?? 0} / ${BUDGET}`,
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

/** Prints what honest people get while bots ask for new names without end. */
export async function benchBots(): Promise<void> {
  const late = monitorEventLoopDelay({ resolution: 2 });
  late.enable();
  const rows = await Promise.all(CROWDS.map(tell));
  late.disable();
  const lateSeconds = (nanoseconds: number): string => (nanoseconds / 1e6 / SECOND_MS).toFixed(1);
  console.log(
    `\nbots with ${NAMES_A_BOT_AND_MINUTE} new names a minute each, beside ${SEARCHES_A_MINUTE} honest cold searches, ${CARTS_A_MINUTE} carts and ${CACHED_A_MINUTE} questions with a known answer a minute, for ${MINUTES} minutes`,
  );
  console.log(
    `a minute is a window of ${MINUTE_MS} ms and the patience ${PATIENCE_MS} ms; the rows ran side by side; this process was late by ${lateSeconds(late.percentile(99))} s of that time in 1 % of its turns, at most ${lateSeconds(late.max)} s`,
  );
  console.table(rows);
  console.log(
    `reservations: refused searches and carts come back once at the second that they were told, if that is before the end; honoured of those that had a reservation, of all that were refused; the field has whole real seconds, each ${1000 / SECOND_MS} s of that time`,
  );
}
