/** What a checked price and a quote mean together: the verdict in each case, and rules that every verdict follows. */
import { describe, expect, test } from "@jest/globals";
import fc from "fast-check";
import { type Evidence, weigh } from "../../src/cache/facts.js";
import { compareWholesale, sameWholesale, type Wholesale } from "../../src/money.js";
import { type CheckedPrice, judge, type Observed, type Verdict } from "../../src/retail/agreement.js";

const usd = (amount: string): Wholesale => ({ kind: "wholesale", amount, currency: "USD" });

/** Requested at 100 and answered at 110, for the first time. */
const SEEN: Observed = {
  wholesale: usd("17.31"),
  askedMs: 100,
  answeredMs: 110,
  unchangedSinceMs: 110,
  settled: true,
  isTrusted: true,
};

function observed(changes: Partial<Observed> = {}): Observed {
  return { ...SEEN, ...changes };
}

function checked(changes: Partial<CheckedPrice> = {}): CheckedPrice {
  return { ...SEEN, canVouch: true, isKnownPremium: false, ...changes };
}

const OTHER = { wholesale: usd("250.00") };
const BEFORE = { askedMs: 50, answeredMs: 60, unchangedSinceMs: 60 };
const AFTER = { askedMs: 150, answeredMs: 160, unchangedSinceMs: 160 };
/** Last requested at 150, and unchanged since 60. */
const AROUND = { askedMs: 150, answeredMs: 160, unchangedSinceMs: 60 };
const UNSETTLED = { settled: false, unchangedSinceMs: Infinity };
const DOUBTFUL = { isTrusted: false };

interface Case {
  readonly when: string;
  readonly check: CheckedPrice;
  readonly quote: Observed;
  readonly verdict: Verdict;
}

const cases: readonly Case[] = [
  { when: "both name the same price", check: checked(), quote: observed(BEFORE), verdict: "ordinary" },
  {
    when: "a trusted quote names the price of a doubtful check",
    check: checked({ ...DOUBTFUL, canVouch: false }),
    quote: observed(BEFORE),
    verdict: "ordinary",
  },
  {
    when: "a trusted check confirms a doubtful quote",
    check: checked(),
    quote: observed({ ...BEFORE, ...DOUBTFUL }),
    verdict: "ordinary",
  },
  {
    when: "a trusted check agrees with a quote that was doubted after the check",
    check: checked({ canVouch: false }),
    quote: observed({ ...BEFORE, ...DOUBTFUL }),
    verdict: "ask quote",
  },
  {
    when: "both name the same price, and both are doubtful",
    check: checked(DOUBTFUL),
    quote: observed({ ...BEFORE, ...DOUBTFUL }),
    verdict: "ask quote",
  },
  {
    when: "they differ, and the quote is the older one",
    check: checked(OTHER),
    quote: observed(BEFORE),
    verdict: "ask quote",
  },
  {
    when: "they differ, and the check is the older one",
    check: checked(OTHER),
    quote: observed(AFTER),
    verdict: "ask check",
  },
  {
    when: "they differ, and the quote was the same before the check and after it",
    check: checked(OTHER),
    quote: observed(AROUND),
    verdict: "premium",
  },
  {
    when: "they differ, and the quote was the same before the check and after it, though disputed since",
    check: checked(OTHER),
    quote: observed({ ...AROUND, ...DOUBTFUL }),
    verdict: "premium",
  },
  {
    when: "they differ, and the check was the same before the quote and after it",
    check: checked({ ...OTHER, ...AROUND }),
    quote: observed(),
    verdict: "premium",
  },
  {
    when: "they differ, and the quote was first seen while the check was in flight",
    check: checked(OTHER),
    quote: observed({ ...AROUND, unchangedSinceMs: 105 }),
    verdict: "ask check",
  },
  {
    when: "they differ, and the quote was requested again before the check was answered",
    check: checked(OTHER),
    quote: observed({ askedMs: 105, answeredMs: 120, unchangedSinceMs: 60 }),
    verdict: "ask check",
  },
  {
    when: "they differ only in currency, and the quote is the older one",
    check: checked({ wholesale: { ...usd("17.31"), currency: "EUR" } }),
    quote: observed(BEFORE),
    verdict: "ask quote",
  },
  {
    when: "a name known to be premium at its price is checked after the quote",
    check: checked({ ...OTHER, isKnownPremium: true }),
    quote: observed(BEFORE),
    verdict: "premium",
  },
  {
    when: "a name known to be premium differs from a doubtful quote",
    check: checked({ ...OTHER, isKnownPremium: true }),
    quote: observed({ ...BEFORE, ...DOUBTFUL }),
    verdict: "ask quote",
  },
  {
    when: "a name known to be premium has a doubtful check",
    check: checked({ ...OTHER, ...DOUBTFUL, isKnownPremium: true }),
    quote: observed(BEFORE),
    verdict: "ask check",
  },
  {
    when: "a name known to be premium is checked at the quote's price",
    check: checked({ isKnownPremium: true }),
    quote: observed(BEFORE),
    verdict: "ordinary",
  },
  {
    when: "they differ, and the quote is doubtful, though newer",
    check: checked(OTHER),
    quote: observed({ ...AFTER, ...DOUBTFUL }),
    verdict: "ask quote",
  },
  {
    when: "they differ, and the check is doubtful, though newer",
    check: checked({ ...OTHER, ...DOUBTFUL }),
    quote: observed(BEFORE),
    verdict: "ask check",
  },
  {
    when: "they differ, and both are doubtful",
    check: checked({ ...OTHER, ...DOUBTFUL }),
    quote: observed({ ...AROUND, ...DOUBTFUL }),
    verdict: "ask quote",
  },
  {
    when: "answers to the check contradict each other",
    check: checked({ ...OTHER, ...UNSETTLED, isKnownPremium: true }),
    quote: observed(AROUND),
    verdict: "ask check",
  },
  {
    when: "answers to the check contradict each other, and the held one has the quote's price",
    check: checked(UNSETTLED),
    quote: observed(AROUND),
    verdict: "ask check",
  },
  {
    when: "quotes contradict each other, and the held one has the check's price",
    check: checked(),
    quote: observed({ ...BEFORE, ...UNSETTLED, ...DOUBTFUL }),
    verdict: "ask quote",
  },
  {
    when: "quotes contradict each other, and the name is known to be premium",
    check: checked({ ...OTHER, isKnownPremium: true }),
    quote: observed({ ...AFTER, ...UNSETTLED }),
    verdict: "ask quote",
  },
];

