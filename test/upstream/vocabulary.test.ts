/** Every spelling of the vocabulary is decoded and isn't reported as unexpected. */
import { describe, expect, test } from "@jest/globals";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";
import {
  decodeCheck,
  decodeDomain,
  decodeDomainList,
  decodeQuote,
  decodeTier,
} from "../../src/upstream/contract.js";
import { createUnexpected } from "../../src/upstream/unexpected.js";
import {
  DOMAIN,
  LIST,
  NAMESERVER,
  type Operation,
  PRICE,
  QUOTE,
  RECORD,
  TIER,
} from "../../src/upstream/vocabulary.js";
import { parseJson } from "../../src/upstream/body.js";
import { AVAILABLE, KABUL } from "./support/bench.js";

type Spellings = Readonly<Record<string, readonly string[]>>;

function unexpectedIn(operation: Operation, data: unknown): string[] {
  const unexpected = createUnexpected(new FakeClock(), recordingLog([]));
  unexpected.inAnswer(operation, parseJson(JSON.stringify({ success: true, data })), []);
  return unexpected.list().map(({ what }) => what);
}

/** The spelling, and other ways to write the same name. */
function written(spelling: string): string[] {
  const camel = spelling.replaceAll(/_(.)/g, (_match, letter: string) => letter.toUpperCase());
  return [
    spelling,
    camel,
    spelling.toUpperCase(),
    spelling.replaceAll("_", "-"),
    spelling.replaceAll("_", " "),
  ];
}

const each = (spellings: Spellings): [string, string][] =>
  Object.entries(spellings).flatMap(([what, names]) =>
    names.flatMap(written).map((name): [string, string] => [what, name]),
  );

const REGISTRATION = { tld: ".af", action: "registration", years: 1 } as const;
const USD_1234 = { amount: "12.34", currency: "USD" };

describe("a record", () => {
  const SENT: Readonly<Record<keyof typeof RECORD, unknown>> = {
    name: "kabul.af",
    status: "active",
    registered: "2025-03-01",
    expiry: "2027-03-01",
    autoRenew: "on",
    nameservers: ["ns1.kabul.af"],
  };
  const READ: Readonly<Record<keyof typeof RECORD, object>> = {
    name: { domain: "kabul.af" },
    status: { status: "active" },
    registered: { registeredAt: "2025-03-01T00:00:00.000Z" },
    expiry: { expiresAt: "2027-03-01T00:00:00.000Z" },
    autoRenew: { autoRenew: true },
    nameservers: { nameservers: ["ns1.kabul.af"] },
  };
  const roles: readonly (keyof typeof RECORD)[] = [
    "name",
    "status",
    "registered",
    "expiry",
    "autoRenew",
    "nameservers",
  ];

  test.each(roles)("is decoded with every spelling of its %s, and none is reported as unexpected", (role) => {
    for (const name of RECORD[role].flatMap(written)) {
      const data = { ...(role !== "name" && { domain: "kabul.af" }), [name]: SENT[role] };
      expect([name, decodeDomain(data, KABUL)]).toEqual([name, expect.objectContaining(READ[role])]);
      expect(decodeDomainList([data]).records).toEqual([expect.objectContaining(READ[role])]);
      expect([unexpectedIn("domain", data), unexpectedIn("domains", [data])]).toEqual([[], []]);
    }
  });

  test("is decoded with every nameserver field and wrapper, and none is reported as unexpected", () => {
    const record = { name: "kabul.af", status: "active" };
    for (const name of NAMESERVER.flatMap(written)) {
      const data = { ...record, ns: [{ [name]: "ns1.kabul.af", ttl: 60 }] };
      expect(decodeDomain(data, KABUL)).toMatchObject({ nameservers: ["ns1.kabul.af"] });
      expect(unexpectedIn("domain", data)).toEqual([]);
    }
    for (const wrapper of DOMAIN.wrappers) {
      const data = { [wrapper]: record };
      expect(decodeDomain(data, KABUL)).toMatchObject({ status: "active" });
      expect(unexpectedIn("domain", data)).toEqual([]);
    }
    for (const [wrapper, item] of LIST.wrappers.flatMap((one) =>
      LIST.itemWrappers.map((two) => [one, two]),
    )) {
      const data = { [String(wrapper)]: [record, { [String(item)]: record }] };
      expect(decodeDomainList(data).records.map(({ domain }) => domain)).toEqual(["kabul.af", "kabul.af"]);
      expect(unexpectedIn("domains", data)).toEqual([]);
    }
  });
});

