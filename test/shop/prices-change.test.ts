/** What may change between two answers: nothing that is shown or signed contradicts what the upstream has said since. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { priceListShape } from "../../src/wire/visitors.js";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import type { FakeClock } from "../support/fake-clock.js";
import { bearer, CHECK, PRICING, problemOf, type Service, until, withService } from "../support/service.js";
import { overviewOf, purge } from "../support/staff.js";
import { MINUTE_MS, type OpenedShop, openShop } from "./opened-shop.js";
import { registration, renewal, RETAIL, shopAt, transfer, usd, WORLD } from "./shop.js";

const HOUR_MS = 60 * MINUTE_MS;
const TIER = "GET /api/v1/account/tier";

const priceOf = (action: "registration" | "renewal" | "transfer", amountCents: number, years = 1) =>
  ({ tld: ".af", action, years, amountCents }) as const;

let opened: OpenedShop;
let clock: FakeClock;
let sandbox: Sandbox;
let service: Service;
beforeEach(async () => {
  opened = await openShop();
  ({ clock, sandbox } = opened);
  service = await opened.start();
});
afterEach(async () => {
  await service.close();
  await opened.close();
});

const restart = async (): Promise<void> => {
  service = await opened.start({ warm: false });
};
const shop = () => shopAt(service);
/** Time passes in steps, between which background work can run. */
const pass = async (times: number, stepMs: number): Promise<void> => {
  for (let n = 0; n < times; n += 1) {
    await clock.advance(stepMs);
    await service.ask("/livez");
  }
};
const priceList = async () => priceListShape.parse((await service.ask("/v1/prices")).body);
const purgePrices = () => purge(service, "prices");

describe("when the wholesale price rises", () => {
  beforeEach(async () => {
    expect((await shop().availability("herat.af")).price).toEqual(usd("26.97"));
    await clock.advance(2 * MINUTE_MS);
  });

  test("T1: an ordinary name is shown and signed at its new price within two extra calls, and a premium name still as premium", async () => {
    sandbox.control.setPrice("demo", priceOf("registration", 2250));
    const before = service.calls(CHECK) + service.calls(PRICING);
    const shown = await shop().availability("kabul.af");
    expect(shown).toMatchObject({ status: "available", premium: false, price: usd("34.75"), stale: false });
    expect(service.calls(CHECK) + service.calls(PRICING) - before).toBeLessThanOrEqual(1 + 2);
    const { items, signed } = await shop().cart(registration("kabul.af"));
    expect([items[0]?.premium, signed]).toEqual([false, ["kabul.af registration 34.75"]]);
    expect(await shop().availability("gold.af")).toMatchObject({ premium: true, price: usd("990.00") });
    expect(await shop().availability("kabul.af")).toMatchObject({ premium: false, price: usd("34.75") });
  });

  test("T2: a check from before the new price list is never shown or signed as a premium price below cost", async () => {
    const before = await shop().availability("kabul.af");
    expect(before).toMatchObject({ premium: false, price: usd("26.97") });
    sandbox.control.setPrice("demo", priceOf("registration", 2250));
    await purgePrices();
    await until(async () => {
      await clock.advance(100);
      return (await shop().quote("registration")).price.amount === "34.75";
    }, "the refresh of the price list");
    const { items, signed } = await shop().cart(registration("kabul.af"));
    expect([items[0]?.premium, signed]).toEqual([false, ["kabul.af registration 34.75"]]);
    const shown = await shop().availability("kabul.af");
    expect(shown).toMatchObject({ premium: false, price: usd("34.75"), stale: false });
  });

  test("T3: a cart signs a renewal at its current cost, not at the cost when the price was last requested", async () => {
    sandbox.control.setPrice("demo", priceOf("renewal", 3000));
    await clock.leap(10 * MINUTE_MS);
    const { signed } = await shop().cart(renewal("herat.af"), renewal("kabul.af"));
    expect(signed).toEqual(["herat.af renewal 46.00", "kabul.af renewal 46.00"]);
  });

  test("T3: a ten-second-old price isn't signed once another one has shown that prices changed", async () => {
    expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 31.00"]);
    await clock.advance(10_000);
    for (const action of ["registration", "renewal"] as const)
      sandbox.control.setPrice("demo", priceOf(action, 3000));
    // The renewal price is requested again, but not answered yet.
    const hold = sandbox.control.hold({ operation: "quote", asked: { action: "renewal" }, calls: 1 });
    expect(await shop().availability("kabul.af")).toMatchObject({ premium: false, stale: false });
    const late = await hold.caught();
    const cart = shop().cart(renewal("herat.af"));
    await clock.advance(1_000);
    late.release();
    expect((await cart).signed).toEqual(["herat.af renewal 46.00"]);
  });

  test("T3: while the upstream is down, no old price is signed, and the customer gets the reason", async () => {
    sandbox.control.setFault("all", { fault: "reset-on-accept" });
    await clock.advance(90_000);
    const answer = await shop().post([renewal("herat.af"), transfer("kabul.af")]);
    expect([answer.status, answer.text]).toEqual([502, expect.not.stringContaining("promise")]);
    expect(problemOf(answer).code).toBe("upstream_failed");
    expect((await shop().quote("renewal")).price).toEqual(usd("31.00"));
  });

  test("T3: no old price is signed in the first answer after a restart", async () => {
    await service.close();
    sandbox.control.setPrice("demo", priceOf("renewal", 3000));
    await clock.leap(30 * HOUR_MS);
    await restart();
    expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 46.00"]);
  });

  test("T3: when the clock is set back at a restart, so that old prices seem to be recent, none is shown as fresh or signed", async () => {
    await clock.advance(5_000);
    await until(() => service.calls(TIER) === 1, "the first tier request");
    await clock.advance(20 * MINUTE_MS);
    // Then this one seems to be from the future.
    expect((await shop().availability("kabul.af")).price).toEqual(usd("26.97"));
    await service.close();
    sandbox.control.setPrice("demo", priceOf("renewal", 3000));
    clock.stepWall(-22 * MINUTE_MS);
    await restart();
    await until(() => service.calls(TIER) > 0, "the first tier request after the restart");
    await clock.advance(1_000);
    expect(await shop().quote("renewal")).toMatchObject({ price: usd("46.00"), stale: false });
    expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 46.00"]);
  });
});

