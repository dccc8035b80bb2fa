/**
 * Decides whether an available name is ordinary or premium, and at which wholesale price. When check and quote disagree, it makes at most
 * two more calls, or four for a line to be signed; each is shared by everyone waiting for it.
 */
import type { Fact } from "../cache/facts.js";
import { justAfter } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected, ServiceError } from "../errors.js";
import { sameWholesale, type Wholesale } from "../money.js";
import { type CheckedPrice, judge, type Verdict } from "../retail/agreement.js";
import type { Combination } from "../upstream/contract.js";
import type { InEpoch, PriceEpochs } from "../retail/price-epoch.js";
import type { PriceList } from "../retail/price-list.js";
import type { Quote, QuotedPrice } from "../retail/price-quotes.js";
import {
  type AvailableFact,
  type NameFacts,
  type TakenFact,
  toComplete,
  type VisitorAsk,
} from "./name-facts.js";
import type { PremiumMarks } from "./premium-marks.js";

type AvailableCheck = AvailableFact["pooled"];

export type Assessment = PricedAssessment | { readonly kind: "taken"; readonly fact: TakenFact };

export interface PricedAssessment {
  /**
   * `doubtful`: undecided, because some evidence contradicts these prices. `unclear`: something says that the name is premium, and its price isn't
   * certain.
   */
  readonly kind: "ordinary" | "premium" | "doubtful" | "unclear";
  readonly check: AvailableCheck;
  readonly quote: QuotedPrice;
}

/** How recently the facts behind a signed line must have been requested, as stamps. */
export interface Demands {
  readonly checkedSinceMs: number;
  readonly quotedSinceMs: number;
}

export interface Assessor {
  /** Decides from memory, by default only with a quote within its freshness; undefined when it can't without a call. */
  recall(
    name: DomainName,
    what: Combination,
    check: AvailableCheck,
    quote?: QuotedPrice,
  ): PricedAssessment | undefined;
  /**
   * Decides with further calls if needed. Without demands, a price that can't be decided in time is doubtful, and so, immediately, is a
   * price from memory that only lacks confirmation. With demands, it rejects instead.
   */
  assess(
    ask: VisitorAsk,
    name: DomainName,
    what: Combination,
    fact: AvailableFact,
    demands?: Demands,
  ): Promise<Assessment>;
  /** Whether this price in a check is the ordinary one of one year, because the upstream ignores the term. It then says nothing about the name. */
  isOfOneYear(what: Combination, wholesale: Wholesale): boolean;
}

interface AssessorSettings {
  readonly names: Pick<NameFacts, "find" | "shownPrices">;
  readonly marks: Pick<PremiumMarks, "of" | "note">;
  readonly prices: PriceList;
  readonly epochs: Pick<PriceEpochs, "isDoubtful">;
}

/** Further calls per decision. */
const MAX_CALLS = 2;
/** For a line to be signed. More, because another line can reveal a change in the meantime, which makes this one's price doubtful too. */
const MAX_CALLS_TO_SIGN = 4;

