/**
 * People who want answers at some multiple of the budget, on a clock of their own: half come back when told, three tenths try again every
 * 5 s, a fifth never return. Beside them carts, bots that never return, and the users of one address, as the settings say.
 */
import { ServiceError } from "../../../src/errors.js";
import type { Lane } from "../../../src/quota/lane.js";
import type { Quota, WaitFigures } from "../../../src/quota/quota.js";
import type { FakeClock } from "../../support/fake-clock.js";
import { ask, memoryQuota, toldMs, WINDOW_MS } from "./asks.js";
import { mulberry } from "./crowd.js";

export interface WaitsSettings {
  readonly budget: number;
  readonly windows: number;
  /** Visitors with addresses of their own, in budgets. */
  readonly load: number;
  /** Carts, in budgets. */
  readonly carts?: number;
  /** Users of one address, each with a query of its own, in budgets. */
  readonly behindOneAddress?: number;
  /** Bots with addresses of their own that never return, each with a new query a second. */
  readonly bots?: number;
  readonly seed: number;
}

export type Manner = "obedient" | "impatient" | "gone";

export interface Person {
  readonly manner: Manner;
  readonly lane: Lane;
  readonly bornAt: number;
  readonly behindOneAddress: boolean;
  servedAt: number | null;
  /** When it was served: back at the second that it was told, with a reservation or without; null: at its first ask, or too early. */
  cameBackAt: "reservation" | "second" | null;
  readonly toldMs: number[];
}

export interface WaitsSeen {
  readonly people: readonly Person[];
  /** Reservations that were come back to at their second, and those of them that were served. */
  readonly kept: { came: number; served: number };
  /** When each call arrived at the upstream. */
  readonly arrivals: readonly number[];
  readonly meanCallMs: number;
  /** What each quota says of waits. */
  readonly figures: readonly WaitFigures[];
}

/** Replicas of the quota, or one. */
export interface Replicas {
  readonly clock: FakeClock;
  readonly quotas: readonly Quota[];
  /** Which of them the next request reaches. */
  readonly balance: (request: number) => number;
}

/** The first windows, in which a full budget is used up, do not count. */
export const RAMP_WINDOWS = 3;
/** People born later might be served after the end. */
export const TAIL_MS = 200_000;

export const IMPATIENT_EVERY_MS = 5000;
export const IMPATIENT_FOR_MS = 120_000;
const LONGEST_CALL_MS = 600;

function single(budget: number): Replicas {
  const { quota, clock } = memoryQuota(budget);
  return { clock, quotas: [quota], balance: () => 0 };
}

