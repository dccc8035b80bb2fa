/** The operator page's arithmetic: exact amounts, UTC days, and the figures between two readings of the overview. */
import { describe, expect, test } from "@jest/globals";
import { coverage, saved, shareOf, signed, typed, written } from "../src/amounts.js";
import { expiring, monthsAhead } from "../src/expiry.js";
import { orderedLately } from "../src/lately.js";
import { callsOf, LANES, recentOf } from "../src/recent.js";
import type { Overview } from "../src/staff-api.js";

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

describe("figures", () => {
  const lane = { queued: 0, served: 0, refused: 0, left: 0, retried: 0, retriedServed: 0, longestWaitMs: 0 };
  const counts = { hit: 0, inflight: 0, miss: 0, stale: 0, failed: 0 };

  function overview(facts: { served?: number; waited?: number; hit?: number; miss?: number }): Overview {
    const { served = 0, waited = 0, hit = 0, miss = 0 } = facts;
    const idle = { ...lane, waitedMsTotal: 0 };
    const none = { entries: 0, bound: 1, inflight: 0, counts };
    return {
      mode: "sandbox",
      quota: {
        used: 5,
        budget: 57,
        limit: 60,
        windowMs: 60_000,
        largestWindowToday: 5,
        pausedForMs: 0,
        lanes: {
          checkout: idle,
          exact: { ...lane, served, waitedMsTotal: waited },
          search: idle,
          account: idle,
          refresh: idle,
          suggestion: idle,
        },
        waits: {
          retryAfter: { count: 0, p50Seconds: 0, p99Seconds: 0, maxSeconds: 0 },
          reservations: { made: 0, claimed: 0, honoured: 0, unclaimed: 0 },
          refused: { reserved: 0, busy: 0, early: 0, late: 0, fault: 0 },
          idleCalls: 0,
          refusedAgoMs: null,
        },
      },
      rateLimited: { requests: 0, cold: 0 },
      redis: "none",
      caches: {
        availability: { ...none, counts: { ...counts, hit, miss } },
        prices: none,
        tier: none,
        account: none,
      },
      upstream: {
        lastSuccessAt: null,
        lastFailureAt: null,
        openCircuits: [],
        recent: {
          windowMs: 600_000,
          operations: [
            { operation: "check", calls: 3, failed: 1, meanMs: 100, p95Ms: 400 },
            { operation: "quote", calls: 1, failed: 0, meanMs: 500, p95Ms: 500 },
          ],
        },
      },
      unexpected: [],
      credentials: [],
      prices: {
        sold: 28,
        known: 28,
        doubtful: 0,
        epochsEnded: [],
        config: { fingerprint: "0123456789ab", since: "2026-03-01T09:30:00.000Z", faults: [] },
      },
      promises: { inForce: 0, belowFloor: 0, marginLost: [] },
      saved: { cache: 0, coalesced: 0, refusedLocally: 0 },
      owner: { role: "alone", since: "2026-03-20T00:00:00Z" },
      proxy: "fits",
      alarms: [],
      notices: { on: false, waiting: 0, last: [] },
    };
  }

  test("show the wait and the hit rate between two readings, not since startup", () => {
    const before = overview({ served: 10, waited: 9000, hit: 90, miss: 10 });
    const now = overview({ served: 12, waited: 9300, hit: 93, miss: 11 });
    const { waitMs, hitRate } = recentOf(now, before);
    expect([waitMs.exact, waitMs.search, hitRate]).toEqual([150, 0, 0.75]);
  });

  test("have no hit rate for a period without lookups or across a restart", () => {
    const full = overview({ served: 10, waited: 9000, hit: 90, miss: 10 });
    expect(recentOf(full, full).hitRate).toBeNull();
    const { waitMs, hitRate } = recentOf(overview({ served: 1, waited: 20, hit: 1 }), full);
    expect([LANES.map((name) => waitMs[name]), hitRate]).toEqual([LANES.map(() => 0), null]);
  });

  test("weigh each operation's latency by its calls", () => {
    expect(callsOf(overview({}))).toEqual({
      meanMs: 200,
      p95Ms: 500,
      failed: 1,
      calls: 4,
    });
  });
});
