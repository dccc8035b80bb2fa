/** The languages, and how each writes numbers, amounts and times. */
import type { Money } from "../../../client/src/client.js";
import { en } from "./texts/en.js";
import { fa } from "./texts/fa.js";
import { ps } from "./texts/ps.js";
import type { Texts } from "./texts/en.js";
import type { Language } from "./texts/texts.js";

const TEXTS: Readonly<Record<Language, Texts>> = { en, fa, ps };

/** The texts of the first of these language tags that is known, otherwise of the browser's languages, otherwise English. */
export function textsIn(...tags: readonly unknown[]): Texts {
  const known = [...tags, ...navigator.languages]
    .map((tag) => (typeof tag === "string" ? tag.slice(0, 2).toLowerCase() : ""))
    // Dari has its own code, prs, besides that of Persian in Afghanistan.
    .map((tag) => (tag === "pr" ? "fa" : tag));
  return TEXTS[known.find((tag): tag is Language => Object.hasOwn(TEXTS, tag)) ?? "en"];
}

/** The tag for the `lang` of an element. */
export function tagOf({ language, locale }: Texts): string {
  return language === "fa" ? locale : language;
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

/** The exact amount, formatted for the language. */
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

/** The time of day, with its date unless that is today. */
export function timeWithDay({ locale }: Texts, at: string | number): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return new Intl.DateTimeFormat(locale, {
    timeStyle: "short",
    ...(!isToday && { dateStyle: "medium" }),
  }).format(date);
}

/** Minutes and seconds, after the hours if there are any: 4:05, 25:04:05. */
export function clock({ locale }: Texts, left: number): string {
  const hours = Math.floor(left / 3600);
  const parts = [...(hours > 0 ? [hours] : []), Math.floor(left / 60) % 60, left % 60];
  const format = (part: number, at: number): string =>
    new Intl.NumberFormat(locale, { minimumIntegerDigits: at === 0 ? 1 : 2 }).format(part);
  return parts.map(format).join(":");
}
