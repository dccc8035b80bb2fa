/**
 * Decides which of several facts about the same thing to use. A fact was true at some moment between its request and its answer, so it
 * replaces another only if it was requested after the other was answered. While two overlap, the more cautious one wins. Pure functions.
 */

export interface Fact<V> {
  readonly value: V;
  /** When it was requested and answered: ms, both on one clock that never repeats a reading. */
  readonly askedMs: number;
  readonly answeredMs: number;
  /** Identifies a fact of another replica, whose times are estimated again at each read. */
  readonly origin?: string;
}

/** Positive if `a` is the more cautious value, 0 if both are equal. */
export type Caution<V> = (a: V, b: V) => number;

/** The facts about one thing that no later fact has replaced. */
export interface Evidence<V> {
  /** The fact to use: the most cautious one, and among equal ones the one requested last. */
  readonly held: Fact<V>;
  /** False while overlapping facts contradict each other. */
  readonly settled: boolean;
  /** Every answer since then was the same; Infinity while unsettled. */
  readonly unchangedSinceMs: number;
  readonly standing: readonly Fact<V>[];
}

/** Adds a fact to the evidence. The order of arrival doesn't matter, except that `unchangedSinceMs` can be later than necessary. */
export function weigh<V>(before: Evidence<V> | undefined, fact: Fact<V>, compare: Caution<V>): Evidence<V> {
  if (before === undefined) return evidence([fact], compare, undefined);
  if (before.standing.some((known) => isSame(known, fact))) return before;
  const all = [...before.standing, fact];
  const lastAskedMs = all.reduce((last, { askedMs }) => Math.max(last, askedMs), -Infinity);
  const standing = all.filter(({ answeredMs }) => answeredMs >= lastAskedMs);
  const agrees = compare(before.held.value, fact.value) === 0;
  // A late answer that differs from those around it ends the run of equal answers.
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
  if (a.origin !== undefined && a.origin === b.origin) return true;
  return a.askedMs === b.askedMs && a.answeredMs === b.answeredMs;
}
