/** Simulates a crowd on its own clock: honest visitors who each search for a few names, carts, and bots that request new names at a steady rate. */
import { ServiceError } from "../../../src/errors.js";
import type { Ask } from "../../../src/quota/quota.js";
import { ask, memoryQuota, outcome, retryTimeMs, WINDOW_MS } from "./asks.js";

export interface CrowdSettings {
  readonly budget: number;
  readonly windows: number;
  readonly bots: number;
  /** Requests per bot and window. */
  readonly botRate: number;
  /** A refused bot waits for its retry time and retries once. */
  readonly botsRetry: boolean;
  /** Each visitor makes one to this many searches, a few seconds apart. */
  readonly maxSearches: number;
  /** Returns numbers from 0 to 1. */
  readonly random: () => number;
}

/**
 * Counts from the second window on: requests, requests answered without a refusal, reservations claimed on time, and how many of these were
 * answered.
 */
export interface Served {
  asked: number;
  answered: number;
  retried: number;
  retriesAnswered: number;
}

export interface CrowdResult {
  readonly honest: Served;
  readonly checkout: Served;
  readonly bots: Served;
  longestRetryTimeMs: number;
  /** When each call arrived at the upstream. */
  readonly arrivals: number[];
}

const SEARCHES_PER_WINDOW = 20;
const CARTS_PER_WINDOW = 4;
const MAX_CALL_MS = 1000;

/** A seeded random number generator (mulberry32). Returns numbers from 0 to 1. */
export function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Runs the crowd for `windows` windows. Every call takes up to a second, and arrives at a random moment during that time. */
export async function crowd(settings: CrowdSettings): Promise<CrowdResult> {
  const { random } = settings;
  const { quota, clock } = memoryQuota(settings.budget);
  const endsAt = settings.windows * WINDOW_MS;
  const result: CrowdResult = {
    honest: noneServed(),
    checkout: noneServed(),
    bots: noneServed(),
    longestRetryTimeMs: 0,
    arrivals: [],
  };
  let queries = 0;

  const call = (): Promise<void> => {
    const tookMs = random() * MAX_CALL_MS;
    result.arrivals.push(clock.monotonic() + random() * tookMs);
    return new Promise((done) => {
      clock.after(tookMs, done);
    });
  };
  const sleep = (ms: number): Promise<void> =>
    new Promise((done) => {
      clock.after(ms, done);
    });
  const nextInMs = (meanMs: number): number => -Math.log(1 - random()) * meanMs;

  /** Makes a request and, if it is refused, repeats it once at its retry time. */
  async function visit(served: Served, more: Partial<Ask>): Promise<void> {
    const counts = clock.monotonic() > WINDOW_MS;
    queries += 1;
    const request = ask({ ...more, queryKey: `name ${queries}` });
    const got = await outcome(quota.run(request, call));
    if (counts) served.asked += 1;
    if (!(got instanceof ServiceError)) {
      if (counts) served.answered += 1;
      return;
    }
    const inMs = retryTimeMs(got);
    if (counts) result.longestRetryTimeMs = Math.max(result.longestRetryTimeMs, inMs);
    if (clock.monotonic() + inMs > endsAt - WINDOW_MS) return;
    await sleep(inMs + random() * 200);
    const again = await outcome(quota.run({ ...request, signal: new AbortController().signal }, call));
    if (!counts || got.kept !== true) return;
    served.retried += 1;
    if (!(again instanceof ServiceError)) served.retriesAnswered += 1;
  }

  async function visitor(client: string): Promise<void> {
    const searches = 1 + Math.floor(random() * settings.maxSearches);
    for (let n = 0; n < searches; n += 1) {
      void visit(result.honest, { client, lane: "exact" });
      await sleep(2000 + random() * 6000);
    }
  }

  async function stream(meanMs: number, arrive: (n: number) => void): Promise<void> {
    for (let n = 0; clock.monotonic() < endsAt; n += 1) {
      await sleep(nextInMs(meanMs));
      arrive(n);
    }
  }

  async function bot(client: string): Promise<void> {
    const everyMs = WINDOW_MS / settings.botRate;
    await sleep(random() * everyMs);
    while (clock.monotonic() < endsAt) {
      const next = sleep(everyMs);
      if (settings.botsRetry) await visit(result.bots, { client, lane: "exact" });
      else {
        queries += 1;
        void outcome(quota.run(ask({ client, lane: "exact", queryKey: `name ${queries}` }), call));
      }
      await next;
    }
  }

  const perVisitor = (1 + settings.maxSearches) / 2;
  void stream((WINDOW_MS * perVisitor) / SEARCHES_PER_WINDOW, (n) => void visitor(`visitor ${n}`));
  void stream(WINDOW_MS / CARTS_PER_WINDOW, (n) => {
    void visit(result.checkout, { client: `cart ${n}`, lane: "checkout" });
  });
  for (let n = 0; n < settings.bots; n += 1) void bot(`bot ${n}`);
  await clock.advance(endsAt);
  return result;
}

function noneServed(): Served {
  return { asked: 0, answered: 0, retried: 0, retriesAnswered: 0 };
}
