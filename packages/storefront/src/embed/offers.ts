/** What is shown as the price of a name: the newer of its answer and the price list, for the chosen term if the list has it. */
import type { Availability, Money } from "../../../client/src/client.js";
import { amount, years } from "./language.js";
import type { Shop } from "./shop.js";
import type { Texts } from "./texts/en.js";

/** A price and its term. `regular` is the price without the promotion; null if there is none, or the price isn't from the price list. */
export interface Offer {
  readonly price: Money;
  readonly years: number;
  readonly regular: Money | null;
}

/** The amounts in the price list when an answer was first shown; empty once the list has had another one, which is newer. */
const listedThen = {
  registration: new WeakMap<Availability, string>(),
  renewal: new WeakMap<Availability, string>(),
};

/** The price in the answer, or the list price if that has changed since the answer was first shown. */
function newer(
  action: keyof typeof listedThen,
  result: Availability,
  answered: Money,
  listed: Money | undefined,
): Money {
  if (listed === undefined) return answered;
  const then = listedThen[action];
  const amountThen = then.get(result) ?? listed.amount;
  const isAsThen = amountThen === listed.amount;
  then.set(result, isAsThen ? amountThen : "");
  return isAsThen ? answered : listed;
}

/** The list price for the term; if that isn't sold, for the next shorter one, or the shortest. */
export function listedOffer(shop: Shop, tld: string, term: number): Offer | null {
  const found = shop.price(tld, "registration", nearest(shop.terms(tld), term));
  if (found === undefined) return null;
  const { price, years: termSold, promotion } = found;
  return { price, years: termSold, regular: promotion?.regular ?? null };
}

/** The price list has an ordinary name's price for every term; a premium name has its own price, for the requested term. */
export function offerFor(shop: Shop, result: Availability, term: number): Offer | null {
  if (!result.available || result.price === null) return null;
  if (result.premium) return { price: result.price, years: result.years, regular: null };
  const sameTerm = shop.price(result.tld, "registration", result.years)?.price;
  const price = newer("registration", result, result.price, sameTerm);
  const listed = listedOffer(shop, result.tld, term);
  return listed !== null && sameTerm?.amount === price.amount
    ? listed
    : { price, years: result.years, regular: null };
}

/** The renewal price as text; empty while that of an ordinary name isn't known. */
export function renewalOf(texts: Texts, shop: Shop, result: Availability): string {
  const { tld, premium, renewal } = result;
  if (premium) return texts.renewalUnknown;
  const listed = shop.renewal(tld);
  if (renewal === null || listed === undefined) return "";
  return renewalText(texts, newer("renewal", result, renewal, listed.price), listed.years);
}

/** The renewal price of an ordinary name under the TLD as text; empty while it isn't known. */
export function listedRenewal(texts: Texts, shop: Shop, tld: string): string {
  const listed = shop.renewal(tld);
  return listed === undefined ? "" : renewalText(texts, listed.price, listed.years);
}

function renewalText(texts: Texts, price: Money, term: number): string {
  const whole = amount(texts, price);
  return texts.renewsAt(term === 1 ? texts.aYear(whole) : `${whole} · ${years(texts, term)}`);
}

/** The term if it is one of these, which are sorted; otherwise the next shorter one, or the shortest. */
export function nearest(terms: readonly number[], term: number): number {
  return [...terms].reverse().find((sold) => sold <= term) ?? terms[0] ?? term;
}
