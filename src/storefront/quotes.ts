/**
 * Prices a cart line by line and signs the priced lines as a promise. Every fact behind a signed price was requested at most a minute ago
 * (availability at most 5 s ago), and no known fact contradicts it. A line without a price says why.
 */
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected, ServiceError } from "../errors.js";
import { type Retail, sameWholesale, type Wholesale } from "../money.js";
import type { AppliedPromotion, RetailPolicy } from "../retail/policy.js";
import type { VisitorAsk } from "./name-facts.js";
import type { Action, Combination } from "../upstream/contract.js";
import type { PriceList } from "../retail/price-list.js";
import type { QuotedPrice } from "../retail/price-quotes.js";
import type { PromisedLine, Promises, SignedPromise } from "../retail/promise.js";
import type { Demands } from "./assessment.js";
import type { AvailabilityService } from "./availability.js";
import type { PremiumMarks } from "./premium-marks.js";
import type { PremiumNames } from "./premium-names.js";

export interface QuoteItem {
  readonly name: DomainName;
  readonly action: Action;
  readonly years: number;
}

export interface CartLine extends QuoteItem {
  readonly price: Retail | null;
  readonly status: "available" | "taken" | "not_checked";
  readonly premium: boolean;
  /** When the oldest fact behind it was requested, or the line itself if it has a problem; wall clock, ms. */
  readonly asOfMs: number;
  /** Why there is no price, unless the name is taken. */
  readonly problem: ServiceError | null;
}

export interface PricedCart {
  readonly lines: readonly CartLine[];
  /** Signs the lines that have a price. */
  sign(): Cart;
}

export interface Cart {
  readonly lines: readonly CartLine[];
  /** Null if no line has a price or there is no signing key. */
  readonly promise: SignedPromise | null;
}

export interface TermQuote {
  readonly price: Retail;
  readonly promotion: AppliedPromotion | undefined;
  readonly asOfMs: number;
  readonly stale: boolean;
}

export interface Quotes {
  /** The retail price of one combination that is sold. */
  term(ask: VisitorAsk, what: Combination): Promise<TermQuote>;
  /** Returns every line, with a price or a problem; rejects only if no line could be answered. */
  cart(ask: VisitorAsk, wanted: readonly QuoteItem[]): Promise<PricedCart>;
}

export interface QuoteSettings {
  readonly policy: Pick<RetailPolicy, "price" | "promotionEpoch" | "promiseValidMs">;
  readonly prices: Pick<PriceList, "peek" | "quote">;
  readonly availability: Pick<AvailabilityService, "register">;
  readonly premiumNames: Pick<PremiumNames, "isPremium" | "isContradicted">;
  readonly marks: Pick<PremiumMarks, "isPremium">;
  readonly promises: Pick<Promises, "sign">;
  /** Facts requested before this stamp aren't signed. */
  readonly signableSinceMs: number;
  readonly clock: Clock;
  /** For the ages of facts. */
  readonly factClock: Clock;
}

interface PricedLine {
  readonly line: CartLine;
  readonly wholesale: Wholesale | null;
}

/** A line that can be signed while `isCurrent` returns true. */
interface Ready extends PricedLine {
  /** When its problem arose; monotonic clock, ms. */
  readonly problemAtMs?: number;
  isCurrent(): boolean;
}

const CHECKED_MS = 5_000;
const QUOTED_MS = 60_000;

