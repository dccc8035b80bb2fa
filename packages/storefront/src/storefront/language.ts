/** The language of the page (from a link, chosen before, or the browser's) and how it formats numbers, amounts and times. */
import type { Money } from "../../../client/src/client.js";
import { en } from "./texts/en.js";
import { fa } from "./texts/fa.js";
import { ps } from "./texts/ps.js";
import { stored } from "./session.js";
import type { Texts } from "./texts/en.js";
import type { Language } from "./texts/texts.js";

const TEXTS: Readonly<Record<Language, Texts>> = { en, fa, ps };

function isLanguage(text: unknown): text is Language {
  return typeof text === "string" && Object.hasOwn(TEXTS, text);
}

export function textsIn(language: Language): Texts {
  return TEXTS[language];
}

/** `linked` is the language in the link to the page. */
export function chosenLanguage(linked: string | null): Language {
  const before = stored("language");
  const chosen = [linked, before].find(isLanguage);
  if (chosen !== undefined) return chosen;
  // Dari has its own code, besides that of Persian in Afghanistan.
  const known = navigator.languages.map((tag) => tag.slice(0, 2)).map((tag) => (tag === "pr" ? "fa" : tag));
  return known.find(isLanguage) ?? "en";
}

/** Sets the language and direction of the document. */
export function directDocument({ language, locale, direction }: Texts): void {
  const root = document.documentElement;
  root.lang = language === "fa" ? locale : language;
  root.dir = direction;
}

/** Fills in the texts of all elements with `data-text` or `data-label`. */
export function speakIn(texts: Texts): void {
  directDocument(texts);
  for (const at of document.querySelectorAll<HTMLElement>("[data-text]"))
    at.textContent = pageText(texts, at.dataset["text"]);
  for (const at of document.querySelectorAll<HTMLElement>("[data-label]"))
    at.setAttribute("aria-label", pageText(texts, at.dataset["label"]));
}

function pageText({ page }: Texts, key: string | undefined): string {
  const text = Object.entries(page).find(([name]) => name === key)?.[1];
  if (text === undefined) throw new Error(`the page names a text that does not exist: ${String(key)}`);
  return text;
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
