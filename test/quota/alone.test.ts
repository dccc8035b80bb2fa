/** Calls that a replica made without Redis count once it has reconnected. The clock is simulated and Redis is real. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { Quota } from "../../src/quota/quota.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { ask, WINDOW_MS } from "./support/asks.js";
import { largestWindow } from "./support/rolling.js";
import { openTimedFleet, type TimedFleet } from "./support/timed-fleet.js";

const BUDGET = 57;
const REPLICAS = 4;
/** How long a replica that starts without Redis has no share. */
const SHARE_AFTER_MS = 80_000;

describeWithRedis("calls without Redis", () => {
  let server: RedisServer;
  let fleet: TimedFleet;
  let arrivals: number[];
  let requests = 0;
  beforeEach(async () => {
    server = await startRedis();
    fleet = await openTimedFleet({
      redisUrl: server.url,
      replicas: REPLICAS,
      budget: BUDGET,
      latencyMs: () => 0.5,
    });
    arrivals = [];
  });
  afterEach(async () => {
    fleet.close();
    await server.close();
  });

  /** Sends these quotas far more requests than they can serve; returns how many calls they made. */
  async function flood(quotas: readonly Quota[], forMs: number): Promise<number> {
    const before = arrivals.length;
    const until = fleet.clock.monotonic() + forMs;
    const one = async (quota: Quota): Promise<void> => {
      const request = ask({ client: `${(requests += 1)}`, queryKey: `${requests}`, maxWaitMs: 10_000 });
      await quota
        .run(request, async () => {
          arrivals.push(fleet.clock.monotonic());
          return Promise.resolve();
        })
        .catch(() => {});
    };
    while (fleet.clock.monotonic() < until) {
      for (const quota of quotas) void one(quota);
      await fleet.clock.advance(500);
    }
    return arrivals.length - before;
  }

  const quotaOf = (index: number): Quota => {
    const quota = fleet.replicas[index]?.quota;
    if (quota === undefined) throw new Error("there is no such replica");
    return quota;
  };

  test("count even if their replica started without Redis, in the place of a killed one", async () => {
    await flood([0, 1, 2, 3].map(quotaOf), 2 * WINDOW_MS);
    fleet.replicas[1]?.kill();
    const starting = fleet.start("place 1", { isCutOff: true });
    await fleet.clock.advance(SHARE_AFTER_MS);
    const started = await starting;
    expect(await flood([started.quota], 15_000)).toBeGreaterThan(5);
    started.heal();
    await flood([quotaOf(0), started.quota, quotaOf(2), quotaOf(3)], WINDOW_MS);
    expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
  });
});
