/**
 * What people who wait are promised by several replicas over one real Redis: it holds wherever they return, and carts are served though
 * each replica has few calls of its own. `npm run bench -- reservations` is longer.
 */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { WINDOW_MS } from "./support/asks.js";
import { mulberry } from "./support/crowd.js";
import { largestWindow } from "./support/rolling.js";
import { openTimedFleet } from "./support/timed-fleet.js";
import { counted, servedWithin, useOfSafeBound, waits, type WaitsSeen } from "./support/waits.js";

const BUDGET = 57;

describeWithRedis("behind a balancer", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  async function crowd(
    replicas: number,
    { load, carts, windows, oneWayMs }: { load: number; carts: number; windows: number; oneWayMs: number },
    balance: (request: number) => number,
  ): Promise<WaitsSeen> {
    const random = mulberry(3);
    const latencyMs = (): number => oneWayMs + random();
    const { clock, ...fleet } = await openTimedFleet({
      redisUrl: server.url,
      replicas,
      budget: BUDGET,
      latencyMs,
      commandTimeoutMs: Math.max(100, 6 * oneWayMs),
    });
    const quotas = fleet.replicas.map(({ quota }) => quota);
    const seen = await waits({ budget: BUDGET, windows, load, carts, seed: 57 }, { clock, quotas, balance });
    fleet.close();
    return seen;
  }

  describe.each([
    { replicas: 4, load: 2, carts: 0, balance: "in turn", oneWayMs: 0.3 },
    { replicas: 4, load: 1, carts: 1 / 3, balance: "at random", oneWayMs: 0.3 },
    { replicas: 4, load: 2, carts: 0, balance: "at random", oneWayMs: 50 },
  ])(
    "$replicas replicas reached $balance, visitors at $load and carts at $carts of the budget, Redis $oneWayMs ms away",
    (row) => {
      test("honour reservations, serve carts, use the budget and never pass it", async () => {
        const windows = 9;
        const random = mulberry(7);
        const balance =
          row.balance === "in turn" ? (n: number) => n : () => Math.floor(random() * row.replicas);
        const seen = await crowd(row.replicas, { ...row, windows }, balance);
        expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
        const { came, served } = seen.kept;
        expect(came).toBeGreaterThan(80);
        expect(served).toBeGreaterThanOrEqual(0.99 * came);
        const carts = counted(seen, windows).filter(({ lane }) => lane === "checkout");
        expect(carts.length === 0 ? 1 : servedWithin(carts, 8000)).toBeGreaterThanOrEqual(0.99);
        expect(useOfSafeBound(seen, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
      });
    },
  );
});
