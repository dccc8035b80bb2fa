/** The texts of the page, in one file per language. Numbers are passed in as digits of the language. */
import type { ProblemCode, StorefrontProblem } from "../../../../client/src/client.js";
import type { enPage } from "./en-page.js";

export interface Texts {
  readonly language: Language;
  readonly direction: "ltr" | "rtl";
  /** For numbers, amounts and dates. Browsers without Pashto use Dari, which has the same digits and calendar. */
  readonly locale: string;
  /** Texts of the page itself, by their `data-text` or `data-label`. */
  readonly page: Readonly<Record<keyof typeof enPage, string>>;
  readonly runBy: (name: string) => string;
  readonly yourName: string;

  // The search
  readonly typing: string;
  readonly typingShort: string;
  readonly lookingFor: (query: string) => string;
  readonly list: (names: string) => string;
  readonly listTooLong: (names: string) => string;
  readonly checkedOf: (checked: string, all: string) => string;
  readonly availableOf: (available: string, all: string) => string;
  readonly notAll: string;
  readonly again: (duration: string) => string;
  readonly slow: (duration: string) => string;
  readonly orElse: string;

  // A result
  readonly looking: string;
  readonly available: string;
  readonly taken: string;
  readonly unknown: string;
  readonly premium: string;
  readonly asOf: (time: string) => string;
  readonly noPrice: string;
  readonly aYear: (amount: string) => string;
  readonly renewsAt: (price: string) => string;
  readonly renewalUnknown: string;
  readonly spoken: (name: string, status: string, price: string) => string;
  readonly inCart: string;
  readonly cartFull: string;

  // The cart
  readonly cartFullWhy: (most: string) => string;
  readonly added: (name: string) => string;
  readonly removed: (name: string) => string;
  readonly removeNamed: (name: string) => string;
  readonly termOf: (name: string) => string;
  readonly total: (amount: string) => string;
  readonly notAsked: string;
  readonly checking: string;
  readonly partly: (priced: string, all: string) => string;
  readonly nonePriced: string;
  readonly notHeld: string;
  readonly heldUntil: (time: string) => string;
  readonly left: (clock: string) => string;
  readonly runOut: string;
  readonly justTaken: string;
  readonly priceLater: string;

  // The price list
  readonly pricesFor: (term: string) => string;
  readonly regular: (amount: string) => string;
  readonly until: (date: string) => string;
  readonly notOffered: string;

  readonly years: (digits: string, count: number) => string;
  readonly seconds: (digits: string, count: number) => string;
  readonly offline: string;
  /** The cause and what to do about it. */
  readonly problems: Readonly<Partial<Record<ProblemCode, string>>> & { readonly other: string };
  readonly reasons: Reasons;
}

export type Language = "en" | "fa" | "ps";

/** Why the service rejects a name, by the start of its message. Some contain a character or the TLDs sold. */
export type Reasons = Readonly<Record<Reason, string | ((named: string) => string)>> & {
  /** For an unknown message. */
  readonly other: (message: string) => string;
};
export type Reason = (typeof REASONS)[number];
export const REASONS = [
  "is missing",
  "is empty",
  "is too long",
  "isn't a valid domain name",
  "contains",
  "has an empty part",
  "has a misplaced hyphen",
  "is only an ending",
  "has an ending that isn't sold here",
  "needs an ending",
  "must be one name directly before the ending",
  "must be a domain name, not an e-mail address",
  "no name of this label",
] as const;

/** What is wrong and what to do about it. */
export function wordsFor(texts: Texts, problem: StorefrontProblem): string {
  const [field] = problem.errors;
  if (problem.code === "invalid_request" && field) return reasonFor(texts, field.message);
  return texts.problems[problem.code] ?? texts.problems.other;
}

/** Whether the language has a text for this code. */
export function isProblemCode(texts: Texts, code: string): code is ProblemCode {
  return code !== "other" && Object.hasOwn(texts.problems, code);
}

function reasonFor({ reasons }: Texts, message: string): string {
  const known = REASONS.find((reason) => message.startsWith(reason));
  if (known === undefined) return reasons.other(message);
  const words = reasons[known];
  const [, character, endings] = /^contains (.*), which|sold under (.*)$/u.exec(message) ?? [];
  return typeof words === "string" ? words : words(character ?? endings ?? "");
}
