/**
 * The only place that canonicalizes domain names and creates a DomainName. Its `ascii` is always a valid registrable name under a known TLD,
 * so it is safe as a cache key, path segment and body value.
 */
import { toASCII, toUnicode } from "tr46";
import { invalidField } from "./errors.js";
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
const SCHEME = /^(?:[a-z][a-z\d+.-]*:)?\/\//i;
const USER_INFO = /^[\w.~!$&'()*+,;=:%-]*$/;
const PORT = /:\d{0,5}$/;
// UTS 46 maps ideographic and full-width stops to a dot, so the trailing dot can be any of them.
const ROOT_DOT = /[.\u3002\uFF0E\uFF61]$/u;

/**
 * Lower-case letters, digits and hyphens in labels of 1 to 63 characters, without a hyphen at either end or as third and fourth character.
 * UTS 46 doesn't change such a name.
 */
const PLAIN_HOST = /^(?:(?!..--)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.(?!$)|$))+$/;
const ASCII = /^[\x21-\x7e]*$/;
const A_LABEL = /xn--/i;

/** White space, and the invisible marks of direction that come along when text is copied from a right-to-left page. */
const SURROUNDING = /[\s\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/;

const TOO_LONG = "is too long: each part can have up to 63 characters, and the whole name up to 253";
const BAD_CHARACTERS = "isn't a valid domain name: use letters, digits and hyphens, in one writing direction";
const BAD_DIRECTION =
  "isn't a valid domain name: it mixes writing directions, or a name from right to left starts with a digit";
/** Dots of all kinds, and characters that UTS 46 leaves out. */
const MAPPED = /[.\u3002\uFF0E\uFF61]|(?![\u200C\u200D])\p{Default_Ignorable_Code_Point}/u;

/** Strict UTS 46, or null. ASCII without A-labels only has to be lower-cased, which is much faster. */
function strictAscii(host: string): string | null {
  if (!isSimple(host)) return toASCII(host, STRICT);
  const lower = host.toLowerCase();
  return isPlainHost(lower) ? lower : null;
}

function isPlainHost(host: string): boolean {
  return host.length <= 253 && PLAIN_HOST.test(host);
}

function isSimple(host: string): boolean {
  return ASCII.test(host) && !A_LABEL.test(host);
}

function withoutSurrounding(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && SURROUNDING.test(text.charAt(from))) from += 1;
  while (from < to && SURROUNDING.test(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

/** Extracts the host from a pasted address. */
function hostIn(text: string, field: string): { host: string; isBare: boolean } {
  if (text.length > MAX_INPUT_LENGTH) throw invalidField(field, TOO_LONG);
  const trimmed = withoutSurrounding(text);
  const scheme = SCHEME.exec(trimmed)?.[0] ?? "";
  let host = trimmed.slice(scheme.length);
  const end = host.search(/[/?#]/);
  if (end !== -1) host = host.slice(0, end);
  const at = scheme === "" ? -1 : host.lastIndexOf("@");
  if (at !== -1) {
    // Browsers end the host at a backslash, so the part before the @ must not be a disguised host.
    if (!USER_INFO.test(host.slice(0, at))) throw invalidField(field, BAD_CHARACTERS);
    host = host.slice(at + 1);
  }
  host = host.replace(PORT, "");
  if (host.includes("@")) throw invalidField(field, "must be a domain name, not an e-mail address");
  const isBare = host === trimmed;
  host = host.replace(ROOT_DOT, "");
  if (host === "") throw invalidField(field, "is empty: enter a domain name");
  if (host.length > MAX_HOST_LENGTH) throw invalidField(field, TOO_LONG);
  return { host, isBare };
}

function whyInvalid(host: string): string {
  const relaxed = isSimple(host)
    ? host.toLowerCase()
    : toASCII(host, { ...STRICT, checkHyphens: false, verifyDNSLength: false });
  if (relaxed === null || !/^[a-z\d.-]*$/.test(relaxed)) return whyMalformed(host);
  const labels = relaxed.split(".");
  if (labels.includes("")) return "has an empty part: two dots in a row, or a dot at the start";
  if (relaxed.length > 253 || labels.some(({ length }) => length > 63)) return TOO_LONG;
  return "has a misplaced hyphen: at the start or end of a part, or as its third and fourth character";
}

function whyMalformed(host: string): string {
  const forbidden = Array.from(host).find((character) => !MAPPED.test(character) && isForbidden(character));
  if (forbidden !== undefined) return containsForbidden(forbidden);
  const joiner = /[\u200C\u200D]/.exec(host)?.[0];
  // At the end of a name from right to left, it also breaks the rule about directions.
  if (joiner !== undefined && toASCII(host.replace(/[\u200C\u200D]/g, ""), STRICT) !== null)
    return `contains ${named(joiner)}, which is invisible and isn't possible in this place`;
  if (toASCII(host, { ...STRICT, checkBidi: false }) !== null) return BAD_DIRECTION;
  return BAD_CHARACTERS;
}

function isForbidden(character: string): boolean {
  return forbiddenIn(character.normalize("NFKC").toLowerCase()) !== null;
}

function containsForbidden(character: string): string {
  return `contains ${named(character)}, which domain names can't have`;
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
  if (soldTlds.length === 0) throw invalidField(field, "can't be registered: no names are sold here");
  if (isSuffix(ascii, soldTlds)) throw invalidField(field, "is only an ending: add a name before it");
  let tld = "";
  for (const candidate of soldTlds) {
    if (candidate.length > tld.length && ascii.endsWith(candidate)) tld = candidate;
  }
  if (tld === "" && !ascii.includes("."))
    throw invalidField(field, `needs an ending; ${namesSold(soldTlds)}`);
  const above = ascii.slice(0, -tld.length);
  if (tld !== "" && !above.includes(".")) return make(above, tld);
  const labels = above.split(".");
  if (tld === "" || AF_SUFFIXES.has(`${labels.at(-1)}${tld}`))
    throw invalidField(field, `has an ending that isn't sold here; ${namesSold(soldTlds)}`);
  if (labels.length === 2 && labels[0] === "www") labels.shift();
  const [label = "", ...below] = labels;
  if (below.length > 0)
    throw invalidField(field, "must be one name directly before the ending, without a dot in it");
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
  if (isPlainHost(text)) return { ascii: text, isBare: true };
  const { host, isBare } = hostIn(text, field);
  // UTS 46 maps the case itself; lower-casing first would accept more.
  const ascii = strictAscii(host);
  if (ascii === null) throw invalidField(field, whyInvalid(host));
  const forbidden = ascii.includes("xn--") ? forbiddenInHost(ascii) : null;
  if (forbidden !== null) throw invalidField(field, containsForbidden(forbidden));
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

/** A canonical label under a TLD, or null if they don't form a name: too long, or a public suffix such as `com.af`. */
export function domainNameUnder(label: string, tld: string): DomainName | null {
  const ascii = label + tld;
  if (label.includes(".") || AF_SUFFIXES.has(ascii)) return null;
  if (strictAscii(ascii) !== ascii) return null;
  const name = make(label, tld);
  return label.includes("xn--") && forbiddenInHost(ascii) !== null ? null : name;
}

/** A label in any script under a TLD, or null if they don't form a name. */
export function nameOf(label: string, tld: string): DomainName | null {
  const ascii = strictAscii(label);
  return ascii === null ? null : domainNameUnder(ascii, tld);
}

/**
 * Any full host name in lower-case A-labels without a trailing dot, or null. Meant for names that the upstream sends.
 * Hyphens as third and fourth character are accepted, because such hosts exist.
 */
export function canonicalHost(text: string): string | null {
  if (text.length > MAX_HOST_LENGTH) return null;
  const host = text.trim().replace(ROOT_DOT, "");
  const ascii = isPlainHost(host) ? host : lenientAscii(host);
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
