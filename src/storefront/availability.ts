/**
 * Answers whether a name is available and what it costs a visitor. A name is "available" only if the upstream said so within the last
 * minute. Every price comes from the retail policy and the upstream's price for this name, and is `stale` while that price is doubtful.
 */
import { type Clock, justAfter } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected } from "../errors.js";
import type { Log } from "../logger.js";
import { compareWholesale, type Retail, sameWholesale, type Wholesale } from "../money.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { FreshPrice } from "../retail/price-quotes.js";
import type { Combination } from "../upstream/contract.js";
import { failureCodeOf, timedOut } from "../upstream/failures.js";
import type { Assessment, Assessor, Demands, PricedAssessment } from "./assessment.js";
import {
  type AvailableFact,
  type NameFacts,
  type ShownPrice,
  type TakenFact,
  toComplete,
  type VisitorAsk,
} from "./name-facts.js";
import type { PremiumMarks } from "./premium-marks.js";
import { noPrice } from "./premium-names.js";

export interface Availability {
  readonly name: DomainName;
  readonly years: number;
  readonly status: "available" | "taken";
  readonly premium: boolean;
  /** The registration price; null unless the name is available and a price can be calculated. */
  readonly price: Retail | null;
  /** The price of the shortest renewal; null unless the name is available and ordinary and that price is known and not doubtful. */
  readonly renewal: Retail | null;
  /** Wall clock, ms. */
  readonly asOfMs: number;
  /** The answer is past its freshness, or its price is doubtful. */
  readonly stale: boolean;
  /** Until when it may be shown, even as stale; by the clock of facts, ms. */
  readonly showUntilMs: number;
  /** Until when memory gives the same answer unless something new is learned; by the clock of facts, ms. */
  readonly sameUntilAt: number;
}

/** A name is never shown as available for longer after its check. */
const AVAILABLE_FOR_MS = 60_000;

/** A registration that a promise can contain. */
export interface Registration extends Pick<Availability, "status" | "premium" | "price" | "asOfMs"> {
  /** The price that the retail price was calculated from. */
  readonly wholesale: Wholesale | null;
  /** Whether every fact behind it still meets the demands and no known fact contradicts it. */
  isCurrent(demands: Demands): boolean;
}

export interface AvailabilityService {
  /** The answer of `lookUp` if memory has it. */
  fromMemory(name: DomainName, years: number): Availability | undefined;
  /** Counts answers from memory that were sent. */
  countHits(count: number): void;
  /** Rejects with a ServiceError if there is no answer in time. */
  lookUp(ask: VisitorAsk, name: DomainName, years: number): Promise<Availability>;
  /** An answer that can be signed; rejects if its price is doubtful or cannot be calculated. */
  register(ask: VisitorAsk, name: DomainName, years: number, demands: Demands): Promise<Registration>;
  /**
   * The answer as memory has it now: another one, or stale, if a fact behind it has been contradicted since. Null if it can no longer be shown.
   */
  asOfNow(answer: Availability): Availability | null;
}

export interface AvailabilitySettings {
  readonly policy: RetailPolicy;
  readonly prices: PriceList;
  readonly names: NameFacts;
  readonly assessor: Assessor;
  readonly marks: Pick<PremiumMarks, "isPremium">;
  /** When the upstream last listed the name among the reseller's own domains, or null. */
  readonly ownedSinceMs: (ascii: string) => number | null;
  readonly clock: Clock;
  /** For the ages of facts. */
  readonly factClock: Clock;
  readonly log: Log;
}

type Priced = Pick<Availability, "premium" | "price" | "stale">;

/** A visitor who asks for a taken name waits no longer for the decision whether it is premium. */
const DECIDE_TAKEN_MS = 1_000;

