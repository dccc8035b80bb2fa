/**
 * Simulates visitors who make requests at some multiple of the budget, on their own clock: half retry at their retry time, three tenths retry every
 * 5 s, and a fifth never return. The settings can add carts, bots that never return, and many users behind one address.
 */
import { ServiceError } from "../../../src/errors.js";
import type { Lane } from "../../../src/quota/lane.js";
import type { QuotaSnapshot } from "../../../src/quota/line.js";
import { ask, memoryQuota, retryTimeMs, WINDOW_MS } from "./asks.js";

export interface WaitsSettings {
  readonly budget: number;
  readonly windows: number;
  /** Visitors who each have their own address, in budgets. */
  readonly load: number;
  /** Carts, in budgets. */
  readonly carts?: number;
  /** Users behind one address, each with their own query, in budgets. */
  readonly behindOneAddress?: number;
  /** Bots that never return, each with its own address and one new query a second. */
  readonly bots?: number;
  readonly seed: number;
}

type Behaviour = "obedient" | "impatient" | "gone";

export interface Person {
  readonly behaviour: Behaviour;
  readonly lane: Lane;
  readonly arrivedAt: number;
  readonly behindOneAddress: boolean;
  servedAt: number | null;
  readonly retryTimesMs: number[];
}

export interface WaitsResult {
  readonly people: readonly Person[];
  /** Reservations whose holders returned on time, and how many of these were served. */
  readonly reservations: { claimed: number; served: number };
  /** When each call arrived at the upstream. */
  readonly arrivals: readonly number[];
  readonly meanCallMs: number;
  readonly figures: QuotaSnapshot["waits"];
}

/** The first windows don't count, because the budget is still full at the start. */
const RAMP_WINDOWS = 3;
/** People who arrive this late don't count, because they might be served after the end. */
export const TAIL_MS = 200_000;

const IMPATIENT_EVERY_MS = 5000;
const IMPATIENT_FOR_MS = 120_000;
const MAX_CALL_MS = 600;

/** A seeded random number generator (mulberry32). Returns numbers from 0 to 1. */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export async function waits(settings: WaitsSettings): Promise<WaitsResult> {
  const { budget, windows, load, carts = 0, behindOneAddress = 0, bots = 0 } = settings;
  const { quota, clock } = memoryQuota(budget);
  const random = mulberry(settings.seed);
  const endsAt = clock.monotonic() + windows * WINDOW_MS;
  const people: Person[] = [];
  const reservations = { claimed: 0, served: 0 };
  const arrivals: number[] = [];
  let callsMs = 0;
  let made = 0;
  let hasEnded = false;

  const call = (): Promise<void> => {
    const tookMs = random() * MAX_CALL_MS;
    callsMs += tookMs;
    arrivals.push(clock.monotonic() + random() * tookMs);
    return new Promise((done) => {
      clock.after(tookMs, done);
    });
  };

  function arrive(person: Person, client: string): void {
    made += 1;
    people.push(person);
    attempt(person, { client, queryKey: `name ${made}` }, false);
  }

  /** `isClaim`: whether the visitor returns at the second of a reservation. */
  function attempt(person: Person, who: { client: string; queryKey: string }, isClaim: boolean): void {
    if (isClaim) reservations.claimed += 1;
    const { lane, behaviour } = person;
    const again = (inMs: number, isReserved: boolean): void => {
      if (clock.monotonic() + inMs < endsAt)
        clock.after(inMs, () => {
          if (person.servedAt === null) attempt(person, who, isReserved);
        });
    };
    quota
      .run(ask({ ...who, lane }), () => {
        person.servedAt ??= clock.monotonic();
        if (isClaim) reservations.served += 1;
        return call();
      })
      .catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        if (hasEnded) return;
        const now = clock.monotonic();
        const inMs = retryTimeMs(error);
        person.retryTimesMs.push(inMs);
        if (behaviour === "obedient") again(inMs + random() * 300, error.kept === true);
        if (behaviour === "impatient" && now - person.arrivedAt < IMPATIENT_FOR_MS)
          again(IMPATIENT_EVERY_MS, false);
      });
  }

  function stream(perBudget: number, next: (at: number) => void): void {
    if (perBudget === 0) return;
    const later = (): void => {
      const inMs = (-Math.log(1 - random()) * WINDOW_MS) / (perBudget * budget);
      clock.after(inMs, () => {
        if (clock.monotonic() >= endsAt) return;
        next(clock.monotonic());
        later();
      });
    };
    later();
  }

  const person = (arrivedAt: number, more: Partial<Person> = {}): Person => ({
    ...randomPerson(random(), arrivedAt),
    ...more,
  });
  stream(load, (at) => {
    arrive(person(at), `visitor ${made}`);
  });
  stream(carts, (at) => {
    arrive(person(at, { lane: "checkout", behaviour: "gone" }), `cart ${made}`);
  });
  stream(behindOneAddress, (at) => {
    arrive(person(at, { behindOneAddress: true }), "the address");
  });
  for (let bot = 0; bot < bots; bot += 1)
    stream(WINDOW_MS / 1000 / budget, () => {
      made += 1;
      quota.run(ask({ client: `bot ${bot}`, queryKey: `name ${made}` }), call).catch(() => {});
    });
  const { stackTraceLimit } = Error;
  // The stacks of tens of thousands of refusals would take a fifth of the time.
  Error.stackTraceLimit = 0;
  await clock.advance(windows * WINDOW_MS);
  Error.stackTraceLimit = stackTraceLimit;
  const figures = quota.snapshot().waits;
  hasEnded = true;
  const closed = quota.close();
  await clock.advance(WINDOW_MS);
  await closed;
  return { people, reservations, arrivals, meanCallMs: callsMs / Math.max(1, arrivals.length), figures };
}

/** A visitor whose behaviour depends on a random number from 0 to 1. */
function randomPerson(drawn: number, arrivedAt: number): Person {
  return {
    behaviour: drawn < 0.5 ? "obedient" : drawn < 0.8 ? "impatient" : "gone",
    lane: "exact",
    arrivedAt,
    behindOneAddress: false,
    servedAt: null,
    retryTimesMs: [],
  };
}

/** The people who arrived after the ramp and long enough before the end. */
export function counted({ people }: WaitsResult, windows: number): Person[] {
  return people.filter(
    ({ arrivedAt }) => arrivedAt > RAMP_WINDOWS * WINDOW_MS && arrivedAt < windows * WINDOW_MS - TAIL_MS,
  );
}

export function servedWithin(people: readonly Person[], ms: number): number {
  const served = people.filter(({ servedAt, arrivedAt }) => servedAt !== null && servedAt - arrivedAt <= ms);
  return served.length / people.length;
}

/** The mean time until people were served. Those who weren't served count as having waited for `maxMs`. */
export function meanWaitMs(people: readonly Person[], maxMs: number): number {
  const waitsMs = people.map(({ servedAt, arrivedAt }) =>
    Math.min(maxMs, (servedAt ?? Infinity) - arrivedAt),
  );
  return waitsMs.reduce((sum, ms) => sum + ms, 0) / people.length;
}

/** The calls after the ramp, divided by those that any safe policy could make: a slot has to rest for a window after its call ends. */
export function useOfSafeBound(
  { arrivals, meanCallMs }: WaitsResult,
  budget: number,
  windows: number,
): number {
  const bound = ((windows - RAMP_WINDOWS) * WINDOW_MS * budget) / (WINDOW_MS + meanCallMs);
  const steady = arrivals.filter((at) => at > RAMP_WINDOWS * WINDOW_MS && at <= windows * WINDOW_MS);
  return steady.length / bound;
}
