/** No part of a window goes without calls: how much a burst can take, and how long an honest visitor waits after it. */
import { setMaxListeners } from "node:events";
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import type { Lane } from "../../src/quota/lane.js";
import { ask, memoryQuota, outcome, spend, WINDOW_MS } from "./support/asks.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = 57;

describe("a burst", () => {
  test("takes most of an idle budget at once, and leaves the rest for the window", async () => {
    const { quota, clock } = memoryQuota(BUDGET);
    for (let n = 0; n < 200; n += 1) void outcome(quota.run(ask({ client: `a ${n % 5}` }), async () => n));
    await clock.advance(0);
    expect(quota.snapshot().used).toBe(35);
    await clock.advance(WINDOW_MS);
  });

  test("is refused immediately as far as it can't be served in time", async () => {
    const { quota, clock } = memoryQuota(BUDGET);
    const works = Array.from({ length: BUDGET }, (_, n) =>
      outcome(quota.run(ask({ client: `a ${n}` }), async () => n)),
    );
    await clock.advance(0);
    // Three more calls are possible within the 8 s that the requests wait.
    expect(quota.snapshot().lanes.exact).toMatchObject({ served: 35, queued: 3, refused: BUDGET - 38 });
    await clock.advance(8000);
    expect((await Promise.all(works)).filter((got) => typeof got === "number")).toHaveLength(38);
  });

  test("can take more of the budget with carts than with others, and least with background work", async () => {
    const taken = async (lane: Lane): Promise<number> => {
      const { quota, clock } = memoryQuota(BUDGET);
      const stop = new AbortController();
      setMaxListeners(BUDGET, stop.signal);
      const works = Array.from({ length: BUDGET }, (_, n) =>
        quota.run(ask({ lane, client: `${n}`, maxWaitMs: Infinity, signal: stop.signal }), async () => n),
      );
      const ended = Promise.allSettled(works);
      await clock.advance(0);
      stop.abort();
      await ended;
      return quota.snapshot().used;
    };
    expect([await taken("refresh"), await taken("search"), await taken("checkout")]).toEqual([29, 35, 49]);
  });

  test("delays an honest cold search by a twentieth of a window at the median, and by at most three twentieths", async () => {
    const waits: number[] = [];
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: 10 }),
        async (moment, addresses) => {
          const { quota, clock } = memoryQuota(BUDGET);
          // Each of these addresses makes four requests a second until then.
          const until = moment * WINDOW_MS;
          for (let at = 0; at < until; at += 1000) {
            for (let n = 0; n < 4 * addresses; n += 1)
              void outcome(quota.run(ask({ client: `b ${n % addresses}` }), async () => n));
            await clock.advance(Math.min(1000, until - at));
          }
          const cameAt = clock.monotonic();
          const served = quota.run(ask({ client: "honest" }), async () => clock.monotonic());
          await clock.advance(8000);
          waits.push((await served) - cameAt);
        },
      ),
      { numRuns: 60, seed: 57 },
    );
    waits.sort((a, b) => a - b);
    expect(waits[waits.length >> 1]).toBeLessThanOrEqual(0.05 * WINDOW_MS);
    expect(waits.at(-1)).toBeLessThanOrEqual(0.15 * WINDOW_MS);
  });
});

test("a budget of fewer than twenty calls isn't spread", async () => {
  const { quota } = memoryQuota(19);
  await spend(quota, 19);
  expect(quota.snapshot().used).toBe(19);
});

test("a steady overload leads to evenly spaced calls that use the whole budget", async () => {
  const { quota, clock } = memoryQuota(BUDGET);
  const calls: number[] = [];
  for (let n = 0; n < 6 * 4 * BUDGET; n += 1) {
    void outcome(quota.run(ask({ client: `c ${n}` }), async () => calls.push(clock.monotonic())));
    await clock.advance(WINDOW_MS / (4 * BUDGET));
  }
  expect(largestWindow(calls, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
  const steady = calls.filter((at) => at >= 2 * WINDOW_MS);
  expect(steady.length).toBeGreaterThanOrEqual(0.95 * 4 * BUDGET);
  const gaps = steady.slice(1).map((at, index) => at - (steady[index] ?? at));
  expect(Math.max(...gaps)).toBeLessThan((2 * WINDOW_MS) / BUDGET);
});

test("slots that become usable together are used evenly if visitors were refused until then", async () => {
  const { quota, clock } = memoryQuota(BUDGET);
  const calls: number[] = [];
  const visitors = async (forMs: number): Promise<void> => {
    for (let n = 0; n < 4 * BUDGET; n += 1) {
      void outcome(
        quota.run(ask({ client: `${clock.monotonic()}` }), async () => calls.push(clock.monotonic())),
      );
      await clock.advance(forMs / (4 * BUDGET));
    }
  };
  await quota.pause(WINDOW_MS);
  await visitors(WINDOW_MS);
  const from = clock.monotonic();
  await visitors(WINDOW_MS);
  expect(calls.filter((at) => at < from)).toEqual([]);
  expect(largestWindow(calls, WINDOW_MS / 10)).toBeLessThanOrEqual(0.15 * BUDGET);
  await visitors(WINDOW_MS);
  expect(calls.filter((at) => at >= from + WINDOW_MS).length).toBeGreaterThanOrEqual(0.94 * BUDGET);
});
