/** The pools on a simulated clock: who is answered from memory, who starts a load, how old an answer is, and what a failure does. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { createPool, type Pool } from "../../src/cache/cache.js";
import type { Asker } from "../../src/cache/single-flight.js";
import { createStamps, justAfter } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock } from "../support/fake-clock.js";
import { caller, factNow, failureKind, NO_QUOTA, Source, TOO_MANY, UPSTREAM_DOWN } from "./support/loads.js";

const START = Date.UTC(2026, 2, 20);

let clock: FakeClock;
let stamp: () => number;
let pool: Pool<string, Asker>;

function poolOf(entries = 100, onChange = (): void => {}): Pool<string, Asker> {
  return createPool({
    entries,
    freshness: () => ({ freshMs: 1000, usableMs: 5000 }),
    failureMs: 300,
    failureKind,
    caution: (a, b) => (a === b ? 0 : a < b ? -1 : 1),
    clock,
    stamp,
    onChange,
  });
}

beforeEach(() => {
  clock = new FakeClock(START);
  stamp = createStamps(clock);
  pool = poolOf();
});

const answering = (value: string) => () => Promise.resolve(factNow(value, stamp));
const failing = (): Promise<never> => Promise.reject(UPSTREAM_DOWN);

/** Adds a value to the pool as an answer from the upstream. */
async function learn(key: string, value: string): Promise<void> {
  await pool.get(key, caller(), answering(value));
}

describe("a load in flight", () => {
  test("is made once for all callers, and each result says how it was obtained", async () => {
    const source = new Source(stamp);
    const answers = Array.from({ length: 50 }, () => pool.get("a", caller(), source.load));
    await source.answer("1");
    const sources = (await Promise.all(answers)).map((known) => known.source);
    expect(source.loads).toBe(1);
    expect(sources).toEqual(["miss", ...Array.from({ length: 49 }, () => "inflight")]);
    expect(pool.stats().counts).toEqual({
      hit: 0,
      inflight: 49,
      miss: 1,
      stale: 0,
      failed: 0,
    });
  });

  test("continues for the other callers when the one who started it leaves", async () => {
    const source = new Source(stamp);
    const first = caller();
    const left = pool.get("a", first, source.load);
    const stayed = pool.get("a", caller(), source.load);
    first.leave();
    await expect(left).rejects.toThrow(ServiceError);
    expect(source.flight?.signal.aborted).toBe(false);
    await source.answer("1");
    await expect(stayed).resolves.toMatchObject({ value: "1" });
    expect(source.loads).toBe(1);
  });

  test("is aborted when the last caller leaves, and the next caller starts a new load", async () => {
    const source = new Source(stamp);
    const callers = [caller(), caller()];
    const waiting = callers.map((one) => pool.get("a", one, source.load));
    for (const one of callers) one.leave();
    await Promise.all(waiting.map((one) => expect(one).rejects.toThrow(ServiceError)));
    expect(source.flight?.signal.aborted).toBe(true);
    const next = pool.get("a", caller(), source.load);
    expect(source.loads).toBe(2);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1", source: "miss" });
  });

  test("that fails because it was aborted is not remembered as a failure", async () => {
    const source = new Source(stamp);
    const one = caller();
    const waiting = pool.get("a", one, source.load);
    one.leave();
    await expect(waiting).rejects.toThrow(ServiceError);
    await source.fail(UPSTREAM_DOWN);
    const next = pool.get("a", caller(), source.load);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1" });
  });

  test("exposes its current callers", async () => {
    const source = new Source(stamp);
    const [one, two] = [caller(), caller()];
    const left = expect(pool.get("a", one, source.load)).rejects.toThrow(ServiceError);
    const stayed = pool.get("a", two, source.load);
    expect([...(source.flight?.askers ?? [])]).toEqual([one, two]);
    one.leave();
    expect([...(source.flight?.askers ?? [])]).toEqual([two]);
    await source.answer("1");
    await Promise.all([left, stayed]);
  });

  test("isn't started for a caller that has already left", async () => {
    const source = new Source(stamp);
    const gone = caller();
    gone.leave();
    await expect(pool.get("a", gone, source.load)).rejects.toThrow(ServiceError);
    expect(source.loads).toBe(0);
  });

  test("isn't lost when more loads are in flight than the pool has entries", async () => {
    pool = poolOf(3);
    const source = new Source(stamp);
    const keys = Array.from({ length: 8 }, (_, index) => `key ${index}`);
    const waiting = keys.map((key) => pool.get(key, caller(), source.load));
    await source.answer("1");
    const values = (await Promise.all(waiting)).map(({ value }) => value);
    expect(values).toEqual(keys.map(() => "1"));
    expect(pool.stats().entries).toBe(3);
  });
});