test.each(cases)("when $when: $verdict", ({ check, quote, verdict }) => {
  expect(judge(check, quote)).toBe(verdict);
});

const wholesale = fc.constantFrom(usd("17.31"), usd("22.50"), { ...usd("17.31"), currency: "EUR" });

const observation = fc
  .record({
    wholesale,
    askedMs: fc.integer({ min: 0, max: 100 }),
    tookMs: fc.integer({ min: 1, max: 30 }),
    ranMs: fc.integer({ min: 0, max: 100 }),
    settled: fc.boolean(),
    isTrusted: fc.boolean(),
  })
  .map(({ askedMs, tookMs, ranMs, settled, isTrusted, wholesale: price }): Observed => {
    const answeredMs = askedMs + tookMs;
    const unchangedSinceMs = settled ? answeredMs - ranMs : Infinity;
    return { wholesale: price, askedMs, answeredMs, unchangedSinceMs, settled, isTrusted };
  });

const check = fc
  .record({ seen: observation, canVouch: fc.boolean(), isKnownPremium: fc.boolean() })
  .map(({ seen, ...rest }): CheckedPrice => ({ ...seen, ...rest }));

/** Whether `outer` was the same before `inner` was requested, and after it was answered. */
const isAround = (outer: Observed, inner: Observed): boolean =>
  outer.unchangedSinceMs <= inner.askedMs && inner.answeredMs <= outer.askedMs;

const RUNS = { numRuns: 10_000 };

