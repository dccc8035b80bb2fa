/**
 * Whether a name is premium, judging by all checks of it so far, for any term and on any replica. The upstream doesn't say what the renewal,
 * transfer and restore of a premium name cost, so these must not get the list price.
 */
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
   * name without known facts. Rejects if the prices remain doubtful.
   */
  isPremium(ask: VisitorAsk, name: DomainName): Promise<boolean>;
  /** Learns what other replicas know of the name; makes no upstream calls. Never rejects. */
  consult(name: DomainName): Promise<void>;
  /** Whether nothing known here contradicts ordinary prices for the name. */
  seemsOrdinary(name: DomainName): boolean;
  /** Whether the name was found to be premium, or a check of it shows a price that is neither the list price nor the one before its last change. */
  isContradicted(name: DomainName): boolean;
  /** Whether memory alone shows that the name is not premium. Always false while other replicas can be asked. */
  isOrdinary(name: DomainName): boolean;
}

export interface PremiumNamesSettings {
  readonly policy: Pick<RetailPolicy, "yearsSold">;
  readonly prices: Pick<PriceList, "peek" | "quote">;
  readonly names: Pick<NameFacts, "consultPrices" | "shownPrices">;
  readonly marks: Pick<PremiumMarks, "isPremium" | "isAlone">;
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

  function consult(name: DomainName): Promise<void> {
    return names.consultPrices(name, policy.yearsSold(name.tld, "registration"));
  }

  async function isPremium(ask: VisitorAsk, name: DomainName): Promise<boolean> {
    await consult(name);
    for (const { what, pooled } of shownPrices(name)) {
      const quote = prices.peek(what) ?? (await prices.quote(ask, what));
      if (sameWholesale(pooled.value.wholesale, quote.wholesale)) continue;
      const { kind } = await assessor.assess(ask, name, what, {
        status: "available",
        source: "stale",
        pooled,
      });
      if (kind === "doubtful") throw noPrice();
      // A taken name may still have a price of its own, from the calls made just now.
      if (kind === "premium" || (kind === "taken" && hasOwnPrice(name, what))) return true;
    }
    return marks.isPremium(name);
  }

  const hasOwnPrice = (name: DomainName, { years }: Combination): boolean =>
    differing(name).some(({ what }) => what.years === years);

  return {
    isPremium,
    consult,
    seemsOrdinary,
    isContradicted,
    isOrdinary: (name) => marks.isAlone() && seemsOrdinary(name),
  };
}

export function noPrice(): ServiceError {
  return new ServiceError("upstream_contract", "The price of this name can't be calculated at the moment.");
}
