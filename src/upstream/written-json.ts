/**
 * Parses JSON in linear time without losing anything: a number with a fraction or an exponent keeps its digits, which a float can't always
 * represent, and an object with a repeated field is rejected, because it is unclear which value is meant.
 */

/** A number with a fraction or an exponent, with its original digits. */
export class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Valid JSON with a repeated field in one object. */
export class RepeatedFieldError extends Error {}

/** More than any object of the upstream needs. The many keys of a hostile object would only cost time. */
const MAX_FIELDS = 200;

/**
 * Throws a SyntaxError if the text isn't JSON, a RangeError if it is nested too deeply or an object has more than 200 fields, or a
 * RepeatedFieldError.
 */
export function parseWrittenJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const { fields, quoted } = survey(text);
  if (fields !== fieldsIn(value)) throw new RepeatedFieldError();
  return quoted === null ? value : written(value, JSON.parse(quoted));
}

/** The number as a float if it has a fraction; any other value unchanged. */
export function unwritten(value: unknown): unknown {
  return value instanceof WrittenNumber ? Number(value.text) : value;
}

/** Of valid JSON: the number of fields, and the text with quotes around every number with a fraction or exponent; null if there is none. */
function survey(text: string): { readonly fields: number; readonly quoted: string | null } {
  let fields = 0;
  let quoted = "";
  let copied = 0;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '"') at = endOfText(text, at);
    else if (char === ":") fields += 1;
    else if (char === "." || ((char === "e" || char === "E") && isDigit(text.charAt(at - 1)))) {
      let from = at;
      while (isOfNumber(text.charAt(from - 1))) from -= 1;
      let to = at;
      while (isOfNumber(text.charAt(to))) to += 1;
      quoted += `${text.slice(copied, from)}"${text.slice(from, to)}"`;
      copied = to;
      at = to - 1;
    }
  }
  return { fields, quoted: copied === 0 ? null : quoted + text.slice(copied) };
}

/** The index of the closing quote of the string that starts at `at`. */
function endOfText(text: string, at: number): number {
  let end = at + 1;
  while (text.charAt(end) !== '"') end += text.charAt(end) === "\\" ? 2 : 1;
  return end;
}

function isDigit(char: string): boolean {
  return char >= "0" && char <= "9";
}

function isOfNumber(char: string): boolean {
  return isDigit(char) || char === "." || char === "-" || char === "+" || char === "e" || char === "E";
}

function fieldsIn(root: unknown): number {
  const open: unknown[] = [root];
  let fields = 0;
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== "object" || value === null) continue;
    const inner: unknown[] = Object.values(value);
    if (!Array.isArray(value)) {
      if (inner.length > MAX_FIELDS) throw new RangeError("an object with too many fields");
      fields += inner.length;
    }
    for (const one of inner) open.push(one);
  }
  return fields;
}

/** `value` with original digits: `quoted` is the same JSON, in which those numbers are strings. */
function written(value: unknown, quoted: unknown): unknown {
  if (typeof value === "number" && typeof quoted === "string") return new WrittenNumber(quoted);
  if (Array.isArray(value) && Array.isArray(quoted))
    return value.map((item, index) => written(item, quoted[index]));
  if (!isObject(value) || !isObject(quoted)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, written(inner, quoted[name])]),
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

export type Fields = Readonly<Record<string, unknown>>;

/** Whether a parsed value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return isObject(value) && !Array.isArray(value) && !(value instanceof WrittenNumber);
}
