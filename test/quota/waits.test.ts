/**
 * What people who wait are promised, at several multiples of the budget: nobody is told more than a window, reservations are honoured
 * whatever else goes on, coming back when told pays, and no call is idle while somebody waits for it. `npm run bench -- waits` is longer.
 */
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Clock } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import type { Lane } from "../../src/quota/lane.js";
import { FakeClock, settle } from "../support/fake-clock.js";
import { ask, memoryQuota, outcome, refusalOf, toldMs, WINDOW_MS } from "./support/asks.js";
import { largestWindow } from "./support/rolling.js";
import {
  counted,
  meanWaitMs,
  onlyFigures,
  servedWithin,
  useOfSafeBound,
  waits,
  type WaitsSeen,
} from "./support/waits.js";

const BUDGET = 57;

describe.each([
  { load: 0.5, carts: 0, windows: 16 },
  { load: 1, carts: 0, windows: 20 },
  { load: 2, carts: 0, windows: 20 },
  { load: 5, carts: 0, windows: 14 },
  { load: 20, carts: 0, windows: 9 },
  { load: 0.5, carts: 1 / 3, windows: 16 },
  { load: 1, carts: 1 / 3, windows: 20 },
  { load: 2, carts: 1 / 3, windows: 20 },
  { load: 5, carts: 1 / 3, windows: 14 },
])("with visitors at $load and carts at $carts of the budget", ({ load, carts, windows }) => {
  let seen: WaitsSeen;
  beforeAll(async () => {
    seen = await waits({ budget: BUDGET, windows, load, carts, seed: 57 });
  });
  const of = (manner: string) => counted(seen, windows).filter((one) => one.manner === manner);

  test("no wait is longer than a window", () => {
    const told = seen.people.flatMap((one) => one.toldMs);
    expect(Math.max(0, ...told)).toBeLessThanOrEqual(WINDOW_MS);
    if (load >= 2) expect(told.length).toBeGreaterThan(1000);
  });

  test("reservations are honoured", () => {
    const { came, served } = seen.kept;
    if (load >= 1) expect(came).toBeGreaterThan(60);
    expect(served).toBeGreaterThanOrEqual(0.99 * came - 1);
  });

  test("carts are served", () => {
    const all = counted(seen, windows).filter(({ lane }) => lane === "checkout");
    expect(all.length === 0 ? 1 : servedWithin(all, 8000)).toBeGreaterThanOrEqual(0.99);
  });

  test("the budget is used where people wait for it, and never passed", () => {
    expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
    const { idleCalls, reservations } = onlyFigures(seen);
    expect(idleCalls).toBeLessThanOrEqual(0.02 * seen.arrivals.length);
    if (load + carts <= 1) return;
    expect(useOfSafeBound(seen, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
    expect(reservations.unclaimed).toBeGreaterThan(0);
  });

  test("a visitor who comes back on time is served sooner than one who tries again and again", () => {
    const obedient = of("obedient").filter(({ lane }) => lane === "exact");
    const impatient = of("impatient");
    expect(servedWithin(obedient, 120_000)).toBeGreaterThanOrEqual(servedWithin(impatient, 120_000));
    expect(meanWaitMs(obedient, 200_000)).toBeLessThanOrEqual(meanWaitMs(impatient, 200_000));
  });
});

test("reservations are honoured beside bots that never come back and carts without end", async () => {
  const windows = 10;
  const seen = await waits({ budget: BUDGET, windows, load: 1, carts: 3, bots: 10, seed: 5 });
  expect(seen.kept.came).toBeGreaterThan(30);
  expect(seen.kept.served).toBeGreaterThanOrEqual(0.99 * seen.kept.came - 1);
  expect(useOfSafeBound(seen, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
});

test("newcomers keep at least half of the calls that are not reserved, and those who come back get some", async () => {
  const seen = await waits({ budget: BUDGET, windows: 14, load: 5, seed: 6 });
  const served = seen.people.filter(({ servedAt }) => servedAt !== null && servedAt > 3 * WINDOW_MS);
  const unreserved = served.filter(({ cameBackAt }) => cameBackAt !== "reservation");
  const newcomers = unreserved.filter(({ cameBackAt }) => cameBackAt === null);
  expect(newcomers.length / unreserved.length).toBeGreaterThanOrEqual(0.5);
  expect(newcomers.length / unreserved.length).toBeLessThan(0.8);
});

describe("the users of one address", () => {
  test("alone have the whole budget", async () => {
    const windows = 12;
    const seen = await waits({ budget: BUDGET, windows, load: 0, behindOneAddress: 2, seed: 8 });
    expect(useOfSafeBound(seen, BUDGET, windows)).toBeGreaterThanOrEqual(0.95);
    const told = seen.people.flatMap((one) => one.toldMs);
    expect(Math.max(...told)).toBeLessThanOrEqual(WINDOW_MS);
    // However busy it is, reservations too are its own.
    expect(seen.kept.came).toBeGreaterThan(0.2 * BUDGET * (windows - 2));
    expect(seen.kept.served).toBeGreaterThanOrEqual(0.99 * seen.kept.came - 1);
  });

  test("leave others what one busy visitor leaves them", async () => {
    const windows = 16;
    const answered = async (behindOneAddress: number): Promise<number> => {
      const seen = await waits({ budget: BUDGET, windows, load: 0.5, behindOneAddress, seed: 9 });
      expect(largestWindow(seen.arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      return servedWithin(
        counted(seen, windows).filter((one) => !one.behindOneAddress),
        8000,
      );
    };
    // A busy visitor asks twenty times a minute.
    const besideOne = await answered(20 / BUDGET);
    expect(besideOne).toBeGreaterThanOrEqual(0.99);
    expect(await answered(5)).toBeGreaterThanOrEqual(besideOne - 0.02);
  });

  test("all at once get waits that are spread", async () => {
    const { quota, clock } = memoryQuota(BUDGET);
    const works = Array.from({ length: 500 }, (_, n) =>
      outcome(quota.run(ask({ client: "the address", queryKey: `name ${n}` }), async () => n)),
    );
    await clock.advance(10_000);
    const told = (await Promise.all(works)).flatMap((got) =>
      got instanceof ServiceError ? [toldMs(got)] : [],
    );
    expect(told.length).toBeGreaterThan(400);
    for (const second of new Set(told))
      expect(told.filter((one) => one === second).length).toBeLessThanOrEqual(told.length / 10);
  });
});

describe("a refusal", () => {
  test("is repeated, and changes nothing, for a visitor who comes back too early once", async () => {
    const { quota, clock } = memoryQuota(BUDGET);
    for (let n = 0; n < 38; n += 1) void outcome(quota.run(ask({ client: `burst ${n}` }), async () => n));
    await settle();
    const request = ask({ client: "early", queryKey: "mine" });
    const first = await outcome(quota.run(request, async () => "served"));
    if (!(first instanceof ServiceError)) throw new Error("it was not refused");
    expect(first.kept).toBe(true);
    await clock.advance(1000);
    const again = quota.refusal(request);
    expect(again).toMatchObject({ kept: true, retryAfterMs: (first.retryAfterMs ?? 0) - 1000 });
    await clock.advance((first.retryAfterMs ?? 0) - 1000);
    const back = quota.run(request, async () => "served");
    await clock.advance(8000);
    expect(await back).toBe("served");
  });

  test("with a reservation outlasts a cart that comes back for each of its names, and not one who keeps asking for one", async () => {
    const { quota, clock } = memoryQuota(BUDGET);
    for (let n = 0; n < 50; n += 1)
      void outcome(quota.run(ask({ client: `burst ${n}`, lane: "checkout" }), async () => n));
    await settle();
    const early = async (lane: Lane): Promise<boolean | undefined> => {
      const request = ask({ client: lane, queryKey: lane, lane, maxWaitMs: 0 });
      expect((await refusalOf(quota.run(request, async () => 0))).kept).toBe(true);
      for (let times = 0; times < 3; times += 1) quota.refusal(request);
      return quota.refusal(request)?.kept;
    };
    expect([await early("checkout"), await early("search"), await early("exact")]).toEqual([
      true,
      true,
      false,
    ]);
    await clock.advance(WINDOW_MS);
  });

  test("of many costs one look at the slots", async () => {
    const base = memoryQuota(BUDGET);
    let looks = 0;
    const ledger: Ledger = {
      ...base.ledger,
      forecast: () => {
        looks += 1;
        return base.ledger.forecast();
      },
    };
    const { quota } = memoryQuota(BUDGET, { ledger, clock: base.clock });
    for (let n = 0; n < 200; n += 1) void outcome(quota.run(ask({ client: `burst ${n}` }), async () => n));
    await settle();
    looks = 0;
    for (let n = 0; n < 1000; n += 1)
      expect(quota.refusal(ask({ client: `other ${n}` }))?.code).toBe("quota_exhausted");
    expect(looks).toBeLessThanOrEqual(1);
  });

  test("that `refusal` does not foresee leaves no trace", async () => {
    const { quota } = memoryQuota(BUDGET);
    expect(quota.refusal(ask())).toBeNull();
    expect(quota.snapshot()).toMatchObject({ used: 0, waits: { refusedAgoMs: null } });
    expect(await quota.run(ask(), async () => "served")).toBe("served");
  });
});

describe("a client", () => {
  test("is contested only while another one waits or was refused within the last window, and somebody waits", async () => {
    const { quota, clock } = memoryQuota(1);
    expect(quota.isContested("a")).toBe(false);
    await quota.run(ask({ client: "b", queryKey: "first" }), async () => {});
    await clock.advance(55_000);
    const own = quota.run(ask({ client: "a", queryKey: "second" }), async () => {});
    await settle();
    expect([quota.isContested("a"), quota.isContested("b")]).toEqual([false, true]);
    expect(quota.refusal(ask({ client: "b" }))).toBeInstanceOf(ServiceError);
    expect(quota.isContested("a")).toBe(true);
    await clock.advance(5100);
    await own;
    expect(quota.isContested("a")).toBe(false);
  });
});

test("a client is not contested while its reservation is due", async () => {
  const { quota, clock } = memoryQuota(1);
  await quota.run(ask({ client: "b", queryKey: "first" }), async () => {});
  const mine = ask({ client: "a", queryKey: "mine", maxWaitMs: 4000 });
  const refused = quota.refusal(mine);
  expect(refused?.kept).toBe(true);
  await clock.advance(toldMs(refused ?? new ServiceError("internal", "it was not refused")) - 1000);
  const waiting = outcome(quota.run(ask({ client: "b", queryKey: "second" }), async () => {}));
  await settle();
  expect([quota.isContested("a"), quota.isContested("c")]).toEqual([true, true]);
  await clock.advance(1000);
  expect([quota.isContested("a"), quota.isContested("c")]).toEqual([false, true]);
  await clock.advance(WINDOW_MS);
  await waiting;
});

test("a clock that moves on while a refusal is worked out makes no wait longer than a window", () => {
  const base = new FakeClock();
  let reads = 0;
  const clock: Clock = {
    now: () => base.now(),
    after: (delayMs, run) => base.after(delayMs, run),
    monotonic: () => (reads += 1) * 0.05,
  };
  const { ledger } = memoryQuota(1);
  const { quota } = memoryQuota(1, { clock, ledger: { ...ledger, forecast: () => spentLedger } });
  const told = Array.from({ length: 100 }, (_, n) => quota.refusal(ask({ queryKey: `${n}` })));
  expect(Math.max(...told.map((one) => one?.retryAfterMs ?? 0))).toBe(WINDOW_MS);
});

const spentLedger = {
  resting: 1,
  usableInMs: () => WINDOW_MS,
  borrowableInMs: [],
  updateInMs: Infinity,
  inFlightForMs: [],
  pausedForMs: 0,
  occupiedMs: 60_060,
};

test("the wait after a cold start is at most a sixth more than a window", async () => {
  const base = memoryQuota(BUDGET);
  const ledger: Ledger = {
    ...base.ledger,
    forecast: () => ({
      resting: BUDGET,
      usableInMs: () => Math.max(0, 70_060 - base.clock.monotonic()),
      borrowableInMs: [],
      updateInMs: Infinity,
      inFlightForMs: [],
      pausedForMs: 0,
      occupiedMs: 60_060,
    }),
  };
  const { quota } = memoryQuota(BUDGET, { ledger, clock: base.clock });
  const told: number[] = [];
  for (let n = 0; n < 100; n += 1) {
    const refusal = quota.refusal(ask({ client: `c ${n}` }));
    if (refusal !== null) told.push(toldMs(refusal));
  }
  expect([told.length, Math.max(...told)]).toEqual([100, 70_000]);
});
