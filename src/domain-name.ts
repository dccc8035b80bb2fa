/**
 * The only place that canonicalizes domain names and creates a DomainName. Its `ascii` is always a valid registrable name under a known TLD,
 * so it is safe as a cache key, path segment and body value.
 */
import { toASCII, toUnicode } from "tr46";
import { invalidField, type Reason } from "./errors.js";
import { forbiddenIn } from "./idna2008.js";

const canonical = Symbol("canonical domain name");

/** One label under one TLD, canonical. */
export interface DomainName {
  /** A-labels, lower case, no trailing dot: `kabul.af`. */
  readonly ascii: string;
  /** The same in its own script. */
  readonly unicode: string;
  /** The A-label left of the TLD. */
  readonly label: string;
  /** With a leading dot: `.com.af`. */
  readonly tld: string;
  readonly [canonical]: true;
}

/** What a visitor searches for: a label to try under every TLD, and the exact name if a full one was given. */
export interface SearchTerm {
  readonly label: string;
  readonly exact: DomainName | null;
}

// Public suffixes are never registrable names. From the Public Suffix List (MPL-2.0), section "af",
// https://publicsuffix.org/list/public_suffix_list.dat
const AF_SUFFIXES: ReadonlySet<string> = new Set(["af", "com.af", "edu.af", "gov.af", "net.af", "org.af"]);

/** Every TLD that a domain of the reseller can have, sold here or not. */
export const AF_TLDS: readonly string[] = [...AF_SUFFIXES].map((suffix) => `.${suffix}`);

const MAX_INPUT_LENGTH = 2048;
// Longer than any realistic spelling of a name of 253 characters, and short enough for the slowest paths of tr46.
const MAX_HOST_LENGTH = 1024;

/** It maps the case itself; lower-casing first would accept more. */
const STRICT = {
  checkHyphens: true,
  checkBidi: true,
  checkJoiners: true,
  useSTD3ASCIIRules: true,
  verifyDNSLength: true,
  transitionalProcessing: false,
  ignoreInvalidPunycode: false,
} as const;

