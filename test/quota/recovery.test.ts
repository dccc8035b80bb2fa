/** A fleet is at work again in the minute after a fault, asked for twice its budget. `npm run bench -- recovery` plays more faults. */
import { expect, test } from "@jest/globals";
import { describeWithRedis } from "../support/redis.js";
import { BUDGET, FAULTS, recovery } from "./support/recovery.js";

describeWithRedis("in the minute after a replica was killed and started again", () => {
  test("a fleet uses at least 0.85 of its budget, and never more than all of it", async () => {
    const { use, largest } = await recovery(FAULTS["a replica is killed and started"], 1);
    const [, first] = use;
    expect(first).toBeGreaterThan(0.85);
    expect(largest).toBeLessThanOrEqual(BUDGET);
  });
});
