/** Pools that share their facts, on a simulated clock: which one loads, which ones wait for it, and which facts hold. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { createPool, type GetOptions, type Pool, type PoolSettings } from "../../src/cache/cache.js";
import type { Asker } from "../../src/cache/single-flight.js";
import { type Caution, type Evidence, type Fact, weigh } from "../../src/cache/facts.js";
import type { SharedPool } from "../../src/cache/replicas.js";
import { createStamps } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock, settle } from "../support/fake-clock.js";
import { caller, factNow, failureKind, NO_QUOTA, Source, TOO_MANY, UPSTREAM_DOWN } from "./support/loads.js";

const START = Date.UTC(2026, 2, 20);
const FRESH_MS = 30_000;
const USABLE_MS = 60_000;
const CLAIM_MS = 1_000;

const caution: Caution<string> = (a, b) => (a === b ? 0 : a < b ? -1 : 1);

/** The store that replicas share. It can break, and a replica that holds a claim can die. */
class SharedStore {
  readonly facts = new Map<string, Evidence<string>>();
  broken = false;
  commands = 0;
  readonly #claims = new Map<string, number>();
  readonly #forget = new Set<() => void>();
  #generation = 0;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  /** Adds a fact that another replica has learned. */
  add(key: string, fact: Fact<string>): void {
    const at = `${this.#generation} ${key}`;
    this.facts.set(at, weigh(this.facts.get(at), fact, caution));
  }

