/** What shares a machine whose speed changes is measured in turn, so that a slow minute falls on everybody. */
import type { NodeProgram } from "./node-program.js";

/** What a benchmark is told of its rounds. */
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
