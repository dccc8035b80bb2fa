/**
 * Several replicas over one real Redis keep their promises to waiting visitors, whichever replica they return to, and serve carts although each
 * replica has few slots of its own. `npm run bench -- reservations` runs longer.
 */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { FakeClock } from "../support/fake-clock.js";
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
    {
      oneWayMs,
      replicasMax = replicas,
      ...visitors
    }: Omit<WaitsSettings, "budget" | "seed"> & { readonly oneWayMs: number; readonly replicasMax?: number },
    balance: (request: number, atMs: number) => number,
  ): Promise<WaitsResult> {
    const random = mulberry(3);
    const latencyMs = (): number => oneWayMs + random();
    const { clock, ...fleet } = await openTimedFleet({
      redisUrl: server.url,
      replicas,
      replicasMax,
      budget: BUDGET,
      latencyMs,
      commandTimeoutMs: Math.max(100, 6 * oneWayMs),
    });
    const quotas = fleet.replicas.map(({ quota }) => quota);
    const result = await waits(
      { ...visitors, budget: BUDGET, seed: 57 },
      { clock, quotas, balance: (request) => balance(request, clock.monotonic()) },
    );
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

  test("the shared calls are used by the replica that all visitors have moved to, instead of waiting for the former one", async () => {
    const windows = 12;
    const result = await crowd(
      2,
      { replicasMax: 5, load: 2, carts: 1 / 3, windows, oneWayMs: 0.3 },
      (_, atMs) => Math.floor(atMs / (2 * WINDOW_MS)),
    );
    const { claimed, served } = result.reservations;
    expect(served).toBeGreaterThanOrEqual(0.97 * claimed);
    expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.91);
  });

  test("a replica that all visitors reach uses the calls of the idle ones", async () => {
    const windows = 8;
    const result = await crowd(4, { load: 2, windows, oneWayMs: 0.3 }, () => 0);
    const { claimed, served } = result.reservations;
    expect(served).toBeGreaterThanOrEqual(0.97 * claimed);
    expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.91);
    expect(largestWindow(result.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
  });

  describe("a visitor who waits for its reserved call at one of two replicas with a call each,", () => {
    const mine = ask({ client: "mine", queryKey: "mine" });

    interface ReservedSecond {
      readonly clock: FakeClock;
      readonly here: TimedReplica;
      readonly there: TimedReplica;
      readonly waiting: Promise<unknown>;
      hangUp(): void;
      close(): void;
    }

    /** At the reserved second, while the upstream has asked for a short pause. `here` is the index of the replica to which the visitor returns. */
    async function reservedSecond(pauseMs: number, here: 0 | 1): Promise<ReservedSecond> {
      const { clock, ...fleet } = await openTimedFleet({
        redisUrl: server.url,
        replicas: 2,
        budget: 2,
        latencyMs: () => 0.3,
      });
      const [first, second] = fleet.replicas;
      if (first === undefined || second === undefined) throw new Error("there are no two replicas");
      for (const { quota } of fleet.replicas)
        void quota.run(ask({ client: "spender" }), async () => "served");
      await clock.advance(3000);
      const refused = first.quota.refusal(mine);
      expect(refused?.kept).toBe(true);
      await clock.advance(refused?.retryAfterMs ?? 0);
      void first.quota.pause(pauseMs);
      await clock.advance(1);
      const ends = here === 0 ? { here: first, there: second } : { here: second, there: first };
      const connection = new AbortController();
      const { signal } = connection;
      const waiting = outcome(ends.here.quota.run({ ...mine, signal }, async () => "served"));
      waiting.catch(() => undefined);
      const hangUp = (): void => {
        connection.abort();
      };
      return { clock, ...ends, waiting, hangUp, close: fleet.close };
    }

    async function expectClaim({ quota }: TimedReplica, clock: FakeClock): Promise<void> {
      const returned = outcome(quota.run(mine, async () => "served"));
      await clock.advance(8000);
      expect(await returned).toBe("served");
      expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 1, honoured: 1 });
    }

    test("has it at the other one too if its connection is lost and it returns there at once, before others", async () => {
      const { clock, here, there, hangUp, close } = await reservedSecond(1000, 0);
      await clock.advance(400);
      void outcome(there.quota.run(ask({ client: "cart", lane: "checkout" }), async () => "served"));
      void outcome(there.quota.run(ask({ client: "newcomer" }), async () => "served"));
      expect(here.quota.snapshot().lanes.exact.queued).toBe(1);
      hangUp();
      await expectClaim(there, clock);
      close();
    });

    test("has it at the other one too if the first is stopped", async () => {
      const { clock, here, there, waiting, close } = await reservedSecond(3000, 0);
      await clock.advance(1700);
      const closed = here.quota.close();
      expect(await waiting).toMatchObject({ code: "shutting_down", retryAfterMs: 1000 });
      await clock.advance(1000);
      await expectClaim(there, clock);
      await closed;
      close();
    });

    test.each([0, 1] as const)(
      "has the next one that the other promises if its connection is lost and it returns there late but at once, from replica %d",
      async (from) => {
        const { clock, there, hangUp, close } = await reservedSecond(7000, from);
        await clock.advance(2700);
        hangUp();
        await clock.advance(5);
        const again = there.quota.refusal({ ...mine, maxWaitMs: 100 });
        expect(again?.kept).toBe(true);
        await clock.advance(again?.retryAfterMs ?? 0);
        await expectClaim(there, clock);
        close();
      },
    );
  });

  describe.each([
    { replicas: 4, replicasMax: 4, load: 2, carts: 0, balance: "round robin", oneWayMs: 0.3 },
    { replicas: 4, replicasMax: 4, load: 1, carts: 1 / 3, balance: "at random", oneWayMs: 0.3 },
    { replicas: 4, replicasMax: 4, load: 2, carts: 0, balance: "at random", oneWayMs: 50 },
    { replicas: 3, replicasMax: 5, load: 2, carts: 1 / 3, balance: "round robin", oneWayMs: 0.3 },
  ])(
    "$replicas of at most $replicasMax replicas ($balance, visitors at $load and carts at $carts of the budget, Redis $oneWayMs ms away)",
    (row) => {
      test("honour reservations, serve carts, and use but never exceed the budget", async () => {
        // Of several carts that come at once, one may be refused, so there have to be more than a hundred.
        const windows = row.carts > 0 ? 14 : 9;
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
