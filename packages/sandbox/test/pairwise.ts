/**
 * Pairwise testing: any two settings of different factors appear together in at least one row. That takes far fewer rows than all
 * combinations, and finds every fault that depends on two settings. The algorithm is greedy, and produces the same rows on every run.
 */
export type Setting = string | number;
export type Factors = Readonly<Record<string, readonly Setting[]>>;
type Pair = readonly [name: string, setting: Setting];
export type Row = ReadonlyMap<string, Setting>;

/** The pairs that aren't in any row yet, by key. */
type Open = Map<string, readonly Pair[]>;

export function pairwise(factors: Factors): Row[] {
  const names = Object.keys(factors);
  const open = new Map<string, readonly Pair[]>();
  for (const [at, one] of names.entries()) {
    for (const other of names.slice(at + 1)) {
      for (const a of factors[one] ?? [])
        for (const b of factors[other] ?? []) {
          open.set(key(one, a, other, b), [
            [one, a],
            [other, b],
          ]);
        }
    }
  }
  const rows: Row[] = [];
  for (let [seed] = open.values(); seed !== undefined; [seed] = open.values()) {
    const row = new Map(seed);
    for (const name of names) {
      if (!row.has(name)) row.set(name, best(name, factors[name] ?? [], row, open, rows.length));
    }
    for (const [one, a] of row) for (const [other, b] of row) open.delete(key(one, a, other, b));
    rows.push(row);
  }
  return rows;
}

/** The setting that covers the most open pairs with the row so far. If several do, each row chooses a different one. */
function best(name: string, settings: readonly Setting[], row: Row, open: Open, turn: number): Setting {
  let found = settings[turn % settings.length] ?? "";
  let most = gain(name, found, row, open);
  for (const setting of settings) {
    const covered = gain(name, setting, row, open);
    if (covered > most) [found, most] = [setting, covered];
  }
  return found;
}

function gain(name: string, setting: Setting, row: Row, open: Open): number {
  let covered = 0;
  for (const [other, b] of row) {
    if (open.has(key(name, setting, other, b)) || open.has(key(other, b, name, setting))) covered += 1;
  }
  return covered;
}

function key(one: string, a: Setting, other: string, b: Setting): string {
  return `${one}=${a} ${other}=${b}`;
}
