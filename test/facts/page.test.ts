/** A page of the notebook on a simulated clock: who is answered from memory, who starts a load, how old an answer is, and what a failure does. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { createPage, type Page } from "../../src/facts/page.js";
import type { Ask } from "../../src/quota/quota.js";
import { type Answered, createStamps } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock, settle } from "../support/fake-clock.js";

const START = Date.UTC(2026, 2, 20);

let clock: FakeClock;
let stamp: () => number;
let page: Page<string>;

function pageOf(entries = 100, freshMs = 1000): Page<string> {
  return createPage({
    entries,
    freshness: () => ({ freshMs, usableMs: 5000 }),
    failureMs: 300,
    clock,
    stamp,
  });
}

beforeEach(() => {
  clock = new FakeClock(START);
  stamp = createStamps(clock);
  page = pageOf();
});

const UPSTREAM_DOWN = new ServiceError("upstream_failed", "The registry service is down.");

/** A caller that can leave. */
function caller(): Ask & { leave(): void } {
  const controller = new AbortController();
  const { signal } = controller;
  return { lane: "exact", client: "a", waitUntilAt: Infinity, signal, leave: () => controller.abort() };
}

/** Counts its loads, stamps them when they start, and answers them when the test says so. */
class Source {
  loads = 0;
  ask: Ask | undefined;
  #open: { resolve(value: string): void; reject(error: Error): void }[] = [];

  readonly load = (ask: Ask): Promise<Answered<string>> => {
    const askedAt = stamp();
    this.loads += 1;
    this.ask = ask;
    return new Promise((resolve, reject) => {
      this.#open.push({ resolve: (value) => resolve({ value, askedAt, answeredAt: stamp() }), reject });
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

const failing = (): Promise<never> => Promise.reject(UPSTREAM_DOWN);

/** Adds a value that was requested and answered just now. */
function learn(key: string, value: string): void {
  page.learn(key, { value, askedAt: stamp(), answeredAt: stamp() });
}

describe("a load in flight", () => {
  test("is aborted when the last caller leaves, and the next caller starts a new load", async () => {
    const source = new Source();
    const callers = [caller(), caller()];
    const waiting = callers.map((one) => page.get("a", one, source.load));
    for (const one of callers) one.leave();
    await Promise.all(waiting.map((one) => expect(one).rejects.toThrow(ServiceError)));
    expect(source.ask?.signal.aborted).toBe(true);
    const next = page.get("a", caller(), source.load);
    expect(source.loads).toBe(2);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1", source: "miss" });
  });

  test("isn't lost when more loads are in flight than the page has entries", async () => {
    page = pageOf(3);
    const source = new Source();
    const keys = Array.from({ length: 8 }, (_, index) => `key ${index}`);
    const waiting = keys.map((key) => page.get(key, caller(), source.load));
    await source.answer("1");
    const values = (await Promise.all(waiting)).map(({ value }) => value);
    expect(values).toEqual(keys.map(() => "1"));
    expect(page.stats().entries).toBe(3);
  });
});

describe("a failure", () => {
  test("fails all waiting callers with one load, and is remembered briefly", async () => {
    const source = new Source();
    const waiting = Array.from({ length: 10 }, () => page.get("a", caller(), source.load));
    const outcomes = Promise.allSettled(waiting);
    await source.fail(UPSTREAM_DOWN);
    for (const outcome of await outcomes)
      expect(outcome).toEqual({ status: "rejected", reason: UPSTREAM_DOWN });

    await clock.advance(299);
    for (let ask = 0; ask < 10; ask += 1)
      await expect(page.get("a", caller(), source.load)).rejects.toBe(UPSTREAM_DOWN);
    expect(source.loads).toBe(1);

    await clock.advance(1);
    const next = page.get("a", caller(), source.load);
    await source.answer("1");
    await expect(next).resolves.toMatchObject({ value: "1" });
    expect(source.loads).toBe(2);
  });

  test("reports the remaining wait while it is remembered", async () => {
    const gone = new ServiceError("upstream_failed", "The registry service is down.", {
      retryAfterMs: 20_000,
    });
    await expect(page.get("a", caller(), () => Promise.reject(gone))).rejects.toBe(gone);
    await clock.advance(200);
    await expect(page.get("a", caller(), failing)).rejects.toMatchObject({ retryAfterMs: 19_800 });
  });
});

describe("the memory of a page", () => {
  test("never exceeds its size; the least recently used entry is dropped first", async () => {
    page = pageOf(3);
    for (const key of ["a", "b", "c"]) learn(key, key);
    await page.get("a", caller(), failing);
    learn("d", "d");
    expect(page.stats()).toMatchObject({ entries: 3, bound: 3 });
    expect(["a", "b", "c", "d"].filter((key) => page.peek(key) !== undefined)).toEqual(["a", "c", "d"]);
  });
});

describe("the age of an answer", () => {
  test("counts from the request, not from the answer", async () => {
    const source = new Source();
    const waiting = page.get("a", caller(), source.load);
    await clock.advance(800);
    await source.answer("1");
    await expect(waiting).resolves.toMatchObject({ asOfMs: START, source: "miss" });
    expect(page.peek("a")).toMatchObject({ asOfMs: START, source: "hit" });
    await clock.advance(201);
    expect(page.peek("a")?.source).toBe("stale");
    await clock.advance(3998);
    expect(page.peek("a")?.asOfMs).toBe(START);
    await clock.advance(2);
    expect(page.peek("a")).toBeUndefined();
  });
});

test("nothing is returned past its usable age, even within its freshness", async () => {
  page = pageOf(10, 600_000);
  learn("a", "1");
  await clock.advance(5001);
  expect(page.peek("a")).toBeUndefined();
  await expect(page.get("a", caller(), failing)).rejects.toBe(UPSTREAM_DOWN);
});

describe("a caller that accepts a stale value during a refresh", () => {
  test("gets it immediately, while one load continues in the background", async () => {
    learn("a", "1");
    await clock.advance(2000);
    const source = new Source();
    const ask = () => page.get("a", caller(), source.load, { whileRevalidating: true });
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    await expect(ask()).resolves.toMatchObject({ value: "1", source: "stale" });
    expect(source.loads).toBe(1);
    await source.answer("2");
    await expect(ask()).resolves.toMatchObject({ value: "2", source: "hit" });
  });
});
