/** A steady overload for several windows: calls per window, use of the budget, and whether visitors who return on time are served. */
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { ServiceError } from "../../src/errors.js";
import type { Lane } from "../../src/quota/lane.js";
import { ask, memoryQuota, outcome, retryTimeMs, WINDOW_MS } from "./support/asks.js";
import { mulberry } from "./support/crowd.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = 57;
// Three tenths of the calls are reserved, so this many windows have more than one budget of retries.
const WINDOWS = 9;

interface OverloadResult {
  readonly arrivals: number[];
  retried: number;
  retriesServed: number;
  refused: number;
  refusedLate: number;
  longestRetryTimeMs: number;
}

/** Sends `perWindow` new clients a window, evenly spaced. Each makes one request, and retries once if a call was reserved for it. */
async function overload(
  windows: number,
  perWindow: number,
  lane: Lane,
  random: () => number,
): Promise<OverloadResult> {
  const { quota, clock } = memoryQuota(BUDGET);
  const result: OverloadResult = {
    arrivals: [],
    retried: 0,
    retriesServed: 0,
    refused: 0,
    refusedLate: 0,
    longestRetryTimeMs: 0,
  };
  const call = (): Promise<string> => {
    const tookMs = random() * 2000;
    const sentAt = clock.monotonic();
    result.arrivals.push(sentAt + random() * tookMs);
    return new Promise((done) => {
      clock.after(tookMs, () => {
        done("served");
      });
    });
  };
  const works: Promise<void>[] = [];
  const visit = async (client: string, isRetry: boolean): Promise<void> => {
    const cameAt = clock.monotonic();
    const got = await outcome(quota.run(ask({ client, lane }), call));
    if (isRetry && got === "served") result.retriesServed += 1;
    if (!(got instanceof ServiceError)) return;
    result.refused += 1;
    if (clock.monotonic() > cameAt) result.refusedLate += 1;
    const inMs = retryTimeMs(got);
    result.longestRetryTimeMs = Math.max(result.longestRetryTimeMs, inMs);
    if (got.kept !== true) return;
    if (isRetry || clock.monotonic() + inMs + 20_000 > windows * WINDOW_MS) return;
    result.retried += 1;
    clock.after(inMs + random() * 200, () => works.push(visit(client, true)));
  };
  for (let n = 0; n < windows * perWindow; n += 1) {
    works.push(visit(`client ${n}`, false));
    await clock.advance(WINDOW_MS / perWindow);
  }
  await clock.advance(WINDOW_MS);
  await Promise.all(works);
  return result;
}

test("a refused visitor who returns at a reserved second is served, and the budget is used and never exceeded", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.constantFrom<Lane>("exact", "search"), async (seed, lane) => {
      const random = mulberry(seed);
      const result = await overload(WINDOWS, 3 * BUDGET, lane, random);
      expect(largestWindow(result.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      expect(result.longestRetryTimeMs).toBeLessThanOrEqual(WINDOW_MS);
      expect(result.retried).toBeGreaterThan(BUDGET);
      expect(result.retriesServed / result.retried).toBeGreaterThanOrEqual(0.99);
      expect(result.refusedLate / result.refused).toBeLessThanOrEqual(0.05);
      expect(result.arrivals.filter((at) => at < WINDOWS * WINDOW_MS).length).toBeGreaterThanOrEqual(
        WINDOWS * BUDGET * 0.95,
      );
    }),
    { numRuns: 2 },
  );
});

test.each([
  { budget: 57, windowMs: WINDOW_MS, maxWaitMs: 8000 },
  { budget: 8, windowMs: WINDOW_MS, maxWaitMs: 8000 },
  { budget: 57, windowMs: 5000, maxWaitMs: 1000, least: 0.9 },
  { budget: 57, windowMs: 4000, maxWaitMs: 0 },
])(
  "a flood of visitors who never return and wait for $maxWaitMs ms uses a budget of $budget in $windowMs ms",
  async ({ budget, windowMs, maxWaitMs, least = 0.95 }) => {
    const windows = 6;
    const { quota, clock } = memoryQuota(budget, { windowMs });
    let late = 0;
    for (let n = 0; n < windows * 600; n += 1) {
      const call = async (): Promise<void> => {
        if (clock.monotonic() > 2 * windowMs) late += 1;
      };
      void outcome(quota.run(ask({ client: `passer-by ${n}`, maxWaitMs }), call));
      await clock.advance(windowMs / 600);
    }
    expect(late / ((windows - 2) * budget)).toBeGreaterThanOrEqual(least);
  },
);
