/** A steady overload for several windows: the receiver's count, the use, and whether those who come back when told are served. */
import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { ServiceError } from "../../src/errors.js";
import type { Lane } from "../../src/quota/lane.js";
import { ask, memoryQuota, outcome, toldMs, WINDOW_MS } from "./support/asks.js";
import { mulberry } from "./support/crowd.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = 57;
// Three tenths of the calls are reserved: so many windows for more than a budget of retries.
const WINDOWS = 9;

interface Seen {
  readonly arrivals: number[];
  retried: number;
  retriesServed: number;
  refused: number;
  refusedLate: number;
  longestToldMs: number;
}

/** `perWindow` new clients a window, evenly; each calls once, and comes back once if it is refused. */
async function overload(windows: number, perWindow: number, lane: Lane, random: () => number): Promise<Seen> {
  const { quota, clock } = memoryQuota(BUDGET);
  const seen: Seen = {
    arrivals: [],
    retried: 0,
    retriesServed: 0,
    refused: 0,
    refusedLate: 0,
    longestToldMs: 0,
  };
  const call = (): Promise<string> => {
    const tookMs = random() * 2000;
    const sentAt = clock.monotonic();
    seen.arrivals.push(sentAt + random() * tookMs);
    return new Promise((done) => {
      clock.after(tookMs, () => {
        done("served");
      });
    });
  };
  const works: Promise<void>[] = [];
  const visit = async (client: string, again: boolean): Promise<void> => {
    const cameAt = clock.monotonic();
    const got = await outcome(quota.run(ask({ client, lane }), call));
    if (again && got === "served") seen.retriesServed += 1;
    if (!(got instanceof ServiceError)) return;
    seen.refused += 1;
    if (clock.monotonic() > cameAt) seen.refusedLate += 1;
    const told = toldMs(got);
    seen.longestToldMs = Math.max(seen.longestToldMs, told);
    if (got.kept !== true) return;
    if (again || clock.monotonic() + told + 20_000 > windows * WINDOW_MS) return;
    seen.retried += 1;
    clock.after(told + random() * 200, () => works.push(visit(client, true)));
  };
  for (let n = 0; n < windows * perWindow; n += 1) {
    works.push(visit(`client ${n}`, false));
    await clock.advance(WINDOW_MS / perWindow);
  }
  await clock.advance(WINDOW_MS);
  await Promise.all(works);
  return seen;
}

test("a refused visitor who comes back at the given second is served, and the budget is used and never exceeded", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer(), fc.constantFrom<Lane>("exact", "search"), async (seed, lane) => {
      const random = mulberry(seed);
      const seen = await overload(WINDOWS, 3 * BUDGET, lane, random);
      expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      expect(seen.longestToldMs).toBeLessThanOrEqual(WINDOW_MS);
      expect(seen.retried).toBeGreaterThan(BUDGET);
      expect(seen.retriesServed / seen.retried).toBeGreaterThanOrEqual(0.99);
      expect(seen.refusedLate / seen.refused).toBeLessThanOrEqual(0.01);
      expect(seen.arrivals.filter((at) => at < WINDOWS * WINDOW_MS).length).toBeGreaterThanOrEqual(
        WINDOWS * BUDGET * 0.95,
      );
    }),
    { numRuns: 2 },
  );
});

test.each([
  { budget: 57, windowMs: WINDOW_MS, maxWaitMs: 8000 },
  { budget: 8, windowMs: WINDOW_MS, maxWaitMs: 8000 },
  { budget: 57, windowMs: 5000, maxWaitMs: 1000 },
  { budget: 57, windowMs: 4000, maxWaitMs: 0 },
])(
  "a flood of visitors who come once and never again leaves nothing unused of $budget calls in $windowMs ms, with a patience of $maxWaitMs ms",
  async ({ budget, windowMs, maxWaitMs }) => {
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
    expect(late / ((windows - 2) * budget)).toBeGreaterThanOrEqual(0.95);
  },
);
