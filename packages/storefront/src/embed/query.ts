/** Interprets what people type: one name, a name with close alternatives, or a list. Pure; the service decides what is valid. */
import { MOST_ITEMS } from "../../../client/src/cart.js";
import { hostIn } from "../../../client/src/search-as-you-type.js";

/** A list has at most as many names as fit into a cart. */
export type Meaning =
  | { readonly kind: "none" }
  /** `q` is sent to the service; `offers` are other names that can be chosen instead. */
  | { readonly kind: "name"; readonly q: string; readonly offers: readonly string[] }
  | { readonly kind: "list"; readonly names: readonly string[]; readonly leftOut: number };

/** Line breaks, commas and semicolons of Latin and Arabic script, and tabs from a spreadsheet. */
const BETWEEN_NAMES = /[\n\r\t,;،؛]+/;

/** Only this is worth an offer: parts of letters, digits and single hyphens between them, which the joiners of Arabic script don't separate. */
const POSSIBLE_NAME = /^(?:[\u200C\u200D\p{L}\p{M}\p{N}]+(?:[.-](?!$)|$))+$/u;

/** Invisible characters that come along when text is copied, such as marks of direction, and joiners that don't follow or precede a letter. */
const LEFTOVERS =
  /(?![\u200C\u200D])\p{Default_Ignorable_Code_Point}|(?<![\u200C\u200D\p{L}\p{M}])[\u200C\u200D]+|[\u200C\u200D]+(?![\u200C\u200D\p{L}\p{M}])/gu;

/** `sold`: the TLDs sold, the main one first. */
export function meaningOf(text: string, sold: readonly string[]): Meaning {
  const parts = text.replace(LEFTOVERS, "").split(BETWEEN_NAMES).flatMap(namesIn);
  const [only] = parts;
  if (only === undefined) return { kind: "none" };
  if (parts.length > 1) return listOf(parts, sold);
  const words = only.split(/\s+/);
  const q = words.join("");
  const offers = [
    ...(words.length > 1 ? possible(words.join("-")) : underMainTld(q, sold)),
    ...spellingsOf(q),
  ];
  return { kind: "name", q, offers: [...new Set(offers)] };
}

/** Words that all have a TLD are separate names; other words form one name. */
function namesIn(part: string): string[] {
  const words = part.split(/\s+/).filter((word) => word !== "");
  return words.every((word) => word.includes(".")) ? words : [words.join(" ")];
}

/** The rows for the results of a query, the exact name first. */
export function rowsFor(
  q: string,
  sold: readonly string[],
): { readonly label: string; readonly tlds: readonly string[] } {
  const host = hostOf(q);
  const exact = endingOf(host, sold);
  if (exact === "") return { label: host, tlds: sold };
  return { label: host.slice(0, -exact.length), tlds: [exact, ...sold.filter((tld) => tld !== exact)] };
}

function listOf(parts: readonly string[], sold: readonly string[]): Meaning {
  const names = parts.map((part) => {
    const host = hostOf(part.replace(/\s+/g, ""));
    return endingOf(host, sold) === "" ? `${labelOf(host)}${sold[0] ?? ""}` : host;
  });
  const each = [...new Set(names)];
  return {
    kind: "list",
    names: each.slice(0, MOST_ITEMS),
    leftOut: Math.max(0, each.length - MOST_ITEMS),
  };
}

/** The text without the final dot of a sentence; nothing if it can't be a name. */
function possible(text: string): string[] {
  const name = text.replace(/[.۔]$/u, "");
  return POSSIBLE_NAME.test(name) ? [name] : [];
}

/**
 * The same name as most people type it: without joiners, with Persian letters and digits instead of those of an Arabic keyboard, and with Latin digits
 * unless there are letters of Arabic script. Such names look alike and aren't the same.
 */
function spellingsOf(q: string): string[] {
  const host = hostOf(q);
  const isArabic = /(?=\p{L})\p{Script=Arabic}/u.test(host);
  const spelled = host
    .replace(/[٠-٩۰-۹]/gu, (digit) => {
      const value = digit.charCodeAt(0) & 15;
      return isArabic ? String.fromCharCode(0x06f0 + value) : String(value);
    })
    .replaceAll("ك", "ک")
    .replace(/[يى]/gu, "ی");
  return [spelled, spelled.replace(/[\u200C\u200D]/gu, "")].flatMap((name) =>
    name === host ? [] : possible(name),
  );
}

/** For a name with a TLD that isn't sold: the same name under our main TLD. */
function underMainTld(text: string, sold: readonly string[]): string[] {
  const host = hostOf(text);
  const [main] = sold;
  const isForeign =
    main !== undefined && /.\../.test(host) && POSSIBLE_NAME.test(host) && endingOf(host, sold) === "";
  return isForeign ? [`${labelOf(host)}${main}`] : [];
}

/** The host as the service understands it, without a port, and in a URL without user and password. */
function hostOf(text: string): string {
  const host = hostIn(text).toLowerCase().replace(/:\d*$/, "");
  return text.includes("//") ? host.slice(host.lastIndexOf("@") + 1) : host;
}

function labelOf(host: string): string {
  return host.split(".")[0] ?? host;
}

function endingOf(host: string, sold: readonly string[]): string {
  return sold
    .filter((tld) => host.endsWith(tld))
    .reduce((longest, tld) => (tld.length > longest.length ? tld : longest), "");
}
