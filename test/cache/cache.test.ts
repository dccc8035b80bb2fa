/** The pools, with time in the test's hand: who is answered from memory, who asks, and what a failure does. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { type Asker, createPool, type Flight, type Pool } from "../../src/cache/cache.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock, settle } from "../support/fake-clock.js";

const START = Date.UTC(2026, 2, 20);
const UPSTREAM_DOWN = new ServiceError("upstream_failed", "The registry service is down.");

let clock: FakeClock;
let pool: Pool<string, Asker>;

function poolOf(entries = 100): Pool<string, Asker> {
  return createPool({
    entries,
    freshness: () => ({ freshMs: 1000, usableMs: 5000 }),
    failureMs: 300,
    clock,
  });
}

beforeEach(() => {
  clock = new FakeClock(START);
  pool = poolOf();
});

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

/** A question whose end the test decides, and which counts how often it was asked. */
class Source {
  asked = 0;
  flight: Flight<Asker> | undefined;
  #end: { resolve: (value: string) => void; reject: (error: Error) => void }[] = [];

  readonly load = (flight: Flight<Asker>): Promise<string> => {
    this.asked += 1;
    this.flight = flight;
    return new Promise((resolve, reject) => {
      this.#end.push({ resolve, reject });
    });
  };

  answer(value: string): Promise<void> {
    for (const { resolve } of this.#end.splice(0)) resolve(value);
    return settle();
  }

  fail(error: Error): Promise<void> {
    for (const { reject } of this.#end.splice(0)) reject(error);
    return settle();
  }
}

/** Puts a value into the pool as an answer of the upstream. */
async function learn(key: string, value: string): Promise<void> {
  await pool.get(key, caller(), () => Promise.resolve(value));
}

const failing = (): Promise<never> => Promise.reject(UPSTREAM_DOWN);

describe("a question under way", () => {
  test("is asked once for all who want to know, and each is told how it came by the answer", async () => {
    const source = new Source();
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
    const source = new Source();
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
    const source = new Source();
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
    const source = new Source();
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
    const source = new Source();
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
    const source = new Source();
    const gone = caller();
    gone.leave();
    await expect(pool.get("a", gone, source.load)).rejects.toThrow(ServiceError);
    expect(source.asked).toBe(0);
  });

  test("is not lost when more keys are under way than the pool may hold", async () => {
    pool = poolOf(3);
    const source = new Source();
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
    const source = new Source();
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

  test("for want of quota is not remembered: the next caller may be served", async () => {
    const refused = new ServiceError("quota_exhausted", "Later.", { retryAfterMs: 10 });
    await expect(pool.get("a", caller(), () => Promise.reject(refused))).rejects.toBe(refused);
    await expect(pool.get("a", caller(), () => Promise.resolve("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("of one key does not touch another", async () => {
    await expect(pool.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("b", caller(), () => Promise.resolve("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("leaves what is still usable to be shown, marked stale, with the time at which it was true", async () => {
    await learn("a", "old");
    await clock.advance(4999);
    const stale = { value: "old", asOfMs: START, source: "stale" };
    await expect(pool.get("a", caller(), failing)).resolves.toEqual(stale);
    // From memory of the failure, without another question.
    const source = new Source();
    await expect(pool.get("a", caller(), source.load)).resolves.toEqual(stale);
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
    const source = new Source();
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
    const source = new Source();
    await clock.advance(900); // expiry is spread over the last tenth
    await expect(pool.get("a", caller(), source.load)).resolves.toEqual({
      value: "1",
      asOfMs: START,
      source: "hit",
    });
    expect(source.asked).toBe(0);
    await clock.advance(101);
    const next = pool.get("a", caller(), source.load);
    expect(source.asked).toBe(1);
    await source.answer("2");
    await expect(next).resolves.toEqual({ value: "2", asOfMs: START + 1001, source: "miss" });
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
      await names.get(`name-${name}.af`, caller(), () => Promise.resolve("taken"));
    expect(pool.peek(".af registration 1")?.source).toBe("hit");
    expect(names.stats().entries).toBe(10);
  });

  test("that was learned elsewhere counts from when it was true", async () => {
    pool.put("a", "1", START - 950);
    pool.put("b", "1", START - 2000);
    pool.put("c", "1", START - 5001);
    expect(pool.peek("b")).toMatchObject({ value: "1", asOfMs: START - 2000, source: "stale" });
    expect(pool.peek("c")).toBeUndefined();
    await clock.advance(51);
    expect(pool.peek("a")?.source).toBe("stale");
  });
});

describe("whoever needs to know anew", () => {
  test("is answered from memory only up to the age given", async () => {
    await learn("a", "1");
    await clock.advance(500);
    const source = new Source();
    await expect(pool.get("a", caller(), source.load, { maxAgeMs: 500 })).resolves.toMatchObject({
      source: "hit",
    });
    const next = pool.get("a", caller(), source.load, { maxAgeMs: 499 });
    expect(source.asked).toBe(1);
    await source.answer("2");
    await expect(next).resolves.toMatchObject({ value: "2", source: "miss" });
  });

  test("gets no old value when asking fails, neither now nor while the failure is remembered", async () => {
    await learn("a", "1");
    await clock.advance(500);
    await expect(pool.get("a", caller(), failing, { maxAgeMs: 100 })).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("a", caller(), failing, { maxAgeMs: 100 })).rejects.toBe(UPSTREAM_DOWN);
    await expect(pool.get("a", caller(), failing)).resolves.toMatchObject({ value: "1", source: "hit" });
  });
});

describe("whoever takes an old value while it is renewed", () => {
  test("has it at once, and one question goes on behind", async () => {
    await learn("a", "1");
    await clock.advance(2000);
    const source = new Source();
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
    const source = new Source();
    const ask = () => pool.get("a", caller(), source.load, { whileRevalidating: true });
    await ask();
    await source.fail(UPSTREAM_DOWN);
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    expect(source.asked).toBe(1);
  });

  test("waits where there is no value", async () => {
    const source = new Source();
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
    await expect(pool.get("c", caller(), () => Promise.resolve("1"))).resolves.toMatchObject({ value: "1" });
  });

  test("during a question: who waits is answered, nothing is remembered, later callers ask anew", async () => {
    const before = new Source();
    const waiting = pool.get("a", caller(), before.load);
    pool.purge();
    const after = new Source();
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
    const before = new Source();
    const waiting = pool.get("a", caller(), before.load);
    pool.purge();
    await learn("a", "new");
    await before.answer("old");
    await waiting;
    expect(pool.peek("a")?.value).toBe("new");
  });

  test("one who boarded before the purge and leaves after it does not disturb those who boarded later", async () => {
    const before = new Source();
    const early = caller();
    const left = pool.get("a", early, before.load);
    pool.purge();
    const after = new Source();
    const waiting = pool.get("a", caller(), after.load);
    early.leave();
    await expect(left).rejects.toThrow(ServiceError);
    const joined = pool.get("a", caller(), after.load);
    expect(after.asked).toBe(1);
    await after.answer("1");
    await expect(joined).resolves.toMatchObject({ value: "1", source: "inflight" });
    await waiting;
  });

  test("forgetting one key leaves the others", async () => {
    await learn("a", "1");
    await learn("b", "1");
    pool.forget("a");
    expect(pool.peek("a")).toBeUndefined();
    expect(pool.peek("b")?.source).toBe("hit");
  });
});
