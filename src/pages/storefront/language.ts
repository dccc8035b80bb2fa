/** The language of the page: from its address, else as chosen before, else the browser's; and how it writes numbers, amounts and times. */
import type { Money } from "../../../client/src/client.js";
import { en } from "./texts/en.js";
import { fa } from "./texts/fa.js";
import { ps } from "./texts/ps.js";
import type { Language, Texts } from "./texts/texts.js";

const TEXTS: Readonly<Record<Language, Texts>> = { en, fa, ps };
const KEPT_AS = "language";

function isLanguage(text: string | null | undefined): text is Language {
  return typeof text === "string" && Object.hasOwn(TEXTS, text);
}

export function textsIn(language: Language): Texts {
  return TEXTS[language];
}

export function chosenLanguage(): Language {
  const asked = new URL(location.href).searchParams.get("lang");
  if (isLanguage(asked)) return asked;
  const kept = keeper()?.getItem(KEPT_AS);
  if (isLanguage(kept)) return kept;
  // Dari has a code of its own beside that of Persian in Afghanistan.
  const known = navigator.languages.map((tag) => tag.slice(0, 2)).map((tag) => (tag === "pr" ? "fa" : tag));
  return known.find(isLanguage) ?? "en";
}

/** Keeps the choice for the next visit, and in the address for whoever it is sent to. */
export function keepLanguage(language: Language): void {
  keeper()?.setItem(KEPT_AS, language);
  const address = new URL(location.href);
  address.searchParams.set("lang", language);
  history.replaceState(null, "", address);
}

/** Browsers that keep nothing throw. */
function keeper(): Storage | null {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

export function count({ locale }: Texts, value: number): string {
  return new Intl.NumberFormat(locale).format(value);
}

export function years(texts: Texts, value: number): string {
  return texts.years(count(texts, value), value);
}

export function seconds(texts: Texts, value: number): string {
  return texts.seconds(count(texts, value), value);
}

/** The amount as it came, digit for digit, in the language's own writing. */
export function amount({ locale }: Texts, { amount: text, currency }: Money): string {
  const digits = text.split(".")[1]?.length ?? 0;
  const format = new Intl.NumberFormat(locale, {
    style: "currency",
    currency,
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return isDecimal(text) ? format.format(text) : `${text} ${currency}`;
}

function isDecimal(text: string): text is `${number}` {
  return /^\d+(?:\.\d+)?$/.test(text);
}

export function timeOfDay({ locale }: Texts, at: string): string {
  return new Intl.DateTimeFormat(locale, { timeStyle: "short" }).format(new Date(at));
}

export function day({ locale }: Texts, at: string): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium" }).format(new Date(at));
}

/** Minutes and seconds: 4:05. */
export function clock({ locale }: Texts, left: number): string {
  const part = (value: number, digits: number): string =>
    new Intl.NumberFormat(locale, { minimumIntegerDigits: digits, useGrouping: false }).format(value);
  return `${part(Math.floor(left / 60), 1)}:${part(left % 60, 2)}`;
}