describe("when an answer arrives late", () => {
  test("T4: an 'available' requested before 'taken' was known doesn't come back, and isn't signed", async () => {
    const hold = sandbox.control.hold({ operation: "check", calls: 1 });
    const first = shop().startLookup("kabul.af");
    const late = await hold.caught();
    await clock.advance(2_000);
    await first.leave();
    sandbox.control.setTaken("kabul.af", true);
    await clock.advance(1_000);
    expect((await shop().availability("kabul.af")).status).toBe("taken");
    await clock.advance(500);
    late.release();
    await clock.advance(10);
    expect((await shop().availability("kabul.af")).status).toBe("taken");
    const { items, signed } = await shop().cart(registration("kabul.af"));
    expect([items[0]?.status, signed]).toEqual(["taken", []]);
  });

  test("T4: 'taken', learned with one term, replaces 'available' for every term, cached or still on its way", async () => {
    expect((await shop().availability("herat.af", 1)).status).toBe("available");
    const hold = sandbox.control.hold({ operation: "check", calls: 1 });
    shop().startLookup("kabul.af", 1);
    const late = await hold.caught();
    await clock.advance(1_000);
    for (const name of ["kabul.af", "herat.af"]) {
      sandbox.control.setTaken(name, true);
      expect((await shop().availability(name, 2)).status).toBe("taken");
    }
    expect((await shop().availability("herat.af", 1)).status).toBe("taken");
    expect((await shop().cart(registration("herat.af", 1))).signed).toEqual([]);
    await clock.advance(1_000);
    late.release();
    await clock.advance(10);
    expect((await shop().availability("kabul.af", 1)).status).toBe("taken");
    expect((await shop().availability("kabul.af", 2)).status).toBe("taken");
  });

  test("T4: a quote requested before a purge of the prices is requested again, not kept for an hour", async () => {
    const hold = sandbox.control.hold({ operation: "quote", asked: { action: "renewal" }, calls: 1 });
    await clock.advance(1_000);
    await purgePrices();
    await clock.advance(100);
    const late = await hold.caught();
    sandbox.control.setPrice("demo", priceOf("renewal", 3000));
    await clock.advance(1_000);
    await purgePrices();
    await clock.advance(500);
    late.release();
    await pass(12, 5_000);
    expect(await shop().quote("renewal")).toMatchObject({ price: usd("46.00"), stale: false });
  });
});

