/**
 * Prices a cart line by line and signs the priced lines as a promise. What a signed price is made of was asked at most a minute ago (a check at most
 * 5 s ago), and nothing known contradicts it. A line without a price says why.
 */
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { isExpected, ServiceError } from "../errors.js";
import type { Retail, Wholesale } from "../money.js";
import type { AppliedPromotion, NameKind, RetailPolicy } from "../retail/policy.js";
import type { NameKinds } from "../retail/name-kinds.js";
import type { PriceList } from "../retail/price-list.js";
import type { PromisedLine, Promises, SignedPromise } from "../retail/promise.js";
import type { Action, Combination } from "../upstream/contract.js";
import { type AvailabilityService, noPrice } from "./availability.js";
import { changing, type Demands, type NamePrices } from "./name-prices.js";
import type { VisitorAsk } from "./names.js";

export interface QuoteItem {
  readonly name: DomainName;
  readonly action: Action;
  readonly years: number;
}

export interface CartLine extends QuoteItem {
  readonly price: Retail | null;
  readonly status: "available" | "taken" | "not_checked";
  readonly kind: NameKind;
  /** When the oldest fact behind it was asked, or the line itself if it has a problem; wall clock, ms. */
  readonly asOfMs: number;
  /** Why there is no price, unless the name is taken. */
  readonly problem: ServiceError | null;
}

export interface Cart {
  readonly lines: readonly CartLine[];
  /** Null if no line has a price or there is no signing key. */
  readonly promise: SignedPromise | null;
}

interface PricedCart {
  readonly lines: readonly CartLine[];
  /** Signs the lines that have a price. */
  sign(): Cart;
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
  readonly policy: Pick<RetailPolicy, "price" | "promiseValidMs">;
  readonly prices: Pick<PriceList, "peek" | "ask">;
  readonly nameKinds: Pick<NameKinds, "of">;
  readonly promises: Pick<Promises, "sign">;
  readonly clock: Clock;
  /** For the ages of facts. */
  readonly factClock: Clock;
}

/** What may be signed of a line at this moment. */
interface Signable extends Omit<CartLine, keyof QuoteItem> {
  /** The price that the retail price was calculated from. */
  readonly wholesale: Wholesale | null;
}

interface Failure {
  readonly error: ServiceError;
  /** Monotonic clock, ms. */
  readonly failedAt: number;
}

const CHECKED_MS = 5_000;
const QUOTED_MS = 60_000;

export function createQuotes(
  settings: QuoteSettings & {
    readonly availability: Pick<AvailabilityService, "signable" | "prepare">;
    readonly namePrices: Pick<NamePrices, "isOrdinary" | "settle">;
  },
): Quotes {
  const { policy, prices, availability, namePrices, nameKinds, promises, clock, factClock } = settings;
  const demands = (): Demands => ({
    checkedSince: factClock.monotonic() - CHECKED_MS,
    quotedSince: factClock.monotonic() - QUOTED_MS,
  });

  function unpriced(kind: NameKind, problem: ServiceError): Signable {
    return { price: null, wholesale: null, status: "not_checked", asOfMs: clock.now(), kind, problem };
  }

  /** What may be signed at this moment, from memory; undefined if `prepare` must ask first. */
  function signable({ name, action, years }: QuoteItem): Signable | undefined {
    if (action === "registration") return availability.signable(name, years, demands());
    // The upstream quotes TLDs rather than names, so the ordinary price applies unless something known says otherwise.
    const isOrdinary = namePrices.isOrdinary(name);
    if (isOrdinary === undefined) return undefined;
    if (!isOrdinary) {
      const kind = nameKinds.of(name);
      return unpriced(kind, kind === "premium" ? premiumWithoutPrice() : noPrice());
    }
    const quote = prices.peek({ tld: name.tld, action, years });
    if (quote?.isCurrent !== true || quote.askedAt < demands().quotedSince) return undefined;
    const { wholesale, asOfMs } = quote;
    const priced = policy.price(wholesale, quote, clock.now());
    if (!priced.ok) return unpriced("ordinary", noTermPrice());
    const { price } = priced;
    return { price, wholesale, status: "not_checked", kind: "ordinary", asOfMs, problem: null };
  }

  /** Asks the upstream for whatever `signable` lacks. */
  async function prepare(ask: VisitorAsk, item: QuoteItem): Promise<void> {
    const { name, action, years } = item;
    if (action === "registration") return availability.prepare(ask, name, years, demands());
    await namePrices.settle(ask, name);
    if (namePrices.isOrdinary(name) !== true || signable(item) !== undefined) return;
    ask.spend();
    await prices.ask(ask, { tld: name.tld, action, years }, demands().quotedSince);
  }

  /** Returns why the line couldn't be prepared, or null. */
  async function tryToPrepare(ask: VisitorAsk, item: QuoteItem): Promise<Failure | null> {
    try {
      if (signable(item) === undefined) await prepare(ask, item);
      return null;
    } catch (error) {
      if (isExpected(error)) return { error, failedAt: clock.monotonic() };
      throw error;
    }
  }

  /** What may be signed now, after the waits of all lines, or why nothing may. */
  function settled(item: QuoteItem, failure: Failure | null): Signable {
    const now = signable(item);
    if (now !== undefined) return now;
    const problem = failure?.error.after(clock.monotonic() - failure.failedAt) ?? changing();
    return unpriced(nameKinds.of(item.name), problem);
  }

  return {
    async term(ask, what) {
      if (prices.peek(what)?.isCurrent !== true) ask.spend();
      const { wholesale, asOfMs, stale } = await prices.ask(ask, what);
      const priced = policy.price(wholesale, what, clock.now());
      if (!priced.ok) throw noTermPrice();
      return { price: priced.price, promotion: priced.promotion, asOfMs, stale };
    },

    async cart(ask, wanted) {
      const first = await Promise.all(wanted.map((item) => tryToPrepare(ask, item)));
      // Lines that became outdated or contradicted while others waited get a second try.
      const again = await Promise.all(
        wanted.map(async (item, at) => first[at] ?? (await tryToPrepare(ask, item))),
      );
      const lines: CartLine[] = [];
      const promised: PromisedLine[] = [];
      for (const [at, item] of wanted.entries()) {
        const { wholesale, ...found } = settled(item, again[at] ?? null);
        lines.push({ ...item, ...found });
        if (found.price === null || wholesale === null) continue;
        const { name, action, years } = item;
        const { price, kind } = found;
        promised.push({ domain: name.ascii, tld: name.tld, action, years, price, wholesale, kind });
      }
      const problems = lines.flatMap(({ problem }) => problem ?? []);
      const [problem] = problems.toSorted(soonestFirst);
      if (problem !== undefined && problems.length === wanted.length) throw problem;
      return { lines, sign: () => ({ lines, promise: promises.sign(promised, policy.promiseValidMs) }) };
    },
  };
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

function noTermPrice(): ServiceError {
  return new ServiceError("upstream_contract", "The price of this term can't be calculated at the moment.");
}
