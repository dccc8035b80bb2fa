/** Who goes first in the line, who has to leave it, and that visitors behind one address can't get in each other's way. */
import { describe, expect, test } from "@jest/globals";
import { ServiceError } from "../../src/errors.js";
import type { Lane } from "../../src/quota/lane.js";
import type { Quota } from "../../src/quota/line.js";
import { settle } from "../support/fake-clock.js";
import {
  ask,
  memoryQuota,
  outcome,
  pauseAll,
  refusalOf,
  refused,
  spend,
  retryTimeMs,
  type TestRequest,
  WINDOW_MS,
} from "./support/asks.js";

const OCCUPIED_MS = WINDOW_MS + 60;
const PATIENT = { maxWaitMs: Infinity };

function recorder(quota: Quota): {
  readonly order: string[];
  run(who: TestRequest, name: string): Promise<number>;
} {
  const order: string[] = [];
  return { order, run: (who, name) => quota.run(ask({ ...PATIENT, ...who }), async () => order.push(name)) };
}

describe("within a lane,", () => {
  test("the client with the least recent usage goes first, then the one that came first", async () => {
    const { quota, clock } = memoryQuota(1);
    const { order, run } = recorder(quota);
    for (let n = 0; n < 3; n += 1) {
      await run({ client: "often" }, "spent");
      await clock.advance(OCCUPIED_MS);
    }
    await run({ client: "once" }, "spent");
    const works = ["often", "once", "new a", "new b"].map((client) => run({ client }, client));
    await clock.advance(OCCUPIED_MS * 4);
    await Promise.all(works);
    expect(order.slice(4)).toEqual(["new a", "new b", "once", "often"]);
  });

  test("a client's second request counts its first as usage, served or not", async () => {
    const { quota, clock } = memoryQuota(1);
    const { order, run } = recorder(quota);
    await spend(quota, 1);
    const works = ["a", "a", "a", "b", "b", "c"].map((client) => run({ client }, client));
    await clock.advance(OCCUPIED_MS * 6);
    await Promise.all(works);
    expect(order).toEqual(["a", "b", "c", "a", "b", "a"]);
  });

  test("addresses of one network count together", async () => {
    const { quota, clock } = memoryQuota(1);
    const { order, run } = recorder(quota);
    await run({ client: "n1", network: "n" }, "spent");
    const works = [
      run({ client: "n2", network: "n" }, "n2"),
      run({ client: "m1", network: "m" }, "m1"),
      run({ client: "v4" }, "v4"),
    ];
    await clock.advance(OCCUPIED_MS * 3);
    await Promise.all(works);
    expect(order.slice(1)).toEqual(["m1", "v4", "n2"]);
  });

  test("an aborted request isn't charged to its client", async () => {
    const { quota, clock } = memoryQuota(1);
    const { order, run } = recorder(quota);
    await spend(quota, 1);
    const gone = new AbortController();
    const left = run({ client: "a", signal: gone.signal }, "gone");
    await settle();
    gone.abort();
    await expect(left).rejects.toThrow("nobody waits");
    const works = [run({ client: "a" }, "a"), run({ client: "b" }, "b")];
    await clock.advance(OCCUPIED_MS * 2);
    await Promise.all(works);
    expect(order).toEqual(["a", "b"]);
  });
});