describe("whatever was observed,", () => {
  test("a name is premium only if the prices differ, and one was the same before and after the other or it is known", () => {
    fc.assert(
      fc.property(check, observation, (seen, quote) => {
        if (judge(seen, quote) !== "premium") return;
        expect(sameWholesale(seen.wholesale, quote.wholesale)).toBe(false);
        expect(seen.settled && quote.settled && seen.isTrusted).toBe(true);
        const isKnown = seen.isKnownPremium && quote.isTrusted;
        const isBetween = isAround(quote, seen) || isAround(seen, quote);
        expect(isKnown || isBetween).toBe(true);
      }),
      RUNS,
    );
  });

  test("a name is never ordinary when both prices are doubtful, when they differ, or while either is unsettled", () => {
    fc.assert(
      fc.property(check, observation, (seen, quote) => {
        if (judge(seen, quote) !== "ordinary") return;
        expect(sameWholesale(seen.wholesale, quote.wholesale)).toBe(true);
        expect(seen.isTrusted || quote.isTrusted).toBe(true);
        expect(quote.isTrusted || seen.canVouch).toBe(true);
        expect(seen.settled && quote.settled).toBe(true);
      }),
      RUNS,
    );
  });

  test("the price to request again is unsettled, doubtful or the older one", () => {
    fc.assert(
      fc.property(check, observation, (seen, quote) => {
        const verdict = judge(seen, quote);
        if (verdict === "ordinary" || verdict === "premium") return;
        const [asked, other] = verdict === "ask check" ? [seen, quote] : [quote, seen];
        expect(!asked.settled || !asked.isTrusted || asked.askedMs <= other.askedMs).toBe(true);
      }),
      RUNS,
    );
  });

  test("a trusted, settled pair of equal prices is never requested again", () => {
    fc.assert(
      fc.property(check, observation, wholesale, (seen, quote, price) => {
        const sure = { settled: true, isTrusted: true, wholesale: price };
        expect(judge({ ...seen, ...sure }, { ...quote, ...sure })).toBe("ordinary");
      }),
    );
  });
});

describe("requesting again what the verdict names, while nothing changes,", () => {
  type Weighed = Evidence<Wholesale>;

  /** One answer, or two that overlap and contradict each other. */
  const asked = (price: Wholesale) =>
    fc
      .record({
        askedMs: fc.integer({ min: 0, max: 100 }),
        tookMs: fc.integer({ min: 2, max: 40 }),
        isTrusted: fc.boolean(),
        isContradicted: fc.boolean(),
      })
      .map(({ askedMs, tookMs, isTrusted, isContradicted }) => {
        const first = weigh(
          undefined,
          { value: price, askedMs, answeredMs: askedMs + tookMs },
          compareWholesale,
        );
        const between = { value: usd("99.99"), askedMs: askedMs + 0.5, answeredMs: askedMs + 1 };
        return { evidence: isContradicted ? weigh(first, between, compareWholesale) : first, isTrusted };
      });

  function observedAs({ held, settled, unchangedSinceMs }: Weighed, isTrusted: boolean): Observed {
    const { value, askedMs, answeredMs } = held;
    return { wholesale: value, askedMs, answeredMs, unchangedSinceMs, settled, isTrusted };
  }

  /** The number of calls until the verdict is final, and that verdict. */
  function resolve(
    first: {
      check: { evidence: Weighed; isTrusted: boolean };
      quote: { evidence: Weighed; isTrusted: boolean };
    },
    prices: { check: Wholesale; quote: Wholesale },
  ): { calls: number; verdict: Verdict } {
    let { check: ofCheck, quote: ofQuote } = first;
    for (let calls = 0; ; calls += 1) {
      const seen = observedAs(ofCheck.evidence, ofCheck.isTrusted);
      const verdict = judge(
        { ...seen, canVouch: ofCheck.isTrusted, isKnownPremium: false },
        observedAs(ofQuote.evidence, ofQuote.isTrusted && ofQuote.evidence.settled),
      );
      if (calls === 5 || verdict === "ordinary" || verdict === "premium") return { calls, verdict };
      const atMs = 1_000 * (calls + 1);
      const again = (evidence: Weighed, value: Wholesale) => ({
        evidence: weigh(evidence, { value, askedMs: atMs, answeredMs: atMs + 100 }, compareWholesale),
        isTrusted: true,
      });
      if (verdict === "ask check") ofCheck = again(ofCheck.evidence, prices.check);
      else ofQuote = again(ofQuote.evidence, prices.quote);
    }
  }

  test.each([
    { name: "the name is premium", quote: usd("17.31"), verdict: "premium" },
    { name: "the name is ordinary", quote: usd("250.00"), verdict: "ordinary" },
  ])(
    "gives the right verdict within two calls, or three if both prices were contradicted: $name",
    ({ quote, verdict }) => {
      const prices = { check: usd("250.00"), quote };
      fc.assert(
        fc.property(asked(prices.check), asked(prices.quote), (ofCheck, ofQuote) => {
          const found = resolve({ check: ofCheck, quote: ofQuote }, prices);
          expect(found.verdict).toBe(verdict);
          const areBothUnsettled = !ofCheck.evidence.settled && !ofQuote.evidence.settled;
          expect(found.calls).toBeLessThanOrEqual(areBothUnsettled ? 3 : 2);
        }),
        RUNS,
      );
    },
  );
});