  /** `alive` returns false once the replica has died: its claims are neither renewed nor released any more. */
  pool(alive: () => boolean = () => true, latencyMs = 0): SharedPool<string> {
    let own: () => void = () => {};
    // Commands are executed in order, each after the latency.
    const command = async <T>(act: () => T): Promise<T> => {
      await new Promise<void>((arrived) => {
        if (latencyMs === 0) arrived();
        else this.#clock.after(latencyMs, arrived);
      });
      this.commands += 1;
      if (this.broken) throw new Error("broken");
      return act();
    };
    return {
      isAvailable: () => true,
      at: (key) => {
        const at = `${this.#generation} ${key}`;
        const renew = (): void => {
          if (!alive() || !this.#claims.has(at)) return;
          this.#claims.set(at, this.#clock.monotonic() + CLAIM_MS);
          this.#clock.after(CLAIM_MS / 3, renew);
        };
        return {
          read: () => command(() => this.facts.get(at)?.standing ?? []),
          write: (fact) =>
            command(() => {
              const evidence = weigh(this.facts.get(at), fact, caution);
              this.facts.set(at, evidence);
              return evidence.standing;
            }),
          claim: () =>
            command(() => {
              if ((this.#claims.get(at) ?? -Infinity) > this.#clock.monotonic()) return null;
              this.#claims.set(at, this.#clock.monotonic());
              renew();
              return {
                release: async () => {
                  if (alive()) await command(() => void this.#claims.delete(at)).catch(() => undefined);
                },
              };
            }),
        };
      },
      purge: () => {
        this.#generation += 1;
        for (const forget of this.#forget) if (forget !== own) forget();
      },
      onPurged: (forget) => {
        own = forget;
        this.#forget.add(forget);
      },
    };
  }
}

let clock: FakeClock;
let stamp: () => number;
let store: SharedStore;
let source: Source;
let one: Pool<string, Asker>;
let two: Pool<string, Asker>;

function poolAt(
  shared: SharedPool<string>,
  settings: Partial<PoolSettings<string>> = {},
): Pool<string, Asker> {
  return createPool({
    entries: 100,
    freshness: () => ({ freshMs: FRESH_MS, usableMs: USABLE_MS }),
    failureMs: 3_000,
    failureKind,
    caution,
    clock,
    stamp,
    shared,
    ...settings,
  });
}

beforeEach(() => {
  clock = new FakeClock(START);
  stamp = createStamps(clock);
  store = new SharedStore(clock);
  source = new Source(stamp);
  one = poolAt(store.pool());
  two = poolAt(store.pool());
});

const ask = (pool: Pool<string, Asker>, options: GetOptions = {}, who: Asker = caller()) =>
  pool.get("a", who, source.load, options);

/** Accepts only facts requested within the last `ms`. */
const within = (ms: number): GetOptions => ({ askedSinceMs: clock.monotonic() - ms });

async function learn(pool: Pool<string, Asker>, value: string): Promise<void> {
  await pool.get("a", caller(), () => Promise.resolve(factNow(value, stamp)));
  await settle();
}

/** Adds a fact about "a" that another replica requested `agoMs` ago. */
function addAsked(value: string, agoMs: number): void {
  const askedMs = stamp() - agoMs;
  store.add("a", { value, askedMs, answeredMs: askedMs + 0.000_05 });
}

describe("a load that two replicas need at the same time", () => {
  test("is made by one, and the other gets its answer soon after", async () => {
    const first = Array.from({ length: 20 }, () => ask(one));
    await settle();
    const second = Array.from({ length: 20 }, () => ask(two));
    await clock.advance(500);
    expect(source.loads).toBe(1);
    await source.answer("1");
    await clock.advance(50);
    const sources = (await Promise.all([...first, ...second])).map((known) => known.source);
    expect(sources.filter((name) => name === "miss")).toHaveLength(1);
    expect(sources.filter((name) => name === "hit")).toHaveLength(1);
    expect(two.stats().counts).toEqual({ hit: 1, inflight: 19, miss: 0, stale: 0, failed: 0, shared: 1 });
    expect(source.loads).toBe(1);
  });

  test("is made by the other as soon as the first one has failed, and never by both at once", async () => {
    const first = expect(ask(one)).rejects.toBe(NO_QUOTA);
    await settle();
    const second = ask(two);
    await clock.advance(100);
    await source.fail(NO_QUOTA);
    await first;
    await clock.advance(50);
    expect([source.loads, source.maxOpen]).toEqual([2, 1]);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1", source: "miss" });
  });

  test("is made by the other a second after the first one has died", async () => {
    let alive = true;
    const dying = poolAt(store.pool(() => alive));
    ask(dying).catch(() => undefined);
    await settle();
    const second = ask(two);
    await clock.advance(5_000);
    expect(source.loads).toBe(1);
    alive = false;
    await clock.advance(CLAIM_MS + 50);
    expect(source.loads).toBe(2);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1" });
  });

  test("is made by the other as well after ten seconds", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const second = ask(two);
    await clock.advance(9_900);
    expect(source.loads).toBe(1);
    await clock.advance(200);
    expect(source.loads).toBe(2);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1" });
  });

  test("is made immediately for a caller that can't wait, and serves those who wait already", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const patient = ask(two);
    await clock.advance(200);
    expect(source.loads).toBe(1);
    const urgent = ask(two, { ...within(5_000), othersMs: 0 });
    await clock.advance(50);
    expect(source.loads).toBe(2);
    await source.answer("1");
    await expect(patient).resolves.toMatchObject({ value: "1" });
    await expect(urgent).resolves.toMatchObject({ value: "1" });
  });

  test("is no longer polled for when its callers have left", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const leaving = caller();
    const gone = expect(ask(two, {}, leaving)).rejects.toThrow(ServiceError);
    await clock.advance(200);
    leaving.leave();
    await gone;
    await settle();
    const before = store.commands;
    await clock.advance(250);
    // The first one's claim is renewed without commands here.
    expect(store.commands).toBe(before);
    expect(two.stats().inflight).toBe(0);
    expect(source.loads).toBe(1);
  });

  test("is taken over without delay when the callers of the first replica leave", async () => {
    const leaving = caller();
    const gone = expect(
      one.get(
        "a",
        leaving,
        ({ signal }) =>
          new Promise((_, reject) => {
            signal.addEventListener("abort", () => {
              reject(NO_QUOTA);
            });
          }),
      ),
    ).rejects.toThrow(ServiceError);
    await settle();
    const second = ask(two);
    await clock.advance(100);
    leaving.leave();
    await gone;
    await clock.advance(50);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1", source: "miss" });
  });

  test("is never made twice at once, or again after an answer, whoever joins, leaves or fails", async () => {
    const arrival = fc.record({
      atMs: fc.integer({ min: 0, max: 2_000 }),
      replica: fc.integer({ min: 0, max: 3 }),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 1_500 })),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(arrival, { minLength: 1, maxLength: 25 }),
        fc.array(fc.record({ tookMs: fc.integer({ min: 1, max: 900 }), fails: fc.boolean() }), {
          minLength: 1,
          maxLength: 30,
        }),
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 4, maxLength: 4 }),
        async (arrivals, endings, latencies) => {
          clock = new FakeClock(START);
          stamp = createStamps(clock);
          store = new SharedStore(clock);
          const pools = latencies.map((latencyMs) => poolAt(store.pool(undefined, latencyMs)));
          let asked = 0;
          let open = 0;
          let answeredAtMs = Infinity;
          const late: number[] = [];
          const load = ({ signal }: { signal: AbortSignal }): Promise<Fact<string>> => {
            const askedMs = stamp();
            const { tookMs, fails } = endings[asked % endings.length] ?? { tookMs: 1, fails: false };
            asked += 1;
            open += 1;
            expect(open).toBe(1);
            if (clock.monotonic() > answeredAtMs) late.push(clock.monotonic());
            return new Promise((resolve, reject) => {
              const end = (how: () => void): void => {
                cancel();
                open -= 1;
                how();
              };
              const cancel = clock.after(tookMs, () => {
                end(() => {
                  if (fails) return reject(NO_QUOTA);
                  answeredAtMs = Math.min(answeredAtMs, clock.monotonic());
                  resolve({ value: "1", askedMs, answeredMs: stamp() });
                });
              });
              signal.addEventListener("abort", () => {
                if (open > 0)
                  end(() => {
                    reject(NO_QUOTA);
                  });
              });
            });
          };
          const stayed: Promise<unknown>[] = [];
          for (const { atMs, replica, leavesAfterMs } of arrivals) {
            clock.after(atMs, () => {
              const who = caller();
              const answer = pools[replica]?.get("a", who, load).then(
                ({ value }) => value,
                (error: unknown) => error,
              );
              if (leavesAfterMs === null) stayed.push(Promise.resolve(answer));
              else clock.after(leavesAfterMs, who.leave);
            });
          }
          await clock.advance(2_000 + 25 * 1_000);
          expect(late).toEqual([]);
          for (const answer of await Promise.all(stayed))
            expect(answer === "1" || answer === NO_QUOTA).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("a fact of another replica", () => {
  test("is answered as a hit, and from memory after that", async () => {
    await learn(one, "1");
    await clock.advance(500);
    await expect(ask(two)).resolves.toMatchObject({ value: "1", asOfMs: START, source: "hit" });
    const before = store.commands;
    await expect(ask(two)).resolves.toMatchObject({ source: "hit" });
    expect(store.commands).toBe(before);
    expect(source.loads).toBe(0);
  });

  test("is as old as its request, and is loaded again when it is no longer fresh", async () => {
    addAsked("old", FRESH_MS + 1);
    const answer = ask(two);
    await settle();
    expect(source.loads).toBe(1);
    await source.answer("new");
    await expect(answer).resolves.toMatchObject({ value: "new", source: "miss" });
  });

  test("is returned as stale while the load fails, up to its usable age", async () => {
    addAsked("old", 59_000);
    const failing = (): Promise<never> => Promise.reject(UPSTREAM_DOWN);
    await expect(two.get("a", caller(), failing)).resolves.toMatchObject({
      value: "old",
      asOfMs: START - 59_000,
      source: "stale",
    });
    await clock.advance(1_001);
    await expect(two.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    await clock.advance(3_000);
    await expect(two.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
  });

  test("isn't returned past its usable age, even within its freshness", async () => {
    two = poolAt(store.pool(), { freshness: () => ({ freshMs: 600_000, usableMs: USABLE_MS }) });
    addAsked("old", USABLE_MS + 1);
    const answer = ask(two);
    await settle();
    expect(source.loads).toBe(1);
    await source.answer("new");
    await expect(answer).resolves.toMatchObject({ value: "new" });
  });

  test("doesn't replace a newer fact here", async () => {
    await learn(one, "new");
    addAsked("old", 10_000);
    await expect(one.consult("a")).resolves.toMatchObject({ value: "new" });
    expect(one.peek("a")?.value).toBe("new");
  });

  test("can be consulted without a load, also if it is newer than the fact here", async () => {
    await expect(two.consult("a")).resolves.toBeUndefined();
    await learn(two, "1");
    await clock.advance(100);
    addAsked("2", 0);
    await expect(two.consult("a")).resolves.toMatchObject({ value: "2", asOfMs: START + 100, source: "hit" });
    expect(two.peek("a")?.value).toBe("2");
  });

  test("isn't used for a caller with `askedSinceMs`, unless it is recent enough", async () => {
    await learn(one, "1");
    await clock.advance(6_000);
    const recent = ask(two, within(5_000));
    await settle();
    expect(source.loads).toBe(1);
    await source.answer("2");
    await expect(recent).resolves.toMatchObject({ value: "2", source: "miss" });
    const again = poolAt(store.pool());
    await expect(ask(again, within(5_000))).resolves.toMatchObject({ value: "2", source: "hit" });
  });

  test("is recent enough for such a caller if it was learned while the caller waited", async () => {
    await learn(two, "old");
    await clock.advance(1_000);
    ask(one, within(0)).catch(() => undefined);
    await settle();
    const recent = ask(two, within(10));
    await clock.advance(500);
    await source.answer("new");
    await clock.advance(50);
    await expect(recent).resolves.toMatchObject({ value: "new", source: "hit" });
    expect(source.loads).toBe(1);
  });

  test("isn't used for a caller whose `askedSinceMs` is later than its request", async () => {
    ask(one).catch(() => undefined);
    await settle();
    await clock.advance(100);
    const insisting = ask(two, { askedSinceMs: stamp() });
    await clock.advance(500);
    await source.answer("old");
    await clock.advance(50);
    expect(source.loads).toBe(2);
    await source.answer("new");
    await expect(insisting).resolves.toMatchObject({ value: "new", source: "miss" });
  });

  test("isn't returned to a caller that joined later and needs a newer one", async () => {
    await learn(one, "1");
    await clock.advance(6_000);
    const anyAge = ask(two);
    // Joins after the other's answer has been looked up, before it is handed out.
    for (let turns = 0; two.stats().counts.shared === 0 && turns < 20; turns += 1) await Promise.resolve();
    expect(two.stats().inflight).toBe(1);
    const recent = ask(two, within(5_000));
    await expect(anyAge).resolves.toMatchObject({ value: "1" });
    await settle();
    await source.answer("2");
    await expect(recent).resolves.toMatchObject({ value: "2" });
  });
});

describe("when two replicas get answers at the same time,", () => {
  const early = { value: "available", askedMs: 10, answeredMs: 20 };
  const late = { value: "taken", askedMs: 30, answeredMs: 40 };
  const across = { value: "available", askedMs: 35, answeredMs: 60 };

  test.each([
    { first: early, second: late },
    { first: late, second: early },
  ])("the later one holds on both ($first.value first)", async ({ first, second }) => {
    await one.learn("a", first);
    await two.learn("a", second);
    for (const pool of [one, two])
      await expect(pool.consult("a")).resolves.toMatchObject({ value: "taken", settled: true });
  });

  test.each([
    { first: across, second: late },
    { first: late, second: across },
  ])(
    "the more cautious one holds on both if they overlap ($first.value first)",
    async ({ first, second }) => {
      await one.learn("a", first);
      await two.learn("a", second);
      for (const pool of [one, two])
        await expect(pool.consult("a")).resolves.toMatchObject({ value: "taken", settled: false });
    },
  );

  test("a replica whose load returned an outdated fact answers with that of another replica", async () => {
    two = poolAt(store.pool(undefined, 5));
    const waiting = ask(two);
    await clock.advance(20);
    expect(source.loads).toBe(1);
    await one.learn("a", factNow("taken", stamp));
    await source.answer("available");
    await clock.advance(50);
    await expect(waiting).resolves.toMatchObject({ value: "taken", settled: false, source: "miss" });
  });

  test("learning resolves once the facts of the others are known here", async () => {
    await one.learn("a", late);
    await two.learn("a", early);
    expect(two.peek("a")).toMatchObject({ value: "taken" });
  });

  test("learning never fails because of the others", async () => {
    store.broken = true;
    await one.learn("a", late);
    expect(one.peek("a")).toMatchObject({ value: "taken" });
  });
});

describe("without the shared store,", () => {
  test("each replica loads for itself immediately", async () => {
    store.broken = true;
    const answers = [ask(one), ask(two)];
    await settle();
    expect(source.loads).toBe(2);
    await source.answer("1");
    for (const answer of answers) await expect(answer).resolves.toMatchObject({ source: "miss" });
    await expect(one.consult("a")).resolves.toMatchObject({ value: "1" });
  });

  test("a caller that waits for another replica loads immediately when the shared store fails", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const second = ask(two);
    await clock.advance(200);
    store.broken = true;
    await clock.advance(50);
    expect(source.loads).toBe(2);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1" });
  });
});

describe("a purge", () => {
  test("on one replica applies to all, and facts from before it are never found", async () => {
    await learn(one, "1");
    await ask(two);
    expect(one.purge()).toBe(1);
    expect(two.stats().entries).toBe(0);
    const answers = [ask(one), ask(two)];
    await settle();
    expect(source.loads).toBe(1);
    await source.answer("2");
    await clock.advance(50);
    for (const answer of answers) await expect(answer).resolves.toMatchObject({ value: "2" });
  });

  test("rejects a fact that was just being read", async () => {
    addAsked("old", 0);
    const early = ask(two);
    one.purge();
    await expect(early).resolves.toMatchObject({ value: "old" });
    expect(two.peek("a")).toBeUndefined();
  });

  test("rejects an answer that was in flight", async () => {
    const early = ask(one);
    await settle();
    two.purge();
    await source.answer("old");
    await expect(early).resolves.toMatchObject({ value: "old" });
    const later = ask(two);
    await settle();
    expect(source.loads).toBe(2);
    await source.answer("new");
    await expect(later).resolves.toMatchObject({ value: "new" });
    await expect(ask(one)).resolves.toMatchObject({ value: "new", source: "hit" });
  });

  test("rejects the result of a load in flight, in the pool that loads, in all others, and when learned", async () => {
    const waiting = ask(one);
    await settle();
    const early = { value: "old", askedMs: stamp(), answeredMs: stamp() };
    two.purge();
    await source.answer("old");
    await waiting;
    await one.learn("a", early);
    await two.learn("a", early);
    for (const pool of [one, two]) await expect(pool.consult("a")).resolves.toBeUndefined();
    expect(store.facts.size).toBe(0);
    await one.learn("a", factNow("new", stamp));
    await expect(two.consult("a")).resolves.toMatchObject({ value: "new" });
  });
});

test("a caller that joined a load that failed only for its starter starts its own", async () => {
  const refused = expect(one.get("a", caller(), () => Promise.reject(TOO_MANY))).rejects.toBe(TOO_MANY);
  const joined = ask(one);
  await refused;
  await settle();
  await source.answer("1");
  await expect(joined).resolves.toMatchObject({ value: "1" });
});
