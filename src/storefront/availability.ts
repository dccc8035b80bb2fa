/**
 * Whether a name is free and what it costs a visitor. Never "available" without the upstream having said so within the last minute,
 * never a price that the retail policy did not form from the upstream's price for this name.
 */
import type { GetOptions, Known, Pool } from "../cache/cache.js";
import type { Fact } from "../cache/shared-tier.js";
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { type Retail, sameWholesale, type Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import { sharedAsk } from "../quota/shared-ask.js";
import type { Combination, RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { Check } from "../upstream/contract.js";

/** A visitor's ask: `spend` is called once before anything is asked of the upstream, and may refuse. */
export interface VisitorAsk extends Ask {
  spend(): void;
}

export interface Availability {
  readonly name: DomainName;
  readonly years: number;
  readonly status: "available" | "taken";
  readonly premium: boolean;
  /** The registration price; null unless available, and where no price can be formed. */
  readonly price: Retail | null;
  /** What the upstream wants for an available name; for what staff are told of a promise. */
  readonly wholesale?: Wholesale;
  readonly asOfMs: number;
  readonly stale: boolean;
}

export interface AvailabilityDesk {
  /** What `lookUp` would answer at once, from memory alone: the same object as long as the facts behind it are the same. */
  known(name: DomainName, years: number): Availability | undefined;
  /** Whether nothing is remembered of it, nobody is asking for it, and no other replica can know it. */
  isUnknown(name: DomainName, years: number): boolean;
  /** Rejects with a ServiceError when it cannot be known in time. `maxAgeMs`: for what has to be known anew. */
  lookUp(ask: VisitorAsk, name: DomainName, years: number, options?: GetOptions): Promise<Availability>;
}

export interface AvailabilitySettings {
  readonly policy: RetailPolicy;
  readonly prices: PriceList;
  readonly pool: Pool<Check, VisitorAsk>;
  readonly check: (ask: Ask, name: DomainName, years: number) => Promise<Check>;
  /** When the upstream last listed the name among the reseller's own domains, or null. */
  readonly ownedSinceMs: (ascii: string) => number | null;
  readonly clock: Clock;
  readonly log: Log;
}

/** A quote younger than this is not doubted when a check's price differs from it: the name is premium. */
const QUOTE_BELIEVED_MS = 300_000;

export function createAvailabilityDesk(settings: AvailabilitySettings): AvailabilityDesk {
  const { policy, prices, pool, clock } = settings;
  /** What has been answered from a fact in memory; it goes when the fact goes. */
  const answers = new WeakMap<Check, Answered>();

  const keyOf = (name: DomainName, years: number): string => `${name.ascii} ${years}`;

  /** What is known to be taken is taken for every term, so it is kept under the bare name. */
  async function check(
    ask: VisitorAsk,
    name: DomainName,
    years: number,
    options: GetOptions,
  ): Promise<Known<Check>> {
    if (options.maxAgeMs === undefined) {
      const taken = pool.fresh(name.ascii);
      if (taken) {
        pool.countHit();
        return { ...taken, source: "hit" };
      }
    }
    const known = await pool.get(
      keyOf(name, years),
      ask,
      async ({ askers, signal }) => {
        ask.spend();
        const found = await settings.check(sharedAsk(askers, ask, signal), name, years);
        if (found.status === "available") pool.forget(name.ascii);
        return found;
      },
      options,
    );
    if (known.value.status === "taken" && known.source === "miss")
      pool.put(name.ascii, known.value, known.asOfMs);
    return known;
  }

  /** The price of the name is compared with the quote for its TLD and term; an old quote is asked for again before it is believed. */
  async function isPremium(ask: VisitorAsk, what: Combination, wholesale: Wholesale): Promise<boolean> {
    const quote = await prices.quote(ask, what);
    if (sameWholesale(quote.value, wholesale)) return false;
    if (clock.now() - quote.asOfMs < QUOTE_BELIEVED_MS) return isAnother(quote.value, wholesale);
    return isAnother((await prices.quote(ask, what, QUOTE_BELIEVED_MS)).value, wholesale);
  }

  /**
   * Whether a price that is not the quote's is for all of `years`: an upstream that ignores them gives several years the price of one,
   * and nobody can say what those would cost.
   */
  async function isForTerm(
    ask: VisitorAsk,
    name: DomainName,
    what: Combination,
    wholesale: Wholesale,
  ): Promise<boolean> {
    if (what.years === 1) return true;
    const ofYear = await prices.quote(ask, { ...what, years: 1 });
    if (!isAnother(ofYear.value, wholesale)) return false;
    const one = await check(ask, name, 1, {});
    return one.value.status === "available" && isAnother(one.value.wholesale, wholesale);
  }

  /** No price where none can be formed, or where the upstream's quote, without which nobody knows whether the name is premium, fails. */
  async function priced(ask: VisitorAsk, name: DomainName, what: Combination, wholesale: Wholesale) {
    try {
      const premium = await isPremium(ask, what, wholesale);
      if (premium && !(await isForTerm(ask, name, what, wholesale))) {
        notFormed(what, "price_not_for_term");
        return { premium: false, price: null };
      }
      const result = policy.price(wholesale, what, { premium, atMs: clock.now() });
      if (result.ok) return { premium, price: result.price };
      notFormed(what, result.reason);
      return { premium, price: null };
    } catch (error) {
      if (!(error instanceof ServiceError && error.code.startsWith("upstream_"))) throw error;
      notFormed(what, error.code);
      return { premium: false, price: null };
    }
  }

  function notFormed({ tld, years }: Combination, reason: string): void {
    settings.log.warn("price.not.formed", { tld, years, reason });
  }

  function owned(name: DomainName, years: number): Availability | undefined {
    const sinceMs = settings.ownedSinceMs(name.ascii);
    if (sinceMs === null) return undefined;
    return taken(name, years, { asOfMs: sinceMs, stale: false });
  }

  /** A name at the price of its TLD and term; what may be premium needs a closer look, and a quote past its freshness is asked for anew. */
  function known(name: DomainName, years: number): Availability | undefined {
    const own = owned(name, years);
    if (own !== undefined) return own;
    const fact = pool.fresh(name.ascii) ?? pool.fresh(keyOf(name, years));
    if (fact === undefined) return undefined;
    const { value, asOfMs } = fact;
    const what: Combination = { tld: name.tld, action: "registration", years };
    const quote = value.status === "taken" ? null : prices.freshQuote(what);
    if (quote === undefined) return undefined;
    const season = policy.season(clock.now());
    const before = answers.get(value);
    const isSame = before?.quote === quote && before.season === season && before.answer.years === years;
    const answer = isSame ? before.answer : formed(name, what, { value, asOfMs }, quote);
    if (answer === undefined) return undefined;
    if (!isSame) answers.set(value, { answer, quote, season });
    pool.countHit();
    return answer;
  }

  function formed(name: DomainName, what: Combination, fact: Fact<Check>, quote: Wholesale | null) {
    const answer = taken(name, what.years, { asOfMs: fact.asOfMs, stale: false });
    if (fact.value.status === "taken") return answer;
    const { wholesale } = fact.value;
    if (quote === null || !sameWholesale(quote, wholesale)) return undefined;
    const result = policy.price(wholesale, what, { premium: false, atMs: clock.now() });
    return result.ok
      ? { ...answer, status: "available" as const, wholesale, price: result.price }
      : undefined;
  }

  return {
    known,
    isUnknown: (name, years) =>
      settings.ownedSinceMs(name.ascii) === null &&
      pool.isUnknown(name.ascii) &&
      pool.isUnknown(keyOf(name, years)),
    async lookUp(ask, name, years, options = {}) {
      const own = owned(name, years);
      if (own !== undefined) return own;
      const what: Combination = { tld: name.tld, action: "registration", years };
      const fact = await check(ask, name, years, options);
      const answer = taken(name, years, { asOfMs: fact.asOfMs, stale: fact.source === "stale" });
      if (fact.value.status === "taken") return answer;
      const { wholesale } = fact.value;
      return { ...answer, status: "available", wholesale, ...(await priced(ask, name, what, wholesale)) };
    },
  };
}

interface Answered {
  readonly answer: Availability;
  /** Null where no price is told. */
  readonly quote: Wholesale | null;
  readonly season: number;
}

function taken(name: DomainName, years: number, known: Pick<Availability, "asOfMs" | "stale">): Availability {
  return { name, years, status: "taken", premium: false, price: null, ...known };
}

/** Whether the prices differ; throws `upstream_contract` where their currencies do, because nobody can compare them then. */
function isAnother(a: Wholesale, b: Wholesale): boolean {
  if (a.currency !== b.currency)
    throw new ServiceError("upstream_contract", "The registry service names prices in several currencies.");
  return !sameWholesale(a, b);
}
