import type { Wanted } from "./cart.js";
import type { Found } from "./search.js";
import type { Shop } from "./shop.js";
import type { Texts } from "./texts/en.js";

/** Everything that an element draws from, and what its visitors can do. */
export interface Scene {
  readonly texts: Texts;
  readonly shop: Shop;
  /** The TLDs that are searched, the main one first; empty while they are unknown. */
  readonly tlds: readonly string[];
  /** The chosen term in years. */
  readonly term: number;
  /** What is in the search box, and what was found for it. */
  readonly text: string;
  readonly found: Found;
  /** Where signed carts are posted; empty: nowhere. */
  readonly checkout: string;
  type(text: string): void;
  search(text: string): void;
  retry(): void;
  chooseTerm(years: number): void;
  add(item: Wanted): void;
  remove(item: Wanted): void;
  setTerm(item: Wanted, years: number): void;
  undo(): void;
  confirm(): void;
}
