import type { Wanted } from "./cart.js";
import type { Shop } from "./shop.js";
import type { Texts } from "./texts/en.js";

/** What everything that an element draws needs. */
export interface Scene {
  readonly texts: Texts;
  readonly shop: Shop;
  /** The chosen term in years. */
  readonly term: number;
  add(wanted: Wanted): void;
}
