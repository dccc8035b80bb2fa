/** Whether a name is ordinary or premium, and what it costs, by what the upstream has said; or what must be asked first. */
import { describe, expect, test } from "@jest/globals";
import { parseWholesale, type Wholesale } from "../../src/money.js";
import {
  type Checked,
  decide,
  type Decision,
  type Evidence,
  type Quoted,
} from "../../src/retail/decide-kind.js";

function usd(amount: string): Wholesale {
  const price = parseWholesale(amount, "USD");
  if (price === null) throw new Error(`${amount} isn't a price`);
  return price;
}

type Times = Partial<Pick<Checked, "askedAt" | "answeredAt" | "sameSince" | "isCurrent" | "sign">>;

/** Asked and answered at these stamps; the same since its answer, unless something else is said. */
function seen(amount: string, askedAt: number, more: Times = {}): Checked {
  const answeredAt = more.answeredAt ?? askedAt + 1;
  return {
    wholesale: usd(amount),
    askedAt,
    answeredAt,
    sameSince: answeredAt,
    isCurrent: true,
    sign: undefined,
    ...more,
  };
}

type ByTerm<T> = Readonly<Record<number, T>>;

function decided(
  years: number,
  checks: ByTerm<Checked>,
  quotes: ByTerm<Quoted>,
  more: Partial<Evidence> = {},
): Decision {
  return decide({
    years,
    check: (term) => checks[term],
    quote: (term) => quotes[term],
    last: undefined,
    otherYears: years === 1 ? 2 : 1,
    currentSince: 0,
    checkedSince: -Infinity,
    quotedSince: -Infinity,
    ...more,
  });
}

const ordinary = (amount: string, needsQuote = false): Decision => ({
  kind: "priced",
  nameKind: "ordinary",
  wholesale: usd(amount),
  needsQuote,
});
const premium = (amount: string): Decision => ({
  kind: "priced",
  nameKind: "premium",
  wholesale: usd(amount),
  needsQuote: true,
});
const asks = (what: "check" | "quote", years = 1) => ({ kind: "ask", what, years });

describe("a name for one year", () => {
  test.each<[string, Checked, Quoted | undefined, object]>([
    ["without a quote", seen("20.00", 10), undefined, asks("quote")],
    ["with the price of a current quote", seen("20.00", 10), seen("20.00", 5), ordinary("20.00")],
    [
      "whose check is older than the last change, but has the price of the quote that showed it",
      seen("20.00", 1, { isCurrent: false }),
      seen("20.00", 5),
      ordinary("20.00"),
    ],
    [
      "with the price of an outdated quote",
      seen("20.00", 10),
      seen("20.00", 5, { isCurrent: false }),
      asks("quote"),
    ],
    [
      "with another price than an earlier quote",
      seen("90.00", 10),
      seen("20.00", 5),
      { ...asks("quote"), isContested: true },
    ],
    ["with another price than a later quote", seen("90.00", 10), seen("20.00", 15), asks("check")],
    [
      "whose outdated check differs from the quote",
      seen("90.00", 1, { isCurrent: false }),
      seen("20.00", 5),
      asks("check"),
    ],
    [
      "whose outdated check lies between two equal quotes",
      seen("90.00", 10, { isCurrent: false }),
      seen("20.00", 15, { sameSince: 5 }),
      asks("check"),
    ],
    [
      "whose check lies between two equal quotes",
      seen("90.00", 10),
      seen("20.00", 15, { sameSince: 5 }),
      premium("90.00"),
    ],
    [
      "whose check overlaps the second of two equal quotes",
      seen("90.00", 10, { answeredAt: 16 }),
      seen("20.00", 15, { sameSince: 5 }),
      asks("quote"),
    ],
    [
      "two of whose checks with one price have a quote between them",
      seen("90.00", 20, { sameSince: 5 }),
      seen("20.00", 10),
      premium("90.00"),
    ],
    [
      "the same, but that was the ordinary price before the quote changed",
      seen("90.00", 20, { sameSince: 5 }),
      { ...seen("20.00", 10), changed: { from: usd("90.00"), atMs: 0 } },
      asks("quote"),
    ],
  ])("%s", (_when, check, quote, expected) => {
    expect(decided(1, { 1: check }, quote ? { 1: quote } : {})).toMatchObject(expected);
  });

  test("has no price if the currencies differ and neither is old", () => {
    const wholesale = parseWholesale("20.00", "EUR") ?? usd("1.00");
    const quote = { ...seen("20.00", 15, { sameSince: 5 }), wholesale };
    expect(decided(1, { 1: seen("20.00", 10) }, { 1: quote })).toMatchObject({
      kind: "unpriced",
      nameKind: "ordinary",
      why: "currency",
    });
  });

  test("has to be checked first", () => {
    expect(decided(1, {}, { 1: seen("20.00", 5) })).toMatchObject(asks("check"));
  });

  test.each([
    ["flag", "20.00", "premium"],
    ["price", "20.00", "ordinary"],
    ["price", "90.00", "ordinary"],
    ["unclear", "90.00", "premium"],
  ] as const)("has no price beside the sign %s, at %s", (sign, amount, nameKind) => {
    const check = seen(amount, 10, { sign });
    const quote = seen("20.00", 15, { sameSince: 5 });
    expect(decided(1, { 1: check }, { 1: quote })).toEqual({ kind: "unpriced", nameKind, why: "sign" });
  });

  test("is premium at its own price if a flag says so too", () => {
    const check = seen("90.00", 10, { sign: "flag" });
    expect(decided(1, { 1: check }, { 1: seen("20.00", 15, { sameSince: 5 }) })).toEqual(premium("90.00"));
  });

  test("is checked again if a later check, of another term, has shown something else", () => {
    const last = { kind: "premium", askedAt: 12 } as const;
    expect(decided(1, { 1: seen("20.00", 10) }, { 1: seen("20.00", 5) }, { last })).toMatchObject(
      asks("check"),
    );
    const earlier = { kind: "premium", askedAt: 9 } as const;
    const same = { kind: "ordinary", askedAt: 12 } as const;
    for (const other of [earlier, same])
      expect(decided(1, { 1: seen("20.00", 10) }, { 1: seen("20.00", 5) }, { last: other })).toEqual(
        ordinary("20.00"),
      );
    expect(decided(1, { 1: seen("20.00", 10) }, {}, { last })).toMatchObject(asks("quote"));
  });

  test("is signed only by a recent check, and by a recent quote if that says as much", () => {
    const [check, quote] = [seen("90.00", 10), seen("20.00", 15, { sameSince: 5 })];
    expect(decided(1, { 1: check }, { 1: quote }, { checkedSince: 11 })).toMatchObject({
      ...asks("check"),
      since: 11,
    });
    expect(decided(1, { 1: check }, { 1: quote }, { quotedSince: 16 })).toMatchObject({
      ...asks("quote"),
      since: 16,
    });
    expect(decided(1, { 1: seen("20.00", 10) }, { 1: quote }, { quotedSince: 16 })).toEqual(
      ordinary("20.00"),
    );
  });
});