describe("a premium name", () => {
  test("T5: has no ordinary price for its renewal and transfer; the other lines of the cart are unaffected", async () => {
    expect((await shop().availability("gold.af")).premium).toBe(true);
    await clock.advance(1_000);
    for (const line of [renewal("gold.af"), transfer("gold.af")]) {
      const { items, signed } = await shop().cart(line, renewal("kabul.af"));
      expect(signed).toEqual(["kabul.af renewal 31.00"]);
      expect(items[0]).toMatchObject({ price: null, premium: true, problem: { code: expect.any(String) } });
    }
  });

  test("T5: is known by the price that the upstream gives for a taken name, when its check is too old and after a restart too", async () => {
    sandbox.control.setShapes({ takenPricing: "price" });
    sandbox.control.setTaken("gold.af", true);
    expect((await shop().availability("gold.af")).status).toBe("taken");
    const expectNoPrice = async (): Promise<void> => {
      const { items, signed } = await shop().cart(renewal("gold.af"), renewal("kabul.af"));
      expect(items[0]).toMatchObject({ price: null, premium: true });
      expect(signed).toEqual(["kabul.af renewal 31.00"]);
    };
    await expectNoPrice();
    await clock.leap(7 * HOUR_MS);
    await expectNoPrice();
    await service.close();
    await restart();
    await expectNoPrice();
  });

  test("T5: is still known after restarts during which the clock was set back by 5 s, and ahead by a year for one start", async () => {
    expect((await shop().availability("gold.af")).premium).toBe(true);
    for (const step of [-5_000, 365 * 24 * HOUR_MS, -365 * 24 * HOUR_MS]) {
      clock.stepWall(step);
      await service.close();
      await restart();
    }
    const { items, signed } = await shop().cart(renewal("gold.af"), renewal("kabul.af"));
    expect(items[0]).toMatchObject({ price: null, premium: true });
    expect(signed).toEqual(["kabul.af renewal 31.00"]);
  });

  test("isn't what a taken name seems to be when the list price, and with it the name's, changes after a quote", async () => {
    sandbox.control.setShapes({ takenPricing: "price" });
    sandbox.control.setTaken("herat.af", true);
    expect((await shop().availability("herat.af")).status).toBe("taken");
    // In the meantime the list is requested again, at the old price.
    for (let times = 0; times < 6; times += 1) {
      await clock.leap(10 * MINUTE_MS);
      await pass(3, 1_000);
    }
    sandbox.control.setPrice("demo", priceOf("registration", 2250));
    expect((await shop().availability("herat.af")).status).toBe("taken");
    const { items, signed } = await shop().cart(renewal("herat.af"));
    expect([items[0]?.premium, signed]).toEqual([false, ["herat.af renewal 31.00"]]);
  });

  test("isn't shown at the ordinary price of an earlier answer even if the upstream fails by then", async () => {
    expect((await shop().availability("kabul.af")).premium).toBe(false);
    sandbox.control.setPremium("kabul.af", { USD: 90_000 });
    expect((await shop().availability("kabul.af", 2)).premium).toBe(true);
    sandbox.control.setFault("all", { fault: "reset-on-accept" });
    expect(await shop().availability("kabul.af")).toMatchObject({ premium: true, price: null, stale: true });
  });

  test("T5: is shown and signed by the last check of any term", async () => {
    expect((await shop().availability("kabul.af")).premium).toBe(false);
    for (let twice = 0; twice < 2; twice += 1)
      expect((await shop().availability("gold.af")).premium).toBe(true);
    sandbox.control.setPremium("kabul.af", { USD: 90_000 });
    sandbox.control.setPremium("gold.af", null);
    await clock.advance(1_000);
    expect((await shop().availability("kabul.af", 2)).premium).toBe(true);
    expect((await shop().availability("gold.af", 2)).premium).toBe(false);
    const { items, signed } = await shop().cart(registration("kabul.af"));
    expect([items[0]?.premium, signed]).toEqual([true, ["kabul.af registration 990.00"]]);
    expect(await shop().availability("kabul.af")).toMatchObject({ premium: true, stale: false });
    expect(await shop().availability("gold.af")).toMatchObject({ premium: false, price: usd("26.97") });
  });

  test("T5: isn't signed at the list price while its own price is still being requested", async () => {
    await clock.advance(2 * MINUTE_MS);
    const asked = service.calls(PRICING);
    sandbox.control.setBehaviour({ afterMs: 1_000 });
    const transferred = shop().cart(transfer("gold.af"), transfer("kabul.af"));
    await until(() => service.calls(PRICING) > asked, "the request for the price of a transfer");
    await clock.advance(100);
    sandbox.control.setBehaviour({ afterMs: 500 });
    const registered = shop().cart(registration("gold.af"));
    await pass(40, 100);
    expect((await registered).items).toMatchObject([{ premium: true }]);
    expect((await transferred).signed).toEqual(["kabul.af transfer 29.50"]);
  });

  test("isn't shown as ordinary by an earlier answer once another term has shown that it is premium", async () => {
    expect((await shop().availability("kabul.af")).premium).toBe(false);
    sandbox.control.setPremium("kabul.af", { USD: 90_000 });
    const hold = sandbox.control.hold({ operation: "quote", calls: 1 });
    const forTwoYears = shop().availability("kabul.af", 2);
    const late = await hold.caught();
    expect((await shop().availability("kabul.af")).premium).toBe(false);
    late.release();
    expect((await forTwoYears).premium).toBe(true);
    expect(await shop().availability("kabul.af")).toMatchObject({ premium: true, price: usd("990.00") });
  });

  test("has no certain price, for several years, if another price changes before the last of its prices is known", async () => {
    await clock.advance(2 * MINUTE_MS);
    const hold = sandbox.control.hold({ operation: "check", asked: { years: 1 }, calls: 1 });
    const shown = shop().availability("gold.af", 2);
    const late = await hold.caught();
    await clock.advance(1_000);
    sandbox.control.setPrice("demo", priceOf("renewal", 3000));
    expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 46.00"]);
    late.release();
    expect(await shown).toMatchObject({ price: null, stale: true });
    expect(await shop().availability("gold.af", 2)).toMatchObject({ premium: true, stale: false });
  });

  test("is dated in a cart by the oldest of the facts behind its price", async () => {
    await clock.advance(MINUTE_MS - (clock.now() % MINUTE_MS) + 30_000);
    const [first] = (await shop().cart(registration("gold.af"))).items;
    await clock.advance(40_000);
    const [second] = (await shop().cart(registration("gold.af"))).items;
    expect(first?.asOf).toEqual(expect.any(String));
    expect(second).toMatchObject({ premium: true, price: usd("990.00"), asOf: first?.asOf });
  });

  test("T7: that can't be priced for two years is shown as premium, and is a problem of its line, not of the cart", async () => {
    sandbox.control.setShapes({ checkYears: "ignored" });
    expect(await shop().availability("gold.af", 2)).toMatchObject({ premium: true, price: null });
    const { items, total, signed } = await shop().cart(registration("gold.af", 2), registration("kabul.af"));
    expect(items[0]).toMatchObject({
      domain: "gold.af",
      premium: true,
      price: null,
      problem: { code: expect.any(String), detail: expect.any(String) },
    });
    expect(items[1]).not.toHaveProperty("problem");
    expect([total, signed]).toEqual([[usd("26.97")], ["kabul.af registration 26.97"]]);
  });
});

