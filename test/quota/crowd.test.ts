/** Honest visitors, carts and bots together for a quarter of an hour: who is answered in time, and whether told seconds are true. */
import { beforeAll, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { WINDOW_MS } from "./support/asks.js";
import { crowd, type CrowdSeen, mulberry, type Served } from "./support/crowd.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = 57;
const WINDOWS = 16;

async function crowds(
  runs: number,
  bots: number,
  botsObey: boolean,
  mostSearches: number,
): Promise<CrowdSeen[]> {
  const all: CrowdSeen[] = [];
  for (const seed of fc.sample(fc.integer(), { numRuns: runs, seed: 57 }))
    all.push(
      await crowd({
        budget: BUDGET,
        windows: WINDOWS,
        bots,
        botPace: 6,
        botsObey,
        mostSearches,
        random: mulberry(seed),
      }),
    );
  return all;
}

function share(
  all: readonly CrowdSeen[],
  who: (seen: CrowdSeen) => Served,
  of: keyof Served,
  whole: keyof Served,
) {
  const sum = (key: keyof Served): number => all.reduce((total, seen) => total + who(seen)[key], 0);
  return sum(of) / sum(whole);
}

// Visitors who search up to four times in a row come in clumps, and a clump of clumps can be more than any budget serves in 8 s.
describe.each([
  { bots: 5, botsObey: false, mostSearches: 1, runs: 2, honest: 0.99, used: 0 },
  { bots: 5, botsObey: true, mostSearches: 4, runs: 6, honest: 0.97, used: 0 },
  { bots: 20, botsObey: false, mostSearches: 2, runs: 6, honest: 0.97, used: 0.95 },
  { bots: 20, botsObey: true, mostSearches: 2, runs: 6, honest: 0.97, used: 0 },
  { bots: 100, botsObey: false, mostSearches: 4, runs: 2, honest: 0.95, used: 0.95 },
])(
  "beside $bots bots, obeying $botsObey, with up to $mostSearches searches a visitor",
  ({ bots, botsObey, mostSearches, runs, honest, used }) => {
    let all: CrowdSeen[] = [];
    beforeAll(async () => {
      all = await crowds(runs, bots, botsObey, mostSearches);
    });

    test("honest visitors and carts are answered in time", () => {
      expect(share(all, (seen) => seen.honest, "answered", "asked")).toBeGreaterThanOrEqual(honest);
      expect(share(all, (seen) => seen.checkout, "answered", "asked")).toBeGreaterThanOrEqual(0.99);
    });

    test("no wait is longer than a window, and a visitor who comes back at the second of a reservation is answered", () => {
      for (const { longestToldMs } of all) expect(longestToldMs).toBeLessThanOrEqual(WINDOW_MS);
      const back = (seen: CrowdSeen): Served => ({
        ...seen.honest,
        retried: seen.honest.retried + seen.bots.retried,
        retriesAnswered: seen.honest.retriesAnswered + seen.bots.retriesAnswered,
      });
      const told = all.reduce((sum, seen) => sum + back(seen).retried, 0);
      if (botsObey) expect(told).toBeGreaterThan(10);
      expect(told === 0 ? 1 : share(all, back, "retriesAnswered", "retried")).toBeGreaterThanOrEqual(0.99);
    });

    test("the budget is used where all of it is asked for, and never passed", () => {
      for (const { arrivals } of all) {
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
        const steady = arrivals.filter((at) => at > WINDOW_MS && at <= WINDOWS * WINDOW_MS).length;
        expect(steady / (BUDGET * (WINDOWS - 1))).toBeGreaterThanOrEqual(used);
      }
    });
  },
);
