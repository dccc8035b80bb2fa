/**
 * A fleet is never over the budget, whatever happens to its replicas, their connections and Redis, and to its clock, in whatever order.
 * `npm run bench -- faults` plays as many histories as one likes.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { WINDOW_MS } from "./support/asks.js";
import { fleetHistory, settingsOf } from "./support/fleet-histories.js";
import { largestWindow } from "./support/rolling.js";

describeWithRedis("a fleet in which anything can fail", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(() => server.command("FLUSHALL"));
  afterAll(() => server.close());

  test.each(Array.from({ length: 5 }, (_, index) => index + 1))(
    "is never over the budget: history %i",
    async (seed) => {
      const settings = { ...settingsOf(seed), windows: 5 };
      const seen = await fleetHistory({ redisUrl: server.url, ...settings });
      expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(settings.budget);
      expect(seen.arrivals.length).toBeGreaterThan(settings.budget);
    },
  );
});