test("a quote that a check contradicts isn't shown as fresh until it has been asked again", async () => {
  sandbox.control.setPrice("demo", priceOf("registration", 2250));
  sandbox.control.setFault("quote", { fault: "status-500" });
  expect(await shop().availability("kabul.af")).toMatchObject({ price: null, stale: true });
  expect(await shop().quote("registration")).toMatchObject({ price: usd("26.97"), stale: true });
  expect((await service.ask("/v1/prices")).headers["cache-control"]).toBe("no-store");
  sandbox.control.clearFaults();
  await pass(12, 5_000);
  expect(await shop().quote("registration")).toMatchObject({ price: usd("34.75"), stale: false });
  expect(await shop().availability("kabul.af")).toMatchObject({ price: usd("34.75"), stale: false });
});

test("a further call that a search needs goes first, but isn't counted as a cart's", async () => {
  const served = async (): Promise<unknown> => {
    const { lanes } = (await overviewOf(service)).quota;
    return [lanes.checkout.served, lanes.exact.served];
  };
  expect(await served()).toEqual([0, 0]);
  expect((await shop().availability("gold.af")).premium).toBe(true);
  expect(await served()).toEqual([0, 2]);
});

test("a premium name has a price under a TLD that isn't sold for one year", () => {
  const years = "{ registration: [2, 3], renewal: [1], transfer: [1] }";
  const world = WORLD.replace('["17.31", "33.00"]', '["17.31", "33.00", "47.00"]');
  const retail = RETAIL.replace(/years: \{[^}]*\}/, `years: ${years}`);
  return withService({ world, retail }, async (sold) => {
    const found = await shopAt(sold).availability("gold.af", 2);
    // 900.00, and what the second year of an ordinary name costs.
    expect(found).toMatchObject({ premium: true, price: usd("1007.26"), stale: false });
    const { signed } = await shopAt(sold).cart(registration("gold.af", 2));
    expect(signed).toEqual(["gold.af registration 1007.26"]);
  });
});

