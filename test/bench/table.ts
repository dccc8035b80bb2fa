/** What every benchmark needs: its options, candidates in turn, and results as figures and Markdown tables. */

export interface Options {
  readonly rounds?: number | undefined;
  readonly seconds?: number | undefined;
  readonly only?: string | undefined;
}

/** Each round visits every entry once, so that a slow minute affects all of them. */
export function* interleaved<T>(rounds: number, entries: readonly T[]): Generator<T> {
  for (let round = 0; round < rounds; round += 1) yield* entries;
}

/** Those whose names contain one of the words, which commas outside numbers separate. Throws if there are none. */
export function selected<T extends { readonly name: string }>(list: readonly T[], words: string): T[] {
  const found = list.filter(({ name }) => words.split(/,(?!\d)/).some((word) => name.includes(word)));
  if (found.length > 0) return found;
  throw new Error(`no name contains "${words}": ${list.map(({ name }) => name).join("; ")}`);
}

/** The middle one, NaN if there are no values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Formats with about three digits: 4,407 · 215 · 27.9 · 0.13. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const digits = Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** The first column is aligned left, the others, which contain figures, right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, 3, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (column === 0 ? (cells[column] ?? "").padEnd(width) : (cells[column] ?? "").padStart(width))).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}