// Without the `u` flag, `i` folds only ASCII, so KELVIN SIGN doesn't match `k`.
const SCHEME = /^(?:view-source:)?(?:https?:[/\\]{0,2}|(?:[a-z][a-z\d+.-]*:)?\/\/) ?/i;
const USER_INFO = /^[\w.~!$&'()*+,;=:%-]*$/;
const PORT = /:\d{0,5}$/;
/** The full stops that keyboards of all scripts have, such as that of Pashto and Urdu. */
const DOTS =
  /[\u0589\u066B\u06D4\u0701\u0702\u0964\u1362\u166E\u1803\u1809\u2024\u2E3C\u3002\uA4FF\uFE12\uFE52\uFF0E\uFF61]/gu;
const ROOT_DOT = /\.$/;
/** Marks of direction at a dot, which editors of right-to-left text add. */
const MARKS_AT_DOT = /\p{Bidi_Control}*\.\p{Bidi_Control}*/gu;

/** What comes along when a name is copied: white space, invisible characters, quotes, brackets, emphasis, and the punctuation of a sentence. */
const SURROUNDING =
  /[\s\p{Default_Ignorable_Code_Point}\p{Cf}\p{Ps}\p{Pe}\p{Pi}\p{Pf}"'`\u00B4<>*~|,;!?#\u060C\u061B\u061F\u3001\uFF0C\uFF1B\uFF01\uFF1F\u2026]/u;
/** A word without letters and digits, such as a bullet or an emoji. */
const ORNAMENT = /^[^\p{L}\p{N}]+$/u;

type Why = readonly [reason: Reason, message: string];
const TOO_LONG: Why = [
  "too_long",
  "is too long: each part can have up to 63 characters, and the whole name up to 253",
];
const BAD_CHARACTERS: Why = [
  "not_a_name",
  "isn't a valid domain name: use letters, digits and hyphens, in one writing direction",
];
const BAD_DIRECTION: Why = [
  "script",
  "isn't a valid domain name: it mixes writing directions, or a name from right to left starts with a digit",
];
/** The dot, and characters that UTS 46 leaves out. */
const MAPPED = /\.|(?![\u200C\u200D])\p{Default_Ignorable_Code_Point}/u;

function withoutSurrounding(text: string): string {
  let [from, to] = [0, text.length];
  const isAround = (at: number): boolean => SURROUNDING.test(text.charAt(at));
  while (from < to && isAround(from)) from += 1;
  // The full stop of a sentence can follow a closing quote or bracket.
  while (from < to && (isAround(to - 1) || (text.endsWith(".", to) && to - from > 1 && isAround(to - 2))))
    to -= 1;
  const inner = text.slice(from, to);
  const words = /\s/.test(inner) ? inner.replace(/\s*\.\s*/g, ".").split(/\s+/) : [inner];
  const named = words.filter((word) => words.length === 1 || !ORNAMENT.test(word)).join(" ");
  return /^_.*_$/.test(named) ? named.slice(1, -1) : named;
}

/** Extracts the host from a pasted address. */
function hostIn(text: string, field: string): { host: string; isBare: boolean } {
  if (text.length > MAX_INPUT_LENGTH) throw invalidField(field, ...TOO_LONG);
  const trimmed = withoutSurrounding(text.replace(DOTS, ".").replace(MARKS_AT_DOT, "."));
  const scheme = SCHEME.exec(trimmed)?.[0] ?? "";
  let host = trimmed.slice(scheme.length);
  const end = host.search(/[/?#]/);
  if (end !== -1) host = host.slice(0, end);
  const at = scheme === "" ? -1 : host.lastIndexOf("@");
  if (at !== -1) {
    // Browsers end the host at a backslash, so the part before the @ must not be a disguised host.
    if (!USER_INFO.test(host.slice(0, at))) throw invalidField(field, ...BAD_CHARACTERS);
    host = host.slice(at + 1);
  }
  host = host.replace(PORT, "");
  if (host.includes("@"))
    throw invalidField(field, "not_a_name", "must be a domain name, not an e-mail address");
  const isBare = host === trimmed;
  host = host.replace(ROOT_DOT, "");
  if (host === "") throw invalidField(field, "required", "is empty: enter a domain name");
  if (host.length > MAX_HOST_LENGTH) throw invalidField(field, ...TOO_LONG);
  return { host, isBare };
}

function whyInvalid(host: string): Why {
  const relaxed = toASCII(host, { ...STRICT, checkHyphens: false, verifyDNSLength: false });
  if (relaxed === null || !/^[a-z\d.-]*$/.test(relaxed)) return whyMalformed(host);
  const labels = relaxed.split(".");
  if (labels.includes(""))
    return ["not_a_name", "has an empty part: two dots in a row, or a dot at the start"];
  if (relaxed.length > 253 || labels.some(({ length }) => length > 63)) return TOO_LONG;
  return [
    "not_a_name",
    "has a misplaced hyphen: at the start or end of a part, or as its third and fourth character",
  ];
}

function whyMalformed(host: string): Why {
  const mark = /\p{Bidi_Control}/u.exec(host)?.[0];
  if (mark !== undefined) return containsForbidden(mark);
  const forbidden = Array.from(host).find((character) => !MAPPED.test(character) && isForbidden(character));
  if (forbidden !== undefined) return containsForbidden(forbidden);
  const joiner = /[\u200C\u200D]/.exec(host)?.[0];
  // At the end of a name from right to left, it also breaks the rule about directions.
  if (joiner !== undefined && toASCII(host.replace(/[\u200C\u200D]/g, ""), STRICT) !== null)
    return ["script", `contains ${named(joiner)}, which is invisible and isn't possible in this place`];
  if (toASCII(host, { ...STRICT, checkBidi: false }) !== null) return BAD_DIRECTION;
  return BAD_CHARACTERS;
}

function isForbidden(character: string): boolean {
  return forbiddenIn(character.normalize("NFKC").toLowerCase()) !== null;
}

function containsForbidden(character: string): Why {
  return ["character", `contains ${named(character)}, which domain names can't have`];
}

function make(label: string, tld: string): DomainName {
  const ascii = label + tld;
  const unicode = ascii.includes("xn--") ? toUnicode(ascii, STRICT).domain : ascii;
  return Object.freeze({ ascii, unicode, label, tld, [canonical]: true as const });
}

function namesSold(soldTlds: readonly string[]): string {
  return `names are sold under ${soldTlds.join(", ")}`;
}

function isSuffix(ascii: string, soldTlds: readonly string[]): boolean {
  return AF_SUFFIXES.has(ascii) || soldTlds.includes(`.${ascii}`);
}

/** Splits a canonical host into one label and a TLD sold, dropping a leading `www.` unless it is the name itself. */
function registrableOf(ascii: string, soldTlds: readonly string[], field: string): DomainName {
  if (soldTlds.length === 0)
    throw invalidField(field, "not_sold", "can't be registered: no names are sold here");
  if (isSuffix(ascii, soldTlds))
    throw invalidField(field, "not_a_name", "is only an ending: add a name before it");
  let tld = "";
  for (const candidate of soldTlds) {
    if (candidate.length > tld.length && ascii.endsWith(candidate)) tld = candidate;
  }
  if (tld === "" && !ascii.includes("."))
    throw invalidField(field, "not_a_name", `needs an ending; ${namesSold(soldTlds)}`);
  const above = ascii.slice(0, -tld.length);
  if (tld !== "" && !above.includes(".")) return make(above, tld);
  const labels = above.split(".");
  if (tld === "" || AF_SUFFIXES.has(`${labels.at(-1)}${tld}`))
    throw invalidField(field, "not_sold", `has an ending that isn't sold here; ${namesSold(soldTlds)}`);
  if (labels.length === 2 && labels[0] === "www") labels.shift();
  const [label = "", ...below] = labels;
  if (below.length > 0)
    throw invalidField(
      field,
      "not_a_name",
      "must be one name directly before the ending, without a dot in it",
    );
  return make(label, tld);
}

/**
 * Parses a name as people write or paste it: any case, Unicode, surrounding white space, trailing dot, `www.`, full URLs.
 * Throws `invalid_request` for anything that isn't exactly one label under a TLD sold.
 */
export function parseDomainName(text: string, soldTlds: readonly string[], field: string): DomainName {
  return registrableOf(canonicalInput(text, field).ascii, soldTlds, field);
}

/** Parses the text of a search box: a bare label, also after `www.`, or anything that `parseDomainName` accepts. */
export function parseSearchTerm(text: string, soldTlds: readonly string[], field: string): SearchTerm {
  const { ascii, isBare } = canonicalInput(text, field);
  if (isBare && !ascii.includes(".")) return { label: ascii, exact: null };
  const begun = /^www\.([^.]+)$/.exec(ascii)?.[1];
  if (isBare && begun !== undefined && !isSuffix(begun, soldTlds)) return { label: begun, exact: null };
  const exact = registrableOf(ascii, soldTlds, field);
  return { label: exact.label, exact };
}

function canonicalInput(text: string, field: string): { ascii: string; isBare: boolean } {
  const { host, isBare } = hostIn(text, field);
  const ascii = toASCII(host, STRICT);
  if (ascii === null) throw invalidField(field, ...whyInvalid(host));
  const forbidden = ascii.includes("xn--") ? forbiddenInHost(ascii) : null;
  if (forbidden !== null) throw invalidField(field, ...containsForbidden(forbidden));
  return { ascii, isBare };
}

function forbiddenInHost(ascii: string): string | null {
  const labels = toUnicode(ascii, STRICT).domain.split(".");
  return labels.reduce<string | null>((found, label) => found ?? forbiddenIn(label), null);
}

/** The character itself if people can see it, else its code point. */
function named(character: string): string {
  const code = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0");
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(character) ? `“${character}”` : `U+${code}`;
}

/** The scripts in which a label can be written. */
export const SCRIPTS = ["latin", "arabic"] as const;
export type Script = (typeof SCRIPTS)[number];

/** Labels of a single script (UTS 39): its own characters, and those of no script, such as digits and the hyphen. */
const OF_SCRIPT: Readonly<Record<Script, RegExp>> = {
  latin: /^[\p{scx=Latin}\p{scx=Common}\p{scx=Inherited}]*$/u,
  arabic: /^[\p{scx=Arabic}\p{scx=Common}\p{scx=Inherited}]*$/u,
};

/** Digits of Latin and of Arabic writing look alike or are mistaken for each other (UTS 39, mixed numbers). */
const TWO_KINDS_OF_DIGITS = /[0-9].*[\u0660-\u0669\u06F0-\u06F9]|[\u0660-\u0669\u06F0-\u06F9].*[0-9]/u;

/** Whether the name's label is entirely in one of these scripts, with digits of one kind. */
export function isInScript({ unicode }: DomainName, scripts: readonly Script[]): boolean {
  const [label = ""] = unicode.split(".");
  return scripts.some((script) => OF_SCRIPT[script].test(label)) && !TWO_KINDS_OF_DIGITS.test(label);
}

/** A canonical label under a TLD, or null if they don't form a name: too long, or a public suffix such as `com.af`. */
export function domainNameUnder(label: string, tld: string): DomainName | null {
  const ascii = label + tld;
  if (label.includes(".") || AF_SUFFIXES.has(ascii)) return null;
  if (toASCII(ascii, STRICT) !== ascii) return null;
  const name = make(label, tld);
  return label.includes("xn--") && forbiddenInHost(ascii) !== null ? null : name;
}

/** A label in any script under a TLD, or null if they don't form a name. */
export function nameOf(label: string, tld: string): DomainName | null {
  const ascii = toASCII(label, STRICT);
  return ascii === null ? null : domainNameUnder(ascii, tld);
}

/**
 * Any full host name in lower-case A-labels without a trailing dot, or null. Meant for names that the upstream sends.
 * Hyphens as third and fourth character are accepted, because such hosts exist.
 */
export function canonicalHost(text: string): string | null {
  if (text.length > MAX_HOST_LENGTH) return null;
  const host = text.trim().replace(DOTS, ".").replace(ROOT_DOT, "");
  const ascii = lenientAscii(host);
  if (ascii === null) return null;
  const labels = ascii.split(".");
  // A numeric last label makes it an IP address.
  return labels.length > 1 && !/\.\d+$/.test(ascii) ? ascii : null;
}

/** UTS 46 without its rule about hyphens as third and fourth character, or null. */
function lenientAscii(host: string): string | null {
  const ascii = toASCII(host, { ...STRICT, checkHyphens: false });
  if (ascii === null) return null;
  const labels = toUnicode(ascii, { ...STRICT, checkHyphens: false }).domain.split(".");
  return labels.some((label) => label.startsWith("-") || label.endsWith("-")) ? null : ascii;
}
