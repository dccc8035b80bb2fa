/**
 * Finds fields of the upstream's JSON under every accepted spelling. A field that appears twice with different values is rejected, because it
 * is unclear which one is meant.
 */
import { notUnderstood } from "./failures.js";
import { normalized, type Spelling } from "./vocabulary.js";
import { type Fields, isFields, WrittenNumber } from "./written-json.js";

/** An object, followed by the fields that are next to it in its wrapper. */
export type Layers = readonly [Fields, ...Fields[]];

/** The object under the first of `wrappers` that contains one, and the fields next to it; otherwise the object itself. */
export function layersOf(data: unknown, wrappers: readonly Spelling[], what: string): Layers {
  const outer = fieldsOf(data, what);
  const inner = wrappers.map((wrapper) => pick([outer], [wrapper])).find(isFields);
  if (inner === undefined) return [outer];
  return [inner, Object.fromEntries(Object.entries(outer).filter(([, value]) => value !== inner))];
}

/** The first value under any of the spellings that is neither missing nor null. */
export function pick(layers: readonly Fields[], spellings: readonly Spelling[]): unknown {
  for (const value of found(layers, spellings)) return value;
  return undefined;
}

/** All values under the spellings that are neither missing nor null, layer by layer. */
export function* found(layers: readonly Fields[], spellings: readonly Spelling[]): Generator<unknown, void> {
  for (const fields of layers) {
    for (const spelling of spellings) {
      const value = valueUnder(fields, spelling);
      if (value !== null && value !== undefined) yield value;
    }
  }
}

/** A field that the upstream's document names; only that exact spelling is read. */
export function documented(fields: Fields, [name]: readonly [Spelling]): unknown {
  valueUnder(fields, name);
  return fields[name];
}

export function fieldsOf(value: unknown, what: string): Fields {
  if (!isFields(value)) throw notUnderstood(what);
  return value;
}

function valueUnder(fields: Fields, spelling: Spelling): unknown {
  const value = byNormalizedName(fields).get(normalized(spelling));
  if (value === TWO_VALUES) throw notUnderstood("a field that appears twice");
  return value;
}

const TWO_VALUES = Symbol("two values under one name");
const cache = new WeakMap<Fields, ReadonlyMap<string, unknown>>();

/** An object is searched under dozens of spellings, so its names are normalized only once. */
function byNormalizedName(fields: Fields): ReadonlyMap<string, unknown> {
  const known = cache.get(fields);
  if (known !== undefined) return known;
  const values = new Map<string, unknown>();
  for (const [key, value] of Object.entries(fields)) {
    const name = normalized(key);
    values.set(name, values.has(name) && !isSame(values.get(name), value) ? TWO_VALUES : value);
  }
  cache.set(fields, values);
  return values;
}

function isSame(a: unknown, b: unknown): boolean {
  return a instanceof WrittenNumber && b instanceof WrittenNumber ? a.text === b.text : a === b;
}
