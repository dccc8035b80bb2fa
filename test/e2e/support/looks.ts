/** The ways in which visitors may see a page, and what must be so in each. */
import { DESK, PHONE } from "./browser.js";

const LANGUAGES = ["en", "fa", "ps"] as const;
const SCHEMES = ["light", "dark"] as const;
const SIZES = ["desk", "phone"] as const;

export type Look = readonly [
  language: (typeof LANGUAGES)[number],
  colorScheme: (typeof SCHEMES)[number],
  size: (typeof SIZES)[number],
];

/** Its screen, as a browser is told of it. */
export const screenOf = ([, , size]: Look) => (size === "phone" ? PHONE : DESK);

/** All twelve. */
export const LOOKS: readonly Look[] = SIZES.flatMap((size) =>
  SCHEMES.flatMap((scheme) => LANGUAGES.map((language): Look => [language, scheme, size])),
);

/** What is larger than the place it has, and messages that push down what is below them. */
export const CUT = `[...document.querySelectorAll(".domain, .state, .price, .button, .chips, .status, .item, td, th, h1, .lead, .cart-bar")]
  .filter((one) => one.clientWidth > 1)
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 1 ||
    one.matches(".status") && one.clientHeight > Number.parseFloat(getComputedStyle(one).minBlockSize) + 1)
  .map((one) => one.className + ": " + one.textContent)`;