describe("a price", () => {
  const { totals, unitPrices } = QUOTE;
  test.each(each({ totals, unitPrices }))(
    "is decoded from the quote's %s %j, which isn't reported as unexpected",
    (_what, name) => {
      const data = { [name]: "12.34", currency: "USD" };
      expect(decodeQuote(data, REGISTRATION)).toMatchObject(USD_1234);
      expect(unexpectedIn("quote", data)).toEqual([]);
    },
  );

  test("is decoded from every object around the quote's amount, and none is reported as unexpected", () => {
    for (const wrapper of [...QUOTE.wrappers, ...QUOTE.prices].flatMap(written)) {
      const data = { [wrapper]: USD_1234 };
      expect(decodeQuote(data, REGISTRATION)).toMatchObject(USD_1234);
      expect(unexpectedIn("quote", data)).toEqual([]);
    }
    for (const currency of QUOTE.currency.flatMap(written))
      expect(decodeQuote({ amount: "12.34", [currency]: "USD" }, REGISTRATION)).toMatchObject(USD_1234);
  });

  test.each(each({ tld: QUOTE.tld, action: QUOTE.action, years: PRICE.years }))(
    "for another %s, given as %j, is rejected",
    (what, name) => {
      const other = { tld: ".com.af", action: "transfer", years: 2 }[what];
      expect(() => decodeQuote({ ...USD_1234, [name]: other }, REGISTRATION)).toThrow("the quote's subject");
      expect(unexpectedIn("quote", { ...USD_1234, [name]: other })).toEqual([]);
    },
  );

  test.each(each({ per: PRICE.per, isPerYear: PRICE.isPerYear }))(
    "for one year, as stated by its %s field %j, is rejected for two years",
    (what, name) => {
      const pricing = { ...USD_1234, [name]: what === "per" ? "year" : true };
      expect(() => decodeCheck({ ...AVAILABLE, pricing }, KABUL, 2)).toThrow("the check's price");
      expect(() => decodeQuote({ pricing }, { ...REGISTRATION, years: 2 })).toThrow("the quote's price");
      expect([unexpectedIn("check", { ...AVAILABLE, pricing }), unexpectedIn("quote", { pricing })]).toEqual([
        [],
        [],
      ]);
    },
  );
});

test("a tier is decoded with every spelling, and none is reported as unexpected", () => {
  const tier = { current_tier: "Silver", next_tier: "Gold", domains_needed: 3 };
  const decoded = { currentTier: "Silver", nextTier: "Gold", domainsNeeded: 3 };
  const { current_tier: _current, ...withoutCurrent } = tier;
  const { next_tier: _next, ...withoutNext } = tier;
  const { domains_needed: _needed, ...withoutNeeded } = tier;
  const answers = [
    ...[...TIER.current, ...TIER.names]
      .flatMap(written)
      .map((name) => ({ ...withoutCurrent, [name]: "Silver" })),
    ...TIER.next.flatMap(written).map((name) => ({ ...withoutNext, [name]: "Gold" })),
    ...TIER.domainsNeeded.flatMap(written).map((name) => ({ ...withoutNeeded, [name]: 3 })),
    ...TIER.objectNames.flatMap(written).map((name) => ({ ...tier, current_tier: { [name]: "Silver" } })),
    ...TIER.wrappers.map((wrapper) => ({ [wrapper]: tier })),
  ];
  for (const data of answers) {
    expect([data, decodeTier(data)]).toEqual([data, decoded]);
    expect([data, unexpectedIn("tier", data)]).toEqual([data, []]);
  }
});
