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
