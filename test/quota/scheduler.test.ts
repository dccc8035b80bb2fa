/** Which requests are served, wait or are refused, and their retry times. */
import { describe, expect, test } from "@jest/globals";
import { ServiceError } from "../../src/errors.js";
import type { Lane } from "../../src/quota/lane.js";
import { settle } from "../support/fake-clock.js";
import { ask, gate, memoryQuota, outcome, pauseAll, refusalOf, spend, WINDOW_MS } from "./support/asks.js";

const OCCUPIED_MS = WINDOW_MS + 60;

describe("a call", () => {
  test("runs immediately while there is budget, and returns its result or error", async () => {
    const { quota } = memoryQuota(2);
    await expect(quota.run(ask(), async () => 7)).resolves.toBe(7);
    const broken = new ServiceError("upstream_failed", "no");
    await expect(quota.run(ask(), () => Promise.reject(broken))).rejects.toBe(broken);
    expect(quota.snapshot()).toMatchObject({ used: 2, budget: 2, limit: 3, largestWindowToday: 2 });
  });

  test("occupies its slot for a window from its answer on, even if its body takes longer", async () => {
    const { quota, clock } = memoryQuota(1);
    const body = gate();
    const work = quota.run(ask(), ({ answered }) => {
      answered();
      return body.opened;
    });
    await clock.advance(OCCUPIED_MS);
    expect(quota.snapshot().used).toBe(0);
    body.open();
    await work;
    expect(quota.snapshot().used).toBe(0);
  });

  test("that was abandoned keeps its slot for an extra grace period", async () => {
    const { quota, clock } = memoryQuota(1);
    const gone = new ServiceError("upstream_timeout", "too slow");
    await expect(quota.run(ask(), () => Promise.reject(gone))).rejects.toBe(gone);
    await clock.advance(OCCUPIED_MS + WINDOW_MS / 6 - 1);
    expect(quota.snapshot().used).toBe(1);
    await clock.advance(1);
    expect(quota.snapshot().used).toBe(0);
  });
});

