/** Which labels IDNA 2008 permits (RFC 5892), with its own examples and contexts. UTS 46 alone would permit more. */
import { describe, expect, test } from "@jest/globals";
import { nameOf, parseDomainName, parseSearchTerm } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import { forbiddenIn } from "../../src/idna2008.js";

function reasonFor(text: string): string | undefined {
  try {
    parseSearchTerm(text, [".af"], "q");
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return error.errors[0]?.message;
  }
}

describe("a label", () => {
  test.each([["kabul-2"], ["کابل"], ["می‌خواهم"], ["straße"], ["日本語"], ["col·lecció"], ["א׳"], ["۱۲۳"]])(
    "of letters, digits, marks and characters that their context permits is accepted: %s",
    (label) => {
      expect(forbiddenIn(label)).toBeNull();
    },
  );

  test.each([
    ["😀", "😀"],
    ["i♥kabul", "♥"],
    ["a·b", "·"],
    ["a׳", "׳"],
    ["a・b", "・"],
    ["٣۳", "٣"],
    ["کـابل", "ـ"],
    ["ᄀ", "ᄀ"],
    ["a⃝", "⃝"],
  ])(
    "with a character that is forbidden, or forbidden in its context, is refused: %s",
    (label, character) => {
      expect(forbiddenIn(label)).toBe(character);
    },
  );
});

describe("a visitor who types", () => {
  test.each([
    ["😀", "contains “😀”, which domain names can't have"],
    ["i❤kabul.af", "contains “❤”, which domain names can't have"],
    ["xn--e28h.af", "contains “😀”, which domain names can't have"],
    ["a⃝b", "contains U+20DD, which domain names can't have"],
  ])("%s learns which character can't be used", (text, reason) => {
    expect(reasonFor(text)).toBe(reason);
  });

  test("a name in Dari, Pashto or German gets that name", () => {
    expect(parseDomainName("افغانستان.af", [".af"], "domain").unicode).toBe("افغانستان.af");
    expect(parseDomainName("پښتو.af", [".af"], "domain").unicode).toBe("پښتو.af");
    expect(parseDomainName("straße.af", [".af"], "domain").unicode).toBe("straße.af");
  });
});

test("a variant of a name never contains a forbidden character", () => {
  expect(nameOf("shop😀", ".af")).toBeNull();
  expect(nameOf("shopä", ".af")?.unicode).toBe("shopä.af");
});