export function createQuotes(settings: QuoteSettings): Quotes {
  const { policy, prices, availability, premiumNames, marks, promises, signableSinceMs, clock, factClock } =
    settings;
  const demands = (): Demands => ({
    checkedSinceMs: Math.max(factClock.monotonic() - CHECKED_MS, signableSinceMs),
    quotedSinceMs: Math.max(factClock.monotonic() - QUOTED_MS, signableSinceMs),
  });

  function ordinaryPrice(wholesale: Wholesale, what: Combination) {
    const priced = policy.price(wholesale, what, { premium: false, atMs: clock.now() });
    if (priced.ok) return priced;
    throw new ServiceError("upstream_contract", "The price of this term can't be calculated at the moment.");
  }

  async function term(ask: VisitorAsk, what: Combination): Promise<TermQuote> {
    if (prices.peek(what)?.isTrusted !== true) ask.spend();
    const { wholesale, asOfMs, stale } = await prices.quote(ask, what);
    const { price, promotion } = ordinaryPrice(wholesale, what);
    return { price, promotion, asOfMs, stale };
  }

  async function registration(ask: VisitorAsk, item: QuoteItem): Promise<Ready> {
    const found = await availability.register(ask, item.name, item.years, demands());
    const { status, price, premium, wholesale, asOfMs } = found;
    return {
      line: { ...item, price, status, premium, asOfMs, problem: null },
      wholesale,
      isCurrent: () => found.isCurrent(demands()),
    };
  }

  /** The upstream quotes TLDs rather than names, so the ordinary price applies unless the name is known to be premium. */
  async function atListPrice(ask: VisitorAsk, item: QuoteItem): Promise<Ready> {
    if (await premiumNames.isPremium(ask, item.name)) return unanswered(item, premiumWithoutPrice(), true);
    const what = termOf(item);
    const quote = await quoteToSign(ask, what);
    const promotionEpoch = policy.promotionEpoch(clock.now());
    return {
      ...atQuote(item, quote, ordinaryPrice(quote.wholesale, what).price),
      // In the meantime another visitor's check may name a price of its own.
      isCurrent: () =>
        isSignable(prices.peek(what), quote) &&
        !premiumNames.isContradicted(item.name) &&
        policy.promotionEpoch(clock.now()) === promotionEpoch,
    };
  }

  function atQuote(
    { name, action, years }: QuoteItem,
    { wholesale, asOfMs }: QuotedPrice,
    price: Retail,
  ): PricedLine {
    return {
      line: { name, action, years, price, status: "not_checked", premium: false, asOfMs, problem: null },
      wholesale,
    };
  }

  async function quoteToSign(ask: VisitorAsk, what: Combination): Promise<QuotedPrice> {
    const known = prices.peek(what);
    if (known && isSignable(known, known)) return known;
    ask.spend();
    const quote = await prices.quote(ask, what, demands().quotedSinceMs);
    if (isSignable(quote, quote)) return quote;
    // New evidence arrived during the call.
    const again = await prices.quote(ask, what, demands().quotedSinceMs);
    if (isSignable(again, again)) return again;
    throw changing();
  }

  function isSignable(now: QuotedPrice | undefined, quote: QuotedPrice): boolean {
    return (
      now?.isTrusted === true &&
      sameWholesale(now.wholesale, quote.wholesale) &&
      now.askedMs >= demands().quotedSinceMs
    );
  }

  function unanswered(item: QuoteItem, problem: ServiceError, isPremium = false): Ready {
    const asOfMs = clock.now();
    const premium = isPremium || marks.isPremium(item.name);
    const line: CartLine = { ...item, price: null, status: "not_checked", premium, asOfMs, problem };
    return { line, wholesale: null, problemAtMs: clock.monotonic(), isCurrent: () => true };
  }

  /** The line with its wait shortened by the time that has passed while other lines were being priced. */
  function asOfNow({ line, problemAtMs, ...ready }: Ready): Ready {
    if (line.problem === null || problemAtMs === undefined) return { line, ...ready };
    return { ...ready, line: { ...line, problem: line.problem.after(clock.monotonic() - problemAtMs) } };
  }

  async function ready(ask: VisitorAsk, item: QuoteItem): Promise<Ready> {
    try {
      return await (item.action === "registration" ? registration(ask, item) : atListPrice(ask, item));
    } catch (error) {
      if (isExpected(error)) return unanswered(item, error);
      throw error;
    }
  }

  function pricedCart(settled: readonly PricedLine[]): PricedCart {
    const lines = settled.map(({ line }) => line);
    const promised: PromisedLine[] = [];
    for (const { line, wholesale } of settled) {
      const { name, action, years, price, premium } = line;
      if (price && wholesale)
        promised.push({ domain: name.ascii, tld: name.tld, action, years, price, premium, wholesale });
    }
    return { lines, sign: () => ({ lines, promise: promises.sign(promised, policy.promiseValidMs) }) };
  }

  return {
    term,
    async cart(ask, wanted) {
      const first = await Promise.all(wanted.map((item) => ready(ask, item)));
      // Lines that became outdated or contradicted while others waited get a second try.
      const again = await Promise.all(
        first.map(async (one) => (one.isCurrent() ? one : ready(ask, one.line))),
      );
      const settled = again.map((one) => asOfNow(one.isCurrent() ? one : unanswered(one.line, changing())));
      const problems = settled.flatMap(({ line }) => line.problem ?? []);
      const [problem] = problems.toSorted(soonestFirst);
      if (problem !== undefined && problems.length === wanted.length) throw problem;
      return pricedCart(settled);
    },
  };
}

function termOf({ name, action, years }: QuoteItem): Combination {
  return { tld: name.tld, action, years };
}

/** By the time of the retry, with a reserved call first. */
function soonestFirst(a: ServiceError, b: ServiceError): number {
  const later = (a.retryAfterMs ?? Infinity) - (b.retryAfterMs ?? Infinity);
  return later || Number(b.kept === true) - Number(a.kept === true);
}

function premiumWithoutPrice(): ServiceError {
  return new ServiceError(
    "upstream_contract",
    "This is a premium name, and the registry service has no price for this action on it.",
  );
}

function changing(): ServiceError {
  return new ServiceError("upstream_contract", "The price is changing at the moment. Try again.", {
    retryAfterMs: 1_000,
  });
}