describe("waiting", () => {
  test("is replaced by an immediate refusal if it would take too long, and a retry on time is served", async () => {
    const { quota, clock } = memoryQuota(3);
    await spend(quota, 3);
    const refusal = await refusalOf(quota.run(ask(), async () => 1));
    expect(refusal).toMatchObject({ code: "quota_exhausted", retryAfterMs: WINDOW_MS, kept: true });
    const served = clock.advance(WINDOW_MS).then(() => quota.run(ask(), async () => 2));
    await clock.advance(WINDOW_MS);
    await clock.advance(OCCUPIED_MS - WINDOW_MS);
    expect(await served).toBe(2);
  });

  test("ends as soon as there is a slot", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    await clock.advance(OCCUPIED_MS - 5000);
    let got = 0;
    const work = quota.run(ask(), async () => {
      got = clock.monotonic();
    });
    await clock.advance(4999);
    expect(got).toBe(0);
    await clock.advance(1);
    await work;
    expect(got).toBe(OCCUPIED_MS);
    expect(quota.snapshot().lanes.exact).toMatchObject({
      served: 2,
      waitedMsTotal: 5000,
      longestWaitMs: 5000,
    });
  });

  test("ends immediately for a request that can't be served in time after a more urgent one has come", async () => {
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

  test("ends when the request is aborted, without spending anything", async () => {
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

  test("doesn't start for a visitor who has already left", async () => {
    const { quota } = memoryQuota(1);
    await expect(quota.run(ask({ signal: AbortSignal.abort() }), async () => 1)).rejects.toThrow(
      "nobody waits",
    );
    expect(quota.snapshot().used).toBe(0);
  });
});

describe("the order", () => {
  test("is by lane, then by arrival, and a waiting request can move to a more urgent lane", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    const order: string[] = [];
    let risingLane: Lane = "refresh";
    const run = (client: string, lane: Lane) =>
      quota.run(ask({ client, lane, maxWaitMs: Infinity }), async () => {
        order.push(client);
      });
    const rising = [
      quota.run(
        {
          ...ask({ queryKey: "rising", maxWaitMs: Infinity }),
          ask: {
            get lane() {
              return risingLane;
            },
            client: "riser",
            waitUntilAt: Infinity,
            signal: new AbortController().signal,
          },
        },
        async () => {
          order.push("riser");
        },
      ),
    ];
    await clock.advance(1);
    const works = [...rising, run("exact 1", "exact"), run("exact 2", "exact"), run("checkout", "checkout")];
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
    for (let n = 0; n < 120; n += 1)
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
    await clock.advance(OCCUPIED_MS * 10);
    await Promise.all(works);
  });
});

describe("a suggestion", () => {
  test("is called only when nobody else waits", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    const order: string[] = [];
    const run = (lane: Lane) =>
      quota.run(ask({ client: lane, lane, maxWaitMs: Infinity }), async () => {
        order.push(lane);
      });
    const works = [run("suggestion"), run("refresh"), run("search")];
    await clock.advance(OCCUPIED_MS * 3);
    await Promise.all(works);
    expect(order).toEqual(["search", "refresh", "suggestion"]);
  });

  test("can be called while two fifths of the budget are free, nobody waits and the pace isn't exceeded", async () => {
    const { quota, clock } = memoryQuota(57);
    let used = 0;
    for (; quota.hasSpare(); used += 1)
      await quota.run(ask({ lane: "suggestion", maxWaitMs: 0 }), async () => {});
    expect([used, quota.backgroundRoomInMs() > 0]).toEqual([35, true]);
    await clock.advance(OCCUPIED_MS);
    expect(quota.hasSpare()).toBe(true);
    pauseAll(quota, 5_000);
    const waiting = quota.run(ask(), async () => {});
    expect(quota.hasSpare()).toBe(false);
    await clock.advance(5_000);
    await waiting;
    expect(quota.hasSpare()).toBe(true);
    await spend(quota, 34);
    expect([quota.hasSpare(), quota.backgroundRoomInMs() > 0]).toEqual([false, true]);
  });
});

describe("a pause", () => {
  test("of one operation keeps the others going; once another one is refused as well, all are paused", async () => {
    const { quota, clock } = memoryQuota(10);
    quota.pause("check", 20_000);
    const refusal = await refusalOf(quota.run(ask(), async () => 1));
    expect(refusal.retryAfterMs).toBe(20_000);
    expect(await quota.run(ask({ operation: "balance", queryKey: "b" }), async () => 1)).toBe(1);
    await clock.advance(5_000);
    quota.pause("balance", 10_000);
    const tier = ask({ operation: "tier", queryKey: "t" });
    const all = await refusalOf(quota.run(tier, async () => 1));
    expect(all.retryAfterMs).toBeGreaterThanOrEqual(15_000);
    await clock.advance(all.retryAfterMs ?? 0);
    expect(await quota.run(tier, async () => 1)).toBe(1);
  });

  test("holds everything back for as long as requested, and immediately refuses requests that can't wait that long", async () => {
    const { quota, clock } = memoryQuota(2);
    pauseAll(quota, 20_000);
    expect(quota.snapshot().pausedForMs).toBe(20_000);
    const refusal = await refusalOf(quota.run(ask(), async () => 1));
    expect(refusal.retryAfterMs).toBe(20_000);
    await clock.advance(15_000);
    const work = quota.run(ask({ client: "b" }), async () => clock.monotonic());
    pauseAll(quota, 1);
    await clock.advance(5000);
    expect(await work).toBe(20_000);
  });

  test("immediately refuses waiting requests that can't be served in time any more", async () => {
    const { quota, clock } = memoryQuota(1);
    await spend(quota, 1);
    await clock.advance(OCCUPIED_MS - 1000);
    const waiting = refusalOf(quota.run(ask(), async () => 1));
    await settle();
    pauseAll(quota, 60_000);
    expect((await waiting).retryAfterMs).toBe(60_000);
  });
});