export async function waits(
  settings: WaitsSettings,
  { clock, quotas, balance }: Replicas = single(settings.budget),
): Promise<WaitsSeen> {
  const { budget, windows, load, carts = 0, behindOneAddress = 0, bots = 0 } = settings;
  const random = mulberry(settings.seed);
  const endsAt = clock.monotonic() + windows * WINDOW_MS;
  const people: Person[] = [];
  const kept = { came: 0, served: 0 };
  const arrivals: number[] = [];
  let callsMs = 0;
  let made = 0;
  let requests = 0;
  let hasEnded = false;

  const next = (): Quota => {
    requests += 1;
    const quota = quotas[balance(requests) % quotas.length];
    if (quota === undefined) throw new Error("there is no such replica");
    return quota;
  };

  const call = (): Promise<void> => {
    const tookMs = random() * LONGEST_CALL_MS;
    callsMs += tookMs;
    arrivals.push(clock.monotonic() + random() * tookMs);
    return new Promise((done) => {
      clock.after(tookMs, done);
    });
  };

  function come(person: Person, client: string): void {
    made += 1;
    people.push(person);
    attempt(person, { client, queryKey: `name ${made}` }, false);
  }

  /** `isKept`: back at the second of a reservation. */
  function attempt(person: Person, who: { client: string; queryKey: string }, isKept: boolean): void {
    if (isKept) kept.came += 1;
    const { lane, manner } = person;
    const again = (inMs: number, withReservation: boolean): void => {
      if (clock.monotonic() + inMs < endsAt)
        clock.after(inMs, () => {
          if (person.servedAt === null) attempt(person, who, withReservation);
        });
    };
    next()
      .run(ask({ ...who, lane }), () => {
        person.servedAt ??= clock.monotonic();
        if (person.manner === "obedient" && person.toldMs.length > 0)
          person.cameBackAt = isKept ? "reservation" : "second";
        if (isKept) kept.served += 1;
        return call();
      })
      .catch((error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        if (hasEnded) return;
        const inMs = toldMs(error);
        person.toldMs.push(inMs);
        if (manner === "obedient") again(inMs + random() * 300, error.kept === true);
        if (manner === "impatient" && clock.monotonic() - person.bornAt < IMPATIENT_FOR_MS)
          again(IMPATIENT_EVERY_MS, false);
      });
  }

  function stream(perBudget: number, next: (bornAt: number) => void): void {
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

  const person = (bornAt: number, more: Partial<Person> = {}): Person => ({
    ...somebody(random(), bornAt),
    ...more,
  });
  stream(load, (at) => {
    come(person(at), `visitor ${made}`);
  });
  stream(carts, (at) => {
    come(person(at, { lane: "checkout", manner: "gone" }), `cart ${made}`);
  });
  stream(behindOneAddress, (at) => {
    come(person(at, { behindOneAddress: true }), "the address");
  });
  for (let bot = 0; bot < bots; bot += 1)
    stream(WINDOW_MS / 1000 / budget, () => {
      made += 1;
      next()
        .run(ask({ client: `bot ${bot}`, queryKey: `name ${made}` }), call)
        .catch(() => {});
    });
  await clock.advance(windows * WINDOW_MS);
  const figures = quotas.map((quota) => quota.snapshot().waits);
  hasEnded = true;
  const ended = Promise.all(quotas.map((quota) => quota.close()));
  await clock.advance(WINDOW_MS);
  await ended;
  return { people, kept, arrivals, meanCallMs: callsMs / Math.max(1, arrivals.length), figures };
}

/** A visitor of the manner that a number from 0 to 1 draws. */
export function somebody(drawn: number, bornAt: number): Person {
  return {
    manner: drawn < 0.5 ? "obedient" : drawn < 0.8 ? "impatient" : "gone",
    lane: "exact",
    bornAt,
    behindOneAddress: false,
    servedAt: null,
    cameBackAt: null,
    toldMs: [],
  };
}

/** Those who came after the ramp and long enough before the end. */
export function counted({ people }: WaitsSeen, windows: number): Person[] {
  return people.filter(
    ({ bornAt }) => bornAt > RAMP_WINDOWS * WINDOW_MS && bornAt < windows * WINDOW_MS - TAIL_MS,
  );
}

export function servedWithin(people: readonly Person[], ms: number): number {
  const served = people.filter(({ servedAt, bornAt }) => servedAt !== null && servedAt - bornAt <= ms);
  return served.length / people.length;
}

/** The mean time until people were served; one who was not counts as having waited for `mostMs`. */
export function meanWaitMs(people: readonly Person[], mostMs: number): number {
  const waitsMs = people.map(({ servedAt, bornAt }) => Math.min(mostMs, (servedAt ?? Infinity) - bornAt));
  return waitsMs.reduce((sum, ms) => sum + ms, 0) / people.length;
}

/** Calls from the end of the ramp on, as a part of what any safe policy could make: a slot rests a window after the end of its call. */
export function useOfSafeBound({ arrivals, meanCallMs }: WaitsSeen, budget: number, windows: number): number {
  const bound = ((windows - RAMP_WINDOWS) * WINDOW_MS * budget) / (WINDOW_MS + meanCallMs);
  const steady = arrivals.filter((at) => at > RAMP_WINDOWS * WINDOW_MS && at <= windows * WINDOW_MS);
  return steady.length / bound;
}

/** What the only quota said of waits. */
export function onlyFigures({ figures: [only] }: WaitsSeen): WaitFigures {
  if (only === undefined) throw new Error("there was no quota");
  return only;
}
