/**
 * Records what the upstream's answers contain beyond the vocabulary: counted, logged once, and listed for staff by shape. A shape is a path of
 * field names with a JSON type or a machine-readable word; it never contains a value.
 */
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { WrittenNumber } from "./body.js";
import { walk } from "./fields.js";
import { FIELDS, isKnownStatus, normalized, normalizedSet, type Operation, RECORD } from "./vocabulary.js";

interface UnexpectedShape {
  readonly operation: Operation;
  /** Such as `data.registrar (string)` or `error.code "frozen"`. */
  readonly what: string;
  readonly count: number;
  readonly firstSeenMs: number;
}

export interface Unexpected {
  /** Records unknown fields and status words of a successful answer. Nothing of `hidden` ever appears in a shape. */
  inAnswer(operation: Operation, body: unknown, hidden: readonly string[]): void;
  /** Records what a decoder reports. */
  note(operation: Operation, what: string): void;
  /** Records the codes of an error whose meaning is unknown. */
  inError(operation: Operation, body: unknown, hidden: readonly string[]): void;
  /** The first 50. */
  list(): UnexpectedShape[];
  /** The total since startup by operation, including shapes that aren't listed. */
  totals(): Readonly<Record<string, number>>;
}

const MAX_LISTED = 50;
const LIMITS = { depth: 6, values: 5000 };
/** Shorter parts of a hidden text occur in many words. */
const MIN_PART_LENGTH = 4;

const STATUS_FIELDS = normalizedSet(RECORD.status);
/** The fields in these are nameservers, under free names. */
const NAMESERVER_FIELDS = normalizedSet(RECORD.nameservers);
/** Fields of an error object that can contain its code. */
const CODE_FIELDS = normalizedSet(["code", "error_code", "error", "type"]);

/** A name that is part of a vocabulary, not a person's or a domain's. */
const FIELD_NAME = /^[A-Za-z][A-Za-z_-]{0,39}$/;
const WORD = /^[a-z][a-z_-]{0,31}$/;

export function createUnexpected(clock: Clock, log: Log): Unexpected {
  const seen = new Map<string, UnexpectedShape>();
  const totals = new Map<Operation, number>();

  function note(operation: Operation, what: string): void {
    totals.set(operation, (totals.get(operation) ?? 0) + 1);
    const id = `${operation} ${what}`;
    const known = seen.get(id);
    if (known !== undefined) seen.set(id, { ...known, count: known.count + 1 });
    else if (seen.size < MAX_LISTED) {
      seen.set(id, { operation, what, count: 1, firstSeenMs: clock.now() });
      log.warn("upstream.unexpected", { operation, what });
    }
  }

  return {
    note,
    inAnswer(operation, body, hidden) {
      // Once for each answer: a new field in a list of a hundred records counts once.
      for (const what of newIn(operation, body, hidden)) note(operation, what);
    },
    inError(operation, body, hidden) {
      for (const what of codesIn(body, hidden)) note(operation, what);
    },
    list: () => [...seen.values()],
    totals: () => Object.fromEntries(totals),
  };
}

function newIn(operation: Operation, body: unknown, hidden: readonly string[]): Set<string> {
  const found = new Set<string>();
  walk(body, LIMITS, (value, path) => {
    const name = lastName(path);
    const field = normalized(name);
    if (path.length === 1 ? name !== "success" && name !== "data" : !FIELDS[operation].has(field)) {
      found.add(`${shownPath(path, hidden)} (${kindOf(value)})`);
      return false;
    }
    if (path.length > 1 && STATUS_FIELDS.has(field) && typeof value === "string")
      if (!isKnownStatus(operation, value))
        found.add(`${shownPath(path, hidden)} ${shownWord(value, hidden)}`);
    return !NAMESERVER_FIELDS.has(field);
  });
  return found;
}

function codesIn(body: unknown, hidden: readonly string[]): Set<string> {
  const found = new Set<string>();
  walk(body, LIMITS, (value, path) => {
    const name = lastName(path);
    const isScalar = typeof value === "string" || typeof value === "number";
    if (isScalar && CODE_FIELDS.has(normalized(name)))
      found.add(
        `${shownPath(path, hidden)} ${typeof value === "string" ? shownWord(value, hidden) : "(number)"}`,
      );
    return name !== "data";
  });
  return found;
}

/** The name of the field, or of the list that the item is in. */
function lastName(path: readonly string[]): string {
  return path.findLast((name) => name !== "[]") ?? "";
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return value instanceof WrittenNumber ? "number" : typeof value;
}

function shownPath(path: readonly string[], hidden: readonly string[]): string {
  const isShown = (name: string): boolean =>
    name === "[]" || (FIELD_NAME.test(name) && !reveals(name, hidden));
  const shown = path.map((name) => (isShown(name) ? name : "*"));
  return shown.join(".").replaceAll(".[]", "[]");
}

function shownWord(text: string, hidden: readonly string[]): string {
  return WORD.test(text) && !reveals(text, hidden) ? `"${text}"` : "(string)";
}

/** Whether a word repeats a hidden text or a part of it. */
function reveals(word: string, hidden: readonly string[]): boolean {
  const lower = word.toLowerCase();
  return hidden.some((text) => {
    const lowerText = text.toLowerCase();
    if (lowerText.length < MIN_PART_LENGTH) return lower.split(/[_-]/).includes(lowerText);
    return lower.includes(lowerText) || (lower.length >= MIN_PART_LENGTH && lowerText.includes(lower));
  });
}