describe("a name for two years", () => {
  const quotes = { 1: seen("20.00", 50, { sameSince: 1 }), 2: seen("38.00", 50, { sameSince: 1 }) };
  test.each<[string, ByTerm<Checked>, object]>([
    ["that is ordinary needs no other check", { 2: seen("38.00", 10) }, ordinary("38.00")],
    [
      "whose check shows the price of one costs what is quoted",
      { 2: seen("20.00", 10) },
      ordinary("38.00", true),
    ],
    [
      "that is premium needs a later check for one year",
      { 2: seen("90.00", 10), 1: seen("50.00", 5) },
      asks("check", 1),
    ],
    ["that is premium needs a check for one year", { 2: seen("90.00", 10) }, asks("check", 1)],
    [
      "that costs more than one is premium at that price",
      { 2: seen("90.00", 10), 1: seen("50.00", 20) },
      premium("90.00"),
    ],
    [
      "that costs no more than one has no price",
      { 2: seen("90.00", 10), 1: seen("90.00", 20) },
      { kind: "unpriced", nameKind: "premium", why: "term" },
    ],
  ])("%s", (_what, checks, expected) => {
    expect(decided(2, checks, quotes)).toMatchObject(expected);
  });

  test("has no price if one year costs another currency", () => {
    const euros = { ...seen("50.00", 20), wholesale: parseWholesale("50.00", "EUR") ?? usd("1.00") };
    expect(decided(2, { 2: seen("90.00", 10), 1: euros }, quotes)).toMatchObject({
      kind: "unpriced",
      why: "term",
    });
  });

  test("whose check shows the price of one needs a recent quote for two", () => {
    const checks = { 2: seen("20.00", 10) };
    expect(decided(2, checks, { 1: quotes[1] })).toMatchObject(asks("quote", 2));
    const old = { ...quotes[2], isCurrent: false };
    expect(decided(2, checks, { 1: quotes[1], 2: old })).toMatchObject(asks("quote", 2));
    expect(decided(2, checks, quotes, { quotedSince: 51 })).toMatchObject({ ...asks("quote", 2), since: 51 });
  });

  test("where one year isn't sold is compared with three", () => {
    const sold = { 2: quotes[2], 3: seen("56.00", 50, { sameSince: 1 }) };
    const of = (three: string) =>
      decided(2, { 2: seen("90.00", 10), 3: seen(three, 20) }, sold, { otherYears: 3 });
    expect(of("110.00")).toEqual(premium("90.00"));
    expect(of("90.00")).toMatchObject({ kind: "unpriced", why: "term" });
    const checks = { 2: seen("56.00", 10), 3: seen("56.00", 20) };
    expect(decided(2, checks, sold, { otherYears: 3 })).toEqual(ordinary("38.00", true));
    expect(decided(2, checks, { 2: sold[2] }, { otherYears: 3 })).toMatchObject(asks("quote", 3));
  });
});
