/**
 * The only place where wholesale becomes retail: pure and exact, never below wholesale × rate + minMargin.
 */
import { type DomainName, isInScript } from "../domain-name.js";
import {
  ceilToDigits,
  ceilToResidue,
  currencyDigits,
  type Decimal,
  decimal,
  type Money,
  type Retail,
  type Floor,
  floorOf,
  retailOf,
  type Wholesale,
} from "../money.js";
import type { Action, Combination } from "../upstream/contract.js";
import {
  type Affixes,
  combinationsOf,
  firstMatching,
  type Match,
  type Pricing,
  type RetailConfig,
} from "./price-file/retail-config.js";

export interface AppliedPromotion {
  readonly id: string;
  /** The price without it. */
  readonly regular: Retail;
  /** When it ends, RFC 3339 UTC. */
  readonly until: string;
}

export type PriceResult =
  | {
      readonly ok: true;
      readonly price: Retail;
      /** "rule 1" for the first rule of the config, or "premium". */
      readonly rule: string;
      readonly promotion?: AppliedPromotion;
      readonly floor: Floor;
    }
  | { readonly ok: false; readonly reason: "not_sold" | "currency_without_rate" };

/** Whether the ordinary rules apply to a name, or the premium one. */
export const NAME_KINDS = ["ordinary", "premium"] as const;
export type NameKind = (typeof NAME_KINDS)[number];

export interface RetailPolicy {
  readonly soldTlds: readonly string[];
  /** Those of them under which names can be registered. */
  readonly registrableTlds: readonly string[];
  /** The currencies of upstream prices that can be converted. */
  readonly wholesaleCurrencies: ReadonlySet<string>;
  /** Whether the registry of the name's TLD takes names in its script. */
  takes(this: void, name: DomainName): boolean;
  /** From short to long; empty if the TLD or the action isn't sold. */
  yearsSold(tld: string, action: Action): readonly number[];
  combinations(): readonly Combination[];
  /** When the next promotion starts or ends after that time; Infinity without one. */
  nextTurnAt(atMs: number): number;
  /** The price at that time, by default that of an ordinary name. */
  price(wholesale: Wholesale, what: Combination, atMs: number, kind?: NameKind): PriceResult;
  /** The retail price minus the wholesale price, in the shown currency, rounded down; for staff only. */
  margin(wholesale: Wholesale, retail: Retail): Money | null;
  /** How long a signed price is valid. */
  readonly promiseValidMs: number;
  /** Null: no suggestions. */
  readonly suggestions: Affixes | null;
}

interface PriceRule {
  readonly name: string;
  /** 1 + markupPercent / 100 */
  readonly factor: Decimal;
  readonly addFixed: Decimal;
  readonly minMargin: Decimal;
  /** Null: a price may end in anything. */
  readonly ending: Ending | null;
}

/** Prices are `remainder` plus a multiple of `modulus`. */
interface Ending {
  readonly modulus: Decimal;
  readonly remainder: Decimal;
}

const NONE: readonly number[] = [];
const ZERO = decimal("0");
const ONE = decimal("1");
const TEN = decimal("10");
const PERCENT = decimal("0.01");

/** The smallest power of ten, at least 1, that is greater than the ending. */
function endingModulus(ending: Decimal): Decimal {
  let modulus = ONE;
  while (modulus.lte(ending)) modulus = modulus.times(TEN);
  return modulus;
}

function endingOf({ ending, step }: Pricing): Ending | null {
  if (ending !== undefined) {
    const remainder = decimal(ending);
    return { modulus: endingModulus(remainder), remainder };
  }
  return step === undefined ? null : { modulus: decimal(step), remainder: ZERO };
}

function compile(pricing: Pricing, name: string): PriceRule {
  return {
    name,
    factor: decimal(pricing.markupPercent).times(PERCENT).plus(ONE),
    addFixed: decimal(pricing.addFixed),
    minMargin: decimal(pricing.minMargin),
    ending: endingOf(pricing),
  };
}

/** Raises the amount to the next one that ends as the rule says. */
function ended(amount: Decimal, ending: Ending | null): Decimal {
  return ending === null ? amount : ceilToResidue(amount, ending.modulus, ending.remainder);
}

function larger(a: Decimal, b: Decimal): Decimal {
  return a.gte(b) ? a : b;
}

