/** Money is exact, wholesale is strict, and retail has its currency's digits. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import {
  ceilToDigits,
  ceilToResidue,
  currencyDigits,
  decimal,
  type Money,
  parseWholesale,
  presentRetail,
  type Retail,
  retailOf,
  sameWholesale,
  totalsOf,
  type Wholesale,
} from "../../src/money.js";

const retail = (amount: string, currency = "USD") => retailOf(decimal(amount), currency);

const next = (amount: string, modulus: string, remainder: string) =>
  ceilToResidue(decimal(amount), decimal(modulus), decimal(remainder)).toFixed();

const inCents = (value: bigint) => `${value / 100n}.${String(value % 100n).padStart(2, "0")}`;

const doesNotCompile = (wholesale: Wholesale) => {
  // @ts-expect-error wholesale is not retail
  presentRetail(wholesale);
  // @ts-expect-error wholesale is not money to be shown
  const shown: Money = wholesale;
  // @ts-expect-error wholesale is not retail
  const sold: Retail = wholesale;
  return [shown, sold];
};

/** Lines such as `mulx001 multiply 2 3 -> 6 Rounded` of plain decimals. */
function vectors(file: string, operation: string) {
  const text = gunzipSync(readFileSync(new URL(`../corpora/${file}`, import.meta.url))).toString();
  const line = new RegExp(
    `^\\w+ +${operation} +'?(-?\\d+(?:\\.\\d+)?)'? +'?(\\S+?)'? +-> +'?(-?\\d+(?:\\.\\d+)?)'?(?: +(.+))?$`,
    "gm",
  );
  return [...text.matchAll(line)].map(([, a = "", b = "", result = "", flags = ""]) => ({
    a,
    b,
    result,
    isExact: !/Inexact|Rounded|Clamped|Subnormal/.test(flags),
  }));
}

describe("decimal arithmetic", () => {
  test("multiplies like IBM's test vectors", () => {
    const exact = vectors("multiply.decTest.gz", "multiply").filter(
      ({ b, isExact }) => isExact && /^-?\d+(\.\d+)?$/.test(b),
    );
    expect(exact.length).toBeGreaterThan(100);
    for (const { a, b, result } of exact) {
      expect([a, b, decimal(a).times(decimal(b)).eq(decimal(result))]).toEqual([a, b, true]);
    }
  });

  test("rounds up, and never down, where IBM's test vectors round half up", () => {
    const cases = vectors("quantize.decTest.gz", "quantize").flatMap(({ a, b, result }) => {
      const digits =
        /^1e-(\d+)$/.exec(b)?.[1] ?? (/^1(?:e\+?0)?$/.test(b) ? "0" : /^0\.(0*1)$/.exec(b)?.[1]?.length);
      return digits === undefined || a.startsWith("-") ? [] : [{ a, result, digits: Number(digits) }];
    });
    expect(cases.length).toBeGreaterThan(100);
    for (const { a, result, digits } of cases) {
      const unit = decimal(digits === 0 ? "1" : `0.${"1".padStart(digits, "0")}`);
      const halfUp = decimal(result);
      const expected = halfUp.gte(a) ? halfUp : halfUp.plus(unit);
      expect([a, ceilToDigits(decimal(a), digits).toFixed(digits)]).toEqual([a, expected.toFixed(digits)]);
    }
  });

  test("rejects floats, exponents and anything else that isn't a plain decimal", () => {
    for (const text of ["", " 1", "1e2", "1.", ".5", "+1", "0x1", "NaN", "Infinity", "1,5"]) {
      expect(() => decimal(text)).toThrow(TypeError);
    }
    expect(() => decimal("1").times(0.1)).toThrow(TypeError);
  });

  test("finds the next amount with a given ending", () => {
    expect(next("12.34", "1", "0.99")).toBe("12.99");
    expect(next("12.99", "1", "0.99")).toBe("12.99");
    expect(next("12.990000001", "1", "0.99")).toBe("13.99");
    expect(next("0.01", "10", "9.99")).toBe("9.99");
    expect(next("12.01", "0.05", "0")).toBe("12.05");
    expect(next("12.05", "0.05", "0")).toBe("12.05");
  });
});

describe("an upstream price", () => {
  test.each(["0.01", "0.99", "1.00", "10.50", "999999999.99"])("of %j is accepted as it is", (amount) => {
    const wholesale = parseWholesale(amount, "USD");
    expect(wholesale).toEqual({ kind: "wholesale", amount, currency: "USD" });
    expect(Object.isFrozen(wholesale)).toBe(true);
  });

  test.each(["0.00", "-1.00", "1", "1.000", "01.00", "1e2", "1.00\n", "1000000000.00", 1.5, null])(
    "of %p is rejected",
    (amount) => {
      expect(parseWholesale(amount, "USD")).toBeNull();
    },
  );

  test.each(["usd", "USDT", "USD\n", null])("in the currency %p is rejected", (currency) => {
    expect(parseWholesale("1.00", currency)).toBeNull();
  });

  test("is compared by value and currency", () => {
    const [a, b, c] = [
      parseWholesale("1.00", "USD"),
      parseWholesale("1.00", "USD"),
      parseWholesale("1.00", "EUR"),
    ];
    if (a === null || b === null || c === null) throw new Error("a price wasn't parsed");
    expect(sameWholesale(a, b)).toBe(true);
    expect(sameWholesale(a, c)).toBe(false);
  });

  test("can't be presented: these lines don't compile", () => {
    expect(doesNotCompile).toBeInstanceOf(Function);
  });
});

describe("a retail amount", () => {
  test("is rounded up to its currency's ISO 4217 digits", () => {
    expect(presentRetail(retail("24.981"))).toEqual({ amount: "24.99", currency: "USD" });
    expect(presentRetail(retail("24.9", "AFN"))).toEqual({ amount: "24.90", currency: "AFN" });
    expect(presentRetail(retail("24.1", "JPY"))).toEqual({ amount: "25", currency: "JPY" });
    expect(presentRetail(retail("1.0001", "KWD"))).toEqual({ amount: "1.001", currency: "KWD" });
    expect(presentRetail(retail("123456789012345678.9"))).toEqual({
      amount: "123456789012345678.90",
      currency: "USD",
    });
  });

  test("has a currency that is used for payments", () => {
    expect("AFN USD JPY KWD CLF XAF XCG".split(" ").map(currencyDigits)).toEqual([2, 2, 0, 3, 4, 0, 2]);
    for (const other of ["ZZZ", "XXX", "XAU", "XTS", "usd", "", "HRK"])
      expect(currencyDigits(other)).toBeNull();
  });

  test("is added up exactly, by currency", () => {
    expect(totalsOf([])).toEqual([]);
    expect(totalsOf([retail("0.10"), retail("5", "EUR"), retail("0.20")])).toEqual([
      { amount: "0.30", currency: "USD" },
      { amount: "5.00", currency: "EUR" },
    ]);
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: 0n, max: 10n ** 14n }), { minLength: 1, maxLength: 20 }),
        (cents) => {
          const total = cents.reduce((a, b) => a + b);
          expect(totalsOf(cents.map((value) => retail(inCents(value))))).toEqual([
            { amount: inCents(total), currency: "USD" },
          ]);
        },
      ),
    );
  });
});
