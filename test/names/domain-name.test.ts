/** What counts as a domain name, its canonical form, and the reasons for refusals. */
import { describe, expect, test } from "@jest/globals";
import {
  canonicalHost,
  type DomainName,
  domainNameUnder,
  parseDomainName,
  parseSearchTerm,
} from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";

const SOLD = [".af", ".com.af"];

function parse(text: string, sold: readonly string[] = SOLD): DomainName {
  return parseDomainName(text, sold, "domain");
}

function refusal(text: string, sold: readonly string[] = SOLD): string {
  try {
    parse(text, sold);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "invalid_request") {
      expect(error.errors).toHaveLength(1);
      expect(error.errors[0]?.field).toBe("domain");
      return error.errors[0]?.message ?? "";
    }
    throw error;
  }
  return "accepted";
}

describe("a name that a person writes or pastes", () => {
  test.each([
    ["kabul.af"],
    ["KABUL.AF"],
    ["  kabul.af\n"],
    ["\u200Fkabul.af\u200E"],
    ["kabul.af."],
    ["www.kabul.af"],
    ["https://kabul.af"],
    ["http://www.kabul.af/path/page.html?q=a.b@c#top"],
    ["ftp://user:secret@kabul.af:2121/file"],
    ["kabul.af/shop.html"],
    ["kabul.af:8443"],
    ["kabul．af｡"],
    ["ｋａｂｕｌ．ａｆ"],
    ["ka\u00ADbul.af"],
  ])("such as %j is kabul.af", (text) => {
    expect(parse(text)).toMatchObject({
      ascii: "kabul.af",
      unicode: "kabul.af",
      label: "kabul",
      tld: ".af",
    });
  });

  test("has the longest TLD sold that matches", () => {
    expect(parse("kabul.com.af")).toMatchObject({ label: "kabul", tld: ".com.af", ascii: "kabul.com.af" });
    expect(parse("www.kabul.com.af")).toMatchObject({ label: "kabul", tld: ".com.af" });
  });

  test("in Unicode becomes A-labels and keeps its readable form", () => {
    expect(parse("کابل.af")).toMatchObject({ ascii: "xn--mgbc8fxs.af", unicode: "کابل.af" });
    expect(parse("Bücher.af")).toMatchObject({ ascii: "xn--bcher-kva.af", unicode: "bücher.af" });
    expect(parse("straße.af").ascii).toBe("xn--strae-oqa.af");
    expect(parse("XN--BCHER-KVA.AF").unicode).toBe("bücher.af");
  });

  test("can be www itself, directly before the TLD", () => {
    expect(parse("www.af")).toMatchObject({ label: "www", tld: ".af" });
    expect(parse("www.www.af")).toMatchObject({ label: "www", tld: ".af" });
    expect(parse("www.com.af")).toMatchObject({ label: "www", tld: ".com.af" });
  });

  test("can't be modified after it has been parsed", () => {
    expect(Object.isFrozen(parse("kabul.af"))).toBe(true);
  });
});

