/**
 * How the probe speaks of what it saw: kinds, forms, names of fields and words of a vocabulary, never values. Whatever it prints of an
 * answer goes through here.
 */
import { WrittenNumber } from "../upstream/written-json.js";

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber)
  );
}

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Letters, joined by `_` or `-`, perhaps a number at the end: a domain name or an account number is none. */
const FIELD_NAME = /^[A-Za-z]+(?:[_-][A-Za-z]+)*_?\d{0,2}$/;
const LONGEST_NAME = 40;
const MOST_NAMES = 12;

/** A field's name where it looks like one, because some answers are keyed by data. */
export function nameShown(key: string): string {
  return key.length <= LONGEST_NAME && FIELD_NAME.test(key) ? key : "(not a field name)";
}

/** Each field's name once, and how many more there are. */
export function namesShown(keys: readonly string[]): string {
  return listed([...new Set(keys.map(nameShown))]);
}

/** One word, or two as in "Pending transfer": more may be a sentence about somebody. */
const WORD = /^[A-Za-z]+(?:[_-][A-Za-z]+){0,5}$|^[A-Z][a-z]+ [a-z]+$/;

/** A word that a machine is meant to read, such as a status or a code; anything else as its form. */
export function wordShown(value: unknown): string {
  if (typeof value === "string" && value.length <= LONGEST_NAME && WORD.test(value)) return `"${value}"`;
  return formOf(value);
}

/** The kind of a value; of numbers and texts also their form: how many digits stand together is told by dates only. */
export function formOf(value: unknown): string {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (value instanceof WrittenNumber) return `number ${masked(value.text)}`;
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

/** `9` for digits and `a` for letters; T and Z of a date with a time stay. */
function masked(text: string): string {
  const cut = text.slice(0, LONGEST_NAME);
  if (DATE_LIKE.test(cut)) {
    return cut.replaceAll(/(?<=\d)T(?=\d)|(?<=\d)Z$|\d|\p{L}/gu, (one) =>
      one === "T" || one === "Z" ? one : /\d/.test(one) ? "9" : "a",
    );
  }
  // The fraction digits of an amount are its form, the others its size.
  return cut
    .replaceAll(/(?<!\.)\d+/g, "9")
    .replaceAll(/(?<=\.)\d+/g, (digits) => "9".repeat(digits.length))
    .replaceAll(/\p{L}+/gu, "a");
}

export interface Leaf {
  /** As `quote.price.amount`, in names that may be shown. */
  readonly path: string;
  readonly value: unknown;
}

const DEEPEST = 4;
const MOST_FIELDS = 100;

/** Every value that is no object; lists are not entered. */
export function leavesOf(value: unknown, path = "", depth = 0): Leaf[] {
  if (!isFields(value) || depth >= DEEPEST) return path === "" ? [] : [{ path, value }];
  return Object.entries(value)
    .slice(0, MOST_FIELDS)
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
  const more = names.length > MOST_NAMES ? `, ${names.length - MOST_NAMES} more` : "";
  return names.length === 0 ? "no field" : names.slice(0, MOST_NAMES).join(", ") + more;
}
