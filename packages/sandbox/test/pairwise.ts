/**
 * Pairwise testing: any two settings of different factors appear together in at least one row. That takes far fewer rows than all
 * combinations, and finds every fault that depends on two settings. The algorithm is greedy, and produces the same rows on every run.
 */
type Setting = string | number;
type Pair = readonly [name: string, setting: Setting];
type Row = ReadonlyMap<string, Setting>;

const keyOf = (one: Pair, other: Pair): string => [one.join("="), other.join("=")].sort().join(" ");

export function pairwise(factors: Readonly<Record<string, readonly Setting[]>>): Row[] {
  const all = Object.entries(factors).map(([name, settings]) => settings.map((one): Pair => [name, one]));
  /** The pairs that aren't in any row yet. */
  const open = new Map<string, readonly Pair[]>();
  for (const [at, ones] of all.entries())
    for (const other of all.slice(at + 1).flat())
      for (const one of ones) open.set(keyOf(one, other), [one, other]);
  const rows: Row[] = [];
  for (let [seed] = open.values(); seed !== undefined; [seed] = open.values()) {
    const row = new Map(seed);
    const gainOf = (one: Pair): number => [...row].filter((other) => open.has(keyOf(one, other))).length;
    for (const settings of all) {
      if (settings.some(([name]) => row.has(name))) continue;
      // Of several that cover as many open pairs, each row chooses another one.
      const turn = rows.length % settings.length;
      const [best] = [...settings.slice(turn), ...settings.slice(0, turn)]
        .map((one) => [one, gainOf(one)] as const)
        .toSorted(([, a], [, b]) => b - a);
      if (best !== undefined) row.set(...best[0]);
    }
    for (const one of row) for (const other of row) open.delete(keyOf(one, other));
    rows.push(row);
  }
  return rows;
}
