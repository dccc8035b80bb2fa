/**
 * Records what the upstream's answers contain beyond the vocabulary: counted, logged once, and listed for staff by shape. A shape is a path of
 * field names with a JSON type or a machine-readable word; it never contains a value.
 */
import type { Clock } from "../clock.js";
import type { Log } from "../logger.js";
import {
  CHECK_STATUSES,
  ENVELOPE,
  ERROR_CODES,
  FIELDS,
  normalized,
  normalizedSet,
  type Operation,
  RECORD,
  RECORD_STATUSES,
} from "./vocabulary.js";
import { isFields, WrittenNumber } from "./written-json.js";

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
const MAX_VALUES = 5000;
const MAX_DEPTH = 6;
/** Shorter parts of a hidden text occur in many words. */
const MIN_PART_LENGTH = 4;

const ENVELOPE_FIELDS = new Set<string>([...ENVELOPE.success, ...ENVELOPE.data]);
const STATUS_FIELDS = normalizedSet(RECORD.status);
/** The fields in these are nameservers, under free names. */
const NAMESERVER_FIELDS = normalizedSet(RECORD.nameservers);
const CODE_FIELDS = normalizedSet(ERROR_CODES);

/** A name that is part of a vocabulary, not a person's or a domain's. */
const FIELD_NAME = /^[A-Za-z][A-Za-z_-]{0,39}$/;
const WORD = /^[a-z][a-z_-]{0,31}$/;

export function createUnexpected(clock: Clock, log: Log): Unexpected {
  const seen = new Map<string, { operation: Operation; what: string; count: number; firstSeenMs: number }>();
  const totals = new Map<Operation, number>();

  function add(operation: Operation, what: string): void {
    totals.set(operation, (totals.get(operation) ?? 0) + 1);
    const id = `${operation} ${what}`;
    const known = seen.get(id);
    if (known !== undefined) known.count += 1;
    else if (seen.size < MAX_LISTED) {
      seen.set(id, { operation, what, count: 1, firstSeenMs: clock.now() });
      log.warn("upstream.unexpected", { operation, what });
    }
  }

  return {
    inAnswer(operation, body, hidden) {
      // Once for each answer: a new field in a list of a hundred records counts once.
      for (const what of newIn(operation, body, hidden)) add(operation, what);
    },
    note: add,
    inError(operation, body, hidden) {
      for (const what of codesIn(body, hidden)) add(operation, what);
    },
    list: () => [...seen.values()].map((one) => ({ ...one })),
    totals: () => Object.fromEntries(totals),
  };
}

interface Visited {
  readonly value: unknown;
  readonly path: string;
  /** The last field name of the path, unchanged. */
  readonly name: string;
  readonly depth: number;
}

/** Visits the values of a body, within limits. `look` returns whether to visit what is inside. */
function walk(body: unknown, hidden: readonly string[], look: (visited: Visited) => boolean): void {
  const open: Visited[] = [{ value: body, path: "", name: "", depth: 0 }];
  for (let looked = 0; looked < MAX_VALUES; looked += 1) {
    const visited = open.pop();
    if (visited === undefined) return;
    const { value, path, name, depth } = visited;
    if (depth > 0 && !look(visited)) continue;
    if (depth >= MAX_DEPTH) continue;
    if (Array.isArray(value)) {
      const items: unknown[] = value.slice(0, MAX_VALUES);
      for (const item of items) open.push({ value: item, path: `${path}[]`, name, depth: depth + 1 });
    } else if (isFields(value)) {
      const prefix = path === "" ? "" : `${path}.`;
      for (const [key, inner] of Object.entries(value).slice(0, MAX_VALUES))
        open.push({ value: inner, path: `${prefix}${shownName(key, hidden)}`, name: key, depth: depth + 1 });
    }
  }
}

function newIn(operation: Operation, body: unknown, hidden: readonly string[]): Set<string> {
  const statuses = operation === "check" ? CHECK_STATUSES : RECORD_STATUSES;
  const found = new Set<string>();
  walk(body, hidden, ({ value, path, name, depth }) => {
    const field = normalized(name);
    if (depth === 1 ? !ENVELOPE_FIELDS.has(name) : !FIELDS[operation].has(field)) {
      found.add(`${path} (${kindOf(value)})`);
      return false;
    }
    if (depth > 1 && STATUS_FIELDS.has(field)) {
      if (typeof value === "string" && !statuses.has(normalized(value)))
        found.add(`${path} ${shownWord(value, hidden)}`);
    }
    return !NAMESERVER_FIELDS.has(field);
  });
  return found;
}

function codesIn(body: unknown, hidden: readonly string[]): Set<string> {
  const found = new Set<string>();
  walk(body, hidden, ({ value, path, name }) => {
    const isScalar = typeof value === "string" || typeof value === "number";
    if (isScalar && CODE_FIELDS.has(normalized(name)))
      found.add(`${path} ${typeof value === "string" ? shownWord(value, hidden) : "(number)"}`);
    return name !== "data";
  });
  return found;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return value instanceof WrittenNumber ? "number" : typeof value;
}

function shownName(name: string, hidden: readonly string[]): string {
  return FIELD_NAME.test(name) && !reveals(name, hidden) ? name : "*";
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
