/** A call costs hardly more with a large budget than with a small one. */
import { expect, test } from "@jest/globals";
import { Ledger } from "../../src/quota/ledger.js";
import { SlotTable } from "../../src/quota/slot-table.js";
import { ask, memoryQuota, outcome, WINDOW_MS } from "./support/asks.js";

/** How many slots the line looks at per call while the budget is saturated. */
async function looksPerCall(budget: number): Promise<number> {
  let looks = 0;
  class CountingLedger extends Ledger {
    override freeAt(n: number): number {
      looks += 1;
      return super.freeAt(n);
    }
  }
  const { clock } = memoryQuota(1);
  const ledger = new CountingLedger({ limit: budget + 1, table: new SlotTable(budget, WINDOW_MS), clock });
  const { quota } = memoryQuota(budget, { ledger, clock });
  let calls = 0;
  const call = async (): Promise<void> => {
    calls += 1;
  };
  for (let n = 0; n < budget; n += 1) void outcome(quota.run(ask({ client: `burst ${n}` }), call));
  await clock.advance(100);
  looks = 0;
  calls = 0;
  for (let n = 0; n < 50; n += 1) {
    void outcome(quota.run(ask({ client: `late ${n}` }), call));
    await clock.advance(WINDOW_MS / budget);
  }
  void quota.close();
  expect(calls).toBeGreaterThan(0);
  return looks / calls;
}

test("a call looks at no more than twice as many slots with a budget of 5,000 a minute as with 500", async () => {
  const small = await looksPerCall(500);
  expect(await looksPerCall(5_000)).toBeLessThanOrEqual(2 * small);
});
