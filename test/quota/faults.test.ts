/** A failing ledger and shutdown: no call is sent without a ledger entry, and no request waits forever. */
import { describe, expect, test } from "@jest/globals";
import { ask, gate, memoryQuota, refusalOf, WINDOW_MS } from "./support/asks.js";

describe("the quota", () => {
  test("sends no call without a ledger entry", async () => {
    let isFull = false;
    const record = (): void => {
      if (isFull) throw new Error("disk full");
    };
    const { quota, faults } = memoryQuota(2, { record });
    isFull = true;
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

  test("charges nothing for requests that were refused because the ledger failed", async () => {
    let isFull = false;
    const record = (): void => {
      if (isFull) throw new Error("disk full");
    };
    const { quota, clock } = memoryQuota(1, { record });
    isFull = true;
    for (let requests = 0; requests < 3; requests += 1)
      await refusalOf(quota.run(ask({ client: "refused" }), async () => 1));
    isFull = false;
    await quota.run(ask({ client: "served" }), async () => 1);
    const order: string[] = [];
    const waiting = ["served", "refused"].map((client) =>
      quota.run(ask({ client, maxWaitMs: Infinity }), async () => order.push(client)),
    );
    await clock.advance(2 * (WINDOW_MS + 60));
    await Promise.all(waiting);
    expect(order).toEqual(["refused", "served"]);
  });

  test("refuses waiting and new requests when it closes, and lets calls in flight finish", async () => {
    const { quota, clock } = memoryQuota(1);
    const answer = gate();
    const inFlight = quota.run(ask(), () => answer.opened.then(() => "answered"));
    const waiting = refusalOf(quota.run(ask({ maxWaitMs: Infinity }), async () => 1));
    await clock.advance(10);
    const closed = quota.close();
    expect((await waiting).code).toBe("shutting_down");
    expect((await refusalOf(quota.run(ask(), async () => 1))).code).toBe("shutting_down");
    answer.open();
    await closed;
    expect(await inFlight).toBe("answered");
    expect(clock.pending).toBe(0);
  });
});
