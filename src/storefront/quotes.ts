/**
 * Prices for a cart, promised as they are shown: what is to be registered is checked anew in the checkout lane; everything is answered, or
 * nothing is.
 */
import type { DomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Retail, Wholesale } from "../money.js";
import type { Action, AppliedPromotion, Combination, RetailPolicy } from "../retail/policy.js";
import type { PriceList } from "../retail/price-list.js";
import type { Promises } from "../retail/promise.js";
import type { AvailabilityDesk, VisitorAsk } from "./availability.js";

export interface QuoteItem {
  readonly name: DomainName;
  readonly action: Action;
  readonly years: number;
}

export interface QuotedItem extends QuoteItem {
  readonly price: Retail | null;
  readonly status: "available" | "taken" | "not_checked";
  readonly premium: boolean;
  /** What the price was made of, where there is one. */
  readonly wholesale: Wholesale | undefined;
}

export interface Cart {
  readonly items: readonly QuotedItem[];
  /** Null where nothing has a price, and without a key to sign with. */
  readonly promise: { readonly jws: string; readonly validUntilMs: number } | null;
}

export interface TermQuote {
  readonly price: Retail;
  readonly wholesale: Wholesale;
  readonly promotion: AppliedPromotion | undefined;
  readonly asOfMs: number;
}

/** A double click on "order" need not be checked twice. */
const CHECKED_JUST_NOW_MS = 5_000;

export function createQuoteDesk(
  policy: RetailPolicy,
  prices: PriceList,
  desk: AvailabilityDesk,
  promises: Promises,
  now: () => number,
) {
  /** The retail price of a term sold. */
  async function term(ask: VisitorAsk, what: Combination): Promise<TermQuote> {
    if (!prices.knows(what)) ask.spend();
    const known = await prices.quote(ask, what);
    const priced = policy.price(known.value, what, { premium: false, atMs: now() });
    if (!priced.ok)
      throw new ServiceError("upstream_contract", "No price can be formed for this term at the moment.");
    return {
      price: priced.price,
      wholesale: known.value,
      promotion: priced.promotion,
      asOfMs: known.asOfMs,
    };
  }

  async function item(ask: VisitorAsk, wanted: QuoteItem): Promise<QuotedItem> {
    const { name, action, years } = wanted;
    if (action !== "registration") {
      const { price, wholesale } = await term(ask, { tld: name.tld, action, years });
      return { ...wanted, price, status: "not_checked", premium: false, wholesale };
    }
    const anew = { maxAgeMs: CHECKED_JUST_NOW_MS, othersMs: 0 };
    const { status, price, premium, wholesale } = await desk.lookUp(ask, name, years, anew);
    if (status === "available" && price === null) {
      throw new ServiceError("upstream_contract", "No price can be formed for this name at the moment.");
    }
    return { ...wanted, price, status, premium, wholesale };
  }

  return {
    term,
    /** Rejects whole when one item cannot be had in time. */
    async cart(ask: VisitorAsk, wanted: readonly QuoteItem[]): Promise<Cart> {
      const items = await Promise.all(wanted.map((one) => item(ask, one)));
      const lines = items.flatMap(({ name, action, years, price, premium, wholesale }) =>
        price && wholesale
          ? [{ domain: name.ascii, tld: name.tld, action, years, price, premium, wholesale }]
          : [],
      );
      return { items, promise: await promises.sign(lines) };
    },
  };
}

export type QuoteDesk = ReturnType<typeof createQuoteDesk>;
