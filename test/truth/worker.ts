/** A process that plays histories one after the other and prints its results as lines of JSON. */
import { parseArgs } from "node:util";
import { type History, historyOf, parseHistory } from "./history.js";
import type { Kind, Violation } from "./oracle.js";
import { play } from "./play.js";
import { shrink } from "./shrink.js";
import { Simulator } from "./simulation.js";

/** A history with a violation, shrunk as far as possible, and what the oracle reported. */
export interface Failure {
  readonly seed: number;
  readonly kind: Kind;
  readonly history: History;
  readonly violations: readonly Violation[];
}

export interface Totals {
  readonly histories: number;
  readonly failed: number;
  readonly calls: number;
  readonly repeated: number;
  /** How many histories showed each kind of violation. */
  readonly kinds: Readonly<Record<string, number>>;
  /** The seeds of histories that took a different course when they were replayed. */
  readonly differing: readonly number[];
}

/** How many failures of each kind are shrunk. The others are only counted. */
const SHRUNK_PER_KIND = 2;
const PROGRESS_EVERY = 500;

const { values } = parseArgs({
  options: {
    first: { type: "string", default: "1" },
    count: { type: "string", default: "1" },
    every: { type: "string", default: "1" },
    history: { type: "string" },
    twice: { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
  },
});

const simulator = new Simulator();
const kinds = new Map<string, number>();
const differing: number[] = [];
let failed = 0;
let calls = 0;
let repeated = 0;

function print(
  line: { failure: Failure } | { totals: Totals } | { trace: readonly string[] } | { played: number },
): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function printFailure(seed: number, history: History, kind: Kind): Promise<void> {
  const violationsOf = async (candidate: History): Promise<readonly Violation[]> =>
    (await play(simulator, candidate, seed)).violations.filter((one) => one.kind === kind);
  const short = await shrink(history, async (candidate) => (await violationsOf(candidate)).length > 0);
  print({ failure: { seed, kind, history: short, violations: await violationsOf(short) } });
}

async function playOne(seed: number): Promise<void> {
  const history = values.history === undefined ? historyOf(seed) : parseHistory(values.history);
  const outcome = await play(simulator, history, seed);
  if (values.trace) print({ trace: outcome.trace });
  calls += outcome.calls;
  repeated += outcome.repeated;
  if (values.twice) {
    const { trace } = await play(simulator, history, seed);
    if (trace.join("\n") !== outcome.trace.join("\n")) differing.push(seed);
  }
  if (outcome.violations.length === 0) return;
  failed += 1;
  for (const kind of new Set(outcome.violations.map((violation) => violation.kind))) {
    const count = (kinds.get(kind) ?? 0) + 1;
    kinds.set(kind, count);
    if (count <= SHRUNK_PER_KIND) await printFailure(seed, history, kind);
  }
}

const first = Number(values.first);
const count = Number(values.count);
for (let at = 0; at < count; at += 1) {
  if (at > 0 && at % PROGRESS_EVERY === 0) print({ played: PROGRESS_EVERY });
  await playOne(first + at * Number(values.every));
}
print({ totals: { histories: count, failed, calls, repeated, kinds: Object.fromEntries(kinds), differing } });
simulator.close();