describe("a failure", () => {
  test("fails all waiting callers with one load, and is remembered briefly", async () => {
    const source = new Source(stamp);
    const waiting = Array.from({ length: 10 }, () => pool.get("a", caller(), source.load));
    const outcomes = Promise.allSettled(waiting);
    await source.fail(UPSTREAM_DOWN);
    for (const outcome of await outcomes)
      expect(outcome).toEqual({ status: "rejected", reason: UPSTREAM_DOWN });

    await clock.advance(299);
    for (let ask = 0; ask < 10; ask += 1)
      await expect(pool.get("a", caller(), source.load)).rejects.toBe(UPSTREAM_DOWN);
    expect(source.loads).toBe(1);

    await clock.advance(1);
    const next = pool.get("a", caller(), source.load);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1" });
    expect(source.loads).toBe(2);
  });

  test("of kind `shared` fails all waiting callers, but not the next one", async () => {
    const source = new Source(stamp);
    const waiting = Promise.allSettled([1, 2].map(() => pool.get("a", caller(), source.load)));
    await source.fail(NO_QUOTA);
    for (const outcome of await waiting) expect(outcome).toEqual({ status: "rejected", reason: NO_QUOTA });
    expect(source.loads).toBe(1);
    await expect(pool.get("a", caller(), answering("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("of kind `own` fails only the caller who started the load; the others start their own", async () => {
    const refused = expect(pool.get("a", caller(), () => Promise.reject(TOO_MANY))).rejects.toBe(TOO_MANY);
    const source = new Source(stamp);
    const joined = [1, 2].map(() => pool.get("a", caller(), source.load));
    await refused;
    await source.answer("1");
    const answers = await Promise.all(joined);
    expect(answers.map(({ value }) => value)).toEqual(["1", "1"]);
    expect(source.loads).toBe(1);
  });

  test("reports the remaining wait while it is remembered", async () => {
    const gone = new ServiceError("upstream_failed", "The registry service is down.", {
      retryAfterMs: 20_000,
    });
    await expect(pool.get("a", caller(), () => Promise.reject(gone))).rejects.toBe(gone);
    await clock.advance(200);
    await expect(pool.get("a", caller(), failing)).rejects.toMatchObject({ retryAfterMs: 19_800 });
  });

  test("is remembered by default, whatever the error", async () => {
    pool = createPool({
      entries: 10,
      freshness: () => ({ freshMs: 1000, usableMs: 5000 }),
      failureMs: 300,
      clock,
    });
    await expect(pool.get("a", caller(), () => Promise.reject(NO_QUOTA))).rejects.toBe(NO_QUOTA);
    await expect(pool.get("a", caller(), answering("1"))).rejects.toBe(NO_QUOTA);
  });

  test("is forgotten as soon as the fact is learned in another way", async () => {
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    pool.learn("a", factNow("1", stamp));
    await expect(pool.get("a", caller(), failing, { askedSinceMs: 0 })).resolves.toMatchObject({
      source: "hit",
    });
  });

  test("of one key doesn't affect another", async () => {
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("b", caller(), answering("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("returns a fact that is still usable as stale, with its original time", async () => {
    await learn("a", "old");
    await clock.advance(4999);
    const stale = { value: "old", asOfMs: START, source: "stale" };
    await expect(pool.get("a", caller(), failing)).resolves.toMatchObject(stale);
    // The failure is remembered, so there is no other load.
    const source = new Source(stamp);
    await expect(pool.get("a", caller(), source.load)).resolves.toMatchObject(stale);
    expect(source.loads).toBe(0);
  });

  test("never returns a fact past its usable age", async () => {
    await learn("a", "old");
    await clock.advance(5001);
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    expect(pool.peek("a")).toBeUndefined();
  });

  test("that takes until the old value is no longer usable doesn't return it", async () => {
    await learn("a", "old");
    await clock.advance(4000);
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load);
    await clock.advance(1001);
    const outcome = expect(waiting).rejects.toBe(UPSTREAM_DOWN);
    await source.fail(UPSTREAM_DOWN);
    await outcome;
  });
});

describe("the memory of a pool", () => {
  test("returns a fact while it is fresh, and loads it again after that", async () => {
    await learn("a", "1");
    const source = new Source(stamp);
    await clock.advance(900); // expiry is spread over the last tenth
    await expect(pool.get("a", caller(), source.load)).resolves.toMatchObject({
      value: "1",
      asOfMs: START,
      source: "hit",
    });
    expect(source.loads).toBe(0);
    await clock.advance(101);
    const next = pool.get("a", caller(), source.load);
    expect(source.loads).toBe(1);
    await source.answer("2");
    await expect(next).resolves.toMatchObject({ value: "2", asOfMs: START + 1001, source: "miss" });
  });

  test("doesn't let many keys expire at the same moment", async () => {
    pool = poolOf(1000);
    for (let key = 0; key < 500; key += 1) await learn(String(key), "1");
    await clock.advance(950);
    const fresh = Array.from({ length: 500 }, (_, key) => pool.peek(String(key))?.source);
    expect(new Set(fresh)).toEqual(new Set(["hit", "stale"]));
  });

  test("keeps the age of a fact when the wall clock is changed", async () => {
    await learn("a", "1");
    clock.stepWall(-3_600_000);
    expect(pool.peek("a")?.source).toBe("hit");
    clock.stepWall(7_200_000);
    expect(pool.peek("a")?.source).toBe("hit");
    await clock.advance(5001);
    expect(pool.peek("a")).toBeUndefined();
  });

  test("never exceeds its size; the least recently used entry is dropped first", async () => {
    pool = poolOf(3);
    for (const key of ["a", "b", "c"]) await learn(key, key);
    await pool.get("a", caller(), failing);
    await learn("d", "d");
    expect(pool.stats()).toMatchObject({ entries: 3, bound: 3 });
    expect(["a", "b", "c", "d"].filter((key) => pool.peek(key) !== undefined)).toEqual(["a", "c", "d"]);
  });

  test("isn't affected by a flood in another pool", async () => {
    const names = poolOf(10);
    await learn(".af registration 1", "21.50");
    for (let name = 0; name < 1000; name += 1)
      await names.get(`name-${name}.af`, caller(), answering("taken"));
    expect(pool.peek(".af registration 1")?.source).toBe("hit");
    expect(names.stats().entries).toBe(10);
  });

  test("counts the age of a fact learned elsewhere from its request", async () => {
    const learned = (key: string, agoMs: number) =>
      pool.learn(key, { value: "1", askedMs: stamp() - agoMs, answeredMs: stamp() });
    learned("a", 900);
    learned("b", 2000);
    learned("c", 5001);
    expect(pool.peek("a")).toMatchObject({ value: "1", asOfMs: START - 900, source: "hit" });
    expect(pool.peek("b")).toMatchObject({ value: "1", asOfMs: START - 2000, source: "stale" });
    expect(pool.peek("c")).toBeUndefined();
    await clock.advance(101);
    expect(pool.peek("a")?.source).toBe("stale");
  });
});

describe("the age of an answer", () => {
  test("counts from the request, not from the answer", async () => {
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load);
    await clock.advance(800);
    await source.answer("1");
    await expect(waiting).resolves.toMatchObject({ asOfMs: START, source: "miss" });
    expect(pool.peek("a")).toMatchObject({ asOfMs: START, source: "hit" });
    await clock.advance(201);
    expect(pool.peek("a")?.source).toBe("stale");
    expect(pool.fresh("a")).toBeUndefined();
    await clock.advance(3998);
    expect(pool.peek("a")?.asOfMs).toBe(START);
    await clock.advance(2);
    expect(pool.peek("a")).toBeUndefined();
  });

  test("doesn't affect waiting callers, but an answer that arrives past its usable age isn't stored", async () => {
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load);
    await clock.advance(5001);
    await source.answer("1");
    await expect(waiting).resolves.toMatchObject({ value: "1", asOfMs: START });
    expect(pool.peek("a")).toBeUndefined();
  });

  test("determines when it stops being fresh, and then when it stops being usable", async () => {
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load);
    await clock.advance(500);
    await source.answer("1");
    await waiting;
    const freshUntilMs = pool.peek("a")?.untilMs ?? 0;
    expect(freshUntilMs).toBeGreaterThanOrEqual(900);
    expect(freshUntilMs).toBeLessThanOrEqual(1000.001);
    await clock.advance(501);
    expect(pool.peek("a")?.untilMs).toBeCloseTo(5000, 2);
  });
});

test("nothing is returned past its usable age, even within its freshness", async () => {
  pool = createPool({
    entries: 10,
    freshness: () => ({ freshMs: 600_000, usableMs: 5000 }),
    failureMs: 300,
    clock,
  });
  await learn("a", "1");
  await clock.advance(5001);
  expect(pool.fresh("a")).toBeUndefined();
  expect(pool.peek("a")).toBeUndefined();
  await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
});

describe("when answers overtake each other,", () => {
  test("a late answer to an early request doesn't replace the answer to a later one: the more cautious one wins", async () => {
    const slow = new Source(stamp);
    const leaving = caller();
    const left = expect(pool.get("a", leaving, slow.load)).rejects.toThrow(ServiceError);
    await clock.advance(100);
    leaving.leave();
    await left;
    await learn("a", "taken");
    await clock.advance(100);
    await slow.answer("available");
    expect(pool.peek("a")).toMatchObject({ value: "taken", asOfMs: START + 100, settled: false });
    // The same for a late answer that is more cautious.
    expect(pool.fresh("a")).toMatchObject({ unchangedSinceMs: Infinity });
    await learn("b", "available");
    pool.learn("b", { value: "taken", askedMs: 0, answeredMs: stamp() });
    expect(pool.peek("b")).toMatchObject({ value: "taken", asOfMs: START, settled: false });
  });

  test("an answer from before the other request changes nothing, however late it is learned", async () => {
    const early = factNow("taken", stamp);
    await learn("a", "available");
    pool.learn("a", early);
    expect(pool.peek("a")).toMatchObject({ value: "available", settled: true });
  });

  test("the same answer twice changes nothing", async () => {
    const fact = factNow("1", stamp);
    pool.learn("a", fact);
    const kept = pool.fresh("a");
    pool.learn("a", { ...fact });
    expect(pool.fresh("a")).toBe(kept);
  });

  test("an unsettled fact is settled by the next request, and the run of equal answers starts with it", async () => {
    pool.learn("a", { value: "available", askedMs: 0, answeredMs: 3 });
    pool.learn("a", { value: "taken", askedMs: 1, answeredMs: 2 });
    expect(pool.peek("a")?.settled).toBe(false);
    await clock.advance(10);
    await pool.get("a", caller(), answering("available"), { askedSinceMs: justAfter(3) });
    const kept = pool.fresh("a");
    expect(kept).toMatchObject({ value: "available", settled: true });
    expect(kept?.unchangedSinceMs).toBe(kept?.answeredMs);
    await clock.advance(10);
    await pool.get("a", caller(), answering("available"), { askedSinceMs: clock.monotonic() });
    expect(pool.fresh("a")?.unchangedSinceMs).toBe(kept?.answeredMs);
  });

  test("waiting callers get the winning fact, not the one that their load returned", async () => {
    const slow = new Source(stamp);
    const waiting = pool.get("a", caller(), slow.load);
    await clock.advance(10);
    pool.learn("a", factNow("taken", stamp));
    await slow.answer("available");
    await expect(waiting).resolves.toMatchObject({ value: "taken", settled: false });
  });
});

describe("a fact read without `get`", () => {
  test("is the same object until another fact replaces it, and is counted only by `countHits`", async () => {
    await learn("a", "1");
    const kept = pool.fresh("a");
    expect(pool.fresh("a")).toBe(kept);
    pool.countHits(1);
    expect(pool.stats().counts).toMatchObject({ hit: 1, miss: 1 });
    await clock.advance(10);
    pool.learn("a", factNow("1", stamp));
    expect(pool.fresh("a")).not.toBe(kept);
  });

  test("changes other than by age only when `onChange` is called", async () => {
    let changes = 0;
    const watched = poolOf(100, () => (changes += 1));
    await watched.get("a", caller(), answering("1"));
    expect(changes).toBe(1);
    await watched.get("a", caller(), failing);
    expect(changes).toBe(1);
    watched.learn("a", factNow("2", stamp));
    watched.redate();
    watched.purge();
    expect(changes).toBe(4);
  });
});

describe("a caller with `askedSinceMs`", () => {
  test("is answered from memory only if the fact was requested since then", async () => {
    await learn("a", "1");
    const { askedMs } = pool.peek("a") ?? { askedMs: NaN };
    await clock.advance(500);
    const source = new Source(stamp);
    await expect(pool.get("a", caller(), source.load, { askedSinceMs: askedMs })).resolves.toMatchObject({
      source: "hit",
    });
    const next = pool.get("a", caller(), source.load, { askedSinceMs: justAfter(askedMs) });
    expect(source.loads).toBe(1);
    await source.answer("2");
    await expect(next).resolves.toMatchObject({ value: "2", source: "miss" });
  });

  test("gets no old value when the load fails, either now or while the failure is remembered", async () => {
    await learn("a", "1");
    await clock.advance(500);
    const askedSinceMs = 400;
    await expect(pool.get("a", caller(), failing, { askedSinceMs })).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("a", caller(), failing, { askedSinceMs })).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("a", caller(), failing)).resolves.toMatchObject({ value: "1", source: "hit" });
  });

  test("isn't served by a load that was started too early, whenever it ends: another one is started", async () => {
    const source = new Source(stamp);
    const early = pool.get("a", caller(), source.load);
    await clock.advance(300);
    const since = { askedSinceMs: stamp() };
    const insisting = [1, 2].map(() => pool.get("a", caller(), source.load, since));
    await source.answer("1");
    await expect(early).resolves.toMatchObject({ value: "1" });
    expect(source.loads).toBe(2);
    await source.answer("2");
    for (const answer of insisting)
      await expect(answer).resolves.toMatchObject({ value: "2", asOfMs: START + 300 });
    expect(source.loads).toBe(2);
  });

  test("accepts its own load's answer even if its stamp is too early, instead of loading forever", async () => {
    const early = factNow("1", stamp);
    const since = { askedSinceMs: stamp() };
    await expect(pool.get("a", caller(), () => Promise.resolve(early), since)).resolves.toMatchObject({
      value: "1",
      source: "miss",
    });
  });
});

