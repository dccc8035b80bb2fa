/**
 * Describes answers without revealing their values: types, formats, field names and machine-readable words. Everything that the probe prints
 * about an answer comes from here.
 */

export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Whether a value is absent, null, or without contents. */
export function isEmpty(value: unknown): boolean {
  if (isList(value) || isFields(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === "";
}

/** A number with a fraction or an exponent, with its original digits; the service parses it as an object of a class. */
export function isWrittenNumber(value: unknown): value is { readonly text: string } {
  if (typeof value !== "object" || value === null || isList(value) || isFields(value)) return false;
  return "text" in value && typeof value.text === "string";
}

/** Letters joined by `_` or `-`, with up to two digits at the end. A domain name or an account number doesn't match. */
const FIELD_NAME = /^[A-Za-z]+(?:[_-][A-Za-z]+)*_?\d{0,2}$/;
const MAX_NAME_LENGTH = 40;
const MAX_NAMES = 12;

/** A field's name, unless it looks like data: some answers use data as keys. */
export function nameShown(key: string): string {
  return key.length <= MAX_NAME_LENGTH && FIELD_NAME.test(key) ? key : "(not a field name)";
}

/** Distinct field names, with a count of those that are left out. */
export function namesShown(keys: readonly string[]): string {
  return listed(keys.map(nameShown));
}

function listed(texts: readonly string[]): string {
  const names = [...new Set(texts)].sort();
  const more = names.length > MAX_NAMES ? `, ${names.length - MAX_NAMES} more` : "";
  return names.length === 0 ? "no field" : names.slice(0, MAX_NAMES).join(", ") + more;
}

/** One word, or two as in "Pending transfer". Longer text could be a sentence about somebody. */
const WORD = /^[A-Za-z]+(?:[_-][A-Za-z]+){0,5}$|^[A-Z][a-z]+ [a-z]+$/;

/** A machine-readable word such as a status or a code; anything else is described by its format. */
export function wordShown(value: unknown): string {
  if (typeof value === "string" && value.length <= MAX_NAME_LENGTH && WORD.test(value)) return `"${value}"`;
  return formOf(value);
}

/** The type of a value, and the format of numbers and text. Only dates reveal how many digits they have. */
export function formOf(value: unknown): string {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (isWrittenNumber(value)) return `number ${masked(value.text)}`;
  if (typeof value === "number") return "whole number";
  if (typeof value === "boolean") return "true or false";
  if (typeof value === "string") return value === "" ? "empty text" : `text ${masked(value)}`;
  if (isList(value)) return value.length === 0 ? "empty list" : `list of ${kindOf(value[0])}s`;
  return isEmpty(value) ? "empty object" : "object";
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (isList(value)) return "list";
  return typeof value === "string" ? "text" : typeof value;
}

const DATE_LIKE = /^\d{1,4}[-/]\d|^\d{1,2}\.\d{1,2}\.\d{4}|^\d{2}-[A-Za-z]{3}-/;
/** All but the T and Z of a timestamp. */
const LETTER_OF_DATE = /(?!(?<=9)T(?=9)|(?<=9)Z$)\p{L}/gu;

/** Replaces digits with `9` and letters with `a`. */
function masked(text: string): string {
  const cut = text.slice(0, MAX_NAME_LENGTH);
  if (DATE_LIKE.test(cut)) return cut.replaceAll(/\d/g, "9").replaceAll(LETTER_OF_DATE, "a");
  // The number of decimals is the format of an amount; the other digits would reveal its size.
  return cut
    .replaceAll(/\.?\d+/g, (digits) => (digits.startsWith(".") ? digits.replaceAll(/\d/g, "9") : "9"))
    .replaceAll(/\p{L}+/gu, "a");
}

export interface Leaf {
  /** Such as `quote.price.amount`, made of names that may be shown. */
  readonly path: string;
  /** The last name of the path. */
  readonly name: string;
  readonly value: unknown;
}

const MAX_DEPTH = 4;
const MAX_FIELDS = 100;

/** Every value that isn't an object, without the contents of lists. */
export function leavesOf(value: unknown, path = "", depth = 0): Leaf[] {
  if (!isFields(value) || depth >= MAX_DEPTH)
    return path === "" ? [] : [{ path, name: path.slice(path.lastIndexOf(".") + 1), value }];
  return Object.entries(value)
    .slice(0, MAX_FIELDS)
    .flatMap(([key, inner]) => leavesOf(inner, pathTo(path, key), depth + 1));
}

export function pathTo(path: string, key: string): string {
  return path === "" ? nameShown(key) : `${path}.${nameShown(key)}`;
}

export function pathsShown(leaves: readonly Leaf[]): string {
  return listed(leaves.map(({ path }) => path));
}
