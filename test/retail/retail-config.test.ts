/** The retail config is accepted or rejected as a whole, and every fault is reported with its path. */
import { describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { createRetailPolicy } from "../../src/retail/policy.js";
import { parseRetailConfig } from "../../src/retail/price-file/parse.js";
import type { RetailConfig } from "../../src/retail/price-file/retail-config.js";
import { NO_SHOP } from "../support/no-shop.js";

const CONTRACT_EXAMPLE = `
currency: USD
rates: { USD: "1" }
catalog:
  - tld: .af
    years: { registration: [1, 2, 3], renewal: [1, 2, 3], transfer: [1], restore: [1] }
rules:
  - match: { tld: .af, action: registration, years: 1 }
    markupPercent: "25"
    addFixed: "1.00"
    minMargin: "2.00"
    ending: "0.99"
  - match: {}
    markupPercent: "25"
    step: "0.05"
premium: { markupPercent: "15" }
promotions:
  - { id: nowruz, match: { tld: .af, action: registration }, percentOff: "10", from: 2026-03-20T00:00:00Z, to: 2026-03-27T04:30:00+04:30 }
`;

function configOf(yaml: string): RetailConfig {
  const result = parseRetailConfig(yaml);
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return result.config;
}

function faultsOf(yaml: string): readonly string[] {
  const result = parseRetailConfig(yaml);
  return result.ok ? [] : result.faults;
}

/** The faults of a valid config after these replacements. */
function changed(...replacements: readonly (readonly [string, string])[]): readonly string[] {
  let yaml = CONTRACT_EXAMPLE;
  for (const [from, to] of replacements) {
    if (!yaml.includes(from)) throw new Error(`nothing to replace: ${from}`);
    yaml = yaml.replace(from, to);
  }
  return faultsOf(yaml);
}

describe("a valid config", () => {
  test("as in the contract is read completely and can't be modified", () => {
    const config = configOf(CONTRACT_EXAMPLE);
    expect(config).toEqual({
      currency: "USD",
      rates: { USD: "1" },
      catalog: [
        {
          tld: ".af",
          scripts: ["latin", "arabic"],
          years: { registration: [1, 2, 3], renewal: [1, 2, 3], transfer: [1], restore: [1] },
        },
      ],
      rules: [
        {
          match: { tld: ".af", action: "registration", years: 1 },
          markupPercent: "25",
          addFixed: "1.00",
          minMargin: "2.00",
          ending: "0.99",
        },
        { match: {}, markupPercent: "25", addFixed: "0", minMargin: "0", step: "0.05" },
      ],
      premium: { markupPercent: "15", addFixed: "0", minMargin: "0" },
      promotions: [
        {
          id: "nowruz",
          match: { tld: ".af", action: "registration" },
          percentOff: "10",
          fromMs: Date.UTC(2026, 2, 20),
          toMs: Date.UTC(2026, 2, 27),
        },
      ],
      promise: { validMs: 900_000 },
      suggestions: null,
      shop: NO_SHOP,
    });
    expect(Object.isFrozen(config.rules[0]?.match)).toBe(true);
  });

  test("is shipped with the project", () => {
    const shipped = readFileSync(new URL("../../config/retail.yaml", import.meta.url), "utf8");
    expect(createRetailPolicy(configOf(shipped)).soldTlds).toContain(".af");
  });

  test("needs no rates, premium rule or promotions", () => {
    const config = configOf(`
currency: AFN
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, addFixed: "5" }]
`);
    expect(config).toMatchObject({ rates: {}, premium: null, promotions: [] });
  });
});

describe("the shop", () => {
  const withShop = (shop: string): string => `${CONTRACT_EXAMPLE}shop: ${shop}\n`;

  test("can have a name for all languages or one for each, a logo, a contact and links", () => {
    expect(configOf(withShop('{ name: Names, contact: { phone: "+93 20 000" } }')).shop).toMatchObject({
      name: { en: "Names", fa: "Names", ps: "Names" },
      phone: "+93 20 000",
      email: null,
    });
    const own = "name: { en: Names, fa: نام‌ها, ps: نومونه }, logo: /logo.svg";
    const more = "contact: { email: a@b.af }, links: { terms: https://b.af/terms?x=1, privacy: /privacy }";
    expect(configOf(withShop(`{ ${own}, ${more} }`)).shop).toEqual({
      name: { en: "Names", fa: "نام‌ها", ps: "نومونه" },
      logo: "/logo.svg",
      email: "a@b.af",
      phone: null,
      terms: "https://b.af/terms?x=1",
      privacy: "/privacy",
      restoreIncludesRenewal: null,
    });
    expect(configOf(withShop("{}")).shop).toEqual(configOf(CONTRACT_EXAMPLE).shop);
  });

  const address = "must be an https URL, or a path on the same host such as /terms";
  test.each([
    ['{ name: "" }', "shop.name: must be 1 to 60 characters on one line"],
    ["{ name: { en: Names, fa: نام‌ها } }", "shop.name.ps: is missing"],
    ["{ logo: 'javascript:alert(1)' }", `shop.logo: ${address}`],
    ["{ logo: //cdn.af/x.svg }", `shop.logo: ${address}`],
    ["{ links: { terms: 'https://b.af; img-src *' } }", `shop.links.terms: ${address}`],
    ["{ contact: { email: help } }", "shop.contact.email: must be an e-mail address"],
  ])("written as %s is a fault", (shop, fault) => {
    expect(parseRetailConfig(withShop(shop))).toEqual({ ok: false, faults: [fault] });
  });
});

/** The config with these suggestions. */
function withSuggestions(suggestions: string): string {
  return `${CONTRACT_EXAMPLE}suggestions: ${suggestions}\n`;
}

test("suggestions are prefixes and suffixes in any script, six per search by default", () => {
  expect(configOf(withSuggestions("{ prefixes: [my], suffixes: [-af, آنلاین] }")).suggestions).toEqual({
    prefixes: ["my"],
    suffixes: ["-af", "آنلاین"],
    most: 6,
  });
  expect(configOf(withSuggestions("{ suffixes: [shop], most: 2 }")).suggestions).toEqual({
    prefixes: [],
    suffixes: ["shop"],
    most: 2,
  });
  expect(configOf(withSuggestions("")).suggestions).toBeNull();
});

test.each([
  ["{ prefixes: my }", "suggestions.prefixes: must be a list"],
  ["{ prefixes: [-my] }", "suggestions.prefixes[0]: doesn't form a valid name"],
  ['{ suffixes: [""] }', "suggestions.suffixes[0]: doesn't form a valid name"],
  [`{ suffixes: [${"x,".repeat(21)}] }`, "suggestions.suffixes: may list at most 20"],
  ["{ most: 21 }", "suggestions.most: must be at most 20"],
])("suggestions written as %s are a fault", (suggestions, fault) => {
  const faults = faultsOf(withSuggestions(suggestions));
  expect([faults.length, faults[0]]).toEqual([1, expect.stringContaining(fault)]);
});

describe("a fault", () => {
  test.each<[string, string, string]>([
    [
      'markupPercent: "25"',
      "markupPercent: 25",
      "rules[0].markupPercent: is a bare number; put it in quotes",
    ],
    ['markupPercent: "25"', 'markupPercent: "-25"', "rules[0].markupPercent: must not be negative"],
    ['markupPercent: "25"', 'markupPercent: "1000.01"', "rules[0].markupPercent: is too high"],
    ['minMargin: "2.00"', 'minMargn: "2.00"', "rules[0].minMargn: is an unknown key"],
    ['ending: "0.99"', 'ending: "0.99"\n    step: "1"', "rules[0]: has both ending and step"],
    ['step: "0.05"', 'step: "0"', "rules[1].step: must be more than 0"],
    ["match: {}", "match: { action: sell }", "rules[1].match.action: must be one of registration, renewal"],
    ['USD: "1"', 'USD: "0.5"', 'rates.USD: must be "1", because prices are shown in this currency'],
    ['USD: "1"', 'USX: "1"', "rates.USX: must be an ISO 4217 currency code"],
    ["currency: USD", "currency: usd", "currency: must be an ISO 4217 currency code"],
    ["currency: USD", "", "currency: is missing"],
    ["currency: USD", "currency: USD # \uFFFD", "the file: isn't written in UTF-8"],
    ["currency: USD", "currency: USD\ncurrency: USD", "the file: Map keys must be unique at line"],
    ["registration: [1, 2, 3]", "registration: []", "catalog[0].years.registration: must list at least one"],
    ["registration: [1, 2, 3]", "registration: [11]", "catalog[0].years.registration[0]: must be at most 10"],
    ["registration: [1, 2, 3]", 'registration: ["1"]', "catalog[0].years.registration[0]: must be a whole"],
    ["catalog:", "catalog:\n  - { tld: .af, years: { renewal: [1] } }", "catalog[1].tld: appears twice"],
    ["catalog:", "catalog:\n  - { tld: .com.af, years: {} }", "catalog[0].years: sells nothing"],
    ['premium: { markupPercent: "15" }', "premium: {}", "premium: adds nothing to the wholesale price"],
    ['percentOff: "10"', 'percentOff: "100.1"', "promotions[0].percentOff: is too high: at most 100"],
    ["from: 2026-03-20T00:00:00Z", "from: 2026-03-27T00:00:00Z", "promotions[0]: must end after it begins"],
    ["from: 2026-03-20T00:00:00Z", "from: 2026-02-30T00:00:00Z", "promotions[0].from: must be an RFC 3339"],
    ["from: 2026-03-20T00:00:00Z, ", "", "promotions[0].from: is missing"],
  ])("in %j written as %j is reported", (from, to, fault) => {
    const faults = changed([from, to]);
    expect(faults).toContainEqual(expect.stringContaining(fault));
    expect(faults).toHaveLength(1);
  });

  test("that causes others is reported first", () => {
    expect(changed(["match: {}", "match: { tld: .de }"])[0]).toBe(
      "rules[1].match.tld: is not in the catalog",
    );
    for (const tld of ["af", ".AF"]) {
      expect(changed(["- tld: .af", `- tld: ${tld}`])).toEqual([
        'catalog[0].tld: must be a TLD with a leading dot, such as ".af"',
        "rules[0].match.tld: is not in the catalog",
        "promotions[0].match.tld: is not in the catalog",
      ]);
    }
  });

  test("is reported for each combination that is sold without a rule", () => {
    expect(changed(["match: {}", "match: { action: renewal }"])).toEqual([
      "rules: no rule matches .af registration for 2 year(s)",
      "rules: no rule matches .af registration for 3 year(s)",
      "rules: no rule matches .af transfer for 1 year(s)",
      "rules: no rule matches .af restore for 1 year(s)",
    ]);
  });

  test("is reported for a second promotion with the same id", () => {
    const [line = ""] = CONTRACT_EXAMPLE.match(/ {2}- \{ id.*\n/) ?? [];
    expect(faultsOf(CONTRACT_EXAMPLE + line)).toEqual(["promotions[1].id: appears twice"]);
  });

  test("is reported for amounts in cents if the currency has none", () => {
    const faults = changed(["currency: USD", "currency: JPY"]);
    expect(faults).toEqual([
      "rules[0].ending: has more fraction digits than the currency, which has 0",
      "rules[1].step: has more fraction digits than the currency, which has 0",
    ]);
  });

  test("doesn't hide another one", () => {
    expect(
      changed(
        ["currency: USD", "currency: DOLLAR"],
        ['USD: "1"', "USD: 1.5"],
        ["registration: [1, 2, 3]", "registration: [1.5, 1, 1]"],
        ['markupPercent: "25"', "markupPercent: 25"],
        ['addFixed: "1.00"', 'addFixed: "one"'],
        ["match: {}", "match: { tld: .de, action: sell }"],
        ['premium: { markupPercent: "15" }', "premium: { markup: '15' }"],
        ['percentOff: "10"', "percentOff: 10"],
        ["to: 2026-03-27T04:30:00+04:30", "to: 2026-03-19T00:00:00Z"],
      ).map((fault) => fault.split(":")[0]),
    ).toEqual([
      "currency",
      "rates.USD",
      "catalog[0].years.registration[0]",
      "catalog[0].years.registration",
      "rules[0].markupPercent",
      "rules[0].addFixed",
      "rules[1].match.action",
      "rules[1].match.tld",
      "premium.markup",
      "premium",
      "promotions[0].percentOff",
      "promotions[0]",
    ]);
  });

  test.each(["", "[]", "a: [", "a: *x"])("is reported for a file such as %j", (yaml) => {
    const faults = faultsOf(yaml);
    expect(faults.length).toBeGreaterThan(0);
    for (const fault of faults) expect(fault).not.toContain("\n");
  });

  test("is reported once per missing part if everything is missing", () => {
    expect(faultsOf("{}")).toEqual(["currency: is missing", "catalog: is missing", "rules: is missing"]);
  });
});

test("a rule without a match applies to everything", () => {
  expect(changed(["match: {}\n    mark", "mark"])).toEqual([]);
});
