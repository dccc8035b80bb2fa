/** The decoders accept the documented shapes exactly, open points in any usual spelling, and nothing ambiguous. */
import { describe, expect, test } from "@jest/globals";
import { ServiceError } from "../../src/errors.js";
import {
  decodeBalance,
  decodeCheck,
  decodeDomain,
  decodeDomainList,
  decodeEnvelope,
  decodeQuote,
  decodeTier,
  type Combination,
} from "../../src/upstream/contract.js";
import { WrittenNumber } from "../../src/upstream/body.js";
import { AVAILABLE, KABUL } from "./support/bench.js";

const YEAR: Combination = { tld: ".af", action: "registration", years: 1 };
const USD_1234 = { kind: "wholesale", amount: "12.34", currency: "USD" };
const BALANCE = {
  account_number: "AF-100",
  balance: "250.00",
  currency: "USD",
  credit_limit: "0.00",
  active_domains: 12,
};

/** The result of the work, or the code of its ServiceError. */
function outcome(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

describe("the envelope", () => {
  test("is removed, and its data returned unchanged with what stands beside it", () => {
    expect(decodeEnvelope({ success: true, data: [1] })).toEqual({ data: [1], beside: {} });
    expect(decodeEnvelope({ success: true, data: null, meta: {} })).toEqual({
      data: null,
      beside: { meta: {} },
    });
  });

  test("of a refusal is a failure, and an invalid one is rejected", () => {
    expect(outcome(() => decodeEnvelope({ success: false, data: AVAILABLE }))).toBe("upstream_failed");
    for (const body of [null, 1, "", [], {}, { data: {} }, { success: "true", data: {} }, { success: 1 }]) {
      expect(outcome(() => decodeEnvelope(body))).toBe("upstream_contract");
    }
  });
});

describe("a check", () => {
  const priced = (pricing: unknown): object => ({ ...AVAILABLE, pricing });
  const costing = (amount: unknown, more: object = {}): object =>
    priced({ amount, currency: "USD", ...more });

  test.each<[string, object]>([
    ["as documented", AVAILABLE],
    ["with undocumented fields", { ...AVAILABLE, premium: false, colour: "1.00" }],
    ["for one year", { ...AVAILABLE, years: 1 }],
    ...["KABUL.AF", "kabul.af.", " kabul.af "].map((domain): [string, object] => [
      `for ${domain}`,
      { ...AVAILABLE, domain },
    ]),
  ])("is available at its price: %s", (_what, data) => {
    expect(decodeCheck(data, KABUL, 1)).toEqual({ status: "available", wholesale: USD_1234 });
  });

  test.each([
    [{ premium: true }],
    [{ meta: { premium: "yes" } }],
    [{ premium_price: "500.00" }],
    [{ warnings: ["This is a premium domain"] }],
  ])("has a sign of premium if %j stands beside its data", (beside) => {
    const noted: string[] = [];
    const check = decodeCheck(AVAILABLE, KABUL, 1, undefined, (what) => noted.push(what), beside);
    expect(check.sign).toBeDefined();
    expect(noted).toEqual([expect.stringMatching(/^a sign of premium/)]);
  });

  test("has no sign of premium because of what else stands beside its data", () => {
    const beside = { message: "OK", requestId: "a1", cost: 1, rate_limit: { remaining: 12 } };
    expect(decodeCheck(AVAILABLE, KABUL, 1, undefined, () => {}, beside)).not.toHaveProperty("sign");
  });

  test("has an unclear sign if it is too deep or too large to be searched", () => {
    let deep: unknown = "x";
    for (let depth = 0; depth < 10; depth += 1) deep = [deep];
    for (const more of [deep, Array.from({ length: 600 }, () => "x")])
      expect(decodeCheck({ ...AVAILABLE, more }, KABUL, 1)).toMatchObject({ sign: "unclear" });
    const data = { more: deep, ...AVAILABLE, renewal_price: "9.00" };
    expect(decodeCheck(data, KABUL, 1)).toMatchObject({ hasOtherPrices: true });
  });

  test("for several years is rejected if its price is for another term", () => {
    for (const data of [
      { ...AVAILABLE, years: 1 },
      costing("12.34", { period: "1" }),
      costing("12.34", { per: "year" }),
    ])
      expect(outcome(() => decodeCheck(data, KABUL, 2))).toBe("upstream_contract");
  });

  test("with a price in an unexpected currency is rejected", () => {
    expect(decodeCheck(AVAILABLE, KABUL, 1, new Set(["AFN", "USD"]))).toMatchObject({ wholesale: USD_1234 });
    expect(outcome(() => decodeCheck(AVAILABLE, KABUL, 1, new Set(["AFN"])))).toBe("upstream_contract");
    const taken = { ...AVAILABLE, available: false, status: "taken" };
    expect(decodeCheck(taken, KABUL, 1, new Set(["AFN"]))).toEqual({ status: "taken" });
  });

  test.each(["taken", "Not Available"])("that isn't available and has status %j is taken", (status) => {
    expect(decodeCheck({ ...AVAILABLE, available: false, status }, KABUL, 1)).toMatchObject({
      status: "taken",
    });
  });

  test.each<[string, unknown]>([
    ["another currency than its price", { ...AVAILABLE, currency: "EUR" }],
    ["two values of its availability", { ...AVAILABLE, Available: false }],
    ["two domains", { ...AVAILABLE, "do-main": "herat.af" }],
    ["two amounts", costing("12.34", { "Amount ": "1.00" })],
    ...["available", "pending", null, ["taken"]].map((status): [string, object] => [
      `available: false, but status ${JSON.stringify(status)}`,
      { ...AVAILABLE, available: false, status },
    ]),
    ...["taken", undefined].map((status): [string, object] => [
      `available: true, but status ${JSON.stringify(status)}`,
      { ...AVAILABLE, status },
    ]),
    ...["xkabul.af", "kabul.com.af", undefined].flatMap((domain) => [
      [`an answer for ${domain}`, { ...AVAILABLE, domain }] satisfies [string, object],
      [`a taken ${domain}`, { domain, status: "taken", available: false }] satisfies [string, object],
    ]),
    ["available as a string", { ...AVAILABLE, available: "true" }],
    ["no price", priced(undefined)],
    ...[null, "0.00", "-1.00", "1.000", 12.34].map((amount): [string, object] => [
      `the amount ${JSON.stringify(amount)}`,
      costing(amount),
    ]),
    ...[undefined, "usd"].map((currency): [string, object] => [
      `the currency ${currency}`,
      costing("1.00", { currency }),
    ]),
    ["a wrapped check", { result: AVAILABLE }],
    ["a string as data", "marrow"],
  ])("with %s is rejected", (_what, data) => {
    expect(outcome(() => decodeCheck(data, KABUL, 1))).toBe("upstream_contract");
  });
});

describe("a quote", () => {
  const money = { amount: "12.34", currency: "USD" };

  test.each<[string, unknown]>([
    ["a check's price", { pricing: money }],
    ["flat fields with the term", { tld: ".af", action: "registration", years: 1, ...money }],
    ["a wrapper", { quote: { pricing: money } }],
    ["a wrapper beside a string in another wrapper's place", { result: "ok", quote: money }],
    ["a wrapped price with the currency outside", { quote: { amount: "12.34" }, currency: "USD" }],
    ["a total beside a unit price", { unit_price: "99.00", total: "12.34", currency: "USD" }],
    ["a unit price for one year", { unitPrice: "12.34", currency: "USD" }],
    ["a number as it was written", { amount: new WrittenNumber("12.34"), currency: "USD" }],
  ])("is decoded from %s", (_what, data) => {
    expect(decodeQuote(data, YEAR)).toEqual(USD_1234);
  });

  test.each([
    [12.3, "12.30"],
    [999_999_999.99, "999999999.99"],
    [new WrittenNumber("12.0"), "12.00"],
    ["0.01", "0.01"],
  ])("with the amount %j costs %s", (amount, exact) => {
    expect(decodeQuote({ amount, currency: "USD" }, YEAR)).toMatchObject({ amount: exact });
  });

  test("for several years doesn't take a unit price for the total", () => {
    const years3 = { ...YEAR, years: 3 };
    expect(outcome(() => decodeQuote({ unit_price: "12.34", currency: "USD" }, years3))).toBe(
      "upstream_contract",
    );
    expect(decodeQuote({ unit_price: "12.34", total: "30.00", currency: "USD" }, years3)).toMatchObject({
      amount: "30.00",
    });
    for (const data of [
      { unit_price: "12.34", total: "12.34", currency: "USD" },
      { ...money, per: "year" },
      { pricing: { ...money, basis: "annual" } },
      { ...money, per_year: true },
    ]) {
      expect(outcome(() => decodeQuote(data, years3))).toBe("upstream_contract");
    }
  });

  test.each<[string, unknown]>([
    ["another TLD", { tld: ".com.af", pricing: money }],
    ["another action", { action: "renewal", pricing: money }],
    ["other years", { years: 2, pricing: money }],
    ["a monthly price", { ...money, per: "month" }],
    ["two amounts", { pricing: money, total: "12.35", currency: "USD" }],
    ["two currencies", { pricing: money, total: "12.34", currency: "EUR" }],
  ])("with %s is rejected", (_what, data) => {
    expect(outcome(() => decodeQuote(data, YEAR))).toBe("upstream_contract");
  });

  test.each([
    null,
    "0.00",
    "-1.00",
    "1.000",
    "1e2",
    12,
    1.234,
    new WrittenNumber("12.340"),
    new WrittenNumber("1.234e1"),
  ])("with the amount %j is rejected", (amount) => {
    for (const data of [{ amount, currency: "USD" }, { pricing: { amount, currency: "USD" } }]) {
      expect(outcome(() => decodeQuote(data, YEAR))).toBe("upstream_contract");
    }
  });

  test("in an unexpected currency is rejected, unless no currencies are specified", () => {
    expect(outcome(() => decodeQuote(money, YEAR, new Set(["AFN", "EUR"])))).toBe("upstream_contract");
    expect(decodeQuote(money, YEAR, new Set(["AFN", "USD"]))).toEqual(USD_1234);
    expect(decodeQuote({ ...money, currency: "QQQ" }, YEAR)).toMatchObject({ currency: "QQQ" });
  });

  test.each<[string, unknown]>([
    ["total", { TOTAL: "1.00", total: "12.34", currency: "USD" }],
    ["total with one value written in two ways", { Total: "12.34", total: new WrittenNumber("12.34") }],
    ["currency", { total: "12.34", currency: "USD", "curr-ency": "EUR" }],
    ["years", { ...money, years: 1, Years: 2 }],
  ])("with two spellings of its %s is rejected", (_what, data) => {
    expect(outcome(() => decodeQuote(data, YEAR))).toBe("upstream_contract");
  });

  test.each([undefined, "usd"])("with the currency %j is rejected", (currency) => {
    expect(outcome(() => decodeQuote({ amount: "12.34", currency }, YEAR))).toBe("upstream_contract");
  });
});

describe("a domain record", () => {
  const known = {
    domain: "kabul.af",
    status: "active",
    registeredAt: "2025-03-01T00:00:00.000Z",
    expiresAt: "2027-03-01T00:00:00.000Z",
    autoRenew: true,
    nameservers: ["ns1.kabul.af", "ns2.kabul.af"],
  };
  const snake = {
    domain: "kabul.af",
    status: "active",
    registered_at: "2025-03-01",
    expires_at: "2027-03-01",
    auto_renew: true,
    nameservers: ["ns1.kabul.af", "ns2.kabul.af"],
  };
  const { domain: _domain, ...rest } = snake;

  test.each<[string, unknown]>([
    ["snake_case", snake],
    [
      "camelCase",
      {
        domainName: "KABUL.af",
        state: "active",
        registrationDate: "2025-03-01",
        expiryDate: "2027-03-01",
        autoRenew: 1,
        nameServers: [{ hostname: "NS1.kabul.af." }, { host: "ns2.kabul.af" }],
      },
    ],
    ["a wrapper", { domain: snake }],
    ["a name beside the details", { domain: "kabul.af", details: rest }],
    ["details without the name", rest],
  ])("is decoded from %s", (_what, data) => {
    expect(decodeDomain(data, KABUL)).toEqual(known);
  });

  test("leaves missing and unreadable fields unknown", () => {
    const bare = { status: null, registeredAt: null, expiresAt: null, autoRenew: null, nameservers: [] };
    for (const data of [
      { name: "kabul.af" },
      { name: "kabul.af", status: {}, expiry: "soon", registered: -1, auto_renew: "maybe", ns: 7 },
      { name: "kabul.af", status: [], expiry: null, registered: [], auto_renew: 2, ns: [null, "-", {}] },
    ]) {
      expect(decodeDomain(data, KABUL)).toEqual({ domain: "kabul.af", ...bare });
    }
  });

  test.each([null, undefined, {}])("doesn't exist if the answer is %j", (data) => {
    expect(decodeDomain(data, KABUL)).toBeNull();
  });

  test.each<[string, unknown]>([
    ["another domain", { ...snake, domain: "herat.af" }],
    ["another domain in a wrapper", { domain: { ...snake, domain: "herat.af" } }],
    ["an invalid name", { ...snake, domain: "a b" }],
    ["a string", "kabul.af"],
  ])("is rejected if the answer is %s", (_what, data) => {
    expect(outcome(() => decodeDomain(data, KABUL))).toBe("upstream_contract");
  });

  test.each<[unknown, string | null]>([
    ["2027-03-01", "2027-03-01T00:00:00.000Z"],
    ["2027-03-01 12:30:45 UTC", "2027-03-01T12:30:45.000Z"],
    ["2027-03-01t12:30:45.123456789z", "2027-03-01T12:30:45.123Z"],
    ["2027-03-01T12:30:45+04:30", "2027-03-01T08:00:45.000Z"],
    [{ date: "2027-05-05 00:00:00.000000", timezone: "+04:30" }, "2027-05-04T19:30:00.000Z"],
    [{ date: "2027-05-05 00:00:00.000000", timezone: "Asia/Kabul" }, null],
    ["01-Mar-2027", "2027-03-01T00:00:00.000Z"],
    ["01-Mrz-2027", null],
    [new WrittenNumber("1803902400.5"), "2027-03-01T12:00:00.500Z"],
    [1803902400000, "2027-03-01T12:00:00.000Z"],
    ["1803902400", "2027-03-01T12:00:00.000Z"],
    ["01/03/2027", null],
    ["2027-02-29T12:00:00Z", null],
    ["-1", null],
    [0, null],
    ["", null],
    [true, null],
  ])("with the expiry date %j expires at %j", (expiry, expiresAt) => {
    expect(decodeDomain({ name: "kabul.af", expiry }, KABUL)).toMatchObject({ expiresAt });
  });

  test.each<[unknown, boolean | null]>([
    [true, true],
    ["TRUE", true],
    [1, true],
    ["no", false],
    ["0", false],
    ["", null],
    [2, null],
    [{}, null],
  ])("with the auto-renew value %j has auto-renew %j", (auto_renew, autoRenew) => {
    expect(decodeDomain({ name: "kabul.af", auto_renew }, KABUL)).toMatchObject({ autoRenew });
  });

  test.each<[object, string | null, string[]]>([
    [
      { registered_at: "2020-01-01", expires_at: "2019-01-01" },
      null,
      ["expires_at isn't after registered_at"],
    ],
    [{ expires_at: "soon" }, null, ["expires_at isn't a date that a domain can have"]],
    [
      { expires_at: "2027-01-01", expiry: "2028-01-01" },
      "2027-01-01T00:00:00.000Z",
      ["expires_at differs from another such date"],
    ],
    [{ status: 1 }, null, ["a status that isn't a word"]],
    [{ auto_renew: 2 }, null, ["auto-renewal is neither on nor off"]],
  ])("with %j expires at %j, and staff see why", (fields, expiresAt, expected) => {
    const noted: string[] = [];
    const record = decodeDomain({ domain: "kabul.af", ...fields }, KABUL, (what) => noted.push(what));
    expect(noted).toEqual(expected);
    expect(record).toMatchObject({ registeredAt: null, expiresAt });
  });
});

/** Strings that must not be shown to people. */
const UNREADABLE = ["", "a\nb", "\u202eevil", "x".repeat(65)];

describe("a status", () => {
  test.each(["Pending transfer", "می\u200cشود", "𝕏".repeat(64)])("may be %j", (status) => {
    for (const sent of [status, [status, "locked"]])
      expect(decodeDomain({ name: "kabul.af", status: sent }, KABUL)).toMatchObject({ status });
  });

  test.each(UNREADABLE)("is unknown if it is %j", (status) => {
    for (const sent of [status, [status]])
      expect(decodeDomain({ name: "kabul.af", status: sent }, KABUL)).toMatchObject({ status: null });
  });
});

test("a record with two spellings that disagree is rejected", () => {
  for (const second of [{ Name: "herat.af" }, { STATUS: "expired" }, { "expires-at": "2020-01-01" }]) {
    const record = { name: "kabul.af", status: "active", expires_at: "2027-03-01", ...second };
    expect(outcome(() => decodeDomain(record, KABUL))).toBe("upstream_contract");
    expect(outcome(() => decodeDomainList([record]))).toBe("upstream_contract");
  }
});

describe("the domain list", () => {
  const items = [{ name: "kabul.af" }, { name: "herat.com.af" }];
  const names = ["kabul.af", "herat.com.af"];

  test.each<[string, unknown]>([
    ["a bare array", items],
    ["an array of names", names],
    ["a data field with pages", { meta: { page: 1, pages: 1 }, data: items, links: { next: null } }],
    ["a capitalized field", { Domains: items }],
  ])("is decoded from %s", (_what, data) => {
    expect(decodeDomainList(data).records.map(({ domain }) => domain)).toEqual(names);
  });

  test("may be empty, or have a name twice, which is noted", () => {
    expect(decodeDomainList({ domains: [], total: 0 }).records).toEqual([]);
    const noted: string[] = [];
    decodeDomainList([{ domain: "kabul.af" }, { domain: "kabul.af" }], (what) => noted.push(what));
    expect(noted).toEqual(["a name that is listed twice"]);
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["an object without a list", {}],
  ])("is rejected if the answer is %s", (_what, data) => {
    expect(outcome(() => decodeDomainList(data))).toBe("upstream_contract");
  });

  test("is rejected if it is nested in 50,000 wrappers", () => {
    let data: unknown = [];
    for (let depth = 0; depth < 50_000; depth += 1) data = { domains: data };
    expect(outcome(() => decodeDomainList(data))).toBe("upstream_contract");
  });
});

describe("the balance", () => {
  test("is decoded as documented", () => {
    expect(decodeBalance({ ...BALANCE, extra: 1 })).toEqual({
      accountNumber: "AF-100",
      balance: "250.00",
      currency: "USD",
      creditLimit: "0.00",
      activeDomains: 12,
    });
    for (const amount of ["-3.50", "0.05", "123456789012345.00"]) {
      expect(decodeBalance({ ...BALANCE, balance: amount })).toMatchObject({ balance: amount });
      expect(decodeBalance({ ...BALANCE, credit_limit: amount })).toMatchObject({ creditLimit: amount });
    }
  });

  test.each(["-0.00", "+1.00", "1.5", "1234567890123456.00", 250])(
    "with the amount %j is rejected",
    (amount) => {
      for (const key of ["balance", "credit_limit"])
        expect(outcome(() => decodeBalance({ ...BALANCE, [key]: amount }))).toBe("upstream_contract");
    },
  );

  test.each(UNREADABLE)("with the account number %j is rejected", (account_number) => {
    expect(outcome(() => decodeBalance({ ...BALANCE, account_number }))).toBe("upstream_contract");
  });

  test("with two spellings that disagree is rejected", () => {
    for (const second of [{ Balance: "1.00" }, { "credit-limit": "9.00" }, { activeDomains: 1 }])
      expect(outcome(() => decodeBalance({ ...BALANCE, ...second }))).toBe("upstream_contract");
  });

  test.each<[string, unknown]>([
    ["a wrapper", { balance: BALANCE }],
    ["no credit limit", { ...BALANCE, credit_limit: undefined }],
    ["a count that is a string", { ...BALANCE, active_domains: "12" }],
    ["a negative count", { ...BALANCE, active_domains: -1 }],
    ["an account number that is a number", { ...BALANCE, account_number: 100 }],
    ["other spellings", { accountNumber: "AF-100", balance: "250.00", currency: "USD" }],
  ])("is rejected if the answer has %s", (_what, data) => {
    expect(outcome(() => decodeBalance(data))).toBe("upstream_contract");
  });
});

describe("the tier", () => {
  const silver = { currentTier: "Silver", nextTier: "Gold", domainsNeeded: 38 };

  test.each<[string, unknown]>([
    ["flat fields", { current_tier: "Silver", next_tier: "Gold", domains_needed: 38 }],
    ["camelCase fields", { currentTier: "Silver", nextTier: "Gold", domainsToNextTier: 38 }],
    ["tiers that are objects", { current: { name: "Silver" }, next: { name: "Gold", domains_needed: 38 } }],
    [
      "a count in the current tier",
      { current_tier: { label: "Silver", domains_to_advance: 38 }, next_tier: { label: "Gold" } },
    ],
    ["a wrapper", { tier: { current: "Silver", next: "Gold", remaining: 38 } }],
  ])("is decoded from %s", (_what, data) => {
    expect(decodeTier(data)).toEqual(silver);
  });

  test("has no next tier at the top", () => {
    for (const data of [
      { current_tier: "Gold", next_tier: null, domains_needed: null },
      { tier: { name: "Gold" } },
      { name: "Gold", next: "", domains_needed: "many" },
    ]) {
      expect(decodeTier(data)).toEqual({ currentTier: "Gold", nextTier: null, domainsNeeded: null });
    }
  });

  test.each([null, {}, { tier: 3 }, { next_tier: "Gold" }])("is rejected if the answer is %j", (data) => {
    expect(outcome(() => decodeTier(data))).toBe("upstream_contract");
  });

  test.each(UNREADABLE.filter((name) => name !== ""))("is rejected if a name is %j", (name) => {
    for (const data of [
      { current_tier: name },
      { tier: { name } },
      { current_tier: "Silver", next_tier: name },
      { current_tier: "Silver", next: { name } },
    ])
      expect(outcome(() => decodeTier(data))).toBe("upstream_contract");
  });
});
