/**
 * Describes answers without revealing their values: types, formats, field names and machine-readable words. Everything that the probe prints
 * about an answer comes from here.
 */
import { isFields, isWrittenNumber } from "./json.js";

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
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
  return listed([...new Set(keys.map(nameShown))]);
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
  if (Array.isArray(value)) return value.length === 0 ? "empty list" : `list of ${kindOf(value[0])}s`;
  return isFields(value) && Object.keys(value).length === 0 ? "empty object" : "object";
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "list";
  return typeof value === "string" ? "text" : typeof value;
}

const DATE_LIKE = /^\d{1,4}[-/]\d|^\d{1,2}\.\d{1,2}\.\d{4}|^\d{2}-[A-Za-z]{3}-/;

/** Replaces digits with `9` and letters with `a`, apart from the T and Z of a timestamp. */
function masked(text: string): string {
  const cut = text.slice(0, MAX_NAME_LENGTH);
  if (DATE_LIKE.test(cut)) {
    return cut.replaceAll(/(?<=\d)T(?=\d)|(?<=\d)Z$|\d|\p{L}/gu, (one) =>
      one === "T" || one === "Z" ? one : /\d/.test(one) ? "9" : "a",
    );
  }
  // The number of decimals is the format of an amount; the other digits would reveal its size.
  return cut
    .replaceAll(/(?<!\.)\d+/g, "9")
    .replaceAll(/(?<=\.)\d+/g, (digits) => "9".repeat(digits.length))
    .replaceAll(/\p{L}+/gu, "a");
}

export interface Leaf {
  /** Such as `quote.price.amount`, made of names that may be shown. */
  readonly path: string;
  readonly value: unknown;
}

const MAX_DEPTH = 4;
const MAX_FIELDS = 100;

/** Every value that isn't an object, without the contents of lists. */
export function leavesOf(value: unknown, path = "", depth = 0): Leaf[] {
  if (!isFields(value) || depth >= MAX_DEPTH) return path === "" ? [] : [{ path, value }];
  return Object.entries(value)
    .slice(0, MAX_FIELDS)
    .flatMap(([key, inner]) => leavesOf(inner, pathTo(path, key), depth + 1));
}

export function pathTo(path: string, key: string): string {
  return path === "" ? nameShown(key) : `${path}.${nameShown(key)}`;
}

/** The last name of a path. */
export function lastOf(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

export function pathsShown(leaves: readonly Leaf[]): string {
  return listed([...new Set(leaves.map(({ path }) => path))]);
}

function listed(names: readonly string[]): string {
  const more = names.length > MAX_NAMES ? `, ${names.length - MAX_NAMES} more` : "";
  return names.length === 0 ? "no field" : names.slice(0, MAX_NAMES).join(", ") + more;
}
