/** What the page has to say, in a file for each language; a number arrives written in the digits of the language. */
import type { ProblemCode } from "../../../../client/src/client.js";

export interface Texts {
  readonly language: Language;
  readonly direction: "ltr" | "rtl";
  /** For numbers, amounts and dates; browsers without Pashto write them as in Dari, which has the same digits and calendar. */
  readonly locale: string;
  /** Words that stand in the page, by their `data-text`. */
  readonly page: Readonly<Record<PageText, string>>;
  readonly yourName: string;
  readonly looking: string;
  readonly available: string;
  readonly taken: string;
  readonly unknown: string;
  readonly premium: string;
  readonly asOf: (time: string) => string;
  readonly inCart: string;
  readonly addNamed: (name: string) => string;
  readonly removeNamed: (name: string) => string;
  readonly termOf: (name: string) => string;
  readonly years: (digits: string, count: number) => string;
  readonly seconds: (digits: string, count: number) => string;
  readonly again: (duration: string) => string;
  readonly lookingFor: (query: string) => string;
  readonly freeOf: (free: string, all: string) => string;
  readonly notAll: string;
  readonly heard: (name: string, status: string, price: string) => string;
  readonly added: (name: string) => string;
  readonly removed: (name: string) => string;
  readonly checking: string;
  readonly total: (amount: string) => string;
  readonly notAsked: string;
  readonly notHeld: string;
  readonly heldUntil: (time: string) => string;
  readonly left: (clock: string) => string;
  readonly runOut: string;
  readonly justTaken: string;
  readonly regular: (amount: string) => string;
  readonly until: (date: string) => string;
  readonly notOffered: string;
  readonly problems: Readonly<Partial<Record<ProblemCode, string>>> & { readonly other: string };
}

export type Language = "en" | "fa" | "ps";
export type PageText =
  | "title"
  | "brand"
  | "skip"
  | "languages"
  | "heading"
  | "lead"
  | "searchLabel"
  | "search"
  | "examples"
  | "hint"
  | "results"
  | "ideas"
  | "ideasNone"
  | "cart"
  | "cartEmpty"
  | "confirm"
  | "tryAgain"
  | "add"
  | "promise"
  | "promiseWhy"
  | "prices"
  | "pricesLead"
  | "pricesComing"
  | "term"
  | "ending"
  | "registration"
  | "renewal"
  | "transfer"
  | "restore"
  | "demo"
  | "docs";