describe("visitors who return without a reservation", () => {
  /** A spent budget of one call, whose only reservation belongs to a client that never returns. */
  async function spent() {
    const setup = memoryQuota(1);
    await spend(setup.quota, 1);
    expect((await refused(setup.quota, ask({ client: "absent", queryKey: "absent" }))).kept).toBe(true);
    return setup;
  }

  test("are served in the order of their first requests", async () => {
    const { quota, clock } = await spent();
    const { order, run } = recorder(quota);
    const refuse = async (client: string): Promise<void> => {
      expect(await refusalOf(quota.run(ask({ client }), async () => client))).toMatchObject({
        kept: false,
        retryAfterMs: WINDOW_MS,
      });
    };
    await refuse("first");
    await clock.advance(500);
    await refuse("second");
    // The second one returns first.
    await clock.advance(WINDOW_MS);
    const works = [run({ client: "second" }, "second"), run({ client: "first" }, "first")];
    await clock.advance(2 * OCCUPIED_MS);
    await Promise.all(works);
    expect(order).toEqual(["first", "second"]);
  });

  test("and newcomers may wait if nobody else does, even if a reservation is due", async () => {
    for (const client of ["back", "new"]) {
      const { quota, clock } = await spent();
      expect((await refused(quota, ask({ client: "back" }))).kept).toBe(false);
      await clock.advance(WINDOW_MS);
      const waiting = quota.run(ask({ client }), async () => clock.monotonic());
      // The call is held for the reservation until shortly after its second.
      await clock.advance(8000);
      expect(await waiting).toBe(61_500);
    }
  });

  test("aren't charged for the refusal that made them wait", async () => {
    const { quota, clock } = await spent();
    const { order, run } = recorder(quota);
    for (const queryKey of ["q1", "q2", "q3"])
      expect((await refused(quota, ask({ client: "back", queryKey }))).kept).toBe(false);
    await clock.advance(WINDOW_MS);
    const works = [
      run({ client: "new 1" }, "new 1"),
      run({ client: "new 2" }, "new 2"),
      run({ client: "back", queryKey: "q1" }, "back"),
    ];
    await clock.advance(4 * OCCUPIED_MS);
    await Promise.all(works);
    expect(order).toEqual(["back", "new 1", "new 2"]);
  });
});

describe("people behind one address", () => {
  test("each get their own reservation, and are served when they return", async () => {
    const { quota, clock } = memoryQuota(57);
    for (let n = 0; n < 38; n += 1) void outcome(quota.run(ask({ client: `burst ${n}` }), async () => n));
    await settle();
    const returned: Promise<unknown>[] = [];
    for (let n = 0; n < 6; n += 1) {
      const request = ask({ client: "shared", queryKey: `name ${n}`, maxWaitMs: 4000 });
      const refusal = await refused(quota, request);
      expect(refusal.kept).toBe(true);
      const later = new Promise<void>((done) => clock.after(retryTimeMs(refusal), done));
      returned.push(later.then(() => quota.run({ ...request, maxWaitMs: 8000 }, async () => "served")));
    }
    await clock.advance(WINDOW_MS + 8000);
    expect(await Promise.all(returned)).toEqual(returned.map(() => "served"));
    expect(quota.snapshot().lanes.exact).toMatchObject({ retried: 6, retriedServed: 6 });
  });

  test("don't take each other's reservation by making other requests at its second", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    await clock.advance(OCCUPIED_MS - 20_000);
    const request = ask({ client: "shared", queryKey: "mine" });
    const first = await refusalOf(quota.run(request, async () => 1));
    expect(first.kept).toBe(true);
    await clock.advance(retryTimeMs(first));
    for (let n = 0; n < 30; n += 1)
      void outcome(quota.run(ask({ client: "shared", queryKey: `other ${n}` }), async () => n));
    const waiting = quota.run(request, async () => "first");
    await clock.advance(8000);
    expect(await waiting).toBe("first");
  });
});

