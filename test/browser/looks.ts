/** The languages, colour schemes and screen sizes in which visitors see a page, and a check for text that doesn't fit. */
import { DESKTOP, PHONE } from "./browser.js";

const LANGUAGES = ["en", "fa", "ps"] as const;
const SCHEMES = ["light", "dark"] as const;
const SIZES = ["desktop", "phone"] as const;

export type Look = readonly [
  language: (typeof LANGUAGES)[number],
  colorScheme: (typeof SCHEMES)[number],
  size: (typeof SIZES)[number],
];

/** The browser options for its screen. */
export const screenOf = ([, , size]: Look) => (size === "phone" ? PHONE : DESKTOP);

/** All twelve combinations. */
export const LOOKS: readonly Look[] = SIZES.flatMap((size) =>
  SCHEMES.flatMap((scheme) => LANGUAGES.map((language): Look => [language, scheme, size])),
);

/** Those that are tested: with `PICTURES=all` every one, by default each `every`-th. */
export function looked<T>(all: readonly T[], every = all.length): readonly T[] {
  return all.filter((_, at) => process.env["PICTURES"] === "all" || at % every === 0);
}

/** Elements that are larger than their space, and messages that push down the content below them. */
export const CUT = `[...all(".domain, .state, .price, .button, .chips, .status, .item, td, th, h1, .lead, .cart-bar")]
  .filter((one) => one.clientWidth > 1)
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1 ||
    one.matches(".status") && one.clientHeight > Number.parseFloat(getComputedStyle(one).minBlockSize) + 1)
  .map((one) => one.className + ": " + one.textContent)`;