/** Creates the policy of a config accepted by `parseRetailConfig`. */
export function createRetailPolicy(config: RetailConfig): RetailPolicy {
  const { currency } = config;
  const digits = currencyDigits(currency);
  if (digits === null) throw new RangeError("the shown currency is unknown to ISO 4217");
  const rates = new Map(Object.entries(config.rates).map(([code, rate]) => [code, decimal(rate)]));
  if (!rates.has(currency)) rates.set(currency, ONE);
  const rules: { match: Match; rule: PriceRule }[] = config.rules.map((rule, index) => ({
    match: rule.match,
    rule: compile(rule, `rule ${index + 1}`),
  }));
  const premiumRule = config.premium === null ? null : compile(config.premium, "premium");
  const promotions = config.promotions.map(({ id, match, percentOff, fromMs, toMs }) => ({
    id,
    match,
    factor: ONE.minus(decimal(percentOff).times(PERCENT)),
    fromMs,
    toMs,
    until: new Date(toMs).toISOString(),
  }));
  const turns = promotions.flatMap(({ fromMs, toMs }) => [fromMs, toMs]);
  const combinations = Object.freeze(combinationsOf(config.catalog).map((what) => Object.freeze(what)));
  const soldTlds = Object.freeze(config.catalog.map(({ tld }) => tld));

  const scripts = new Map(config.catalog.map((entry) => [entry.tld, entry.scripts]));
  const sold = new Map(soldTlds.map((tld) => [tld, new Map<Action, number[]>()]));
  for (const { tld, action, years } of combinations) {
    const terms = sold.get(tld);
    terms?.set(action, [...(terms.get(action) ?? []), years]);
  }
  const yearsSold = (tld: string, action: Action): readonly number[] => sold.get(tld)?.get(action) ?? NONE;

  function promoted(what: Combination, atMs: number, regular: Retail, floor: Floor, ending: Ending | null) {
    const active = promotions.filter(({ fromMs, toMs }) => fromMs <= atMs && atMs < toMs);
    const promotion = firstMatching(active, what);
    if (promotion === undefined) return null;
    const reduced = decimal(regular.amount).times(promotion.factor);
    const price = retailOf(ended(larger(reduced, decimal(floor.amount)), ending), currency);
    if (decimal(price.amount).gte(regular.amount)) return null;
    const applied: AppliedPromotion = { id: promotion.id, regular, until: promotion.until };
    return { price, promotion: applied };
  }

  return {
    soldTlds,
    registrableTlds: soldTlds.filter((tld) => yearsSold(tld, "registration").length > 0),
    wholesaleCurrencies: new Set(rates.keys()),
    takes: (name) => isInScript(name, scripts.get(name.tld) ?? []),
    yearsSold,
    combinations: () => combinations,
    promiseValidMs: config.promise.validMs,
    suggestions: config.suggestions,
    nextTurnAt: (atMs) => Math.min(...turns.filter((turnMs) => turnMs > atMs)),

    price(wholesale, what, atMs, kind = "ordinary") {
      if (!yearsSold(what.tld, what.action).includes(what.years)) return { ok: false, reason: "not_sold" };
      const ordinary = firstMatching(rules, what)?.rule;
      const rule = kind === "premium" ? (premiumRule ?? ordinary) : ordinary;
      if (rule === undefined) return { ok: false, reason: "not_sold" };
      const rate = rates.get(wholesale.currency);
      if (rate === undefined) return { ok: false, reason: "currency_without_rate" };

      const cost = decimal(wholesale.amount).times(rate);
      const lowest = cost.plus(rule.minMargin);
      const wanted = larger(cost.times(rule.factor).plus(rule.addFixed), lowest);
      const regular = retailOf(ended(wanted, rule.ending), currency);
      const floor = floorOf(lowest, currency);
      const promotion = promoted(what, atMs, regular, floor, rule.ending);
      return { ok: true, price: regular, rule: rule.name, floor, ...promotion };
    },

    margin(wholesale, retail) {
      const rate = rates.get(wholesale.currency);
      if (rate === undefined || retail.currency !== currency) return null;
      const cost = ceilToDigits(decimal(wholesale.amount).times(rate), digits);
      return { amount: decimal(retail.amount).minus(cost).toFixed(digits), currency };
    },
  };
}

/** A price of the catalogue. */
export interface CatalogRow {
  readonly wholesale: Wholesale;
  readonly retail: Retail;
}

/**
 * Warns staff if all retail prices are nearly the same multiple of wholesale (within 1 %, for three rows or more): anyone who learns one
 * wholesale price could then calculate the others.
 */
export function marginWarnings(rows: readonly CatalogRow[]): string[] {
  const groups = new Map<string, CatalogRow[]>();
  for (const row of rows) {
    const currencies = `${row.wholesale.currency} to ${row.retail.currency}`;
    groups.set(currencies, [...(groups.get(currencies) ?? []), row]);
  }
  return [...groups]
    .filter(([, group]) => group.length >= 3 && isNearlyConstant(group))
    .map(
      ([currencies, { length }]) =>
        `Retail is nearly the same multiple of wholesale in all ${length} prices (${currencies}), so anyone who learns one wholesale price can calculate the others. Vary the markup or add fixed amounts.`,
    );
}

function isNearlyConstant(rows: readonly CatalogRow[]): boolean {
  const highest = rows.reduce((a, b) => (cross(b, a).gt(cross(a, b)) ? b : a));
  const lowest = rows.reduce((a, b) => (cross(a, b).gt(cross(b, a)) ? b : a));
  return cross(highest, lowest).lt(cross(lowest, highest).times("1.01"));
}

/** Compares two ratios of retail to wholesale, with `cross(b, a)`; a division would round. */
function cross(a: CatalogRow, b: CatalogRow): Decimal {
  return decimal(a.retail.amount).times(b.wholesale.amount);
}
