/** Kept places behind a balancer, over four replicas and one real Redis: honoured wherever their holders return, also without Redis. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { fleetCrowd } from "./support/fleet-crowd.js";
import { largestWindow } from "./support/rolling.js";

const REPLICAS = 4;
const BUDGET = 57;
const WINDOW_MS = 12_000;
const WINDOWS = 3;

describeWithRedis("a kept place behind four replicas", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  test.each([
    { load: 2, name: "round robin", balance: (request: number) => request },
    { load: 5, name: "at random", balance: () => Math.floor(Math.random() * REPLICAS) },
  ])(
    "is honoured wherever its holder returns, at $load times the budget and $name",
    async ({ load, balance }) => {
      const seen = await fleetCrowd({
        redisUrl: server.url,
        replicas: REPLICAS,
        budget: BUDGET,
        windowMs: WINDOW_MS,
        load,
        windows: WINDOWS,
        balance,
      });
      expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      expect(seen.kept.came).toBeGreaterThan(15);
      // One more for a busy machine; `npm run bench -- places` prints the share of many.
      expect(seen.kept.served).toBeGreaterThanOrEqual(0.99 * seen.kept.came - 1);
    },
    90_000,
  );
});
