import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { fleetCrowd } from "./support/fleet-crowd.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = 57;
const WINDOW_MS = 12_000;

describeWithRedis("a kept place behind four replicas", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  test.each([2, 5])(
    "is honoured wherever its holder returns, at %s times the budget",
    async (load) => {
      const seen = await fleetCrowd({
        redisUrl: server.url,
        replicas: 4,
        budget: BUDGET,
        windowMs: WINDOW_MS,
        load,
        windows: 6,
        balance: (request) => request,
      });
      console.log(
        load,
        seen.kept,
        seen.arrivals.length / (6 * BUDGET),
        largestWindow(seen.arrivals, WINDOW_MS),
      );
      expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      expect(seen.kept.came).toBeGreaterThan(20);
      expect(seen.kept.served).toBeGreaterThanOrEqual(0.99 * seen.kept.came);
    },
    120_000,
  );
});
