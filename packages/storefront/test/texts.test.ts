/** The storefront's logic that needs no browser: interpreting what people type, and exact amounts. */
import { describe, expect, test } from "@jest/globals";
import { type ProblemCode, StorefrontProblem } from "../../client/src/client.js";
import { parseSearchTerm } from "../../../src/domain-name.js";
import { ServiceError } from "../../../src/errors.js";
import { perYear, sumOf } from "../src/money.js";
import { meaningOf, rowsFor } from "../src/embed/query.js";
import { en } from "../src/embed/texts/en.js";
import { fa } from "../src/embed/texts/fa.js";
import { ps } from "../src/embed/texts/ps.js";
import { wordsFor } from "../src/embed/texts/texts.js";

const SOLD = [".af", ".com.af", ".net.af", ".org.af"];
const name = (q: string, ...offers: string[]) => ({ kind: "name", q, offers });
const list = (names: string[], leftOut = 0) => ({ kind: "list", names, leftOut });

describe("what people type", () => {
  test.each([
    ["", { kind: "none" }],
    [" ,\n; ", { kind: "none" }],
    ["kabul", name("kabul")],
    ["KABUL.AF", name("KABUL.AF")],
    ["https://www.kabul.com.af/shop", name("https://www.kabul.com.af/shop")],
    [" my \u00A0shop ", name("myshop", "my-shop")],
    ["kabul.com", name("kabul.com", "kabul.af")],
    ["https://www.kabul.co.uk/x?y=1", name("https://www.kabul.co.uk/x?y=1", "kabul.af")],
    ["https://kabul.com:8080/", name("https://kabul.com:8080/", "kabul.af")],
    ["shop@kabul.com", name("shop@kabul.com")],
    ["kabul. af", name("kabul.af")],
    ["kabul - herat", name("kabul-herat")],
    ["10.0.0.1", name("10.0.0.1", "10.af")],
    ["Green tea. ", name("Greentea.", "Green-tea")],
    ["\u200Fکابل\u200F.af", name("کابل.af")],
    ["\u200Cکابل\u200C", name("کابل")],
    ["می\u200Cخواهم", name("می\u200Cخواهم", "میخواهم")],
    ["علي", name("علي", "علی")],
    ["KABUL۲۴", name("KABUL۲۴", "kabul24")],
    ["٢٤٧", name("٢٤٧", "247")],
    ["کابل٢٤", name("کابل٢٤", "کابل۲۴")],
    ["کابل24", name("کابل24")],
    ["شركت من", name("شركتمن", "شركت-من", "شرکتمن")],
    ["https://كابل.af/", name("https://كابل.af/", "کابل.af")],
    ["kabul, herat", list(["kabul.af", "herat.af"])],
    ["kabul\nherat.com.af\r\n\r\nbalkh", list(["kabul.af", "herat.com.af", "balkh.af"])],
    ["کابل، هرات؛ بلخ", list(["کابل.af", "هرات.af", "بلخ.af"])],
    ["a.af b.com.af\tc.af", list(["a.af", "b.com.af", "c.af"])],
    ["Kabul, kabul.af, KABUL", list(["kabul.af"])],
    ["my shop, your shop", list(["myshop.af", "yourshop.af"])],
    [
      Array.from({ length: 25 }, (_, at) => `n${at}`).join(","),
      list(
        Array.from({ length: 20 }, (_, at) => `n${at}.af`),
        5,
      ),
    ],
  ])("is interpreted correctly: %j", (text, meaning) => {
    expect(meaningOf(text, SOLD)).toEqual(meaning);
  });

  test("leads to no offers before the TLDs sold are known", () => {
    expect(meaningOf("kabul.com", [])).toEqual(name("kabul.com"));
  });

  test.each([
    ["kabul", "kabul", SOLD],
    ["https://www.kabul.org.af/x", "kabul", [".org.af", ".af", ".com.af", ".net.af"]],
    ["KABUL.af", "kabul", SOLD],
    ["kabul.org.af:443", "kabul", [".org.af", ".af", ".com.af", ".net.af"]],
    ["https://me:secret@kabul.org.af/", "kabul", [".org.af", ".af", ".com.af", ".net.af"]],
  ])("gets a row for each TLD, the exact one first: %j", (q, label, tlds) => {
    expect(rowsFor(q, SOLD)).toEqual({ label, tlds });
  });
});

describe("the refusal of a name", () => {
  function refusal(text: string, sold: readonly string[]): ServiceError {
    try {
      parseSearchTerm(text, sold, "q");
    } catch (error) {
      if (error instanceof ServiceError) return error;
    }
    throw new Error(`${text} was not refused`);
  }

  test.each([
    ["https://", en.reasons.required],
    ["a".repeat(64), en.reasons.too_long],
    ["kab_ul", en.reasons.character],
    ["kabulکابل", en.reasons.script],
    ["کار\u200Cها", en.reasons.script],
    ["-kabul", en.reasons.not_a_name(SOLD.join(", "))],
    ["com.af", en.reasons.not_a_name(SOLD.join(", "))],
    ["kabul.com", en.reasons.not_sold(SOLD.join(", "))],
    ["a.b.af", en.reasons.not_a_name(SOLD.join(", "))],
    ["shop@kabul.af", en.reasons.not_a_name(SOLD.join(", "))],
    ["kabul.af", en.reasons.not_sold(""), []],
  ])("has a reason in each language: %s", (text, reason, sold: readonly string[] = SOLD) => {
    const { code, detail, errors } = refusal(text, sold);
    const problem = new StorefrontProblem(code, detail, { errors });
    const reasons = [en, fa, ps].map((texts) => wordsFor(texts, problem, sold));
    expect(reasons[0]).toBe(reason);
    expect(new Set(reasons).size).toBe(3);
  });
});

test("what is wrong, and what to do about it, depends on how long it takes and on who answered", () => {
  const [busy, lost] = ["The shop is busy right now.", "The connection was lost."];
  const words = (code: ProblemCode, facts: object) =>
    wordsFor(en, new StorefrontProblem(code, "", facts), SOLD);
  expect(words("quota_exhausted", { retryAfter: 24 })).toBe(`${busy} Try again in a minute.`);
  expect(words("quota_exhausted", { retryAfter: 240 })).toBe(`${busy} Try again in a few minutes.`);
  expect(words("unreachable", {})).toBe(`${lost} Check your connection and try again.`);
  // A proxy's page while the service restarts isn't blamed on the visitor's connection.
  const proxy = words("unreachable", { status: 502 });
  expect(proxy).toBe("Something went wrong on our side. Try again in a minute.");
});

describe("amounts", () => {
  const usd = (amount: string) => ({ amount, currency: "USD" });

  test.each([
    ["48.99", 2, "24.50"],
    ["70.99", 3, "23.67"],
    ["0.01", 3, "0.01"],
    ["0.00", 2, "0.00"],
    ["90071992547409.93", 1, "90071992547409.93"],
    ["100", 3, "34"],
  ])("are divided by years and rounded up: %s for %i years is %s a year", (amount, years, each) => {
    expect(perYear(usd(amount), years)).toEqual(usd(each));
  });

  test("are added up exactly and separately for each currency", () => {
    const afn = { amount: "1500", currency: "AFN" };
    expect(sumOf([usd("0.10"), usd("0.20"), afn, usd("26.99"), afn])).toEqual([
      usd("27.29"),
      { amount: "3000", currency: "AFN" },
    ]);
    expect(sumOf([])).toEqual([]);
  });
});
