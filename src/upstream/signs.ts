/**
 * Finds signs that a name is premium in an answer that may show them in any form: flags, classes, words, second prices. Whatever isn't fully
 * understood counts, because selling a premium name at the ordinary price is the costliest mistake.
 */
import { type Wholesale } from "../money.js";
import { flagOf } from "./values.js";
import { normalized, normalizedSet } from "./vocabulary.js";
import { isFields, WrittenNumber } from "./written-json.js";

/** `flag`: something says "premium", and nothing else is odd. `price`: there is another price. `unclear`: it may be premium at another price. */
export const SIGNS = ["flag", "price", "unclear"] as const;
export type Sign = (typeof SIGNS)[number];

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
/** Prices of something else: other actions, taxes, parts of the term, what others pay. */
const OTHER_PRICE =
  /renew|transfer|restore|redempt|redeem|tax|vat|currency|retail|list|regular|original|msrp|suggest|standard|discount|saving|unit|peryear|yearly|annual|month|backorder|(?:id|at|date|code)$/;

const MAX_DEPTH = 5;
const MAX_VALUES = 500;

/** The strongest sign in the answer's data. `price`: what the answer says that the name costs; other amounts are signs, too. */
export function signIn(data: unknown, price: Wholesale | null): Sign | undefined {
  const signs = new Set<Sign>();
  let looked = 0;

  function visit(value: unknown, path: string, isPremiumField: boolean, depth: number): void {
    looked += 1;
    if (looked > MAX_VALUES || depth > MAX_DEPTH) {
      signs.add("unclear");
      return;
    }
    if (Array.isArray(value)) {
      const items: unknown[] = value;
      for (const item of items) visit(item, path, isPremiumField, depth + 1);
    } else if (isFields(value)) {
      for (const [key, inner] of Object.entries(value)) {
        if (key === "__proto__") continue;
        const name = normalized(key);
        visit(inner, `${path} ${name}`, isPremiumField || PREMIUM_FIELD.test(name), depth + 1);
      }
    } else {
      const sign = signOf(value, path, isPremiumField, price);
      if (sign !== undefined) signs.add(sign);
    }
  }

  visit(data, "", false, 0);
  const [first, ...others] = signs;
  return others.length > 0 ? "unclear" : first;
}

function signOf(
  value: unknown,
  path: string,
  isPremiumField: boolean,
  price: Wholesale | null,
): Sign | undefined {
  const plain = value instanceof WrittenNumber ? value.text : value;
  const text = typeof plain === "string" || typeof plain === "number" ? String(plain).trim() : "";
  const isNothing =
    plain === null || plain === false || text === "" ? plain !== true : /^0+(?:\.0+)?$/.test(text);
  if (isNothing) return undefined;
  if (isPremiumField) {
    const flag = flagOf(typeof plain === "boolean" ? plain : text);
    if (flag !== null) return flag ? "flag" : undefined;
    if (ORDINARY_WORDS.has(normalized(text))) return undefined;
    return PREMIUM_WORD.test(text) && !/\d/.test(text) ? "flag" : "unclear";
  }
  if (typeof plain === "string" && PREMIUM_WORD.test(text)) return "flag";
  if (CLASS_FIELD.test(path) && typeof plain === "string")
    return ORDINARY_WORDS.has(normalized(text)) ? undefined : "unclear";
  return price !== null && isOtherPrice(text, path, price) ? "price" : undefined;
}

const OTHER_ACTION = /renew|transfer|restore|redempt|redeem/;

/** Whether an answer about a name states what another action on it costs. It may be a price of its own, unlike the list's. */
export function statesOtherActions(data: unknown, path = "", depth = 0): boolean {
  if (depth > MAX_DEPTH) return false;
  if (Array.isArray(data)) return data.some((item: unknown) => statesOtherActions(item, path, depth + 1));
  if (isFields(data))
    return Object.entries(data).some(([key, value]) =>
      statesOtherActions(value, `${path} ${normalized(key)}`, depth + 1),
    );
  const text = data instanceof WrittenNumber ? data.text : data;
  if (typeof text !== "string" || !OTHER_ACTION.test(path) || !PRICE_FIELD.test(path)) return false;
  return /[1-9]/.test(FORMATTED.exec(text.trim())?.[1] ?? "");
}

/** An amount, perhaps with a currency before or after it. */
const FORMATTED = /^\D{0,5}?(\d[\d,]{0,14}(?:\.\d{1,6})?)\D{0,5}$/;

/** Whether it is an amount that isn't the price, in a field that could be the price. Whole numbers can be the price in minor units. */
function isOtherPrice(text: string, path: string, { amount }: Wholesale): boolean {
  const [, digits] = FORMATTED.exec(text) ?? [];
  if (digits === undefined || !PRICE_FIELD.test(path) || OTHER_PRICE.test(path)) return false;
  const [own, other] = [inMillionths(amount), inMillionths(digits.replaceAll(",", ""))];
  return other !== own && other !== own * 100n;
}

function inMillionths(text: string): bigint {
  const [whole = "0", fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(6, "0"));
}
