/**
 * Exact money: decimal strings outside, big.js in strict mode (which rejects floats) inside, without division.
 * Wholesale, Floor and Retail are different types, and none is a Money, so code that would show one of the first two to a visitor doesn't compile.
 */
import { Big } from "big.js";
import { data as ISO_4217 } from "currency-codes";

const Exact = Big();
Exact.strict = true;

export type Decimal = Big;

/** What the reseller pays. Never leaves the service except to staff. */
export interface Wholesale {
  readonly kind: "wholesale";
  /** With two decimals, as the upstream writes it. */
  readonly amount: string;
  readonly currency: string;
}

/** What a visitor pays. */
export interface Retail {
  readonly kind: "retail";
  /** With exactly the decimals that ISO 4217 gives the currency. */
  readonly amount: string;
  readonly currency: string;
}

/** The least that a rule lets a visitor pay. Never leaves the service except to staff, because it would reveal the wholesale price. */
export interface Floor {
  readonly kind: "floor";
  /** With exactly the decimals that ISO 4217 gives the currency. */
  readonly amount: string;
  readonly currency: string;
}

/** Money as shown in answers. */
export interface Money {
  readonly amount: string;
  readonly currency: string;
  // Prevents the others from being structurally compatible with Money.
  readonly kind?: never;
}

// The package says 0 digits where ISO 4217 says "N.A."; these are not used for payments.
const WITHOUT_MINOR_UNIT = "XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX".split(" ");
const DIGITS = new Map(ISO_4217.map(({ code, digits }) => [code, digits]));
for (const code of WITHOUT_MINOR_UNIT) DIGITS.delete(code);
// In ISO 4217 since 2025, but not yet in the package.
DIGITS.set("XCG", 2);

/** The decimals of a currency by ISO 4217, or null if unknown. CLDR, and therefore Intl, differs: it says 0 for AFN. */
export function currencyDigits(currency: string): number | null {
  return DIGITS.get(currency) ?? null;
}

function digitsOf(currency: string): number {
  const digits = currencyDigits(currency);
  if (digits === null) throw new RangeError("a currency unknown to ISO 4217");
  return digits;
}

/** Parses a plain decimal string. Throws on anything else; callers validate external input first. */
export function decimal(text: string): Decimal {
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) throw new TypeError("not a plain decimal");
  return new Exact(text);
}

/** Whether the amount can be written with that many decimals. */
export function hasDigits(amount: Decimal, digits: number): boolean {
  return amount.round(digits, Exact.roundDown).eq(amount);
}

/** Rounds up to that many decimals. `amount` must not be negative. */
export function ceilToDigits(amount: Decimal, digits: number): Decimal {
  return amount.round(digits, Exact.roundUp);
}

/** The smallest amount ≥ `amount` that is `remainder` plus a multiple of `modulus`; 0 ≤ remainder < modulus. */
export function ceilToResidue(amount: Decimal, modulus: Decimal, remainder: Decimal): Decimal {
  if (amount.lte(remainder)) return remainder;
  const over = amount.minus(remainder).mod(modulus);
  return over.eq("0") ? amount : amount.minus(over).plus(modulus);
}

/** Parses an upstream price: positive, two decimals, at most nine digits before them. Null for anything else. */
export function parseWholesale(amount: unknown, currency: unknown): Wholesale | null {
  if (typeof amount !== "string" || typeof currency !== "string") return null;
  if (!/^(?:0|[1-9]\d{0,8})\.\d{2}$/.test(amount) || amount === "0.00") return null;
  if (!/^[A-Z]{3}$/.test(currency)) return null;
  return Object.freeze({ kind: "wholesale", amount, currency });
}

/** Whether two upstream prices are equal. `parseWholesale` accepts a single way to write each amount. */
export function sameWholesale(a: Wholesale, b: Wholesale): boolean {
  return a.amount === b.amount && a.currency === b.currency;
}

/** Positive if `a` is the higher of two upstream prices; prices in different currencies have a fixed order. */
export function compareWholesale(a: Wholesale, b: Wholesale): number {
  if (a.currency !== b.currency) return a.currency < b.currency ? -1 : 1;
  return decimal(a.amount).cmp(b.amount);
}

/** Creates a retail amount, rounded up to the currency's decimals. Only the retail policy should call this. */
export function retailOf(amount: Decimal, currency: string): Retail {
  return Object.freeze({ kind: "retail", amount: roundedUp(amount, currency), currency });
}

/** Creates a floor, rounded up to the currency's decimals. */
export function floorOf(amount: Decimal, currency: string): Floor {
  return Object.freeze({ kind: "floor", amount: roundedUp(amount, currency), currency });
}

function roundedUp(amount: Decimal, currency: string): string {
  const digits = digitsOf(currency);
  return ceilToDigits(amount, digits).toFixed(digits);
}

/** For visitors. */
export function presentRetail({ amount, currency }: Retail): Money {
  return { amount, currency };
}

/** For staff answers only. */
export function presentWholesaleToStaff(wholesale: Wholesale): Money {
  return { amount: wholesale.amount, currency: wholesale.currency };
}

/** For staff answers only: `a` - `b`, or null if the currencies differ. */
export function wholesaleDifference(a: Wholesale, b: Wholesale): Money | null {
  if (a.currency !== b.currency) return null;
  return { amount: decimal(a.amount).minus(b.amount).toFixed(2), currency: a.currency };
}

/** For staff answers only: by how much the price is below the floor; null if it isn't, or the currencies differ. */
export function belowFloor(price: Retail, floor: Floor): Money | null {
  if (price.currency !== floor.currency) return null;
  const missing = decimal(floor.amount).minus(price.amount);
  return missing.gt("0")
    ? { amount: missing.toFixed(digitsOf(floor.currency)), currency: floor.currency }
    : null;
}

/** The totals by currency, in order of first occurrence. */
export function totalsOf(list: readonly (Retail | Money)[]): Money[] {
  const totals = new Map<string, Decimal>();
  for (const { amount, currency } of list) {
    totals.set(currency, totals.get(currency)?.plus(amount) ?? decimal(amount));
  }
  return [...totals].map(([currency, total]) => ({ amount: total.toFixed(digitsOf(currency)), currency }));
}
