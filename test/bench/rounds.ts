/** Measures candidates in turn on a machine whose speed varies, so that a slow minute affects all of them. */
import type { NodeProgram } from "./node-program.js";

/** The options of a benchmark that compares candidates. */
export interface Comparison {
  readonly rounds?: number;
  readonly seconds?: number;
  readonly only?: string;
  readonly nodes?: readonly NodeProgram[];
}

/** Each round visits every entry once, in an order that rotates from round to round. */
export function* interleaved<T>(rounds: number, entries: readonly T[]): Generator<T> {
  for (let round = 0; round < rounds; round += 1) {
    const first = round % entries.length;
    yield* entries.slice(first);
    yield* entries.slice(0, first);
  }
}

/** Those whose names contain one of the words, which commas outside numbers separate. Throws if there are none. */
export function selected<T extends { readonly name: string }>(list: readonly T[], words: string): T[] {
  const found = list.filter(({ name }) => words.split(/,(?!\d)/).some((word) => name.includes(word)));
  if (found.length > 0) return found;
  throw new Error(`no name contains "${words}": ${list.map(({ name }) => name).join("; ")}`);
}