describe("when the upstream ignores the term of a check", () => {
  beforeEach(() => {
    sandbox.control.setShapes({ checkYears: "ignored" });
  });

  test("a cart doesn't sign two years at a price for one that has just changed", async () => {
    expect((await shop().availability("kabul.af")).price).toEqual(usd("26.97"));
    sandbox.control.setPrice("demo", priceOf("registration", 2250));
    await clock.advance(5_000);
    const twoYears = () => shop().cart(registration("kabul.af", 2), renewal("herat.af"));
    const { items, signed } = await twoYears();
    expect(items[0]).toMatchObject({ premium: false });
    expect(signed).not.toContain("kabul.af registration 34.75");
    await clock.advance(1_000);
    // The quote for two years, which hasn't changed.
    expect((await twoYears()).signed).toEqual(["kabul.af registration 50.50", "herat.af renewal 31.00"]);
  });

  test("an ordinary name isn't taken for premium, in whatever order its terms are asked for, not when the list price has changed, and not once it is taken", async () => {
    for (const years of [2, 1, 2, 1]) {
      await clock.advance(1_000);
      expect((await shop().availability("kabul.af", years)).premium).toBe(false);
    }
    expect(service.calls(CHECK)).toBe(2);
    sandbox.control.setPrice("demo", priceOf("registration", 2250));
    sandbox.control.setPrice("demo", priceOf("registration", 4400, 2));
    expect(await shop().availability("herat.af", 2)).toMatchObject({ premium: false, price: usd("67.00") });
    sandbox.control.setShapes({ checkYears: "ignored", takenPricing: "price" });
    sandbox.control.setTaken("balkh.af", true);
    expect((await shop().availability("balkh.af", 2)).status).toBe("taken");
    const { signed } = await shop().cart(transfer("kabul.af"), transfer("herat.af"), transfer("balkh.af"));
    expect(signed).toEqual(["kabul", "herat", "balkh"].map((label) => `${label}.af transfer 29.50`));
  });

  test("a name isn't taken for premium because its check arrives before the price list", async () => {
    await service.close();
    await opened.close();
    opened = await openShop();
    ({ clock, sandbox } = opened);
    sandbox.control.setShapes({ checkYears: "ignored" });
    const hold = sandbox.control.hold({ operation: "quote", asked: { years: 1 } });
    service = await opened.start({ warm: false });
    const shown = shop().availability("kabul.af", 2);
    await hold.caught();
    await pass(10, 100);
    hold.release();
    await pass(10, 100);
    expect((await shown).premium).toBe(false);
    expect((await shop().cart(transfer("kabul.af"))).signed).toEqual(["kabul.af transfer 29.50"]);
  });
});