describe("a caller that accepts a stale value during a refresh", () => {
  test("gets it immediately, while one load continues in the background", async () => {
    await learn("a", "1");
    await clock.advance(2000);
    const source = new Source(stamp);
    const ask = () => pool.get("a", caller(), source.load, { whileRevalidating: true });
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    expect(source.loads).toBe(1);
    await source.answer("2");
    await expect(ask()).resolves.toMatchObject({ value: "2", source: "hit" });
  });

  test("keeps the old value when the refresh fails", async () => {
    await learn("a", "1");
    await clock.advance(2000);
    const source = new Source(stamp);
    const ask = () => pool.get("a", caller(), source.load, { whileRevalidating: true });
    await ask();
    await source.fail(UPSTREAM_DOWN);
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    expect(source.loads).toBe(1);
  });

  test("waits if there is no value", async () => {
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load, { whileRevalidating: true });
    await source.answer("1");
    await expect(waiting).resolves.toMatchObject({ value: "1", source: "miss" });
  });
});

describe("a purge", () => {
  test("clears everything, failures too, and returns the number of values", async () => {
    await learn("a", "1");
    await learn("b", "1");
    await expect(pool.get("c", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    expect(pool.purge()).toBe(2);
    expect(pool.stats().entries).toBe(0);
    await expect(pool.get("c", caller(), answering("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("during a load: waiting callers get the answer, nothing is stored, and later callers start a new load", async () => {
    const before = new Source(stamp);
    const waiting = pool.get("a", caller(), before.load);
    pool.purge();
    await before.answer("taken");
    await expect(waiting).resolves.toMatchObject({ value: "taken" });
    expect(pool.peek("a")).toBeUndefined();
    const after = new Source(stamp);
    const later = pool.get("a", caller(), after.load);
    expect(after.loads).toBe(1);
    await after.answer("available");
    await expect(later).resolves.toMatchObject({ value: "available", settled: true });
    expect(pool.peek("a")?.value).toBe("available");
  });

  test("lets overlapping loads from before and after it contradict each other, whichever answers first", async () => {
    for (const order of [
      ["before", "after"],
      ["after", "before"],
    ] as const) {
      const loads = { before: new Source(stamp), after: new Source(stamp) };
      const early = pool.get("a", caller(), loads.before.load);
      pool.purge();
      const later = pool.get("a", caller(), loads.after.load);
      for (const load of order) await loads[load].answer(load === "before" ? "taken" : "available");
      await Promise.all([early, later]);
      expect(pool.peek("a")).toMatchObject({ value: "taken", settled: false });
      pool.learn("a", factNow("available", stamp));
      expect(pool.peek("a")).toMatchObject({ value: "available", settled: true });
      pool.purge();
    }
  });

  test("doesn't let a late answer from before it replace a more cautious one from after it", async () => {
    const before = new Source(stamp);
    const waiting = pool.get("a", caller(), before.load);
    pool.purge();
    await learn("a", "taken");
    await before.answer("available");
    await waiting;
    expect(pool.peek("a")?.value).toBe("taken");
  });

  test("protects callers that join after it from those that joined before it and leave", async () => {
    const before = new Source(stamp);
    const early = caller();
    const left = pool.get("a", early, before.load);
    pool.purge();
    const after = new Source(stamp);
    const waiting = pool.get("a", caller(), after.load);
    early.leave();
    await expect(left).rejects.toThrow(ServiceError);
    const joined = pool.get("a", caller(), after.load);
    expect(after.loads).toBe(1);
    await after.answer("1");
    await expect(joined).resolves.toMatchObject({ value: "1", source: "inflight" });
    await waiting;
  });

  test("rejects a fact that was requested before it and is learned after it", async () => {
    const early = factNow("old", stamp);
    pool.purge();
    pool.learn("a", early);
    expect(pool.peek("a")).toBeUndefined();
    pool.learn("a", factNow("new", stamp));
    expect(pool.peek("a")?.value).toBe("new");
  });

  test("rejects a fact that was requested before it and answered after it", async () => {
    const askedMs = stamp();
    pool.purge();
    pool.learn("a", { value: "old", askedMs, answeredMs: stamp() });
    expect(pool.peek("a")).toBeUndefined();
  });
});
