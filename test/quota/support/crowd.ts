/** A crowd on a clock of its own: honest visitors who search a few names each, carts, and bots that ask for new names at a steady pace. */
import { ServiceError } from "../../../src/errors.js";
import type { Ask } from "../../../src/quota/quota.js";
import { ask, memoryQuota, outcome, toldMs, WINDOW_MS } from "./asks.js";

export interface CrowdSettings {
  readonly budget: number;
  readonly windows: number;
  readonly bots: number;
  /** Asks of each bot in a window. */
  readonly botPace: number;
  /** A refused bot stays away until the second that it was told. */
  readonly botsObey: boolean;
  /** A visitor searches once to so often, a few seconds apart. */
  readonly mostSearches: number;
  /** Numbers from 0 to 1. */
  readonly random: () => number;
}

/** Asks after the first window, those that were answered at once or after a wait, and what became of reservations at their second. */
export interface Served {
  asked: number;
  answered: number;
  retried: number;
  retriesAnswered: number;
}

export interface CrowdSeen {
  readonly honest: Served;
  readonly checkout: Served;
  readonly bots: Served;
  longestToldMs: number;
  /** When each call arrived at the upstream. */
  readonly arrivals: number[];
}

const SEARCHES_PER_WINDOW = 20;
const CARTS_PER_WINDOW = 4;
const LONGEST_CALL_MS = 1000;

/** Numbers from 0 to 1 that look random and come again with the same seed. */
export function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Lets the crowd ask for `windows` windows; every call takes up to a second and arrives somewhere within. */
export async function crowd(settings: CrowdSettings): Promise<CrowdSeen> {
  const { random } = settings;
  const { quota, clock } = memoryQuota(settings.budget);
  const endsAt = settings.windows * WINDOW_MS;
  const seen: CrowdSeen = {
    honest: nobody(),
    checkout: nobody(),
    bots: nobody(),
    longestToldMs: 0,
    arrivals: [],
  };
  let questions = 0;

  const call = (): Promise<void> => {
    const tookMs = random() * LONGEST_CALL_MS;
    seen.arrivals.push(clock.monotonic() + random() * tookMs);
    return new Promise((done) => {
      clock.after(tookMs, done);
    });
  };
  const sleep = (ms: number): Promise<void> =>
    new Promise((done) => {
      clock.after(ms, done);
    });
  const times = (mean: number): number => -Math.log(1 - random()) * mean;

  /** One ask, and one more at the second that was told. */
  async function visit(served: Served, more: Partial<Ask>): Promise<void> {
    const counts = clock.monotonic() > WINDOW_MS;
    questions += 1;
    const asked = ask({ ...more, queryKey: `name ${questions}` });
    const got = await outcome(quota.run(asked, call));
    if (counts) served.asked += 1;
    if (!(got instanceof ServiceError)) {
      if (counts) served.answered += 1;
      return;
    }
    const told = toldMs(got);
    if (counts) seen.longestToldMs = Math.max(seen.longestToldMs, told);
    if (clock.monotonic() + told > endsAt - WINDOW_MS) return;
    await sleep(told + random() * 200);
    const again = await outcome(quota.run({ ...asked, signal: new AbortController().signal }, call));
    if (!counts || got.kept !== true) return;
    served.retried += 1;
    if (!(again instanceof ServiceError)) served.retriesAnswered += 1;
  }

  async function visitor(client: string): Promise<void> {
    const searches = 1 + Math.floor(random() * settings.mostSearches);
    for (let n = 0; n < searches; n += 1) {
      void visit(seen.honest, { client, lane: "exact" });
      await sleep(2000 + random() * 6000);
    }
  }

  async function stream(meanMs: number, come: (n: number) => void): Promise<void> {
    for (let n = 0; clock.monotonic() < endsAt; n += 1) {
      await sleep(times(meanMs));
      come(n);
    }
  }

  async function bot(client: string): Promise<void> {
    const everyMs = WINDOW_MS / settings.botPace;
    await sleep(random() * everyMs);
    while (clock.monotonic() < endsAt) {
      const next = sleep(everyMs);
      if (settings.botsObey) await visit(seen.bots, { client, lane: "exact" });
      else {
        questions += 1;
        void outcome(quota.run(ask({ client, lane: "exact", queryKey: `name ${questions}` }), call));
      }
      await next;
    }
  }

  const perVisitor = (1 + settings.mostSearches) / 2;
  void stream((WINDOW_MS * perVisitor) / SEARCHES_PER_WINDOW, (n) => void visitor(`visitor ${n}`));
  void stream(WINDOW_MS / CARTS_PER_WINDOW, (n) => {
    void visit(seen.checkout, { client: `cart ${n}`, lane: "checkout" });
  });
  for (let n = 0; n < settings.bots; n += 1) void bot(`bot ${n}`);
  await clock.advance(endsAt);
  return seen;
}

function nobody(): Served {
  return { asked: 0, answered: 0, retried: 0, retriesAnswered: 0 };
}
