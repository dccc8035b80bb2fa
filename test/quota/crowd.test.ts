/** Honest visitors, carts and bots together for a quarter of an hour: who is answered in time, and whether retry times are accurate. */
import { beforeAll, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { WINDOW_MS } from "./support/asks.js";
import { crowd, type CrowdResult, mulberry, type Served } from "./support/crowd.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = 57;
const WINDOWS = 16;

async function crowds(
  runs: number,
  bots: number,
  botsRetry: boolean,
  maxSearches: number,
): Promise<CrowdResult[]> {
  const all: CrowdResult[] = [];
  for (const seed of fc.sample(fc.integer(), { numRuns: runs, seed: 57 }))
    all.push(
      await crowd({
        budget: BUDGET,
        windows: WINDOWS,
        bots,
        botRate: 6,
        botsRetry,
        maxSearches,
        random: mulberry(seed),
      }),
    );
  return all;
}

function share(
  all: readonly CrowdResult[],
  who: (result: CrowdResult) => Served,
  of: keyof Served,
  whole: keyof Served,
) {
  const sum = (key: keyof Served): number => all.reduce((total, result) => total + who(result)[key], 0);
  return sum(of) / sum(whole);
}

// Visitors who search up to four times in a row come in bursts, and several bursts at once can be more than any budget serves in 8 s.
describe.each([
  { bots: 5, botsRetry: false, maxSearches: 1, runs: 2, honest: 0.99, used: 0 },
  { bots: 5, botsRetry: true, maxSearches: 4, runs: 3, honest: 0.97, used: 0 },
  { bots: 20, botsRetry: false, maxSearches: 2, runs: 3, honest: 0.97, used: 0.95 },
  { bots: 20, botsRetry: true, maxSearches: 2, runs: 3, honest: 0.97, used: 0 },
  { bots: 100, botsRetry: false, maxSearches: 4, runs: 2, honest: 0.95, used: 0.95 },
])(
  "with $bots bots (retrying: $botsRetry) and up to $maxSearches searches per visitor,",
  ({ bots, botsRetry, maxSearches, runs, honest, used }) => {
    let all: CrowdResult[] = [];
    beforeAll(async () => {
      all = await crowds(runs, bots, botsRetry, maxSearches);
    });

    test("honest visitors and carts are answered in time", () => {
      expect(share(all, (result) => result.honest, "answered", "asked")).toBeGreaterThanOrEqual(honest);
      expect(share(all, (result) => result.checkout, "answered", "asked")).toBeGreaterThanOrEqual(0.99);
    });

    test("no wait is longer than a window, and clients who return at the second of a reservation are answered", () => {
      for (const { longestRetryTimeMs } of all) expect(longestRetryTimeMs).toBeLessThanOrEqual(WINDOW_MS);
      const returned = (result: CrowdResult): Served => ({
        ...result.honest,
        retried: result.honest.retried + result.bots.retried,
        retriesAnswered: result.honest.retriesAnswered + result.bots.retriesAnswered,
      });
      const retried = all.reduce((sum, result) => sum + returned(result).retried, 0);
      if (botsRetry) expect(retried).toBeGreaterThan(10);
      expect(retried === 0 ? 1 : share(all, returned, "retriesAnswered", "retried")).toBeGreaterThanOrEqual(
        0.99,
      );
    });

    test("the budget is used if all of it is requested, and never exceeded", () => {
      for (const { arrivals } of all) {
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
        const steady = arrivals.filter((at) => at > WINDOW_MS && at <= WINDOWS * WINDOW_MS).length;
        expect(steady / (BUDGET * (WINDOWS - 1))).toBeGreaterThanOrEqual(used);
      }
    });
  },
);
