/** Prices follow the rules (docs/pricing.md) to the cent, and nothing is ever sold below its floor. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { decimal, parseWholesale, retailOf, type Wholesale } from "../../src/money.js";
import {
  createRetailPolicy,
  marginWarnings,
  type NameKind,
  type PriceResult,
} from "../../src/retail/policy.js";
import type { Pricing, Promotion, RetailConfig } from "../../src/retail/price-file/retail-config.js";
import { oracle } from "./oracle.js";
import { NO_SHOP } from "../support/no-shop.js";

const NOW = Date.parse("2026-03-21T00:00:00Z");
const ONE_YEAR = { tld: ".af", action: "registration", years: 1 } as const;
const AT_COST: Pricing = { markupPercent: "0", addFixed: "0", minMargin: "0" };

function wholesale(amount: string, currency = "USD"): Wholesale {
  const parsed = parseWholesale(amount, currency);
  if (parsed === null) throw new Error(`not a wholesale price: ${amount}`);
  return parsed;
}

function configOf(pricing: Partial<Pricing>, more: Partial<RetailConfig> = {}): RetailConfig {
  return {
    currency: "USD",
    rates: {},
    catalog: [{ tld: ".af", scripts: ["latin", "arabic"], years: { registration: [3, 1, 2], renewal: [1] } }],
    rules: [{ match: {}, ...AT_COST, ...pricing }],
    premium: null,
    promotions: [],
    promise: { validMs: 900_000 },
    suggestions: null,
    shop: NO_SHOP,
    ...more,
  };
}

const promotion = (percentOff: string, more: Partial<Promotion> = {}): Promotion => ({
  id: "nowruz",
  match: {},
  percentOff,
  fromMs: NOW,
  toMs: NOW + 1000,
  ...more,
});

function priceOf(config: RetailConfig, amount: string, atMs = NOW, kind?: NameKind): PriceResult {
  return createRetailPolicy(config).price(wholesale(amount), ONE_YEAR, atMs, kind);
}

function amounts(result: PriceResult) {
  if (!result.ok) return result;
  return {
    price: result.price.amount,
    floor: result.floor.amount,
    rule: result.rule,
    ...(result.promotion && { regular: result.promotion.regular.amount, id: result.promotion.id }),
  };
}

const plainDecimal = (max: bigint, digits: number) =>
  fc.tuple(fc.bigInt({ min: 0n, max }), fc.integer({ min: 0, max: digits })).map(([units, scale]) => {
    if (scale === 0) return String(units);
    const padded = String(units).padStart(scale + 1, "0");
    return `${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
  });

describe("any rule for any amount", () => {
  const setting = fc.constantFrom("JPY:0", "USD:2", "AFN:2", "KWD:3").chain((text) => {
    const [currency = "", digitsText] = text.split(":");
    const digits = Number(digitsText);
    const amount = plainDecimal(5000n, digits);
    return fc.record({
      currency: fc.constant(currency),
      digits: fc.constant(digits),
      rate: plainDecimal(10n ** 7n, 6).filter((rate) => !/^[0.]*$/.test(rate)),
      markupPercent: plainDecimal(20000n, 4),
      addFixed: amount,
      minMargin: amount,
      rounding: fc.oneof(
        fc.constant({}),
        amount.map((ending) => ({ ending })),
        amount.filter((step) => !/^[0.]*$/.test(step)).map((step) => ({ step })),
      ),
      percentOff: plainDecimal(9999n, 2).filter((off) => !/^[0.]*$/.test(off) && decimal(off).lte("100")),
      cents: fc.array(
        fc.oneof(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 1, max: 999_999_999 })),
        {
          minLength: 25,
          maxLength: 25,
        },
      ),
    });
  });

  test("agrees with the oracle to the last digit and is never below its floor (25,000 prices)", () => {
    let prices = 0;
    fc.assert(
      fc.property(setting, ({ currency, digits, rate, percentOff, rounding, cents, ...amounts }) => {
        const rule: Pricing = { ...amounts, ...rounding };
        const policy = createRetailPolicy(
          configOf(rule, { currency, rates: { USD: rate }, promotions: [promotion(percentOff)] }),
        );
        for (const count of cents) {
          prices += 1;
          const padded = String(count).padStart(3, "0");
          const cost = wholesale(`${padded.slice(0, -2)}.${padded.slice(-2)}`);
          const got = policy.price(cost, ONE_YEAR, NOW);
          const expected = oracle(cost.amount, rate, rule, percentOff, digits);
          if (!got.ok) throw new Error(got.reason);
          const regular = got.promotion?.regular ?? got.price;
          if (
            regular.amount !== expected.regular ||
            got.price.amount !== expected.promoted ||
            got.floor.amount !== expected.floor ||
            decimal(got.price.amount).lt(
              decimal(cost.amount).times(decimal(rate)).plus(decimal(rule.minMargin)),
            )
          ) {
            throw new Error(JSON.stringify({ cost, rate, rule, percentOff, got, expected }));
          }
        }
      }),
      { numRuns: 1000 },
    );
    expect(prices).toBeGreaterThanOrEqual(20_000);
  });
});

const priceAt = (rates: Record<string, string>, currency: string, shown = "USD") =>
  amounts(
    createRetailPolicy(configOf({}, { rates, currency: shown })).price(
      wholesale("10.00", currency),
      ONE_YEAR,
      NOW,
    ),
  );

describe("a price", () => {
  test.each<[string, Partial<Pricing>, string]>([
    ["20.00", { markupPercent: "25", addFixed: "1.00", minMargin: "2.00", ending: "0.99" }, "26.99"],
    ["20.00", { markupPercent: "25" }, "25.00"],
    ["20.00", { markupPercent: "24.95" }, "24.99"],
    ["0.01", { markupPercent: "1" }, "0.02"],
    ["10.00", { markupPercent: "1", minMargin: "2.00" }, "12.00"],
    ["10.01", { step: "0.05" }, "10.05"],
    ["10.05", { step: "0.05" }, "10.05"],
    ["4.00", { ending: "9.99" }, "9.99"],
    ["10.00", { ending: "9.99" }, "19.99"],
    ["10.01", { ending: "5.00" }, "15.00"],
    ["15.01", { ending: "5.00" }, "25.00"],
    ["10.01", { ending: "0.00" }, "11.00"],
    ["95.00", { ending: "10" }, "110.00"],
  ])("of %s under %j is %s", (cost, pricing, price) => {
    expect(amounts(priceOf(configOf(pricing), cost))).toMatchObject({ price, rule: "rule 1" });
  });

  test("comes from the first rule that matches, and says which", () => {
    const config = configOf(
      {},
      {
        rules: [
          { match: { tld: ".af", action: "renewal" }, ...AT_COST, addFixed: "1" },
          { match: { years: 2 }, ...AT_COST, addFixed: "2" },
          { match: { action: "registration", years: 1 }, ...AT_COST, addFixed: "3" },
          { match: {}, ...AT_COST, addFixed: "4" },
        ],
      },
    );
    const policy = createRetailPolicy(config);
    const at = (action: "registration" | "renewal", years: number) =>
      amounts(policy.price(wholesale("10.00"), { tld: ".af", action, years }, NOW));
    expect(at("renewal", 1)).toMatchObject({ price: "11.00", rule: "rule 1" });
    expect(at("registration", 2)).toMatchObject({ price: "12.00", rule: "rule 2" });
    expect(at("registration", 1)).toMatchObject({ price: "13.00", rule: "rule 3" });
    expect(at("registration", 3)).toMatchObject({ price: "14.00", rule: "rule 4" });
  });

  test("of a premium name follows the premium rule, or the ordinary ones when there is none", () => {
    const withRule = configOf({ addFixed: "1" }, { premium: { ...AT_COST, markupPercent: "15" } });
    expect(amounts(priceOf(withRule, "100.00", NOW, "premium"))).toMatchObject({
      price: "115.00",
      rule: "premium",
    });
    expect(amounts(priceOf(configOf({ addFixed: "1" }), "100.00", NOW, "premium"))).toMatchObject({
      price: "101.00",
      rule: "rule 1",
    });
  });

  test("is refused without a rate for the upstream's currency", () => {
    expect(priceAt({}, "USD")).toMatchObject({ price: "10.00" });
    expect(priceAt({ EUR: "1.1" }, "USD")).toMatchObject({ price: "10.00" });
    expect(priceAt({ EUR: "1.1" }, "EUR")).toMatchObject({ price: "11.00" });
    expect(priceAt({ USD: "70.5" }, "USD", "AFN")).toMatchObject({ price: "705.00" });
    expect(priceAt({}, "EUR")).toEqual({ ok: false, reason: "currency_without_rate" });
    expect(priceAt({ EUR: "1.1" }, "USD", "AFN")).toEqual({ ok: false, reason: "currency_without_rate" });
  });

  test("is a whole amount in a currency without minor units", () => {
    expect(priceAt({ USD: "150.05" }, "USD", "JPY")).toMatchObject({ price: "1501" });
  });

  test("can't be formed in a currency that doesn't exist", () => {
    expect(() => createRetailPolicy(configOf({}, { currency: "XQQ" }))).toThrow(
      new RangeError("the shown currency is unknown to ISO 4217"),
    );
  });

  test("is refused if no rule matches", () => {
    const config = configOf({}, { rules: [{ match: { action: "renewal" }, ...AT_COST }] });
    expect(priceOf(config, "10.00")).toEqual({ ok: false, reason: "not_sold" });
  });

  test("is refused for combinations that aren't sold", () => {
    const policy = createRetailPolicy(configOf({}));
    for (const what of [
      { ...ONE_YEAR, tld: ".com.af" },
      { ...ONE_YEAR, years: 4 },
      { ...ONE_YEAR, action: "restore" as const },
    ]) {
      expect(policy.price(wholesale("10.00"), what, NOW)).toEqual({
        ok: false,
        reason: "not_sold",
      });
    }
  });
});

const priceUnder = (
  promotions: Promotion[],
  atMs = NOW,
  pricing: Partial<Pricing> = { markupPercent: "50" },
) => priceOf(configOf(pricing, { promotions }), "10.00", atMs);

describe("a promotion", () => {
  test("takes its percentage off, and returns the regular price and its end", () => {
    expect(priceUnder([promotion("10")])).toMatchObject({
      price: { amount: "13.50" },
      promotion: { id: "nowruz", regular: { amount: "15.00" }, until: "2026-03-21T00:00:01.000Z" },
    });
    expect(amounts(priceUnder([promotion("33.33")]))).toMatchObject({ price: "10.01" });
  });

  test("is rounded up to a whole amount in a currency without decimals", () => {
    const inYen = { currency: "JPY", rates: { USD: "150.05" }, promotions: [promotion("10")] };
    expect(amounts(priceOf(configOf({ markupPercent: "50" }, inYen), "10.00"))).toMatchObject({
      price: "2026",
      regular: "2251",
      floor: "1501",
    });
  });

  test("applies from its first instant until just before its end", () => {
    const shown = [NOW - 1, NOW, NOW + 999, NOW + 1000].map((atMs) => priceUnder([promotion("10")], atMs));
    expect(shown.map((result) => "promotion" in result)).toEqual([false, true, true, false]);
  });

  test("changes prices when it begins and when it ends, and at no other time", () => {
    const list = [promotion("10"), promotion("20", { fromMs: NOW + 500, toMs: NOW + 2000 })];
    const policy = createRetailPolicy(configOf({}, { promotions: list }));
    const next = [-1, 0, 499, 500, 999, 1000, 1999, 2000].map((ms) => policy.nextTurnAt(NOW + ms) - NOW);
    expect(next).toEqual([0, 500, 500, 1000, 1000, 2000, 2000, Infinity]);
  });

  test("never goes below wholesale plus the minimum margin", () => {
    expect(
      amounts(priceUnder([promotion("100")], NOW, { markupPercent: "50", minMargin: "2.00" })),
    ).toMatchObject({
      price: "12.00",
      floor: "12.00",
      regular: "15.00",
    });
  });

  test("that lowers nothing isn't shown", () => {
    expect(amounts(priceUnder([promotion("10")], NOW, { minMargin: "2.00" }))).toEqual({
      price: "12.00",
      floor: "12.00",
      rule: "rule 1",
    });
  });

  test("is the first one that is active and matches", () => {
    const list = [
      promotion("50", { id: "over", toMs: NOW }),
      promotion("40", { id: "other", match: { action: "renewal" } }),
      promotion("10", { id: "first" }),
      promotion("20", { id: "second" }),
    ];
    expect(amounts(priceUnder(list))).toMatchObject({ id: "first", price: "13.50" });
  });
});

describe("the catalogue", () => {
  const policy = createRetailPolicy(configOf({}));

  test("lists what is sold, short terms first", () => {
    expect(policy.soldTlds).toEqual([".af"]);
    expect(policy.yearsSold(".af", "registration")).toEqual([1, 2, 3]);
    expect(policy.yearsSold(".af", "restore")).toEqual([]);
    expect(policy.yearsSold(".de", "registration")).toEqual([]);
    expect(policy.combinations()).toEqual([
      { tld: ".af", action: "registration", years: 1 },
      { tld: ".af", action: "registration", years: 2 },
      { tld: ".af", action: "registration", years: 3 },
      { tld: ".af", action: "renewal", years: 1 },
    ]);
  });

  test("gives a margin that is rounded down, and only if there is a rate", () => {
    const inAfn = createRetailPolicy(configOf({}, { currency: "AFN", rates: { USD: "70.1234" } }));
    expect(inAfn.margin(wholesale("1.00"), retailOf(decimal("80"), "AFN"))).toEqual({
      amount: "9.87",
      currency: "AFN",
    });
    expect(inAfn.margin(wholesale("1.00", "EUR"), retailOf(decimal("80"), "AFN"))).toBeNull();
    expect(inAfn.margin(wholesale("1.00"), retailOf(decimal("80"), "USD"))).toBeNull();
  });
});

const rows = (...pairs: (readonly [string, string, string?])[]) =>
  pairs.map(([cost, price, currency]) => ({
    wholesale: wholesale(cost),
    retail: retailOf(decimal(price), currency ?? "USD"),
  }));

describe("the warning about a constant markup", () => {
  test("appears if retail is nearly the same multiple of wholesale everywhere", () => {
    expect(marginWarnings(rows(["10.00", "12.50"], ["20.00", "25.10"], ["31.00", "38.75"]))).toEqual([
      expect.stringContaining("can calculate the others"),
    ]);
  });

  test("doesn't appear with a spread of one percent or more, or with few prices", () => {
    expect(marginWarnings(rows(["10.00", "10.00"], ["10.00", "10.10"], ["10.00", "10.05"]))).toEqual([]);
    expect(marginWarnings(rows(["10.00", "10.00"], ["10.00", "10.09"], ["10.00", "10.05"]))).toHaveLength(1);
    expect(marginWarnings(rows(["10.00", "12.50"], ["20.00", "25.00"]))).toEqual([]);
    expect(marginWarnings([])).toEqual([]);
  });

  test("considers each pair of currencies separately", () => {
    const mixed = rows(["10.00", "12.50"], ["20.00", "25.00"], ["30.00", "2625", "AFN"]);
    expect(marginWarnings(mixed)).toEqual([]);
    const other = rows(["10.00", "875", "AFN"], ["20.00", "1750", "AFN"], ["30.00", "2625", "AFN"]);
    expect(marginWarnings([...mixed, ...other])).toEqual([expect.stringContaining("(USD to AFN)")]);
  });
});
