/** What registering a name costs, and which rule it follows: decided from memory, or by asking what is missing. */
import { isExpected, ServiceError } from "../errors.js";
import type { DomainName } from "../domain-name.js";
import type { PriceChanges } from "../facts/price-changes.js";
import type { Entry } from "../facts/page.js";
import { sameWholesale, type Wholesale } from "../money.js";
import type { NameKinds } from "../retail/name-kinds.js";
import { type Checked, decide, type Decision } from "../retail/decide-kind.js";
import type { PriceList } from "../retail/price-list.js";
import type { Check, Combination } from "../upstream/contract.js";
import type { Names, VisitorAsk } from "./names.js";

/** How recently what a price depends on must have been asked, as stamps. */
export interface Demands {
  readonly checkedSince: number;
  readonly quotedSince: number;
}

export interface NamePrices {
  /** Decides from memory, or says what must be asked first. A decision about the kind of the name is remembered. */
  recall(name: DomainName, years: number, demands?: Demands): Decision;
  /**
   * Decides, with further calls if needed; each is shared by everyone who waits for it. A price that can't be decided comes back as a question. With
   * demands, it rejects if a call fails; without them only if no quote is known.
   */
  find(ask: VisitorAsk, name: DomainName, years: number, demands?: Demands): Promise<Decision>;
  /** The price of an undecided name of which nothing but confirmation is missing. */
  unconfirmed(name: DomainName, years: number): Wholesale | undefined;
  /** Whether the name is ordinary, as far as memory shows; undefined if prices contradict each other. */
  isOrdinary(name: DomainName): boolean | undefined;
  /** Asks what is missing to tell whether the name is ordinary, but never about a name without known prices. */
  settle(ask: VisitorAsk, name: DomainName): Promise<void>;
}

interface NamePricesSettings {
  readonly names: Names;
  readonly prices: Pick<PriceList, "peek" | "ask" | "contest">;
  readonly nameKinds: Pick<NameKinds, "last" | "of" | "note">;
  readonly changes: Pick<PriceChanges, "isCurrent" | "currentSince">;
  readonly yearsSold: (tld: string) => readonly number[];
}

/** Further calls for one decision: one as a rule, more while prices are changing, or for a name with its own prices for several years. */
const MAX_CALLS = 3;

const NO_DEMANDS: Demands = { checkedSince: -Infinity, quotedSince: -Infinity };

export function createNamePrices(settings: NamePricesSettings): NamePrices {
  const { names, prices, nameKinds, changes, yearsSold } = settings;

  function checked(check: Entry<Check> | undefined): Checked | undefined {
    if (check === undefined) return undefined;
    const { value, askedAt, answeredAt, sameSince } = check;
    const { wholesale, sign } = value;
    if (wholesale === undefined) return undefined;
    return { wholesale, sign, askedAt, answeredAt, sameSince, isCurrent: changes.isCurrent(check) };
  }

  function recall(name: DomainName, years: number, demands = NO_DEMANDS): Decision {
    const check = checked(names.check(name, years));
    const decision = decide({
      ...demands,
      years,
      check: (term) => (term === years ? check : checked(names.check(name, term))),
      quote: (term) => prices.peek(registration(name, term)),
      last: nameKinds.last(name),
      otherYears: yearsSold(name.tld).find((term) => term !== years) ?? 1,
      currentSince: changes.currentSince(),
    });
    const isDecided = decision.kind === "priced" || (decision.kind === "unpriced" && decision.why === "term");
    if (check !== undefined && isDecided)
      nameKinds.note(name, { kind: decision.nameKind, askedAt: check.askedAt });
    return decision;
  }

  async function find(
    ask: VisitorAsk,
    name: DomainName,
    years: number,
    demands?: Demands,
  ): Promise<Decision> {
    for (let calls = 0; ; calls += 1) {
      const decision = recall(name, years, demands);
      if (decision.kind !== "ask" || calls === MAX_CALLS) return decision;
      try {
        if (decision.what === "quote") {
          const what = registration(name, decision.years);
          if (decision.isContested === true) prices.contest(what, decision.since);
          await prices.ask(forFurtherCall(ask), what, decision.since);
        } else {
          const { status, known } = await names.find(
            forFurtherCall(ask),
            name,
            decision.years,
            decision.since,
          );
          if (status === "taken" && known.value.wholesale === undefined) return decision;
        }
      } catch (error) {
        const isKnown = prices.peek(registration(name, years)) !== undefined;
        if (demands === undefined && isKnown && isExpected(error)) return decision;
        throw error;
      }
    }
  }

  function isOrdinary(name: DomainName): boolean | undefined {
    const priced = names.priced(name);
    if (priced?.check.value.hasOtherPrices === true) return false;
    const decision = priced && recall(name, priced.years);
    if (nameKinds.of(name) !== "ordinary") return false;
    if (decision?.kind === "ask") return undefined;
    return decision === undefined || (decision.kind === "priced" && decision.nameKind === "ordinary");
  }

  return {
    recall,
    find,
    unconfirmed(name, years) {
      const check = checked(names.check(name, years));
      const quote = prices.peek(registration(name, years));
      if (check === undefined || quote === undefined || nameKinds.of(name) !== "ordinary") return undefined;
      return sameWholesale(check.wholesale, quote.wholesale) ? check.wholesale : undefined;
    },
    isOrdinary,
    async settle(ask, name) {
      const priced = names.priced(name);
      if (priced === undefined || isOrdinary(name) !== undefined) return;
      await find(ask, name, priced.years);
    },
  };
}

/** The same ask for a further call, such as the quote for its TLD. The check has been paid for, perhaps with a place, and would be wasted without it. */
function forFurtherCall(ask: VisitorAsk): VisitorAsk {
  return { ...ask, completes: ask.lane !== "suggestion" };
}

function registration({ tld }: DomainName, years: number): Combination {
  return { tld, action: "registration", years };
}

export function changing(): ServiceError {
  return new ServiceError("upstream_contract", "The price is changing at the moment. Try again.", {
    retryAfterMs: 1_000,
  });
}
