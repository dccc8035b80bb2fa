/** The figures of the last day, one row per minute, for the charts of the staff page. */
import { z } from "zod";
import { type Clock, every, instant } from "../clock.js";
import { parseJson } from "../json.js";
import { type Lane, perLane } from "../quota/lane.js";
import type { Lines } from "../store.js";
import type { AnswerOf } from "../wire/answer.js";
import type { historyShape } from "../wire/operators.js";
import { addUp, type Counts, countsOf, type FiguresSource, figuresOf } from "./figures.js";

export interface History {
  /** Starts recording; returns a function that stops it. */
  keep(): () => void;
  /** Columns of equal length, the oldest row first. */
  present(): Promise<AnswerOf<typeof historyShape>>;
}

interface HistorySettings {
  readonly source: () => FiguresSource;
  /** Null: the rows end with the process. */
  readonly stored: Lines | null;
  readonly clock: Clock;
}

const MINUTE_MS = 60_000;
const MAX_ROWS = 24 * 60;

const lanesSchema = z.strictObject(perLane(() => z.number()));
const numbers = {
  asks: z.number(),
  called: z.number(),
  calls: z.number(),
  callMs: z.number(),
  failed: z.number(),
};
const largest = { used: z.number(), budget: z.number(), p95Ms: z.number() };
const countsSchema = z.strictObject({ ...numbers, served: lanesSchema, waitedMs: lanesSchema, ...largest });

const rowSchema = z.strictObject({ minute: z.number(), counts: countsSchema });

interface Row {
  readonly minute: number;
  readonly counts: Counts;
}

export function createHistory({ source, stored, clock }: HistorySettings): History {
  let own: Row[] = [];
  let before: FiguresSource | null = null;
  const minuteNow = (): number => Math.floor(clock.now() / MINUTE_MS);

  function note(): void {
    const now = source();
    const row = { minute: minuteNow(), counts: countsOf(now, before ?? now) };
    before = now;
    own = [...own, row].slice(-MAX_ROWS);
    void stored?.append(JSON.stringify(row));
  }

  /** One row a minute; the former owner and this one may have a row for the same minute. */
  async function load(from: Lines): Promise<Row[]> {
    const first = minuteNow() - MAX_ROWS;
    const rows = new Map<number, Row>();
    for (const line of await from.load()) {
      // Another release may count other things.
      const row = rowSchema.safeParse(parseJson(line)).data;
      if (row === undefined || row.minute <= first) continue;
      const before = rows.get(row.minute);
      const counts = before === undefined ? row.counts : addUp(before.counts, row.counts);
      rows.set(row.minute, { minute: row.minute, counts });
    }
    return [...rows.values()].sort((a, b) => a.minute - b.minute);
  }

  return {
    keep() {
      note();
      return every(clock, MINUTE_MS, note);
    },
    async present() {
      const rows = stored === null ? own : await load(stored).catch(() => own);
      const figures = rows.map(({ counts }) => figuresOf(counts));
      const waitsOf = (lane: Lane): number[] => figures.map(({ waitMs }) => Math.round(waitMs[lane]));
      return {
        everyMs: MINUTE_MS,
        at: rows.map(({ minute }) => instant(minute * MINUTE_MS)),
        used: figures.map(({ used }) => used),
        budget: figures.map(({ budget }) => budget),
        waitMs: perLane(waitsOf),
        hitRate: figures.map(({ hitRate }) => (hitRate === null ? null : Math.round(hitRate * 1000) / 1000)),
        meanMs: figures.map(({ meanMs }) => (meanMs === null ? null : Math.round(meanMs))),
        p95Ms: figures.map(({ p95Ms }) => p95Ms),
        failed: figures.map(({ failed }) => failed),
        calls: figures.map(({ calls }) => calls),
      };
    },
  };
}
