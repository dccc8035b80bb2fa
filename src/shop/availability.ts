/**
 * Answers whether a name is available and what it costs a visitor. A name is "available" only if the upstream said so within the last
 * minute. Every price comes from the retail policy and what the upstream says that this name costs, and is `stale` while that is in doubt.
 */
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected, ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Retail, Wholesale } from "../money.js";
import type { NameKinds } from "../retail/name-kinds.js";
import type { NameKind, RetailPolicy } from "../retail/policy.js";
import type { Decision } from "../retail/decide-kind.js";
import type { KnownQuote, PriceList } from "../retail/price-list.js";
import type { Combination } from "../upstream/contract.js";
import { failureCodeOf, timedOut } from "../upstream/failures.js";
import { changing, type Demands, type NamePrices } from "./name-prices.js";
import type { NameFact, Names, VisitorAsk } from "./names.js";

export interface Availability {
  readonly name: DomainName;
  readonly years: number;
  readonly status: "available" | "taken";
  readonly kind: NameKind;
  /** The registration price; null unless the name is available and a price can be calculated. */
  readonly price: Retail | null;
  /** The price of the shortest renewal; null unless the name is available and ordinary and that price is known and not in doubt. */
  readonly renewal: Retail | null;
  /** Wall clock, ms. */
  readonly asOfMs: number;
  /** The answer is past its freshness, or its price is in doubt. */
  readonly stale: boolean;
  /** Until when it may be shown, even as stale; on the clock of facts, ms. */
  readonly showUntilAt: number;
  /** Until when memory gives the same answer unless something new is learned; on the clock of facts, ms. */
  readonly sameUntilAt: number;
}

/** A name is never shown as available for longer after its check. */
const AVAILABLE_FOR_MS = 60_000;

/** A registration as a cart shows and signs it. */
export interface Registration extends Pick<Availability, "status" | "kind" | "price" | "asOfMs"> {
  /** The price that the retail price was calculated from. */
  readonly wholesale: Wholesale | null;
  /** Why an available name has no price. */
  readonly problem: ServiceError | null;
}

export interface AvailabilityService {
  /** The answer of `lookUp` if memory has it. */
  fromMemory(name: DomainName, years: number): Availability | undefined;
  /** Counts answers from memory that were sent. */
  countHits(count: number): void;
  /** Rejects with a ServiceError if there is no answer in time. */
  lookUp(ask: VisitorAsk, name: DomainName, years: number): Promise<Availability>;
  /**
   * The answer as memory has it now: another one, or stale, if something behind it has been contradicted since. Null if it can no longer be shown.
   */
  asOfNow(answer: Availability): Availability | null;
  /** What may be signed at this moment: nothing that is known contradicts it. Undefined if `prepare` must ask first. */
  signable(name: DomainName, years: number, demands: Demands): Registration | undefined;
  /** Asks the upstream for whatever `signable` lacks. Rejects if that fails, or prices contradict each other. */
  prepare(ask: VisitorAsk, name: DomainName, years: number, demands: Demands): Promise<void>;
}

export interface AvailabilitySettings {
  readonly policy: RetailPolicy;
  readonly prices: PriceList;
  readonly names: Names;
  readonly nameKinds: Pick<NameKinds, "of">;
  /** When the upstream last listed the name among the reseller's own domains, or null. */
  readonly ownedSinceAt: (ascii: string) => number | null;
  readonly clock: Clock;
  /** For the ages of facts. */
  readonly factClock: Clock;
  readonly log: Log;
}

/** How long a visitor who asks for a taken name waits to learn whether it has a price of its own. */
const DECIDE_TAKEN_MS = 1_000;

const WHY_UNPRICED = {
  sign: "signs_of_another_price",
  currency: "currencies_differ",
  term: "price_not_for_term",
} as const;

