/** Four processes share a real Redis and go through a few faults, with more requests than the budget. `npm run bench -- fleet` plays hundreds of faults. */
import { expect, test } from "@jest/globals";
import { FLEET_BUDGET, fleetThroughFaults } from "../bench/fleet.js";
import { describeWithRedis } from "../support/redis.js";

const FAULTS = ["a replica is cut off from Redis", "Redis is started with an old snapshot"];

describeWithRedis("a fleet during faults", () => {
  test("never exceeds the budget, is never rejected by the upstream, and recovers after each one", async () => {
    const seen = await fleetThroughFaults({
      faults: FAULTS.length,
      only: (fault) => FAULTS.includes(fault),
    });
    expect(seen.faults.map(({ fault }) => fault).sort()).toEqual([...FAULTS].sort());
    expect(seen.largestWindow).toBeLessThanOrEqual(FLEET_BUDGET);
    expect(seen.rejections).toBe(0);
    for (const { useAfter } of seen.faults) expect(useAfter).toBeGreaterThan(0.5 * seen.calmUse);
    expect(seen.hitsFailed).toEqual([]);
  }, 240_000);
});
