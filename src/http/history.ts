/** The figures of the last day, one row for each minute, kept in memory for the charts of the staff page. */
import type { Clock } from "../clock.js";
import { type Figures, figuresOf, type FiguresSource, type Lane } from "./figures.js";
import type { AnswerOf } from "../wire/answer.js";
import type { historyShape } from "../wire/operators.js";
import { instant } from "./presenters.js";

export interface History {
  /** Starts noting; returns a function that stops it. */
  keep(): () => void;
  /** Columns of equal length, the oldest row first. */
  present(): AnswerOf<typeof historyShape>;
}

const EVERY_MS = 60_000;
const MOST_ROWS = 24 * 60;

export function createHistory(source: () => FiguresSource, clock: Clock): History {
  const rows: (Figures & { readonly atMs: number })[] = [];
  let before: FiguresSource | null = null;

  function note(): void {
    const now = source();
    rows.push({ ...figuresOf(now, before), atMs: clock.now() });
    if (rows.length > MOST_ROWS) rows.shift();
    before = now;
  }

  const waitsOf = (lane: Lane): number[] => rows.map(({ waitMs }) => Math.round(waitMs[lane]));

  return {
    keep() {
      let cancel = (): void => {};
      const again = (): void => {
        note();
        cancel = clock.after(EVERY_MS, again);
      };
      again();
      return () => {
        cancel();
      };
    },
    present: () => ({
      everyMs: EVERY_MS,
      at: rows.map(({ atMs }) => instant(atMs)),
      used: rows.map(({ used }) => used),
      budget: rows.map(({ budget }) => budget),
      waitMs: {
        checkout: waitsOf("checkout"),
        exact: waitsOf("exact"),
        search: waitsOf("search"),
        account: waitsOf("account"),
        refresh: waitsOf("refresh"),
        suggestion: waitsOf("suggestion"),
      },
      hitRate: rows.map(({ hitRate }) => (hitRate === null ? null : Math.round(hitRate * 1000) / 1000)),
      meanMs: rows.map(({ meanMs }) => (meanMs === null ? null : Math.round(meanMs))),
      p95Ms: rows.map(({ p95Ms }) => p95Ms),
      failed: rows.map(({ failed }) => failed),
      calls: rows.map(({ calls }) => calls),
    }),
  };
}
