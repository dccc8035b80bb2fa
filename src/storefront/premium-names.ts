/**
 * Whether a name is premium, judging by all checks of it so far, for any term. The upstream doesn't say what the renewal,
 * transfer and restore of a premium name cost, so these must not get the list price.
 */
import { justAfter } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import { sameWholesale } from "../money.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { Combination } from "../upstream/contract.js";
import type { PriceList } from "../retail/price-list.js";
import type { Assessor } from "./assessment.js";
import type { NameFacts, ShownPrice, VisitorAsk } from "./name-facts.js";
import type { PremiumMarks } from "./premium-marks.js";

export interface PremiumNames {
  /**
   * Whether the name is premium, by an earlier decision or by a price of its own from the upstream. Asks again if prices disagree, but never about a
   * name without known facts. Rejects if the prices remain doubtful, or if a check has shown prices of its own for other actions.
   */
  isPremium(ask: VisitorAsk, name: DomainName): Promise<boolean>;
  /** Whether nothing known here contradicts ordinary prices for the name. */
  seemsOrdinary(name: DomainName): boolean;
  /** Whether the name was found to be premium, or a check of it shows a price that is neither the list price nor the one before its last change. */
  isContradicted(name: DomainName): boolean;
}

export interface PremiumNamesSettings {
  readonly policy: Pick<RetailPolicy, "yearsSold">;
  readonly prices: Pick<PriceList, "peek" | "quote">;
  readonly names: Pick<NameFacts, "find" | "shownPrices">;
  readonly marks: Pick<PremiumMarks, "of" | "isPremium">;
  readonly assessor: Pick<Assessor, "assess" | "isOfOneYear">;
}

export function createPremiumNames({
  policy,
  prices,
  names,
  marks,
  assessor,
}: PremiumNamesSettings): PremiumNames {
  /** The registration prices that checks of the name have shown, without those that say nothing about it. */
  function shownPrices(name: DomainName): readonly ShownPrice[] {
    return names
      .shownPrices(name, policy.yearsSold(name.tld, "registration"))
      .filter(({ what, pooled }) => !assessor.isOfOneYear(what, pooled.value.wholesale));
  }

  /** The shown prices that differ from the list, or can't be compared because it has none. */
  function differing(name: DomainName): readonly ShownPrice[] {
    return shownPrices(name).filter(({ what, pooled }) => {
      const quote = prices.peek(what);
      return quote === undefined || !sameWholesale(pooled.value.wholesale, quote.wholesale);
    });
  }

  const seemsOrdinary = (name: DomainName): boolean => !marks.isPremium(name) && differing(name).length === 0;

  function isContradicted(name: DomainName): boolean {
    const wasOrdinary = ({ what, pooled }: ShownPrice): boolean => {
      const former = prices.peek(what)?.former ?? null;
      return former !== null && sameWholesale(pooled.value.wholesale, former);
    };
    return marks.isPremium(name) || !differing(name).every(wasOrdinary);
  }

  async function isPremium(ask: VisitorAsk, name: DomainName): Promise<boolean> {
    const mark = marks.of(name);
    if (mark?.value.isBySign === true) return isStillPremium(ask, name, justAfter(mark.answeredMs));
    for (const { what, pooled } of shownPrices(name)) {
      if (pooled.value.hasOtherPrices === true) throw noPrice();
      const quote = prices.peek(what) ?? (await prices.quote(ask, what));
      if (sameWholesale(pooled.value.wholesale, quote.wholesale)) continue;
      const { kind } = await assessor.assess(ask, name, what, {
        status: "available",
        source: "stale",
        pooled,
      });
      if (kind === "doubtful") throw noPrice();
      // A taken name may still have a price of its own, from the calls made just now.
      if (kind === "premium" || kind === "unclear" || (kind === "taken" && hasOwnPrice(name, what)))
        return true;
    }
    return marks.isPremium(name);
  }

  async function isStillPremium(ask: VisitorAsk, name: DomainName, sinceMs: number): Promise<boolean> {
    const [years] = policy.yearsSold(name.tld, "registration");
    if (years === undefined) return true;
    const fact = await names.find(ask, name, years, sinceMs);
    if (fact.status === "taken") return true;
    const what: Combination = { tld: name.tld, action: "registration", years };
    const { kind } = await assessor.assess(ask, name, what, fact);
    if (kind === "doubtful") throw noPrice();
    return kind !== "ordinary";
  }

  const hasOwnPrice = (name: DomainName, { years }: Combination): boolean =>
    differing(name).some(({ what }) => what.years === years);

  return {
    isPremium,
    seemsOrdinary,
    isContradicted,
  };
}

export function noPrice(): ServiceError {
  return new ServiceError("upstream_contract", "The price of this name can't be calculated at the moment.");
}
