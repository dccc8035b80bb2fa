/** The operator page's arithmetic: exact amounts, UTC days, and the figures between two readings of the overview. */
import { describe, expect, test } from "@jest/globals";
import { coverage, saved, shareOf, signed, typed, written } from "../src/amounts.js";
import { expiring, monthsAhead, orderedLately } from "../src/dates.js";
import { meanWaits } from "../src/figures.js";

const usd = (amount: string) => ({ amount, currency: "USD" });
const NOW = Date.parse("2026-11-21T23:30:00Z");

describe("amounts", () => {
  test("are written with all their digits, however many there are", () => {
    expect(written(usd("1843.50"))).toBe("1,843.50 USD");
    expect(written(usd("123456789012345.67"))).toBe("123,456,789,012,345.67 USD");
    expect(written({ amount: "705", currency: "JPY" })).toBe("705 JPY");
    expect([signed(usd("-1.29")), signed(usd("0.05"))]).toEqual(["−1.29 USD", "+0.05 USD"]);
  });

  test("cover as many orders as they can pay in full", () => {
    expect(coverage([usd("1843.50")], usd("20.21"))).toBe(91);
    expect(coverage([usd("1843.50"), usd("500.00")], usd("20.21"))).toBe(115);
    expect(coverage([usd("20.20")], usd("20.21"))).toBe(0);
    expect(coverage([usd("20.21")], usd("20.21"))).toBe(1);
    expect(coverage([usd("-100.00"), usd("50.00")], usd("20.21"))).toBe(0);
    expect(coverage([usd("100.00")], { amount: "20.21", currency: "EUR" })).toBeNull();
  });

  test("are shown as shares of each other only in the same currency", () => {
    expect(shareOf(usd("6.78"), usd("26.99"))).toBe("25.1%");
    expect(shareOf(usd("-1.00"), usd("10.00"))).toBe("-10.0%");
    expect(shareOf(usd("1.00"), { amount: "10.00", currency: "EUR" })).toBeNull();
  });
});

describe("the next tier", () => {
  const yen = (amount: string) => ({ amount, currency: "JPY" });

  test("saves the exact sum of the differences of all orders, in each currency", () => {
    expect(
      saved([
        { count: 3, price: usd("20.21"), nextPrice: usd("19.9") },
        { count: 1, price: usd("10.00"), nextPrice: usd("10.005") },
        { count: 2, price: yen("705"), nextPrice: yen("700") },
      ]),
    ).toEqual([usd("0.925"), yen("10")]);
    expect(saved([{ count: 2, price: usd("9.50"), nextPrice: usd("10") }])).toEqual([usd("-1.00")]);
    expect(saved([])).toEqual([]);
  });

  test("has the prices that staff enter, if they are amounts", () => {
    expect([typed("8", "USD"), typed("8,50", "USD")]).toEqual([usd("8"), usd("8.50")]);
    for (const text of ["", "-1", "1.", "1e3", "8 USD", "1,000.00", "9".repeat(10)])
      expect(typed(text, "USD")).toBeNull();
  });

  test("is estimated from domains that were registered or renewed in the last 30 days", () => {
    const at = (domain: string, registeredAt: string | null, expiresAt: string | null) => ({
      domain,
      registeredAt,
      expiresAt,
    });
    const domains = [
      at("new.af", "2026-11-01T00:00:00Z", "2027-11-01T00:00:00Z"),
      at("new.com.af", "2026-10-23T00:00:00Z", "2028-10-23T00:00:00Z"),
      at("renewed.af", "2020-11-10T00:00:00Z", "2027-11-10T00:00:00Z"),
      at("renewed-too.af", "2021-11-21T00:00:00Z", "2027-11-21T00:00:00Z"),
      at("earlier.af", "2020-10-01T00:00:00Z", "2027-10-01T00:00:00Z"),
      at("expired.af", "2020-11-10T00:00:00Z", "2026-11-10T00:00:00Z"),
      at("undated.af", null, "2027-11-10T00:00:00Z"),
      at("elsewhere.com", "2026-11-01T00:00:00Z", "2027-11-01T00:00:00Z"),
    ];
    expect(orderedLately(domains, [".af", ".com.af"], NOW)).toEqual([
      { tld: ".af", action: "registration", domains: 1 },
      { tld: ".af", action: "renewal", domains: 2 },
      { tld: ".com.af", action: "registration", domains: 1 },
    ]);
    // In January, the last renewal may have been in December.
    expect(
      orderedLately(
        [at("winter.af", "2020-12-20T00:00:00Z", "2027-12-20T00:00:00Z")],
        [".af"],
        Date.UTC(2027, 0, 5),
      ),
    ).toEqual([{ tld: ".af", action: "renewal", domains: 1 }]);
  });
});

describe("expiry", () => {
  const record = (expiresAt: string | null) => ({ expiresAt });

  test("is counted in UTC days, soonest first, without domains that have no date", () => {
    const list = ["2026-11-22T00:00:00Z", "2026-11-21T00:00:00Z", null, "2026-11-20T23:59:59Z", "soon"];
    expect(
      expiring(
        list.map((at) => record(at)),
        NOW,
      ).map(({ day, inDays }) => [day, inDays]),
    ).toEqual([
      ["2026-11-20", -1],
      ["2026-11-21", 0],
      ["2026-11-22", 1],
    ]);
  });

  test("is shown in months whose weeks start on Monday, across the end of a year", () => {
    const months = monthsAhead(NOW, 90);
    expect(months.map(({ first }) => first)).toEqual([
      "2026-11-01",
      "2026-12-01",
      "2027-01-01",
      "2027-02-01",
    ]);
    const [november] = months;
    expect(november?.weeks).toHaveLength(6);
    expect(november?.weeks[0]).toEqual([null, null, null, null, null, null, "2026-11-01"]);
    expect(november?.weeks.flat().filter((day) => day !== null)).toHaveLength(30);
    expect(november?.weeks.every((week) => week.length === 7)).toBe(true);
  });
});

test("the mean wait is that of the requests served between two readings, not since startup or across a restart", () => {
  const overview = (served: number, waitedMsTotal: number) => {
    const lane = { queued: 0, refused: 0, left: 0, retried: 0, retriedServed: 0, longestWaitMs: 0 };
    const idle = { ...lane, served: 0, waitedMsTotal: 0 };
    const exact = { ...lane, served, waitedMsTotal };
    const lanes = { checkout: idle, exact, search: idle, account: idle, refresh: idle, suggestion: idle };
    return { quota: { lanes } };
  };
  const before = overview(10, 9000);
  expect(meanWaits(overview(12, 9300), before)).toEqual([0, 150, 0, 0, 0, 0]);
  expect(meanWaits(overview(1, 20), before)).toEqual([0, 0, 0, 0, 0, 0]);
});
