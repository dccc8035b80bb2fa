/** The pools, with time in the test's hand: who is answered from memory, who asks, how old an answer is, and what a failure does. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { type Asker, createPool, type Pool } from "../../src/cache/cache.js";
import { createStamps, justAfter } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock } from "../support/fake-clock.js";
import { caller, factNow, failureKind, NO_QUOTA, Source, TOO_MANY, UPSTREAM_DOWN } from "./support/loads.js";

const START = Date.UTC(2026, 2, 20);

let clock: FakeClock;
let stamp: () => number;
let pool: Pool<string, Asker>;

function poolOf(entries = 100): Pool<string, Asker> {
  return createPool({
    entries,
    freshness: () => ({ freshMs: 1000, usableMs: 5000 }),
    failureMs: 300,
    failureKind,
    caution: (a, b) => (a === b ? 0 : a < b ? -1 : 1),
    clock,
    stamp,
  });
}

beforeEach(() => {
  clock = new FakeClock(START);
  stamp = createStamps(clock);
  pool = poolOf();
});

const answering = (value: string) => () => Promise.resolve(factNow(value, stamp));
const failing = (): Promise<never> => Promise.reject(UPSTREAM_DOWN);

/** Puts a value into the pool as an answer of the upstream. */
async function learn(key: string, value: string): Promise<void> {
  await pool.get(key, caller(), answering(value));
}