export function createAvailability(settings: AvailabilitySettings): AvailabilityService {
  const { policy, prices, names, assessor, marks, clock, factClock } = settings;
  /** What answers about available names were made from. */
  const origins = new WeakMap<Availability, PricedAssessment>();

  function retail(wholesale: Wholesale, what: Combination, kind: "ordinary" | "premium"): Retail | null {
    const result = policy.price(wholesale, what, { premium: kind === "premium", atMs: clock.now() });
    if (result.ok) return result.price;
    warnNoPrice(what, result.reason);
    return null;
  }

  function priced(assessed: PricedAssessment, name: DomainName, what: Combination): Priced {
    const { kind, check, quote } = assessed;
    if (kind === "unclear") return { premium: check.value.sign !== "price", price: null, stale: false };
    if (kind === "doubtful") {
      const premium = marks.isPremium(name);
      // If they contradict each other, either may be wrong.
      const agrees = !premium && sameWholesale(check.value.wholesale, quote.wholesale);
      return {
        premium,
        price: agrees ? retail(check.value.wholesale, what, "ordinary") : null,
        stale: true,
      };
    }
    // Prices in different currencies cannot be compared.
    if (check.value.wholesale.currency !== quote.wholesale.currency) {
      warnNoPrice(what, "currencies_differ");
      return { premium: false, price: null, stale: false };
    }
    return { premium: kind === "premium", price: retail(check.value.wholesale, what, kind), stale: false };
  }

  /**
   * Whether the premium price in a check covers all of `years`. An upstream that ignores the term returns the price of one year, and the price
   * of the whole term is then unknown.
   */
  async function isForTerm(
    ask: VisitorAsk,
    name: DomainName,
    what: Combination,
    { value, answeredMs }: PricedAssessment["check"],
  ): Promise<boolean> {
    if (what.years === 1) return true;
    if (assessor.isOfOneYear(what, value.wholesale)) return false;
    // A total that isn't above that of a shorter term is probably the price of a part of the term.
    const isBelow = ({ pooled }: ShownPrice): boolean => !isAbove(value.wholesale, pooled.value.wholesale);
    if (names.shownPrices(name, termsBetween(what.years)).some(isBelow)) return false;
    // An earlier check could differ only because the price has changed since.
    const one = await names.find(toComplete(ask), name, 1, justAfter(answeredMs));
    if (one.status === "taken") return false;
    if (isAbove(value.wholesale, one.pooled.value.wholesale)) return true;
    // So the price was compared with that of another term, and only this one shows whether the name is premium.
    await assessor.assess(ask, name, { ...what, years: 1 }, one);
    return false;
  }

  /**
   * Decides whether a taken name is premium if its check showed a price, because that is remembered for longer than the check. Until the price
   * list is known, or if it would take too long, nothing is decided.
   */
  async function decideIfTaken(ask: VisitorAsk, name: DomainName, what: Combination): Promise<void> {
    const waitUntilMs = Math.min(ask.waitUntilMs, clock.monotonic() + DECIDE_TAKEN_MS);
    for (const { pooled } of names.shownPrices(name, [what.years]))
      if (prices.peek(what) !== undefined)
        await assessor.assess({ ...ask, waitUntilMs }, name, what, {
          status: "available",
          source: "hit",
          pooled,
        });
  }

  function warnNoPrice({ tld, years }: Combination, reason: string): void {
    settings.log.warn("price.not.formed", { tld, years, reason });
  }

  function renewalQuote({ tld }: DomainName): FreshPrice | undefined {
    const [years] = policy.yearsSold(tld, "renewal");
    const quote = years === undefined ? undefined : prices.fresh({ tld, action: "renewal", years });
    return quote?.isTrusted === true ? quote : undefined;
  }

  function renewalPrice({ tld }: DomainName, quote: FreshPrice | undefined): Retail | null {
    const [years = 1] = policy.yearsSold(tld, "renewal");
    return quote ? retail(quote.wholesale, { tld, action: "renewal", years }, "ordinary") : null;
  }

  function owned(name: DomainName, years: number): Availability | undefined {
    const sinceMs = settings.ownedSinceMs(name.ascii);
    return sinceMs === null ? undefined : asTaken(name, years, sinceMs, false);
  }

  function presented(
    name: DomainName,
    what: Combination,
    assessed: Assessment,
    { isOld, sameUntilAt = -Infinity }: { readonly isOld: boolean; readonly sameUntilAt?: number },
  ): Availability {
    if (assessed.kind === "taken") return takenFrom(name, what.years, assessed.fact);
    // In the meantime a check for another term may have found the name taken.
    const taken = names.taken(name);
    if (taken !== undefined) return takenFrom(name, what.years, taken);
    const { premium, price, stale } = priced(assessed, name, what);
    const answer: Availability = {
      name,
      years: what.years,
      status: "available",
      premium,
      price,
      renewal:
        premium || price === null || assessed.check.value.hasOtherPrices === true
          ? null
          : renewalPrice(name, renewalQuote(name)),
      asOfMs: assessed.check.asOfMs,
      stale: stale || isOld,
      showUntilMs: assessed.check.askedMs + AVAILABLE_FOR_MS,
      // While its price is doubtful, each answer asks for it to be refreshed.
      sameUntilAt: stale ? -Infinity : sameUntilAt,
    };
    origins.set(answer, assessed);
    return answer;
  }

  /** An available name whose price is unknown at the moment. */
  function withoutPrice(name: DomainName, years: number, { pooled, source }: AvailableFact): Availability {
    const showUntilMs = pooled.askedMs + AVAILABLE_FOR_MS;
    const unpriced = asTaken(name, years, pooled.asOfMs, source === "stale");
    return { ...unpriced, status: "available", premium: marks.isPremium(name), showUntilMs };
  }

  function fromMemory(name: DomainName, years: number): Availability | undefined {
    const own = owned(name, years);
    if (own !== undefined) return own;
    const fact = names.fresh(name, years);
    if (fact === undefined) return undefined;
    if (fact.status === "taken") return { ...takenFrom(name, years, fact), sameUntilAt: fact.untilAt };
    const what: Combination = { tld: name.tld, action: "registration", years };
    const quote = prices.fresh(what);
    const assessed = quote && assessor.recall(name, what, fact.pooled, quote);
    // A premium name for several years needs further checks, which `lookUp` makes.
    if (quote === undefined || assessed === undefined || (assessed.kind === "premium" && years > 1))
      return undefined;
    const sameUntilAt = Math.min(fact.untilAt, quote.untilAt, renewalQuote(name)?.untilAt ?? Infinity);
    const answer = presented(name, what, assessed, { isOld: false, sameUntilAt });
    return answer.price === null ? undefined : answer;
  }

  function canBeShown({ showUntilMs }: Availability): boolean {
    return showUntilMs >= factClock.monotonic();
  }

  async function lookUp(ask: VisitorAsk, name: DomainName, years: number): Promise<Availability> {
    const decided = await decide(ask, name, years);
    // Meanwhile other calls, or those for its price, may have contradicted the facts behind a price.
    const answer = decided.price === null ? decided : current(decided);
    if (canBeShown(answer)) return answer;
    throw timedOut();
  }

  async function decide(ask: VisitorAsk, name: DomainName, years: number): Promise<Availability> {
    const own = owned(name, years);
    if (own !== undefined) return own;
    const what: Combination = { tld: name.tld, action: "registration", years };
    const fact = await names.find(ask, name, years);
    if (fact.status === "taken") {
      await decideIfTaken(ask, name, what);
      // A call for the decision may have shown that the name is available again.
      return fromMemory(name, years) ?? takenFrom(name, years, fact);
    }
    const isOld = fact.source === "stale";
    try {
      const assessed = await assessor.assess(ask, name, what, fact);
      if (assessed.kind !== "premium" || (await isForTerm(ask, name, what, assessed.check)))
        return presented(name, what, assessed, { isOld });
      warnNoPrice(what, "price_not_for_term");
    } catch (error) {
      // Without the upstream's quote it is unknown whether the name is premium.
      const code = failureCodeOf(error);
      if (code === null) throw error;
      warnNoPrice(what, code);
    }
    const taken = names.taken(name);
    return taken !== undefined ? takenFrom(name, years, taken) : withoutPrice(name, years, fact);
  }

  async function register(ask: VisitorAsk, name: DomainName, years: number, demands: Demands) {
    const own = owned(name, years);
    if (own !== undefined) return { ...own, wholesale: null, isCurrent: () => true };
    const what: Combination = { tld: name.tld, action: "registration", years };
    const fact = await names.find(ask, name, years, demands.checkedSinceMs).catch((error: unknown) => {
      // "Taken" isn't signed, so it need not be as recent as what is.
      const recent = names.fresh(name, years);
      if (isExpected(error) && recent?.status === "taken") return recent;
      throw error;
    });
    if (fact.status === "taken") await decideIfTaken(ask, name, what);
    const assessed: Assessment =
      fact.status === "taken"
        ? { kind: "taken", fact }
        : await assessor.assess(ask, name, what, fact, demands);
    const promotionEpoch = policy.promotionEpoch(clock.now());
    const answer = presented(name, what, assessed, { isOld: false });
    if (assessed.kind === "taken" || answer.status === "taken")
      return { ...answer, wholesale: null, isCurrent: () => true };
    const { check, quote } = assessed;
    const { wholesale } = check.value;
    if (assessed.kind === "premium" && !(await isForTerm(ask, name, what, check))) {
      warnNoPrice(what, "price_not_for_term");
      throw noPrice();
    }
    if (answer.price === null) throw noPrice();
    return {
      ...answer,
      asOfMs: assessed.kind === "premium" ? Math.min(check.asOfMs, quote.asOfMs) : check.asOfMs,
      wholesale,
      isCurrent: ({ checkedSinceMs, quotedSinceMs }: Demands) => {
        const now = names.fresh(name, years);
        if (now?.status !== "available" || now.pooled.askedMs < checkedSinceMs) return false;
        if (policy.promotionEpoch(clock.now()) !== promotionEpoch) return false;
        const again = assessor.recall(name, what, now.pooled);
        return (
          again !== undefined &&
          again.kind === assessed.kind &&
          sameWholesale(again.check.value.wholesale, wholesale) &&
          (again.kind === "ordinary" || again.quote.askedMs >= quotedSinceMs)
        );
      },
    };
  }

  function current(answer: Availability): Availability {
    const { name, years, status, price } = answer;
    const taken = names.taken(name);
    if (status === "available" && taken !== undefined) return takenFrom(name, years, taken);
    const now = fromMemory(name, years);
    const origin = origins.get(answer);
    if (now !== undefined || origin === undefined || price === null) return now ?? answer;
    const what: Combination = { tld: name.tld, action: "registration", years };
    const fact = names.fresh(name, years);
    const assessed =
      fact?.status === "available" ? assessor.recall(name, what, fact.pooled, prices.peek(what)) : undefined;
    // `fromMemory` never returns the price of a premium name for several years.
    const isSame = assessed?.kind === "premium" && answer.premium && assessed.check.asOfMs === answer.asOfMs;
    // A promotion may have begun or ended.
    return presented(name, what, origin, { isOld: answer.stale || !isSame });
  }

  return {
    fromMemory,
    countHits: names.countHits,
    lookUp,
    register,
    asOfNow(answer) {
      const now = current(answer);
      return canBeShown(now) ? now : null;
    },
  };
}

/** The terms between one year and this one. */
function termsBetween(years: number): number[] {
  return Array.from({ length: Math.max(0, years - 2) }, (_, at) => at + 2);
}

function isAbove(price: Wholesale, shorter: Wholesale): boolean {
  return price.currency === shorter.currency && compareWholesale(price, shorter) > 0;
}

function asTaken(name: DomainName, years: number, asOfMs: number, stale: boolean): Availability {
  const noPrices = { premium: false, price: null, renewal: null } as const;
  const times = { asOfMs, stale, showUntilMs: Infinity, sameUntilAt: -Infinity };
  return { name, years, status: "taken", ...noPrices, ...times };
}

function takenFrom(name: DomainName, years: number, { pooled, source }: TakenFact): Availability {
  return asTaken(name, years, pooled.asOfMs, source === "stale");
}
