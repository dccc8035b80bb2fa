/** A call costs hardly more with a large budget than with a small one. */
import { expect, test } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { ask, memoryQuota, outcome, WINDOW_MS } from "./support/asks.js";

/** How many slots the scheduler looks at per call while the budget is saturated. */
async function looksPerCall(budget: number): Promise<number> {
  const base = memoryQuota(budget);
  let looks = 0;
  let calls = 0;
  const ledger: Ledger = {
    ...base.ledger,
    forecast: () => {
      const forecast = base.ledger.forecast();
      looks += forecast.inFlightForMs.length;
      return {
        ...forecast,
        usableInMs: (n) => {
          looks += 1;
          return forecast.usableInMs(n);
        },
      };
    },
  };
  const { clock } = base;
  const { quota } = memoryQuota(budget, { ledger, clock });
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

test("a call looks at no more than twice as many slots with a budget of 20,000 a minute as with 1,000", async () => {
  const small = await looksPerCall(1_000);
  expect(await looksPerCall(20_000)).toBeLessThanOrEqual(2 * small);
});
