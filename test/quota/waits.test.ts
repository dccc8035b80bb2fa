/**
 * The promises to waiting visitors, at several multiples of the budget: a wait is at most one window, reservations are honoured whatever else
 * happens, following `Retry-After` pays, and no call stays unused while a request waits. `npm run bench -- waits` runs longer.
 */
import { beforeAll, describe, expect, test } from "@jest/globals";
import { ServiceError } from "../../src/errors.js";
import type { Lane } from "../../src/quota/lane.js";
import { settle } from "../support/fake-clock.js";
import { ask, memoryQuota, outcome, pauseAll, refused, retryTimeMs, WINDOW_MS } from "./support/asks.js";
import { largestWindow } from "./support/rolling.js";
import {
  counted,
  meanWaitMs,
  servedWithin,
  useOfSafeBound,
  waits,
  type WaitsResult,
} from "./support/waits.js";

const BUDGET = 57;

describe.each([
  { load: 1, carts: 0, windows: 12 },
  { load: 8, carts: 1 / 3, windows: 8 },
])("with visitors at $load and carts at $carts of the budget,", ({ load, carts, windows }) => {
  let result: WaitsResult;
  beforeAll(async () => {
    result = await waits({ budget: BUDGET, windows, load, carts, seed: 57 });
  });
  const of = (behaviour: string) => counted(result, windows).filter((one) => one.behaviour === behaviour);

  test("no wait is longer than a window", () => {
    const retryTimesMs = result.people.flatMap((one) => one.retryTimesMs);
    expect(Math.max(0, ...retryTimesMs)).toBeLessThanOrEqual(WINDOW_MS);
    if (load >= 2) expect(retryTimesMs.length).toBeGreaterThan(1000);
  });

  test("reservations are honoured", () => {
    const { claimed, served } = result.reservations;
    expect(claimed).toBeGreaterThan(30);
    expect(served).toBeGreaterThanOrEqual(0.97 * claimed - 1);
  });

  test("carts are served", () => {
    const all = counted(result, windows).filter(({ lane }) => lane === "checkout");
    expect(all.length === 0 ? 1 : servedWithin(all, 8000)).toBeGreaterThanOrEqual(0.95);
  });

  test("the budget is used while visitors wait for it, and never exceeded", () => {
    expect(largestWindow(result.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
    const { idleCalls, reservations } = result.figures;
    expect(idleCalls).toBeLessThanOrEqual(0.02 * result.arrivals.length);
    if (load + carts <= 1) return;
    expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
    expect(reservations.unclaimed).toBeGreaterThan(0);
  });

  test("visitors who return on time are served sooner than those who keep retrying", () => {
    const obedient = of("obedient").filter(({ lane }) => lane === "exact");
    const impatient = of("impatient");
    expect(servedWithin(obedient, 120_000)).toBeGreaterThanOrEqual(servedWithin(impatient, 120_000));
    expect(meanWaitMs(obedient, 200_000)).toBeLessThanOrEqual(meanWaitMs(impatient, 200_000));
  });
});

test("reservations are honoured despite bots that never return and an endless stream of carts", async () => {
  const windows = 10;
  const result = await waits({ budget: BUDGET, windows, load: 1, carts: 3, bots: 10, seed: 5 });
  expect(result.reservations.claimed).toBeGreaterThan(30);
  expect(result.reservations.served).toBeGreaterThanOrEqual(0.97 * result.reservations.claimed - 1);
  expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
});

test("honest visitors and carts are served at once beside bots that make a hundred times as many requests", async () => {
  const windows = 10;
  const result = await waits({ budget: BUDGET, windows, load: 0.3, carts: 0.1, bots: 20, seed: 57 });
  const [honest, carts] = ["exact", "checkout"].map((lane) =>
    counted(result, windows).filter((one) => one.lane === lane),
  );
  expect(servedWithin(honest ?? [], 8000)).toBeGreaterThanOrEqual(0.97);
  expect(servedWithin(carts ?? [], 8000)).toBeGreaterThanOrEqual(0.97);
  expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
});

test.each([
  { budget: 57, windowMs: WINDOW_MS, maxWaitMs: 8000 },
  { budget: 8, windowMs: WINDOW_MS, maxWaitMs: 8000 },
  { budget: 57, windowMs: 4000, maxWaitMs: 0 },
])(
  "a flood of visitors who never return and wait for $maxWaitMs ms uses a budget of $budget in $windowMs ms",
  async ({ budget, windowMs, maxWaitMs }) => {
    const windows = 4;
    const { quota, clock } = memoryQuota(budget, windowMs);
    let late = 0;
    for (let n = 0; n < windows * 600; n += 1) {
      const call = async (): Promise<void> => {
        if (clock.monotonic() > 2 * windowMs) late += 1;
      };
      void outcome(quota.run(ask({ client: `passer-by ${n}`, maxWaitMs }), call));
      await clock.advance(windowMs / 600);
    }
    expect(late / ((windows - 2) * budget)).toBeGreaterThanOrEqual(0.95);
  },
);

describe("the users of one address", () => {
  test("have the whole budget if they are alone", async () => {
    const windows = 12;
    const result = await waits({ budget: BUDGET, windows, load: 0, behindOneAddress: 2, seed: 8 });
    expect(useOfSafeBound(result, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
    const retryTimesMs = result.people.flatMap((one) => one.retryTimesMs);
    expect(Math.max(...retryTimesMs)).toBeLessThanOrEqual(WINDOW_MS);
    // However busy the address is, it also gets all reservations.
    expect(result.reservations.claimed).toBeGreaterThan(0.2 * BUDGET * (windows - 2));
    expect(result.reservations.served).toBeGreaterThanOrEqual(0.97 * result.reservations.claimed - 1);
  });

  test("leave others as much as one busy visitor does", async () => {
    const windows = 10;
    const answered = async (behindOneAddress: number): Promise<number> => {
      const result = await waits({ budget: BUDGET, windows, load: 0.5, behindOneAddress, seed: 9 });
      expect(largestWindow(result.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      return servedWithin(
        counted(result, windows).filter((one) => !one.behindOneAddress),
        8000,
      );
    };
    // A busy visitor makes twenty requests a minute.
    const besideOne = await answered(20 / BUDGET);
    expect(besideOne).toBeGreaterThanOrEqual(0.95);
    expect(await answered(5)).toBeGreaterThanOrEqual(besideOne - 0.02);
  });
});

describe("a refusal", () => {
  /** A request that was refused with a reservation, just after a burst. */
  async function reserved() {
    const { quota, clock } = memoryQuota(BUDGET);
    for (let n = 0; n < 38; n += 1) void outcome(quota.run(ask({ client: `burst ${n}` }), async () => n));
    await settle();
    for (let n = 0; n < 6; n += 1) await refused(quota, ask({ client: `before ${n}` }));
    const request = ask({ client: "early", queryKey: "mine" });
    const { kept, retryAfterMs: dueInMs = 0 } = await refused(quota, request);
    expect(kept).toBe(true);
    return { quota, clock, request, dueInMs };
  }

  test("is repeated unchanged for a visitor who returns too early once", async () => {
    const { quota, clock, request, dueInMs } = await reserved();
    await clock.advance(1000);
    const again = await refused(quota, request);
    expect(again).toMatchObject({ kept: true, retryAfterMs: dueInMs - 1000 });
    await clock.advance(dueInMs - 1000);
    const returned = quota.run(request, async () => "served");
    await clock.advance(8000);
    expect(await returned).toBe("served");
  });

  test("with a reservation is honoured at its second also if its holder came early and still waits, behind carts", async () => {
    const { quota, clock, request, dueInMs } = await reserved();
    await clock.advance(dueInMs - 3000);
    expect(quota.snapshot().lanes.exact.queued).toBe(0);
    const waiting = outcome(quota.run(request, async () => "served"));
    for (let n = 0; n < 10; n += 1) {
      void outcome(quota.run(ask({ client: "carts", lane: "checkout" }), async () => "a cart"));
      await clock.advance(1000);
    }
    expect(await waiting).toBe("served");
    await clock.advance(8000);
  });

  /** A reservation whose holder's connection was lost during the wait at its second, and a newcomer who waits since. */
  async function lost() {
    const { quota, clock } = memoryQuota(1);
    await quota.run(ask({ client: "another", queryKey: "first" }), async () => {});
    const mine = ask({ client: "mine" });
    expect(await refused(quota, mine)).toMatchObject({ kept: true, retryAfterMs: WINDOW_MS });
    await clock.advance(WINDOW_MS);
    const hangUp = new AbortController();
    const waiting = quota.run(ask({ client: "mine", signal: hangUp.signal }), async () => "served");
    waiting.catch(() => undefined);
    await settle();
    expect(quota.snapshot()).toMatchObject({ lanes: { exact: { queued: 1 } } });
    hangUp.abort();
    await expect(waiting).rejects.toBeDefined();
    expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 0, unclaimed: 0 });
    const newcomer = outcome(quota.run(ask({ client: "new", queryKey: "new" }), async () => "served"));
    return { quota, clock, mine, newcomer };
  }

  test("with a reservation is honoured a second later if its holder's connection was lost during the wait at its second", async () => {
    const { quota, clock, mine, newcomer } = await lost();
    await clock.advance(1000);
    const returned = outcome(quota.run(mine, async () => "served"));
    await clock.advance(8000);
    expect(await returned).toBe("served");
    expect(await newcomer).toBeInstanceOf(ServiceError);
    expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 1, honoured: 1, unclaimed: 0 });
  });

  test("with a reservation whose holder was lost and doesn't return delays others by little more than a second", async () => {
    const { quota, clock, newcomer } = await lost();
    await clock.advance(2000);
    expect(await newcomer).toBe("served");
    await clock.advance(2000);
    expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 0, unclaimed: 1 });
  });

  test("with a reservation is put off if the upstream asks for a pause, and gives the new time if its holder comes early", async () => {
    const { quota, clock, request, dueInMs } = await reserved();
    await clock.advance(dueInMs);
    pauseAll(quota, 30_000);
    const { kept, retryAfterMs = 0 } = await refused(quota, request);
    expect(kept).toBe(true);
    expect(retryAfterMs).toBeGreaterThanOrEqual(30_000);
    await clock.advance(2000);
    expect(await refused(quota, request)).toMatchObject({ kept: true, retryAfterMs: retryAfterMs - 2000 });
    await clock.advance(retryAfterMs - 2000);
    const returned = outcome(quota.run(request, async () => "served"));
    await clock.advance(8000);
    expect(await returned).toBe("served");
  });

  test("with a reservation survives repeated early retries of carts and searches, but only one of a single name", async () => {
    const { quota, clock } = memoryQuota(BUDGET);
    for (let n = 0; n < 36; n += 1)
      void outcome(quota.run(ask({ client: `burst ${n}`, lane: "checkout" }), async () => n));
    await settle();
    const early = async (lane: Lane): Promise<boolean | undefined> => {
      const request = ask({ client: lane, queryKey: lane, lane, maxWaitMs: 0 });
      for (let times = 0; times < 2; times += 1) expect((await refused(quota, request)).kept).toBe(true);
      return (await refused(quota, request)).kept;
    };
    expect([await early("checkout"), await early("search"), await early("exact")]).toEqual([
      true,
      true,
      false,
    ]);
    await clock.advance(WINDOW_MS);
  });
});