export function createAssessor({ names, marks, prices, epochs }: AssessorSettings): Assessor {
  function checked(
    name: DomainName,
    what: Combination,
    check: AvailableCheck,
    { former }: QuotedPrice,
  ): CheckedPrice {
    const { value, askedMs, answeredMs, settled } = check;
    const price: InEpoch = { epoch: value.epoch, askedMs };
    // It was the ordinary price once and may be so again: that it was seen twice doesn't show that it never changed in between.
    const wasOrdinary = former !== null && sameWholesale(former, value.wholesale);
    const unchangedSinceMs = wasOrdinary ? answeredMs : check.unchangedSinceMs;
    return {
      wholesale: value.wholesale,
      askedMs,
      answeredMs,
      unchangedSinceMs,
      settled,
      isTrusted: !epochs.isDoubtful(price),
      canVouch: prices.isTrusted(what, price),
      isKnownPremium: isKnownPremium(name, what, value.wholesale),
    };
  }

  function isKnownPremium(name: DomainName, { years }: Combination, wholesale: Wholesale): boolean {
    const mark = marks.of(name)?.value;
    if (mark?.isPremium !== true || mark.years !== years || mark.wholesale === undefined) return false;
    return sameWholesale(mark.wholesale, wholesale);
  }

  /** Whether a later check, of any term, led to another decision about the name. */
  function isOverruled(name: DomainName, check: AvailableCheck, isPremium: boolean): boolean {
    const mark = marks.of(name);
    return mark !== undefined && mark.askedMs > check.answeredMs && mark.value.isPremium !== isPremium;
  }

  function isOfOneYear(what: Combination, wholesale: Wholesale): boolean {
    const ofYear = what.years === 1 ? undefined : prices.peek({ ...what, years: 1 });
    return ofYear !== undefined && sameWholesale(ofYear.wholesale, wholesale);
  }

  /** Whether nothing contradicts this price itself, and evidence elsewhere only requires another request. */
  function isUnconfirmed(name: DomainName, check: AvailableCheck, quote: QuotedPrice): boolean {
    return (
      check.settled &&
      quote.settled &&
      sameWholesale(check.value.wholesale, quote.wholesale) &&
      !isOverruled(name, check, false)
    );
  }

  function verdictOn(
    name: DomainName,
    what: Combination,
    check: AvailableCheck,
    quote: QuotedPrice,
  ): Verdict | "unclear" {
    const { sign } = check.value;
    if (sign === "unclear" || sign === "price") return "unclear";
    const verdict = judge(checked(name, what, check, quote), quote);
    if (verdict !== "ordinary" && verdict !== "premium") return verdict;
    const isPremium = verdict === "premium";
    // A flag beside the ordinary price: one of them is wrong.
    if (sign !== undefined && !isPremium) return "unclear";
    if (isPremium && isOfOneYear(what, check.value.wholesale)) return verdict;
    if (isOverruled(name, check, isPremium)) return "ask check";
    const { value, askedMs, answeredMs } = check;
    marks.note(name, {
      value: { isPremium, years: what.years, wholesale: value.wholesale },
      askedMs,
      answeredMs,
    });
    if (!isPremium) prices.confirm(what, confirmed(quote, check));
    return verdict;
  }

  function recall(
    name: DomainName,
    what: Combination,
    check: AvailableCheck,
    quote = prices.fresh(what),
  ): PricedAssessment | undefined {
    if (quote === undefined) return undefined;
    const verdict = verdictOn(name, what, check, quote);
    if (isDecided(verdict)) return { kind: verdict, check, quote };
    if (!isUnconfirmed(name, check, quote)) return undefined;
    prices.refreshFirst(what);
    return { kind: "doubtful", check, quote };
  }

  async function assess(
    ask: VisitorAsk,
    name: DomainName,
    what: Combination,
    fact: AvailableFact,
    demands?: Demands,
  ): Promise<Assessment> {
    let check = fact.pooled;
    let quote = prices.peek(what) ?? (await prices.quote(toComplete(ask), what));
    let maxCalls = MAX_CALLS;
    for (let calls = 0; ; calls += 1) {
      const decided = verdictOn(name, what, check, quote);
      // A sign of premium may have been a mistake of the upstream.
      const isRemembered = demands !== undefined && fact.source === "hit" && calls === 0;
      const verdict = decided === "unclear" && isRemembered ? "ask check" : decided;
      // An ordinary price is as recent as its check; a premium one depends on the quote as well.
      const isOld = verdict === "premium" && demands !== undefined && quote.askedMs < demands.quotedSinceMs;
      if (isDecided(verdict) && !isOld) return { kind: verdict, check, quote };

      const doubtful: Assessment = { kind: "doubtful", check, quote };
      if (demands === undefined && fact.source === "hit" && isUnconfirmed(name, check, quote)) {
        prices.refreshFirst(what);
        return doubtful;
      }
      if (calls === maxCalls) {
        if (demands === undefined) return doubtful;
        throw new ServiceError("upstream_contract", "The price of this name is changing at the moment.", {
          retryAfterMs: 1_000,
        });
      }
      const sinceMs = justAfter(Math.max(check.answeredMs, quote.answeredMs));
      try {
        if (verdict === "ask check") {
          const found = await names.find(toComplete(ask), name, what.years, sinceMs);
          if (found.status === "taken") {
            // The price that the upstream shows for a taken name decides whether its renewal is premium.
            for (const { pooled } of names.shownPrices(name, [what.years]))
              verdictOn(name, what, pooled, prices.peek(what) ?? quote);
            return { kind: "taken", fact: found };
          }
          check = found.pooled;
          // It may have changed, or become doubtful, in the meantime.
          quote = prices.peek(what) ?? quote;
        } else {
          if (!isOld) prices.dispute(what, check.answeredMs);
          quote = await prices.quote(toComplete(ask), what, sinceMs);
          if (demands !== undefined && !quote.isTrusted) maxCalls = MAX_CALLS_TO_SIGN;
        }
      } catch (error) {
        if (demands !== undefined || !isExpected(error)) throw error;
        return doubtful;
      }
    }
  }

  return { recall, assess, isOfOneYear };
}

function isDecided(verdict: Verdict | "unclear"): verdict is "ordinary" | "premium" | "unclear" {
  return verdict === "ordinary" || verdict === "premium" || verdict === "unclear";
}

/** The quote as a check with its amount has confirmed it. */
function confirmed({ former }: QuotedPrice, { value, askedMs, answeredMs }: AvailableCheck): Fact<Quote> {
  return { value: { wholesale: value.wholesale, epoch: value.epoch, former }, askedMs, answeredMs };
}
