/**
 * Parses JSON without losing anything: a number with a fraction or an exponent keeps its digits, which a float can't always represent, and an
 * object with a field that has two different values is rejected.
 */
import { parse } from "lossless-json";

/** A number with a fraction or an exponent, with its original digits. */
export class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Valid JSON with a field that has two different values. */
export class RepeatedFieldError extends Error {}

/** More than any object of the upstream needs. The many keys of a hostile object would only cost time. */
const MAX_FIELDS = 200;

/**
 * Throws a SyntaxError if the text isn't JSON, a RangeError if it is nested too deeply or an object has more than 200 fields, or a
 * RepeatedFieldError.
 */
export function parseWrittenJson(text: string): unknown {
  const value = parse(text, undefined, {
    parseNumber: (digits) => (/[.e]/i.test(digits) ? new WrittenNumber(digits) : Number(digits)),
    onDuplicateKey: () => {
      throw new RepeatedFieldError();
    },
  });
  limitFields(value);
  return value;
}

function limitFields(root: unknown): void {
  const open: unknown[] = [root];
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value !== "object" || value === null) continue;
    const inner: unknown[] = Object.values(value);
    if (!Array.isArray(value) && inner.length > MAX_FIELDS)
      throw new RangeError("an object with too many fields");
    for (const one of inner) open.push(one);
  }
}

/** The number as a float if it has a fraction; any other value unchanged. */
export function unwritten(value: unknown): unknown {
  return value instanceof WrittenNumber ? Number(value.text) : value;
}

export type Fields = Readonly<Record<string, unknown>>;

/** Whether a parsed value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber)
  );
}
