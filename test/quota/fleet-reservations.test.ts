/** Reservations behind a balancer, over four replicas and one real Redis: honoured wherever their holders return, also without Redis. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { fleetCrowd } from "./support/fleet-crowd.js";
import { largestWindow } from "./support/rolling.js";

const REPLICAS = 4;
const BUDGET = 57;
const WINDOW_MS = 12_000;
const WINDOWS = 2;

describeWithRedis("a reservation behind four replicas", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis();
  });
  afterEach(() => server.close());

  test("is honoured wherever its holder returns, at five times the budget and at random", async () => {
    const seen = await fleetCrowd({
      redisUrl: server.url,
      replicas: REPLICAS,
      budget: BUDGET,
      windowMs: WINDOW_MS,
      load: 5,
      windows: WINDOWS,
      balance: () => Math.floor(Math.random() * REPLICAS),
    });
    expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
    expect(seen.kept.came).toBeGreaterThan(8);
    // One more for a busy machine; `npm run bench -- reservations` prints the share of many.
    expect(seen.kept.served).toBeGreaterThanOrEqual(0.99 * seen.kept.came - 1);
  }, 90_000);
});
