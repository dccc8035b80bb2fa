/**
 * Which of several facts about the same thing holds. A fact was true at some moment between the asking and the answer, so it replaces
 * another only if it was asked after the other was answered; while two overlap, the more cautious one holds. Pure functions.
 */

export interface Fact<V> {
  readonly value: V;
  /** When the question left and when its answer had come: ms, both on one clock that never repeats a reading. */
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** Positive when `a` is the more cautious of two values, 0 when they say the same. */
export type Caution<V> = (a: V, b: V) => number;

/** Everything still standing about one thing. */
export interface Evidence<V> {
  /** The fact to act on: the most cautious of those standing, and of equal ones the youngest. */
  readonly held: Fact<V>;
  /** False while facts that overlap contradict each other. */
  readonly settled: boolean;
  /** The same answer was given every time since then; Infinity while unsettled. */
  readonly unchangedSinceMs: number;
  /** The facts that no later one has replaced. */
  readonly standing: readonly Fact<V>[];
}

/** The evidence with one more fact: the same whatever the order in which facts arrive, but for a run that may count as shorter. */
export function weigh<V>(before: Evidence<V> | undefined, fact: Fact<V>, compare: Caution<V>): Evidence<V> {
  if (before === undefined) return evidence([fact], compare, undefined);
  if (before.standing.some((known) => isSame(known, fact))) return before;
  const all = [...before.standing, fact];
  const lastAskedMs = all.reduce((last, { askedMs }) => Math.max(last, askedMs), -Infinity);
  const standing = all.filter(({ answeredMs }) => answeredMs >= lastAskedMs);
  const agrees = compare(before.held.value, fact.value) === 0;
  // A late answer that differs from what was said around it breaks the run that it falls into.
  const breaksRun = !agrees && fact.answeredMs >= before.unchangedSinceMs;
  if (!breaksRun && !standing.includes(fact)) return before;
  return evidence(standing, compare, breaksRun ? undefined : before.unchangedSinceMs);
}

function evidence<V>(
  standing: readonly Fact<V>[],
  compare: Caution<V>,
  unchangedSinceMs = Infinity,
): Evidence<V> {
  const held = standing.reduce((a, b) => {
    const caution = compare(a.value, b.value);
    return caution > 0 || (caution === 0 && a.askedMs >= b.askedMs) ? a : b;
  });
  const settled = standing.every(({ value }) => compare(value, held.value) === 0);
  return {
    held,
    settled,
    unchangedSinceMs: settled ? Math.min(unchangedSinceMs, held.answeredMs) : Infinity,
    standing,
  };
}

function isSame<V>(a: Fact<V>, b: Fact<V>): boolean {
  return a.askedMs === b.askedMs && a.answeredMs === b.answeredMs;
}