describe("an invalid name", () => {
  test.each([
    ["", /is empty/],
    [".", /is empty/],
    ["af", /only an ending/],
    ["com.af", /only an ending/],
    ["https://www.gov.af/", /isn't sold/],
    ["kabul", /needs an ending.*\.af, \.com\.af/],
    ["kabul.uk", /isn't sold here/],
    ["kabul.gov.af", /isn't sold here/],
    ["shop.kabul.af", /one name directly before/],
    ["www.shop.kabul.af", /one name directly before/],
    ["info@kabul.af", /e-mail/],
    ["kabul..af", /two dots/],
    ["-kabul.af", /hyphen/],
    ["ka--bul.af", /hyphen/],
    ["ka bul.af", /^contains U\+0020, which domain names can't have$/],
    ["ka_bul.af", /^contains “_”, which domain names can't have$/],
    ["kabul.af\\x", /^contains “\\”, /],
    ["ﷺ.af", /^contains “ﷺ”, /],
    ["پښتو\u200Cنخوا.af", /^contains U\+200C, which is invisible and isn't possible in this place$/],
    ["کابل\u200C.af", /^contains U\+200C, which is invisible/],
    ["123کابل.af", /mixes writing directions, or a name from right to left starts with a digit/],
    ["kabulکابل.af", /mixes writing directions/],
    ["xn--a.af", /isn't a valid domain name/],
    ["kabul／x.af", /^contains “／”, /],
    ["\uD800.af", /^contains U\+D800, /],
    ["https://[::1]/", /^contains “\[”, /],
  ])("such as %j is refused with a reason", (text, reason) => {
    expect(refusal(text)).toMatch(reason);
  });

  test("that is too long is refused for that reason, before it is parsed", () => {
    const [label, spaces] = ["k".repeat(64), " ".repeat(3000)];
    for (const text of [
      `${label}.af`,
      `${label.repeat(4)}.af`,
      "k".repeat(3000),
      `${spaces}kabul.af`,
      "k".repeat(1e6),
    ]) {
      expect(refusal(text)).toMatch(/too long/);
    }
    expect(parse(`${label.slice(1)}.af`).label).toHaveLength(63);
  });

  test("under a TLD that isn't sold isn't taken for a subdomain under one that is", () => {
    expect(refusal("kabul.com.af", [".af"])).toMatch(/isn't sold here/);
    expect(refusal("www.com.af", [".af"])).toMatch(/isn't sold here/);
    expect(refusal("kabul.af", [".com.af"])).toMatch(/isn't sold here/);
  });

  test("with a disguised host before or after an @ is refused", () => {
    expect(refusal("https://kabul.af@evil.example/")).toMatch(/isn't sold/);
    expect(refusal("https://evil.example\\@kabul.af/")).toMatch(/isn't a valid/);
    expect(refusal("https://kabul.af\\@evil.example/")).toMatch(/isn't a valid/);
    expect(refusal("https://a@b@kabul.af/")).toMatch(/isn't a valid/);
  });

  test("is refused with a reason that never repeats what was sent", () => {
    expect(refusal("<script>alert(1)</script>.af")).not.toMatch(/script|alert/);
    expect(refusal("evil-text.example")).not.toContain("evil-text");
  });
});

describe("case folding", () => {
  test("turns KELVIN SIGN into k by the UTS 46 table, and in no other way", () => {
    expect(parse("\u212Aabul.af").ascii).toBe("kabul.af");
    // The A-label that encodes KELVIN SIGN itself isn't its UTS 46 form, so it is invalid.
    expect(refusal("xn--abul-ue8a.af")).toMatch(/isn't a valid/);
    expect(refusal("\u212Aabul://kabul.af")).not.toBe("accepted");
  });

  test("keeps the dot of a dotted capital I, which a mapping before UTS 46 would lose", () => {
    expect(parse("\u0130x.af").ascii).toBe(parse("i\u0307x.af").ascii);
    expect(parse("\u0130x.af").ascii).not.toBe("ix.af");
  });
});

const search = (text: string) => parseSearchTerm(text, SOLD, "q");

describe("a search term", () => {
  test("can be a bare label in any case and script", () => {
    expect(search(" Kabul ")).toEqual({ label: "kabul", exact: null });
    expect(search("کابل")).toEqual({ label: "xn--mgbc8fxs", exact: null });
    expect(search("com")).toEqual({ label: "com", exact: null });
    expect(search("kabul.")).toEqual({ label: "kabul", exact: null });
  });

  test("can be the beginning of a name with `www.`, as while it is typed", () => {
    expect(search("www.kabul")).toEqual({ label: "kabul", exact: null });
    expect(search("WWW.کابل")).toEqual({ label: "xn--mgbc8fxs", exact: null });
    expect(search("www.af").exact).toMatchObject({ ascii: "www.af" });
    expect(() => search("www.kabul.com")).toThrow(/isn't sold here/);
  });

  test("that is a whole name gives the exact name and its label", () => {
    const term = search("https://www.kabul.com.af/x");
    expect(term.label).toBe("kabul");
    expect(term.exact).toMatchObject({ ascii: "kabul.com.af" });
  });

  test.each([
    "",
    "ka bul",
    "-kabul",
    "kabul.uk",
    "shop.kabul.af",
    "https://kabul",
    "kabul/x",
    "k".repeat(64),
  ])("such as %j is refused", (text) => {
    expect(() => search(text)).toThrow(ServiceError);
  });
});

describe("a label under a TLD", () => {
  test("gives the same name as parsing both together", () => {
    expect(domainNameUnder("kabul", ".com.af")).toEqual(parse("kabul.com.af"));
    expect(domainNameUnder("xn--mgbc8fxs", ".af")).toEqual(parse("کابل.af"));
  });

  test("gives null if both together aren't a valid name", () => {
    const longTld = `.${"t".repeat(63)}`.repeat(3);
    expect(domainNameUnder("k".repeat(61), longTld)?.ascii).toHaveLength(253);
    expect(domainNameUnder("k".repeat(62), longTld)).toBeNull();
    expect(domainNameUnder("com", ".af")).toBeNull();
    expect(domainNameUnder("", ".af")).toBeNull();
    expect(domainNameUnder("shop.kabul", ".af")).toBeNull();
    expect(domainNameUnder("Kabul", ".af")).toBeNull();
    expect(domainNameUnder("../x", ".af")).toBeNull();
  });
});

describe("a host name that the upstream sends", () => {
  test.each([
    ["NS1.Kabul.AF.", "ns1.kabul.af"],
    ["kabul.af", "kabul.af"],
    ["ns1.bücher.af", "ns1.xn--bcher-kva.af"],
    ["r3---sn.example.net", "r3---sn.example.net"],
    [" ns1.kabul.af ", "ns1.kabul.af"],
  ])("such as %j becomes %j", (text, host) => {
    expect(canonicalHost(text)).toBe(host);
  });

  test.each(["", ".", "kabul", "192.0.2.1", "-a.af", "a-.af", "a..af", "a b.af", "a/b.af"])(
    "such as %j is rejected",
    (text) => {
      expect(canonicalHost(text)).toBeNull();
    },
  );
});
