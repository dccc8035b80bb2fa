/** A fleet uses its budget again in the minute after a fault, when visitors ask for twice as much. `npm run bench -- recovery` runs more faults. */
import { expect, test } from "@jest/globals";
import { describeWithRedis } from "../support/redis.js";
import { BUDGET, FAULTS, recovery } from "./support/recovery.js";

describeWithRedis("in the minute after a replica was killed and restarted,", () => {
  test("a fleet uses more than 0.85 of its budget, and never exceeds it", async () => {
    const { use, largest } = await recovery(FAULTS["a replica is killed and started"], 1);
    const [, first] = use;
    expect(first).toBeGreaterThan(0.85);
    expect(largest).toBeLessThanOrEqual(BUDGET);
  });
});