export function createAvailability(
  settings: AvailabilitySettings & { readonly namePrices: NamePrices },
): AvailabilityService {
  const { policy, prices, names, namePrices, nameKinds, clock, factClock, log } = settings;

  function retail(wholesale: Wholesale, what: Combination, kind: NameKind = "ordinary"): Retail | null {
    const result = policy.price(wholesale, what, clock.now(), kind);
    if (result.ok) return result.price;
    log.warn("price.not.formed", { tld: what.tld, years: what.years, reason: result.reason });
    return null;
  }

  /** What a decision makes of the price. */
  function priced(name: DomainName, years: number, decision: Decision): Pick<Availability, "kind" | "price"> {
    const what: Combination = { tld: name.tld, action: "registration", years };
    if (decision.kind === "unpriced") {
      log.warn("price.not.formed", { tld: name.tld, years, reason: WHY_UNPRICED[decision.why] });
      return { kind: decision.nameKind, price: null };
    }
    if (decision.kind === "priced") {
      const { nameKind, wholesale } = decision;
      return { kind: nameKind, price: retail(wholesale, what, nameKind) };
    }
    const wholesale = namePrices.unconfirmed(name, years);
    return {
      kind: nameKinds.of(name),
      price: wholesale === undefined ? null : retail(wholesale, what),
    };
  }

  function renewalQuote({ tld }: DomainName): KnownQuote | undefined {
    const [years] = policy.yearsSold(tld, "renewal");
    const quote = years === undefined ? undefined : prices.peek({ tld, action: "renewal", years });
    return quote?.stale === false ? quote : undefined;
  }

  /** The check behind a decision, and the quote if it depends on that as much: together as old as the older one. */
  function basis({ known }: NameFact, { tld }: DomainName, years: number, decision: Decision) {
    const { asOfMs, untilAt, source } = known;
    const needsQuote = decision.kind === "priced" && decision.needsQuote;
    const quote = needsQuote ? prices.peek({ tld, action: "registration", years }) : undefined;
    return {
      asOfMs: Math.min(asOfMs, quote?.asOfMs ?? Infinity),
      stale: source === "stale" || quote?.stale === true,
      untilAt: Math.min(untilAt, quote?.untilAt ?? Infinity),
    };
  }

  function presented(name: DomainName, years: number, fact: NameFact, decision: Decision): Availability {
    const { kind, price } = priced(name, years, decision);
    const { value, askedAt, asOfMs } = fact.known;
    const { untilAt, ...age } = basis(fact, name, years, decision);
    const isOrdinary = kind === "ordinary" && price !== null && value.hasOtherPrices !== true;
    const renewal = isOrdinary ? renewalQuote(name) : undefined;
    const stale = decision.kind === "ask" || age.stale;
    return {
      name,
      years,
      status: "available",
      kind,
      price,
      renewal: renewal ? retail(renewal.wholesale, renewal) : null,
      asOfMs,
      stale,
      showUntilAt: askedAt + AVAILABLE_FOR_MS,
      // While its price is in doubt, each answer asks for it to be refreshed.
      sameUntilAt: stale ? -Infinity : Math.min(untilAt, renewal?.untilAt ?? Infinity),
    };
  }

  function takenSince(name: DomainName, years: number, asOfMs: number): Availability {
    const noPrices = { kind: "ordinary", price: null, renewal: null } as const;
    const times = { asOfMs, stale: false, showUntilAt: Infinity, sameUntilAt: -Infinity };
    return { name, years, status: "taken", ...noPrices, ...times };
  }

  function takenFrom(name: DomainName, years: number, { known }: NameFact): Availability {
    const stale = known.source === "stale";
    const sameUntilAt = stale ? -Infinity : known.untilAt;
    return { ...takenSince(name, years, known.asOfMs), stale, sameUntilAt };
  }

  function owned(name: DomainName, years: number): Availability | undefined {
    const sinceAt = settings.ownedSinceAt(name.ascii);
    return sinceAt === null ? undefined : takenSince(name, years, sinceAt);
  }

  function fromMemory(name: DomainName, years: number): Availability | undefined {
    const own = owned(name, years);
    const fact = own === undefined ? names.fresh(name, years) : undefined;
    if (fact === undefined) return own;
    if (fact.status === "taken") return takenFrom(name, years, fact);
    const decision = namePrices.recall(name, years);
    if (decision.kind === "ask") {
      if (decision.what === "check" || namePrices.unconfirmed(name, years) === undefined) return undefined;
      prices.refreshFirst({ tld: name.tld, action: "registration", years });
    }
    return presented(name, years, fact, decision);
  }

  async function lookUp(ask: VisitorAsk, name: DomainName, years: number): Promise<Availability> {
    const known = fromMemory(name, years);
    if (known !== undefined) names.countHits(1);
    const found = known ?? (await asked(ask, name, years));
    if (canBeShown(found)) return found;
    throw timedOut();
  }

  async function asked(ask: VisitorAsk, name: DomainName, years: number): Promise<Availability> {
    const fact = await names.find(ask, name, years);
    if (fact.status === "taken") {
      // Its check shows now whether it has a price of its own, and may be gone when somebody wants to renew it.
      const waitUntilAt = Math.min(ask.waitUntilAt, clock.monotonic() + DECIDE_TAKEN_MS);
      await namePrices.settle({ ...ask, waitUntilAt }, name).catch((error: unknown) => {
        if (!isExpected(error)) throw error;
      });
      return fromMemory(name, years) ?? takenFrom(name, years, fact);
    }
    let decision: Decision;
    try {
      decision = await namePrices.find(ask, name, years);
    } catch (error) {
      // Without any quote it is unknown which rule applies, so there is no price that could be stale.
      const code = failureCodeOf(error);
      if (code === null) throw error;
      log.warn("price.not.formed", { tld: name.tld, years, reason: code });
      return { ...presented(name, years, fact, UNDECIDED), stale: fact.known.source === "stale" };
    }
    // Meanwhile another call may have shown that it is taken, or another price.
    const taken = names.taken(name);
    return taken !== undefined ? takenFrom(name, years, taken) : presented(name, years, fact, decision);
  }

  function canBeShown({ showUntilAt }: Availability): boolean {
    return showUntilAt >= factClock.monotonic();
  }

  return {
    fromMemory,
    countHits: names.countHits,
    lookUp,
    asOfNow(answer) {
      const { name, years, status, price } = answer;
      const taken = names.taken(name);
      const now =
        status === "available" && taken !== undefined
          ? takenFrom(name, years, taken)
          : (fromMemory(name, years) ?? { ...answer, stale: answer.stale || price !== null });
      return canBeShown(now) ? now : null;
    },

    signable(name, years, demands) {
      const taken = {
        status: "taken",
        kind: "ordinary",
        price: null,
        wholesale: null,
        problem: null,
      } as const;
      const own = owned(name, years);
      if (own !== undefined) return { ...taken, asOfMs: own.asOfMs };
      const fact = names.fresh(name, years);
      if (fact?.status === "taken") return { ...taken, asOfMs: fact.known.asOfMs };
      if (fact === undefined) return undefined;
      const decision = namePrices.recall(name, years, demands);
      if (decision.kind === "ask") return undefined;
      const { kind, price } = priced(name, years, decision);
      const wholesale = decision.kind === "priced" && price !== null ? decision.wholesale : null;
      const { asOfMs } = basis(fact, name, years, decision);
      return {
        status: "available",
        kind,
        price,
        wholesale,
        asOfMs,
        problem: price === null ? noPrice() : null,
      };
    },

    async prepare(ask, name, years, demands) {
      const fact = await names.find(ask, name, years, demands.checkedSince);
      if (fact.status === "taken") return;
      const decision = await namePrices.find(ask, name, years, demands);
      if (decision.kind === "ask") throw changing();
    },
  };
}

const UNDECIDED: Decision = { kind: "ask", what: "quote", years: 1, since: -Infinity };

export function noPrice(): ServiceError {
  return new ServiceError("upstream_contract", "The price of this name can't be calculated at the moment.");
}