describe("a question under way", () => {
  test("is asked once for all who want to know, and each is told how it came by the answer", async () => {
    const source = new Source(stamp);
    const answers = Array.from({ length: 50 }, () => pool.get("a", caller(), source.load));
    await source.answer("1");
    const sources = (await Promise.all(answers)).map((known) => known.source);
    expect(source.asked).toBe(1);
    expect(sources).toEqual(["miss", ...Array.from({ length: 49 }, () => "inflight")]);
    expect(pool.stats().counts).toEqual({
      hit: 0,
      inflight: 49,
      miss: 1,
      stale: 0,
      failed: 0,
      shared: 0,
    });
  });

  test("goes on for the others when the one who began it leaves", async () => {
    const source = new Source(stamp);
    const first = caller();
    const left = pool.get("a", first, source.load);
    const stayed = pool.get("a", caller(), source.load);
    first.leave();
    await expect(left).rejects.toThrow(ServiceError);
    expect(source.flight?.signal.aborted).toBe(false);
    await source.answer("1");
    await expect(stayed).resolves.toMatchObject({ value: "1" });
    expect(source.asked).toBe(1);
  });

  test("is called off when the last one leaves, and the next caller asks anew", async () => {
    const source = new Source(stamp);
    const callers = [caller(), caller()];
    const waiting = callers.map((one) => pool.get("a", one, source.load));
    for (const one of callers) one.leave();
    await Promise.all(waiting.map((one) => expect(one).rejects.toThrow(ServiceError)));
    expect(source.flight?.signal.aborted).toBe(true);
    const next = pool.get("a", caller(), source.load);
    expect(source.asked).toBe(2);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1", source: "miss" });
  });

  test("that was called off and fails for it is not remembered as a failure", async () => {
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

  test("shows who waits, as they come and go", async () => {
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

  test("is not begun for somebody who has gone already", async () => {
    const source = new Source(stamp);
    const gone = caller();
    gone.leave();
    await expect(pool.get("a", gone, source.load)).rejects.toThrow(ServiceError);
    expect(source.asked).toBe(0);
  });

  test("is not lost when more keys are under way than the pool may hold", async () => {
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
  test("fails all who wait with one question, and is remembered for a moment", async () => {
    const source = new Source(stamp);
    const waiting = Array.from({ length: 10 }, () => pool.get("a", caller(), source.load));
    const outcomes = Promise.allSettled(waiting);
    await source.fail(UPSTREAM_DOWN);
    for (const outcome of await outcomes)
      expect(outcome).toEqual({ status: "rejected", reason: UPSTREAM_DOWN });

    await clock.advance(299);
    for (let ask = 0; ask < 10; ask += 1)
      await expect(pool.get("a", caller(), source.load)).rejects.toBe(UPSTREAM_DOWN);
    expect(source.asked).toBe(1);

    await clock.advance(1);
    const next = pool.get("a", caller(), source.load);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1" });
    expect(source.asked).toBe(2);
  });

  test("that is not to be remembered fails all who wait, but the next caller may be served", async () => {
    const source = new Source(stamp);
    const waiting = Promise.allSettled([1, 2].map(() => pool.get("a", caller(), source.load)));
    await source.fail(NO_QUOTA);
    for (const outcome of await waiting) expect(outcome).toEqual({ status: "rejected", reason: NO_QUOTA });
    expect(source.asked).toBe(1);
    await expect(pool.get("a", caller(), answering("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("that concerns only the caller who started the load is not the others': they ask for themselves", async () => {
    const refused = expect(pool.get("a", caller(), () => Promise.reject(TOO_MANY))).rejects.toBe(TOO_MANY);
    const source = new Source(stamp);
    const joined = [1, 2].map(() => pool.get("a", caller(), source.load));
    await refused;
    await source.answer("1");
    const answers = await Promise.all(joined);
    expect(answers.map(({ value }) => value)).toEqual(["1", "1"]);
    expect(source.asked).toBe(1);
  });

  test("that concerned only another caller counts the time that was waited for it", async () => {
    const first = new Source(stamp);
    const refused = expect(pool.get("a", caller(), first.load)).rejects.toBe(TOO_MANY);
    const source = new Source(stamp);
    await clock.advance(200);
    const joined = pool.get("a", caller(), source.load);
    await clock.advance(700);
    await first.fail(TOO_MANY);
    await refused;
    await source.answer("1");
    await joined;
    expect([first.flight?.waitedMs, source.flight?.waitedMs]).toEqual([0, 700]);
  });

  test("is remembered whatever it is, unless the pool is set otherwise", async () => {
    pool = createPool({
      entries: 10,
      freshness: () => ({ freshMs: 1000, usableMs: 5000 }),
      failureMs: 300,
      clock,
    });
    await expect(pool.get("a", caller(), () => Promise.reject(NO_QUOTA))).rejects.toBe(NO_QUOTA);
    await expect(pool.get("a", caller(), answering("1"))).rejects.toBe(NO_QUOTA);
  });

  test("is forgotten as soon as the fact is learned elsewhere", async () => {
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    await pool.learn("a", factNow("1", stamp));
    await expect(pool.get("a", caller(), failing, { askedSinceMs: 0 })).resolves.toMatchObject({
      source: "hit",
    });
  });

  test("of one key does not touch another", async () => {
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("b", caller(), answering("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("leaves what is still usable to be shown, marked stale, with the time at which it was true", async () => {
    await learn("a", "old");
    await clock.advance(4999);
    const stale = { value: "old", asOfMs: START, source: "stale" };
    await expect(pool.get("a", caller(), failing)).resolves.toMatchObject(stale);
    // From memory of the failure, without another question.
    const source = new Source(stamp);
    await expect(pool.get("a", caller(), source.load)).resolves.toMatchObject(stale);
    expect(source.asked).toBe(0);
  });

  test("never shows what is past its bound", async () => {
    await learn("a", "old");
    await clock.advance(5001);
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    expect(pool.peek("a")).toBeUndefined();
  });

  test("that takes so long that the old value passes its bound meanwhile does not show it", async () => {
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

describe("what is remembered", () => {
  test("is answered without a question while fresh and asked for anew after that", async () => {
    await learn("a", "1");
    const source = new Source(stamp);
    await clock.advance(900); // expiry is spread over the last tenth
    await expect(pool.get("a", caller(), source.load)).resolves.toMatchObject({
      value: "1",
      asOfMs: START,
      source: "hit",
    });
    expect(source.asked).toBe(0);
    await clock.advance(101);
    const next = pool.get("a", caller(), source.load);
    expect(source.asked).toBe(1);
    await source.answer("2");
    await expect(next).resolves.toMatchObject({ value: "2", asOfMs: START + 1001, source: "miss" });
  });

  test("does not expire for many keys at one moment", async () => {
    pool = poolOf(1000);
    for (let key = 0; key < 500; key += 1) await learn(String(key), "1");
    await clock.advance(950);
    const fresh = Array.from({ length: 500 }, (_, key) => pool.peek(String(key))?.source);
    expect(new Set(fresh)).toEqual(new Set(["hit", "stale"]));
  });

  test("does not age or rejuvenate when the wall clock is set", async () => {
    await learn("a", "1");
    clock.stepWall(-3_600_000);
    expect(pool.peek("a")?.source).toBe("hit");
    clock.stepWall(7_200_000);
    expect(pool.peek("a")?.source).toBe("hit");
    await clock.advance(5001);
    expect(pool.peek("a")).toBeUndefined();
  });

  test("never grows past its bound; the least recently asked for goes first", async () => {
    pool = poolOf(3);
    for (const key of ["a", "b", "c"]) await learn(key, key);
    await pool.get("a", caller(), failing);
    await learn("d", "d");
    expect(pool.stats()).toMatchObject({ entries: 3, bound: 3 });
    expect(["a", "b", "c", "d"].filter((key) => pool.peek(key) !== undefined)).toEqual(["a", "c", "d"]);
  });

  test("of one pool is not pushed out by a flood in another", async () => {
    const names = poolOf(10);
    await learn(".af registration 1", "21.50");
    for (let name = 0; name < 1000; name += 1)
      await names.get(`name-${name}.af`, caller(), answering("taken"));
    expect(pool.peek(".af registration 1")?.source).toBe("hit");
    expect(names.stats().entries).toBe(10);
  });

  test("that was learned elsewhere counts from when it was asked", async () => {
    const learned = (key: string, agoMs: number) =>
      pool.learn(key, { value: "1", askedMs: stamp() - agoMs, answeredMs: stamp() });
    await learned("a", 900);
    await learned("b", 2000);
    await learned("c", 5001);
    expect(pool.peek("a")).toMatchObject({ value: "1", asOfMs: START - 900, source: "hit" });
    expect(pool.peek("b")).toMatchObject({ value: "1", asOfMs: START - 2000, source: "stale" });
    expect(pool.peek("c")).toBeUndefined();
    await clock.advance(101);
    expect(pool.peek("a")?.source).toBe("stale");
  });
});

describe("the age of an answer", () => {
  test("counts from the asking, not from the answer", async () => {
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

  test("past its bound on arrival: it is given to those who waited, and not remembered", async () => {
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load);
    await clock.advance(5001);
    await source.answer("1");
    await expect(waiting).resolves.toMatchObject({ value: "1", asOfMs: START });
    expect(pool.peek("a")).toBeUndefined();
  });

  test("tells when it ends to be fresh, and then when it is gone", async () => {
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

test("nothing is shown past its bound, however long it would be fresh", async () => {
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

describe("of answers that overtake each other", () => {
  test("the late one of an early question does not replace what was asked after it had left: the cautious one holds", async () => {
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
    // The same for a late cautious one.
    expect(pool.fresh("a")).toMatchObject({ unchangedSinceMs: Infinity });
    await learn("b", "available");
    await pool.learn("b", { value: "taken", askedMs: 0, answeredMs: stamp() });
    expect(pool.peek("b")).toMatchObject({ value: "taken", asOfMs: START, settled: false });
  });

  test("one that was answered before the other was asked changes nothing, however late it is learned", async () => {
    const early = factNow("taken", stamp);
    await learn("a", "available");
    await pool.learn("a", early);
    expect(pool.peek("a")).toMatchObject({ value: "available", settled: true });
  });

  test("the same one twice changes nothing", async () => {
    const fact = factNow("1", stamp);
    await pool.learn("a", fact);
    const kept = pool.fresh("a");
    const changes = pool.changes();
    await pool.learn("a", { ...fact });
    expect(pool.fresh("a")).toBe(kept);
    expect(pool.changes()).toBe(changes);
  });

  test("an unsettled one is settled by the next that is asked, and the run begins with it", async () => {
    await pool.learn("a", { value: "available", askedMs: 0, answeredMs: 3 });
    await pool.learn("a", { value: "taken", askedMs: 1, answeredMs: 2 });
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

  test("the answer for those who waited is what holds, not what their load brought", async () => {
    const slow = new Source(stamp);
    const waiting = pool.get("a", caller(), slow.load);
    await clock.advance(10);
    await pool.learn("a", factNow("taken", stamp));
    await slow.answer("available");
    await expect(waiting).resolves.toMatchObject({ value: "taken", settled: false });
  });
});

describe("what is answered from memory elsewhere", () => {
  test("is the same object until something else holds, and is counted when the caller says so", async () => {
    await learn("a", "1");
    const kept = pool.fresh("a");
    expect(pool.fresh("a")).toBe(kept);
    pool.countHits(1);
    expect(pool.stats().counts).toMatchObject({ hit: 1, miss: 1 });
    await clock.advance(10);
    await pool.learn("a", factNow("1", stamp));
    expect(pool.fresh("a")).not.toBe(kept);
  });

  test("changes only with the count of changes", async () => {
    const before = pool.changes();
    await learn("a", "1");
    const learned = pool.changes();
    expect(learned).toBeGreaterThan(before);
    await pool.get("a", caller(), failing);
    expect(pool.changes()).toBe(learned);
    await clock.advance(5001);
    expect(pool.peek("a")).toBeUndefined();
    const expired = pool.changes();
    expect(expired).toBeGreaterThan(learned);
    pool.purge();
    expect(pool.changes()).toBeGreaterThan(expired);
  });
});

describe("a caller who insists on when it was asked", () => {
  test("is answered from memory only if it was asked since then", async () => {
    await learn("a", "1");
    const { askedMs } = pool.peek("a") ?? { askedMs: NaN };
    await clock.advance(500);
    const source = new Source(stamp);
    await expect(pool.get("a", caller(), source.load, { askedSinceMs: askedMs })).resolves.toMatchObject({
      source: "hit",
    });
    const next = pool.get("a", caller(), source.load, { askedSinceMs: justAfter(askedMs) });
    expect(source.asked).toBe(1);
    await source.answer("2");
    await expect(next).resolves.toMatchObject({ value: "2", source: "miss" });
  });

  test("gets no old value when asking fails, neither now nor while the failure is remembered", async () => {
    await learn("a", "1");
    await clock.advance(500);
    const askedSinceMs = 400;
    await expect(pool.get("a", caller(), failing, { askedSinceMs })).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("a", caller(), failing, { askedSinceMs })).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("a", caller(), failing)).resolves.toMatchObject({ value: "1", source: "hit" });
  });

  test("is not served by a load that left too early, whenever its answer comes: it is asked once more", async () => {
    const source = new Source(stamp);
    const early = pool.get("a", caller(), source.load);
    await clock.advance(300);
    const since = { askedSinceMs: stamp() };
    const insisting = [1, 2].map(() => pool.get("a", caller(), source.load, since));
    await source.answer("1");
    await expect(early).resolves.toMatchObject({ value: "1" });
    expect(source.asked).toBe(2);
    await source.answer("2");
    for (const answer of insisting)
      await expect(answer).resolves.toMatchObject({ value: "2", asOfMs: START + 300 });
    expect(source.asked).toBe(2);
  });

  test("gets its own load's answer even where that says it was asked too early, instead of asking for ever", async () => {
    const early = factNow("1", stamp);
    const since = { askedSinceMs: stamp() };
    await expect(pool.get("a", caller(), () => Promise.resolve(early), since)).resolves.toMatchObject({
      value: "1",
      source: "miss",
    });
  });
});

describe("whoever takes an old value while it is renewed", () => {
  test("has it at once, and one question goes on behind", async () => {
    await learn("a", "1");
    await clock.advance(2000);
    const source = new Source(stamp);
    const ask = () => pool.get("a", caller(), source.load, { whileRevalidating: true });
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    expect(source.asked).toBe(1);
    await source.answer("2");
    await expect(ask()).resolves.toMatchObject({ value: "2", source: "hit" });
  });

  test("keeps the old value when the renewal fails", async () => {
    await learn("a", "1");
    await clock.advance(2000);
    const source = new Source(stamp);
    const ask = () => pool.get("a", caller(), source.load, { whileRevalidating: true });
    await ask();
    await source.fail(UPSTREAM_DOWN);
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    expect(source.asked).toBe(1);
  });

  test("waits where there is no value", async () => {
    const source = new Source(stamp);
    const waiting = pool.get("a", caller(), source.load, { whileRevalidating: true });
    await source.answer("1");
    await expect(waiting).resolves.toMatchObject({ value: "1", source: "miss" });
  });
});

describe("a purge", () => {
  test("forgets everything, failures too, and tells how many values that was", async () => {
    await learn("a", "1");
    await learn("b", "1");
    await expect(pool.get("c", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    expect(pool.purge()).toBe(2);
    expect(pool.stats().entries).toBe(0);
    await expect(pool.get("c", caller(), answering("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("during a question: who waits is answered, nothing is remembered, later callers ask anew", async () => {
    const before = new Source(stamp);
    const waiting = pool.get("a", caller(), before.load);
    pool.purge();
    const after = new Source(stamp);
    const later = pool.get("a", caller(), after.load);
    expect(after.asked).toBe(1);
    await before.answer("old");
    await expect(waiting).resolves.toMatchObject({ value: "old" });
    expect(pool.peek("a")).toBeUndefined();
    await after.answer("new");
    await expect(later).resolves.toMatchObject({ value: "new" });
    expect(pool.peek("a")?.value).toBe("new");
  });

  test("an answer from before the purge that comes last does not push out the one from after it", async () => {
    const before = new Source(stamp);
    const waiting = pool.get("a", caller(), before.load);
    pool.purge();
    await learn("a", "new");
    await before.answer("old");
    await waiting;
    expect(pool.peek("a")?.value).toBe("new");
  });

  test("one who boarded before the purge and leaves after it does not disturb those who boarded later", async () => {
    const before = new Source(stamp);
    const early = caller();
    const left = pool.get("a", early, before.load);
    pool.purge();
    const after = new Source(stamp);
    const waiting = pool.get("a", caller(), after.load);
    early.leave();
    await expect(left).rejects.toThrow(ServiceError);
    const joined = pool.get("a", caller(), after.load);
    expect(after.asked).toBe(1);
    await after.answer("1");
    await expect(joined).resolves.toMatchObject({ value: "1", source: "inflight" });
    await waiting;
  });

  test("keeps out a fact that was asked before it and is learned after it", async () => {
    const early = factNow("old", stamp);
    pool.purge();
    await pool.learn("a", early);
    expect(pool.peek("a")).toBeUndefined();
    await pool.learn("a", factNow("new", stamp));
    expect(pool.peek("a")?.value).toBe("new");
  });

  test("keeps out a fact that was asked before it and answered after it", async () => {
    const askedMs = stamp();
    pool.purge();
    await pool.learn("a", { value: "old", askedMs, answeredMs: stamp() });
    expect(pool.peek("a")).toBeUndefined();
  });
});