describe("a waiting request", () => {
  test("leaves immediately if it can't be served in time any more because a more urgent one has come", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    await clock.advance(OCCUPIED_MS - 5000);
    const low = outcome(quota.run(ask({ lane: "search" }), async () => "low"));
    const high = outcome(quota.run(ask({ lane: "checkout", client: "b" }), async () => "high"));
    const cameAt = clock.monotonic();
    const refusal = await refusalOf(low);
    expect(clock.monotonic()).toBe(cameAt);
    expect(refusal).toMatchObject({ retryAfterMs: WINDOW_MS, kept: false });
    await clock.advance(8000);
    expect(await high).toBe("high");
  });

  test("leaves when it is aborted, without spending anything", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    await clock.advance(OCCUPIED_MS - 5000);
    const gone = new AbortController();
    let called = false;
    const left = quota.run(ask({ signal: gone.signal }), async () => {
      called = true;
    });
    const second = quota.run(ask({ client: "b" }), async () => "second").catch(() => "refused");
    expect(await second).toBe("refused");
    gone.abort();
    await expect(left).rejects.toThrow("nobody waits");
    const third = quota.run(ask({ client: "c" }), async () => "third");
    await clock.advance(5000);
    expect(await third).toBe("third");
    expect(called).toBe(false);
    expect(quota.snapshot().lanes.exact).toMatchObject({ left: 1, queued: 0, served: 2 });
    expect(clock.pending).toBe(0);
  });

  test("leaves immediately if a pause begins that is longer than it can wait", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    await clock.advance(OCCUPIED_MS - 1000);
    const waiting = refusalOf(quota.run(ask(), async () => 1));
    await settle();
    pauseAll(quota, 60_000);
    expect((await waiting).retryAfterMs).toBe(60_000);
  });
});

describe("the order", () => {
  test("is by lane, then by arrival, and a waiting request can move to a more urgent lane", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    const { order, run } = recorder(quota);
    let risingLane: Lane = "refresh";
    const rising = ask({ queryKey: "rising", ...PATIENT });
    const riser = {
      ...rising.ask,
      get lane() {
        return risingLane;
      },
    };
    const works = [quota.run({ ...rising, ask: riser }, async () => order.push("riser"))];
    await clock.advance(1);
    for (const client of ["exact 1", "exact 2"]) works.push(run({ client }, client));
    works.push(run({ client: "checkout", lane: "checkout" }, "checkout"));
    await settle();
    risingLane = "checkout";
    await clock.advance(OCCUPIED_MS * 4);
    await Promise.all(works);
    expect(order).toEqual(["riser", "checkout", "exact 1", "exact 2"]);
  });

  test("starves no lane while all of them want more than the budget", async () => {
    const { quota, clock } = memoryQuota(57);
    const lanes: readonly Lane[] = ["checkout", "exact", "search", "account", "refresh"];
    const works: Promise<unknown>[] = [];
    for (let n = 0; n < 60; n += 1)
      for (const lane of lanes)
        works.push(
          outcome(quota.run(ask({ lane, client: `${lane} ${n}`, maxWaitMs: Infinity }), async () => n)),
        );
    await clock.advance(2 * OCCUPIED_MS - 1);
    const { lanes: got } = quota.snapshot();
    // Half of the calls for carts, every tenth for prices, the rest in the order of arrival.
    expect(got.checkout.served).toBeGreaterThanOrEqual(57);
    expect(got.refresh.served).toBeGreaterThanOrEqual(8);
    for (const lane of ["exact", "search", "account"] as const)
      expect(got[lane].served).toBeGreaterThanOrEqual(10);
    expect(lanes.reduce((sum, lane) => sum + got[lane].served, 0)).toBe(114);
    await clock.advance(OCCUPIED_MS * 4);
    await Promise.all(works);
  });

  test("lets a suggestion be called only when nobody else waits", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    const { order, run } = recorder(quota);
    const lanes = ["suggestion", "refresh", "search"] as const;
    const works = lanes.map((lane) => run({ client: lane, lane }, lane));
    await clock.advance(OCCUPIED_MS * 3);
    await Promise.all(works);
    expect(order).toEqual(["search", "refresh", "suggestion"]);
  });
});

test("a call that was abandoned keeps its slot for an extra grace period", async () => {
  const { quota, clock } = memoryQuota(1);
  const gone = new ServiceError("upstream_timeout", "too slow");
  await expect(quota.run(ask(), () => Promise.reject(gone))).rejects.toBe(gone);
  await clock.advance(OCCUPIED_MS + WINDOW_MS / 6 - 1);
  expect(quota.snapshot().used).toBe(1);
  await clock.advance(1);
  expect(quota.snapshot().used).toBe(0);
});
