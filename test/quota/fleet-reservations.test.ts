/**
 * Several replicas over one real Redis keep their promises to waiting visitors, whichever replica they return to, and serve carts although each
 * replica has few slots of its own. `npm run bench -- reservations` runs longer.
 */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { ask, outcome, WINDOW_MS } from "./support/asks.js";
import { mulberry } from "./support/crowd.js";
import { largestWindow } from "./support/rolling.js";
import { openTimedFleet, type TimedReplica } from "./support/timed-fleet.js";
import {
  counted,
  servedWithin,
  useOfSafeBound,
  waits,
  type WaitsResult,
  type WaitsSettings,
} from "./support/waits.js";

const BUDGET = 57;

describeWithRedis("behind a load balancer,", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  async function crowd(
    replicas: number,
    { oneWayMs, ...visitors }: Omit<WaitsSettings, "budget" | "seed"> & { readonly oneWayMs: number },
    balance: (request: number) => number,
  ): Promise<WaitsResult> {
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
    const result = await waits({ ...visitors, budget: BUDGET, seed: 57 }, { clock, quotas, balance });
    fleet.close();
    return result;
  }

  test("replicas that can't inform each other reserve nothing", async () => {
    const { clock, ...fleet } = await openTimedFleet({
      redisUrl: server.url,
      replicas: 2,
      replicasMax: 3,
      budget: BUDGET,
      latencyMs: () => 0.3,
    });
    const isPromised = ({ quota }: TimedReplica, client: string): boolean | undefined =>
      quota.refusal(ask({ client, maxWaitMs: 100 }))?.kept;

    for (const { quota } of fleet.replicas)
      for (let n = 0; n < BUDGET / 3; n += 1)
        void outcome(quota.run(ask({ client: `crowd ${n}` }), async () => n));
    await clock.advance(10_000);
    for (const replica of fleet.replicas) replica.cutOff(() => null);
    await clock.advance(5_000);
    expect(fleet.replicas.map((replica) => isPromised(replica, "during"))).toEqual([false, false]);
    fleet.close();
  });

  test("replicas put off reservations that fall into a pause of the upstream, whichever of them has learned of it", async () => {
    const pauses = [3, 4.5].map((window) => ({ atMs: window * WINDOW_MS, forMs: 40_000 }));
    const result = await crowd(3, { load: 2, carts: 0, windows: 7, oneWayMs: 0.3, pauses }, (n) => n);
    const { claimed, served, moved } = result.reservations;
    expect(moved).toBeGreaterThan(10);
    expect(served).toBeGreaterThanOrEqual(0.99 * (claimed - moved));
  });

  test("replicas honour the reservations that are made during and after a long pause of the upstream", async () => {
    const pauses = [2, 5].map((n) => ({ atMs: n * WINDOW_MS, forMs: 1.5 * WINDOW_MS }));
    const result = await crowd(3, { load: 2, windows: 8, oneWayMs: 0.3, pauses }, (n) => n);
    const { claimed, served, moved } = result.reservations;
    expect(claimed).toBeGreaterThan(50);
    expect(served).toBeGreaterThanOrEqual(0.99 * (claimed - moved) - 1);
  });

  describe.each([
    { replicas: 4, load: 2, carts: 0, balance: "round robin", oneWayMs: 0.3 },
    { replicas: 4, load: 1, carts: 1 / 3, balance: "at random", oneWayMs: 0.3 },
    { replicas: 4, load: 2, carts: 0, balance: "at random", oneWayMs: 50 },
  ])(
    "$replicas replicas ($balance, visitors at $load and carts at $carts of the budget, Redis $oneWayMs ms away)",
    (row) => {
      test("honour reservations, serve carts, and use but never exceed the budget", async () => {
        const windows = 9;
        const random = mulberry(7);
        const balance =
          row.balance === "round robin" ? (n: number) => n : () => Math.floor(random() * row.replicas);
        const result = await crowd(row.replicas, { ...row, windows }, balance);
        expect(largestWindow(result.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
        const { claimed, served } = result.reservations;
        expect(claimed).toBeGreaterThan(80);
        expect(served).toBeGreaterThanOrEqual(0.99 * claimed);
        const carts = counted(result, windows).filter(({ lane }) => lane === "checkout");
        expect(carts.length === 0 ? 1 : servedWithin(carts, 8000)).toBeGreaterThanOrEqual(0.99);
        expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
      });
    },
  );
});
