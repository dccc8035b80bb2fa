/** Pools that share a tier, with time in the test's hand: who asks, who waits for whom, and what is believed of what others say. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Asker, createPool, type GetOptions, type Pool } from "../../src/cache/cache.js";
import type { Fact, SharedTier } from "../../src/cache/shared-tier.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock, settle } from "../support/fake-clock.js";

const START = Date.UTC(2026, 2, 20);
const FRESH_MS = 30_000;
const USABLE_MS = 60_000;
const CLAIM_MS = 1_000;
const UPSTREAM_DOWN = new ServiceError("upstream_failed", "The registry service is down.");
const NO_QUOTA = new ServiceError("quota_exhausted", "Later.", { retryAfterMs: 10 });

/** A place to meet that can break, and where a holder can die. */
class MeetingPoint {
  readonly facts = new Map<string, Fact<string>>();
  broken = false;
  commands = 0;
  readonly #claims = new Map<string, number>();
  readonly #forget = new Set<() => void>();
  #generation = 0;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  /** `alive` ends when its replica dies: its claims are renewed no more, nor let go. */
  tier(alive: () => boolean = () => true, latencyMs = 0): SharedTier<string> {
    let own: () => void = () => {};
    // In the order in which they were given, each some time after.
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
      place: (key) => {
        const at = `${this.#generation} ${key}`;
        const renew = (): void => {
          if (!alive() || !this.#claims.has(at)) return;
          this.#claims.set(at, this.#clock.monotonic() + CLAIM_MS);
          this.#clock.after(CLAIM_MS / 3, renew);
        };
        return {
          read: () => command(() => this.facts.get(at) ?? null),
          write: (fact) => command(() => void this.facts.set(at, fact)),
          claim: () =>
            command(() => {
              if ((this.#claims.get(at) ?? -Infinity) > this.#clock.monotonic()) return null;
              this.#claims.set(at, this.#clock.monotonic());
              renew();
              return {
                letGo: async () => {
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

/** A question whose end the test decides. */
class Source {
  asked = 0;
  /** The most that were under way at once. */
  most = 0;
  #open: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];

  readonly load = (): Promise<string> => {
    this.asked += 1;
    return new Promise((resolve, reject) => {
      this.#open.push({ resolve, reject });
      this.most = Math.max(this.most, this.#open.length);
    });
  };

  answer(value: string): Promise<void> {
    for (const { resolve } of this.#open.splice(0)) resolve(value);
    return settle();
  }

  fail(error: Error): Promise<void> {
    for (const { reject } of this.#open.splice(0)) reject(error);
    return settle();
  }
}

interface Caller extends Asker {
  leave(): void;
}

function caller(): Caller {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    leave: () => {
      controller.abort();
    },
  };
}

let clock: FakeClock;
let point: MeetingPoint;
let source: Source;
let one: Pool<string, Asker>;
let two: Pool<string, Asker>;

function poolAt(shared: SharedTier<string>): Pool<string, Asker> {
  return createPool({
    entries: 100,
    freshness: () => ({ freshMs: FRESH_MS, usableMs: USABLE_MS }),
    failureMs: 3_000,
    clock,
    shared,
  });
}

beforeEach(() => {
  clock = new FakeClock(START);
  point = new MeetingPoint(clock);
  source = new Source();
  one = poolAt(point.tier());
  two = poolAt(point.tier());
});

const ask = (pool: Pool<string, Asker>, options: GetOptions = {}, who: Asker = caller()) =>
  pool.get("a", who, source.load, options);

async function learn(pool: Pool<string, Asker>, value: string): Promise<void> {
  await pool.get("a", caller(), () => Promise.resolve(value));
  await settle();
}

/** What the other replicas are told of "a". */
function say(value: string, asOfMs: number): void {
  point.facts.set("0 a", { value, asOfMs });
}

describe("a question that two replicas have at once", () => {
  test("is asked by one, and the other has its answer soon after", async () => {
    const first = Array.from({ length: 20 }, () => ask(one));
    await settle();
    const second = Array.from({ length: 20 }, () => ask(two));
    await clock.advance(500);
    expect(source.asked).toBe(1);
    await source.answer("1");
    await clock.advance(50);
    const sources = (await Promise.all([...first, ...second])).map((known) => known.source);
    expect(sources.filter((name) => name === "miss")).toHaveLength(1);
    expect(sources.filter((name) => name === "hit")).toHaveLength(1);
    expect(two.stats().counts).toEqual({ hit: 1, inflight: 19, miss: 0, stale: 0, failed: 0, shared: 1 });
    expect(source.asked).toBe(1);
  });

  test("is asked by the other as soon as the first one has failed, and by no two at once", async () => {
    const first = expect(ask(one)).rejects.toBe(NO_QUOTA);
    await settle();
    const second = ask(two);
    await clock.advance(100);
    await source.fail(NO_QUOTA);
    await first;
    await clock.advance(50);
    expect([source.asked, source.most]).toEqual([2, 1]);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1", source: "miss" });
  });

  test("is asked by the other a second after the first one has died", async () => {
    let alive = true;
    const dying = poolAt(point.tier(() => alive));
    ask(dying).catch(() => undefined);
    await settle();
    const second = ask(two);
    await clock.advance(5_000);
    expect(source.asked).toBe(1);
    alive = false;
    await clock.advance(CLAIM_MS + 50);
    expect(source.asked).toBe(2);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1" });
  });

  test("is asked by the other in spite of the first after ten seconds", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const second = ask(two);
    await clock.advance(9_900);
    expect(source.asked).toBe(1);
    await clock.advance(200);
    expect(source.asked).toBe(2);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1" });
  });

  test("is asked at once by who must know now, also in the name of those who wait already", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const patient = ask(two);
    await clock.advance(200);
    expect(source.asked).toBe(1);
    const urgent = ask(two, { maxAgeMs: 5_000, othersMs: 0 });
    await clock.advance(50);
    expect(source.asked).toBe(2);
    await source.answer("1");
    await expect(patient).resolves.toMatchObject({ value: "1" });
    await expect(urgent).resolves.toMatchObject({ value: "1" });
  });

  test("is followed no longer when those who wait for it have gone", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const leaving = caller();
    const gone = expect(ask(two, {}, leaving)).rejects.toThrow(ServiceError);
    await clock.advance(200);
    leaving.leave();
    await gone;
    await settle();
    const before = point.commands;
    await clock.advance(250);
    // The first one's own claim is kept without commands here.
    expect(point.commands).toBe(before);
    expect(two.stats().inflight).toBe(0);
    expect(source.asked).toBe(1);
  });

  test("that its leader's callers have left is taken over without delay", async () => {
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

  test("never has two askers at once, nor a second one after an answer, whoever comes, goes and fails", async () => {
    const happening = fc.record({
      atMs: fc.integer({ min: 0, max: 2_000 }),
      replica: fc.integer({ min: 0, max: 3 }),
      leavesAfterMs: fc.option(fc.integer({ min: 0, max: 1_500 })),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(happening, { minLength: 1, maxLength: 25 }),
        fc.array(fc.record({ tookMs: fc.integer({ min: 1, max: 900 }), fails: fc.boolean() }), {
          minLength: 1,
          maxLength: 30,
        }),
        fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 4, maxLength: 4 }),
        async (happenings, endings, latencies) => {
          clock = new FakeClock(START);
          point = new MeetingPoint(clock);
          const pools = latencies.map((latencyMs) => poolAt(point.tier(undefined, latencyMs)));
          let asked = 0;
          let open = 0;
          let answeredAtMs = Infinity;
          const late: number[] = [];
          const load = ({ signal }: { signal: AbortSignal }): Promise<string> => {
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
                  resolve("1");
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
          for (const { atMs, replica, leavesAfterMs } of happenings) {
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

describe("what another replica has learned", () => {
  test("is answered as a hit, and from memory after that", async () => {
    await learn(one, "1");
    await clock.advance(500);
    await expect(ask(two)).resolves.toEqual({ value: "1", asOfMs: START, source: "hit" });
    const before = point.commands;
    await expect(ask(two)).resolves.toMatchObject({ source: "hit" });
    expect(point.commands).toBe(before);
    expect(source.asked).toBe(0);
  });

  test("counts from when it was true, and is asked for anew when it is not fresh any more", async () => {
    say("old", START - FRESH_MS - 1);
    const answer = ask(two);
    await settle();
    expect(source.asked).toBe(1);
    await source.answer("new");
    await expect(answer).resolves.toMatchObject({ value: "new", source: "miss" });
  });

  test("is shown as stale when the upstream cannot be asked, up to its bound", async () => {
    say("old", START - 59_000);
    const failing = (): Promise<never> => Promise.reject(UPSTREAM_DOWN);
    await expect(two.get("a", caller(), failing)).resolves.toEqual({
      value: "old",
      asOfMs: START - 59_000,
      source: "stale",
    });
    await clock.advance(1_001);
    await expect(two.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    await clock.advance(3_000);
    await expect(two.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
  });

  test("is not shown beyond its bound, however long it would be fresh", async () => {
    two = createPool({
      entries: 10,
      freshness: () => ({ freshMs: 600_000, usableMs: USABLE_MS }),
      failureMs: 3_000,
      clock,
      shared: point.tier(),
    });
    say("old", START - USABLE_MS - 1);
    const answer = ask(two);
    await settle();
    expect(source.asked).toBe(1);
    await source.answer("new");
    await expect(answer).resolves.toMatchObject({ value: "new" });
  });

  test("is not believed when it is from the future, but for a clock that is a little ahead", async () => {
    say("future", START + 1_001);
    const answer = ask(two);
    await settle();
    expect(source.asked).toBe(1);
    await source.answer("1");
    await expect(answer).resolves.toMatchObject({ value: "1" });

    point = new MeetingPoint(clock);
    say("ahead", START + 1_000);
    const three = poolAt(point.tier());
    await expect(ask(three)).resolves.toEqual({ value: "ahead", asOfMs: START, source: "hit" });
    await clock.advance(USABLE_MS + 1);
    expect(three.peek("a")).toBeUndefined();
  });

  test("does not replace what is newer here", async () => {
    await learn(one, "new");
    say("old", START - 10_000);
    await expect(one.consult("a")).resolves.toMatchObject({ value: "new" });
    expect(one.peek("a")?.value).toBe("new");
  });

  test("can be consulted without a question to the upstream, also when it is newer than what is known here", async () => {
    await expect(two.consult("a")).resolves.toBeUndefined();
    await learn(two, "1");
    await clock.advance(100);
    say("2", clock.now());
    await expect(two.consult("a")).resolves.toMatchObject({ value: "2", asOfMs: START + 100, source: "hit" });
    expect(two.peek("a")?.value).toBe("2");
  });

  test("is no answer for who needs to know anew, unless it is new enough", async () => {
    await learn(one, "1");
    await clock.advance(6_000);
    const anew = ask(two, { maxAgeMs: 5_000 });
    await settle();
    expect(source.asked).toBe(1);
    await source.answer("2");
    await expect(anew).resolves.toMatchObject({ value: "2", source: "miss" });
    const again = poolAt(point.tier());
    await expect(ask(again, { maxAgeMs: 5_000 })).resolves.toMatchObject({ value: "2", source: "hit" });
  });

  test("is new enough for who needs to know anew when it was learned while that one waited", async () => {
    await learn(two, "old");
    await clock.advance(1_000);
    ask(one, { maxAgeMs: 0 }).catch(() => undefined);
    await settle();
    const anew = ask(two, { maxAgeMs: 10 });
    await clock.advance(500);
    await source.answer("new");
    await clock.advance(50);
    await expect(anew).resolves.toMatchObject({ value: "new", source: "hit" });
    expect(source.asked).toBe(1);
  });

  test("is not given to who joined later and needs a newer one", async () => {
    await learn(one, "1");
    await clock.advance(6_000);
    const anyAge = ask(two);
    // Joins after the other's answer has been looked up, before it is handed out.
    for (let turns = 0; two.stats().counts.shared === 0 && turns < 20; turns += 1) await Promise.resolve();
    expect(two.stats().inflight).toBe(1);
    const anew = ask(two, { maxAgeMs: 5_000 });
    await expect(anyAge).resolves.toMatchObject({ value: "1" });
    await settle();
    await source.answer("2");
    await expect(anew).resolves.toMatchObject({ value: "2" });
  });
});

describe("where nobody can be met", () => {
  test("each replica asks for itself, at once", async () => {
    point.broken = true;
    const answers = [ask(one), ask(two)];
    await settle();
    expect(source.asked).toBe(2);
    await source.answer("1");
    for (const answer of answers) await expect(answer).resolves.toMatchObject({ source: "miss" });
    await expect(one.consult("a")).resolves.toMatchObject({ value: "1" });
  });

  test("who waits for another replica asks at once when the meeting point breaks", async () => {
    ask(one).catch(() => undefined);
    await settle();
    const second = ask(two);
    await clock.advance(200);
    point.broken = true;
    await clock.advance(50);
    expect(source.asked).toBe(2);
    await source.answer("1");
    await expect(second).resolves.toMatchObject({ value: "1" });
  });
});

describe("a purge", () => {
  test("on one replica is one on all, and what was learned before is not found by anyone", async () => {
    await learn(one, "1");
    await ask(two);
    expect(one.purge()).toBe(1);
    expect(two.stats().entries).toBe(0);
    const answers = [ask(one), ask(two)];
    await settle();
    expect(source.asked).toBe(1);
    await source.answer("2");
    await clock.advance(50);
    for (const answer of answers) await expect(answer).resolves.toMatchObject({ value: "2" });
  });

  test("keeps out what was just being looked up", async () => {
    say("old", START);
    const early = ask(two);
    one.purge();
    await expect(early).resolves.toMatchObject({ value: "old" });
    expect(two.peek("a")).toBeUndefined();
  });

  test("keeps out an answer that was on its way", async () => {
    const early = ask(one);
    await settle();
    two.purge();
    await source.answer("old");
    await expect(early).resolves.toMatchObject({ value: "old" });
    const later = ask(two);
    await settle();
    expect(source.asked).toBe(2);
    await source.answer("new");
    await expect(later).resolves.toMatchObject({ value: "new" });
    await expect(ask(one)).resolves.toMatchObject({ value: "new", source: "hit" });
  });
});

test("whoever joined a question whose first caller may not ask it asks for itself", async () => {
  const limited = new ServiceError("rate_limited", "Too much.");
  const refused = expect(one.get("a", caller(), () => Promise.reject(limited))).rejects.toBe(limited);
  const joined = ask(one);
  await refused;
  await settle();
  await source.answer("1");
  await expect(joined).resolves.toMatchObject({ value: "1" });
});
