/**
 * Finds signs that a name is premium in an answer that may show them in any form: flags, classes, words, second prices. Whatever isn't fully
 * understood counts, because selling a premium name at the ordinary price is the costliest mistake.
 */
import type { Wholesale } from "../money.js";
import { isFields, scalarText, walk } from "./fields.js";
import { flagOf } from "./values.js";
import { normalized, normalizedSet } from "./vocabulary.js";

/** `flag`: something says "premium", and nothing else is odd. `price`: there is another price. `unclear`: it may be premium at another price. */
export type Sign = "flag" | "price" | "unclear";

/** The words that staff see. */
export const describeSign = (sign: Sign): string => `a sign of premium (${sign})`;

/** Fields about being premium, and about a class of names. A field "tier" is about the reseller. */
const PREMIUM_FIELD = /premium|aftermarket|auction|brokered/;
const CLASS_FIELD = /class|category/;
const ORDINARY_WORDS = normalizedSet(
  "standard,normal,regular,ordinary,default,basic,base,none,no,null,domain,n/a".split(","),
);
const PREMIUM_WORD = /(?<!\b(?:no|not|non|un|isn't|without)[\s_-]?(?:a[\s_-])?)premium/i;

const PRICE_FIELD = /price|amount|cost|fee|total|charge|value|buynow|bid/;
const OTHER_ACTION = /renew|transfer|restore|redempt|redeem/;
/** Prices of something else: other actions, taxes, parts of the term, what others pay. */
const OTHER_PRICE = new RegExp(
  `${OTHER_ACTION.source}|tax|vat|currency|retail|list|regular|original|msrp|suggest|standard|discount|saving|unit|peryear|yearly|annual|month|backorder|(?:id|at|date|code)$`,
);

const LIMITS = { depth: 5, values: 500 };

/** Visits each text, number and flag with the normalized names that lead to it. Returns false if there are too many. */
function visit(data: unknown, look: (value: unknown, names: string) => void): boolean {
  return walk(data, LIMITS, (value, path) => {
    // Not a field of the answer.
    if (path.at(-1) === "__proto__") return false;
    const isScalar = !isFields(value) && !Array.isArray(value);
    if (isScalar)
      look(
        value,
        path
          .filter((name) => name !== "[]")
          .map(normalized)
          .join(" "),
      );
    return !isScalar;
  });
}

/** The strongest sign in the answer's data. `price`: what the answer says that the name costs; other amounts are signs, too. */
export function signIn(data: unknown, price: Wholesale | null): Sign | undefined {
  const signs = new Set<Sign>();
  const isComplete = visit(data, (value, names) => {
    const sign = signOf(value, names, price);
    if (sign !== undefined) signs.add(sign);
  });
  const [first, ...others] = signs;
  return isComplete && others.length === 0 ? first : "unclear";
}

function signOf(value: unknown, names: string, price: Wholesale | null): Sign | undefined {
  const text = scalarText(value)?.trim() ?? "";
  if (value !== true && (text === "" || /^0+(?:\.0+)?$/.test(text))) return undefined;
  if (PREMIUM_FIELD.test(names)) {
    const flag = flagOf(value === true ? value : text);
    if (flag !== null) return flag ? "flag" : undefined;
    if (ORDINARY_WORDS.has(normalized(text))) return undefined;
    return PREMIUM_WORD.test(text) && !/\d/.test(text) ? "flag" : "unclear";
  }
  if (PREMIUM_WORD.test(text)) return "flag";
  if (CLASS_FIELD.test(names) && typeof value !== "number" && value !== true)
    return ORDINARY_WORDS.has(normalized(text)) ? undefined : "unclear";
  return price !== null && isOtherPrice(text, names, price) ? "price" : undefined;
}

/** Whether an answer about a name states what another action on it costs. It may be a price of its own, unlike the list's. */
export function statesOtherActions(data: unknown): boolean {
  let isStated = false;
  visit(data, (value, names) => {
    if (typeof value !== "number" && OTHER_ACTION.test(names) && PRICE_FIELD.test(names))
      isStated ||= /[1-9]/.test(amountIn(scalarText(value) ?? ""));
  });
  return isStated;
}

/** The digits of an amount, perhaps with a currency before or after it; otherwise an empty text. */
function amountIn(text: string): string {
  return /^\D{0,5}?(\d[\d,]{0,14}(?:\.\d{1,6})?)\D{0,5}$/.exec(text.trim())?.[1] ?? "";
}

/** Whether it is an amount that isn't the price, in a field that could be the price. Whole numbers can be the price in minor units. */
function isOtherPrice(text: string, names: string, { amount }: Wholesale): boolean {
  const digits = amountIn(text);
  if (digits === "" || !PRICE_FIELD.test(names) || OTHER_PRICE.test(names)) return false;
  const [own, other] = [inMillionths(amount), inMillionths(digits.replaceAll(",", ""))];
  return other !== own && other !== own * 100n;
}

function inMillionths(text: string): bigint {
  const [whole = "0", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(6, "0"));
}