describe("when the tier changes while the service is down", () => {
  beforeEach(async () => {
    await clock.advance(6_000);
    await until(() => service.calls("GET /api/v1/account/tier") === 1, "the first tier request");
    await clock.advance(1_000);
    await service.close();
    sandbox.control.setTier("demo", "Gold");
  });

  test("T6: no price of the old tier is signed after the restart, even one that is a few seconds old", async () => {
    await clock.advance(5_000);
    await restart();
    const { signed } = await shop().cart(renewal("herat.af"), registration("kabul.af"));
    expect(signed).toEqual(["herat.af renewal 28.00", "kabul.af registration 24.37"]);
  });

  test("T6: once staff see the new tier, prices of the old one are doubtful, and soon replaced", async () => {
    await clock.advance(2 * MINUTE_MS);
    await restart();
    await service.ask("/v1/staff/tier", { headers: bearer("read") });
    const shown = await shop().quote("renewal");
    expect([`${shown.price.amount} stale`, "28.00"]).toContain(
      shown.price.amount + (shown.stale ? " stale" : ""),
    );
    await pass(12, 5_000);
    expect(await shop().quote("renewal")).toMatchObject({ price: usd("28.00"), stale: false });
    expect(await shop().quote("registration")).toMatchObject({ price: usd("24.37"), stale: false });
  });

  test("T6: a change is noticed that comes after the prices were read again, and before the first answer about the tier", async () => {
    sandbox.control.setTier("demo", "Silver");
    sandbox.control.setPrice("demo", priceOf("transfer", 2100));
    sandbox.control.setFault("tier", { fault: "status-500" });
    await clock.advance(2 * MINUTE_MS);
    await restart();
    await pass(12, 5_000);
    expect(await shop().quote("renewal")).toMatchObject({ price: usd("31.00"), stale: false });
    sandbox.control.setTier("demo", "Gold");
    sandbox.control.clearFaults("tier");
    await until(async () => {
      await clock.advance(1_000);
      return (await service.ask("/v1/staff/tier", { headers: bearer("read") })).status === 200;
    }, "the first answer about the tier");
    const shown = await shop().quote("renewal");
    expect([`${shown.price.amount} stale`, "28.00"]).toContain(
      shown.price.amount + (shown.stale ? " stale" : ""),
    );
    expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 28.00"]);
  });

  test("T6: an ordinary name isn't mistaken for premium because its quote is from the old tier", async () => {
    await clock.advance(2 * MINUTE_MS);
    await restart();
    const shown = await shop().availability("kabul.af");
    expect(shown).toMatchObject({ premium: false, price: usd("24.37") });
  });
});

test("a cart that waits past the end of a promotion is signed at the prices after the promotion", async () => {
  await service.close();
  const to = new Date(clock.now() + 2_000).toISOString();
  const promotion = `{ id: spring, match: { action: renewal }, percentOff: "10", from: 2026-03-01T00:00:00Z, to: ${to} }`;
  service = await opened.start({ retail: `${RETAIL}promotions: [${promotion}]\n`, warm: false });
  expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 27.90"]);
  const hold = sandbox.control.hold({ operation: "check", calls: 1 });
  const cart = shop().cart(renewal("herat.af"), registration("kabul.af"));
  const late = await hold.caught();
  await clock.advance(3_000);
  late.release();
  expect((await cart).signed).toEqual(["herat.af renewal 31.00", "kabul.af registration 26.97"]);
});

test("a promotion that begins while further checks of a premium name are awaited counts for its price", async () => {
  await service.close();
  const [from, to] = [2_000, 2_000 + MINUTE_MS].map((ms) => new Date(clock.now() + ms).toISOString());
  const promotion = `{ id: spring, match: {}, percentOff: "5", from: ${from}, to: ${to} }`;
  service = await opened.start({ retail: `${RETAIL}promotions: [${promotion}]\n`, warm: false });
  sandbox.control.setPremium("gold.af", { USD: 180_000 });
  const hold = sandbox.control.hold({ operation: "check", asked: { years: 1 }, calls: 1 });
  const shown = shop().availability("gold.af", 2);
  const late = await hold.caught();
  await clock.advance(3_000);
  late.release();
  expect(await shown).toMatchObject({ premium: true, price: usd("1897.40"), stale: false });
});

