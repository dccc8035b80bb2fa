/** A ledger that fails, and the end of the process: nothing is sent that is not written down, and nobody waits for ever. */
import { describe, expect, test } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { ask, gate, memoryQuota, refusalOf } from "./support/asks.js";

describe("faults and the end", () => {
  test("without a ledger entry nothing is sent", async () => {
    const base = memoryQuota(2);
    const ledger: Ledger = { ...base.ledger, take: () => Promise.reject(new Error("disk full")) };
    const { quota, faults } = memoryQuota(2, { ledger, clock: base.clock });
    let called = false;
    const refusal = await refusalOf(
      quota.run(ask(), async () => {
        called = true;
      }),
    );
    expect(refusal.code).toBe("quota_exhausted");
    expect(called).toBe(false);
    expect(faults).toHaveLength(1);
  });

  test("closing refuses the waiting and newcomers and lets calls in flight end", async () => {
    const { quota, clock } = memoryQuota(1);
    const answer = gate();
    const flying = quota.run(ask(), () => answer.opened.then(() => "landed"));
    const waiting = refusalOf(quota.run(ask({ maxWaitMs: Infinity }), async () => 1));
    await clock.advance(10);
    const closed = quota.close();
    expect((await waiting).code).toBe("shutting_down");
    expect((await refusalOf(quota.run(ask(), async () => 1))).code).toBe("shutting_down");
    answer.open();
    await closed;
    expect(await flying).toBe("landed");
    expect(clock.pending).toBe(0);
  });
});