describe("a client", () => {
  test("is contested only while somebody waits and another client waits or was refused within the last window", async () => {
    const { quota, clock } = memoryQuota(1);
    expect(quota.isContested("a")).toBe(false);
    await quota.run(ask({ client: "b", queryKey: "first" }), async () => {});
    await clock.advance(55_000);
    const own = quota.run(ask({ client: "a", queryKey: "second" }), async () => {});
    await settle();
    expect([quota.isContested("a"), quota.isContested("b")]).toEqual([false, true]);
    expect(await refused(quota, ask({ client: "b" }))).toBeInstanceOf(ServiceError);
    expect(quota.isContested("a")).toBe(true);
    await clock.advance(5100);
    await own;
    expect(quota.isContested("a")).toBe(false);
  });
});

test("a client isn't contested while its reservation is due", async () => {
  const { quota, clock } = memoryQuota(1);
  await quota.run(ask({ client: "b", queryKey: "first" }), async () => {});
  const mine = ask({ client: "a", queryKey: "mine", maxWaitMs: 4000 });
  const told = await refused(quota, mine);
  expect(told.kept).toBe(true);
  await clock.advance(retryTimeMs(told) - 1000);
  const waiting = outcome(quota.run(ask({ client: "b", queryKey: "second" }), async () => {}));
  await settle();
  expect([quota.isContested("a"), quota.isContested("c")]).toEqual([true, true]);
  await clock.advance(1000);
  expect([quota.isContested("a"), quota.isContested("c")]).toEqual([false, true]);
  await clock.advance(WINDOW_MS);
  await waiting;
});
