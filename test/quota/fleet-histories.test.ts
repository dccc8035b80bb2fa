/**
 * A fleet never exceeds the budget, whatever happens to its replicas, their connections, Redis and its clock, in whatever order.
 * `npm run bench -- faults` runs as many histories as you like.
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
    "never exceeds the budget: history %i",
    async (seed) => {
      const settings = { ...settingsOf(seed), windows: 5 };
      const result = await fleetHistory({ redisUrl: server.url, ...settings });
      expect(largestWindow(result.arrivals, WINDOW_MS)).toBeLessThanOrEqual(settings.budget);
      expect(result.arrivals.length).toBeGreaterThan(settings.budget);
    },
  );
});