test("a taken name is known to be taken in a cart if the upstream fails, beside a line that fails, until it is past its freshness", async () => {
  sandbox.control.setTaken("kabul.af", true);
  expect((await shop().availability("kabul.af")).status).toBe("taken");
  sandbox.control.setFault("all", { fault: "reset-on-accept" });
  await clock.leap(2 * MINUTE_MS);
  const { items, signed } = await shop().cart(registration("kabul.af"), registration("herat.af"));
  expect(items).toMatchObject([
    { status: "taken", price: null },
    { status: "not_checked", problem: { code: "upstream_failed" } },
  ]);
  expect([items[0]?.problem, signed]).toEqual([undefined, []]);
  await clock.leap(20 * MINUTE_MS);
  expect(await shop().availability("kabul.af")).toMatchObject({ status: "taken", stale: true });
  expect(problemOf(await shop().post([registration("kabul.af")])).code).toBe("upstream_failed");
});

test("the time of an answer is given in whole minutes, rounded down, and isn't in the future, within a second after the clock was set back", async () => {
  await clock.advance(90_000);
  sandbox.control.setTaken("taken.af", true);
  await shop().availability("taken.af");
  expect((await shop().availability("kabul.af")).asOf).toBe("2026-03-20T00:01:00.000Z");
  expect((await shop().cart(registration("kabul.af"))).items[0]?.asOf).toBe("2026-03-20T00:01:00.000Z");
  const before = service.calls(CHECK) + service.calls(PRICING);
  clock.stepWall(-HOUR_MS);
  await clock.advance(1_000);
  const asked = [
    await shop().availability("taken.af"),
    await shop().availability("kabul.af"),
    await shop().quote("renewal"),
    await priceList(),
  ];
  const hours = asked.map(({ asOf }) => asOf?.slice(0, 13));
  expect(new Set(hours)).toEqual(new Set([new Date(clock.now()).toISOString().slice(0, 13)]));
  expect(service.calls(CHECK) + service.calls(PRICING)).toBe(before);
});

describe("when the clock jumps forward, as after a suspension of the machine", () => {
  test("no answer from before is shown as fresh or signed, its time stays, and all prices are refreshed", async () => {
    await shop().availability("kabul.af");
    sandbox.control.setTaken("kabul.af", true);
    for (const action of ["renewal", "transfer"] as const)
      sandbox.control.setPrice("demo", priceOf(action, 3000));
    const { asOf } = await priceList();
    clock.stepWall(HOUR_MS + 1);
    expect(await priceList()).toMatchObject({ asOf });
    expect(await shop().quote("renewal")).toMatchObject({ price: usd("31.00"), stale: true });
    expect((await shop().availability("kabul.af")).status).toBe("taken");
    expect((await shop().cart(renewal("herat.af"))).signed).toEqual(["herat.af renewal 46.00"]);
    await until(async () => {
      await clock.advance(1_000);
      return (await shop().quote("transfer")).price.amount === "46.00";
    }, "the refresh of the prices");
    expect(await shop().quote("transfer")).toMatchObject({ stale: false });
  });

  test("the quota doesn't count the time, which may not have passed", () =>
    withService({ retail: RETAIL, world: WORLD, env: { UPSTREAM_RATE_LIMIT: "10" } }, async (small, time) => {
      const askAll = async (names: readonly string[]): Promise<void> => {
        const answers = names.map((name) => small.ask(`/v1/availability?domain=${name}.af`));
        await time.advance(8_000);
        await Promise.all(answers);
      };
      await askAll(Array.from({ length: 10 }, (_, n) => `before-${n}`));
      expect(small.calls()).toBe(7);
      time.stepWall(HOUR_MS);
      await askAll(Array.from({ length: 10 }, (_, n) => `after-${n}`));
      expect(small.calls()).toBe(7);
    }));
});
