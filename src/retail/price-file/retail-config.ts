/** What is sold and at which prices, as the price file says: types, and what follows from them alone. */
import type { Script } from "../../domain-name.js";
import { type Action, ACTIONS, type Combination } from "../../upstream/contract.js";
import type { ShopIdentity } from "./shop-identity.js";

/** A key that is absent matches everything. */
export interface Match {
  readonly tld?: string | undefined;
  readonly action?: Action | undefined;
  readonly years?: number | undefined;
}

/** All amounts are plain decimal strings in the shown currency. At most one of `ending` and `step` is present. */
export interface Pricing {
  readonly markupPercent: string;
  readonly addFixed: string;
  readonly minMargin: string;
  readonly ending?: string | undefined;
  readonly step?: string | undefined;
}

export interface Rule extends Pricing {
  readonly match: Match;
}

export interface Promotion {
  readonly id: string;
  readonly match: Match;
  readonly percentOff: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface CatalogEntry {
  readonly tld: string;
  /** The scripts that its registry takes. */
  readonly scripts: readonly Script[];
  readonly years: { readonly [A in Action]?: readonly number[] | undefined };
}

/** Text to add before or after a taken label. */
export interface Affixes {
  readonly prefixes: readonly string[];
  readonly suffixes: readonly string[];
  /** The maximum number of variants per search. */
  readonly most: number;
}

export interface RetailConfig {
  /** Shown to visitors. */
  readonly currency: string;
  /** Upstream currency → shown currency. */
  readonly rates: Readonly<Record<string, string>>;
  readonly catalog: readonly CatalogEntry[];
  readonly rules: readonly Rule[];
  /** Null: premium names follow the ordinary rules. */
  readonly premium: Pricing | null;
  readonly promotions: readonly Promotion[];
  /** How long promised prices are valid. */
  readonly promise: { readonly validMs: number };
  /** Null: no alternatives to a taken name are suggested. */
  readonly suggestions: Affixes | null;
  readonly shop: ShopIdentity;
}

function matches(match: Match, what: Combination): boolean {
  return (
    (match.tld === undefined || match.tld === what.tld) &&
    (match.action === undefined || match.action === what.action) &&
    (match.years === undefined || match.years === what.years)
  );
}

/** The first entry that matches. */
export function firstMatching<T extends { readonly match: Match }>(
  list: readonly T[],
  what: Combination,
): T | undefined {
  return list.find(({ match }) => matches(match, what));
}

/** Every combination that the catalogue sells, in its order, terms from short to long. */
export function combinationsOf(catalog: readonly CatalogEntry[]): Combination[] {
  return catalog.flatMap(({ tld, years }) =>
    ACTIONS.flatMap((action) =>
      [...(years[action] ?? [])].sort((a, b) => a - b).map((years) => ({ tld, action, years })),
    ),
  );
}
