/** The figures of the last day, one row per minute, for the charts of the staff page. */
import { z } from "zod";
import { type Clock, every, instant } from "../clock.js";
import { parseJson } from "../json.js";
import { type Lane, perLane } from "../quota/lane.js";
import type { Lines } from "../store.js";
import type { AnswerOf } from "../wire/answer.js";
import type { historyShape } from "../wire/overview.js";

export interface History {
  /** Starts recording; returns a function that stops it. */
  keep(): () => void;
  /** Columns of equal length, the oldest row first. */
  present(): Promise<AnswerOf<typeof historyShape>>;
}

/** The part of an overview that the figures follow from. It counts from startup. */
export interface FiguresSource {
  readonly quota: { readonly used: number; readonly budget: number; readonly lanes: WaitCounts };
  readonly caches: Readonly<
    Record<string, { readonly counts: Numbers<"hit" | "inflight" | "miss" | "stale"> }>
  >;
  readonly upstream: {
    readonly recent: { readonly operations: readonly Numbers<"calls" | "failed" | "meanMs" | "p95Ms">[] };
  };
}

type WaitCounts = Readonly<Record<Lane, Numbers<"served" | "waitedMsTotal">>>;
type Numbers<Name extends string> = Readonly<Record<Name, number>>;

interface HistorySettings {
  readonly source: () => FiguresSource;
  /** Null: the rows end with the process. */
  readonly stored: Lines | null;
  readonly clock: Clock;
}

const MINUTE_MS = 60_000;
const MAX_ROWS = 24 * 60;

const rowShape = z.strictObject({
  minute: z.number(),
  used: z.number(),
  budget: z.number(),
  waitMs: z.strictObject(perLane(() => z.number())),
  hitRate: z.number().nullable(),
  meanMs: z.number().nullable(),
  p95Ms: z.number().nullable(),
  failed: z.number(),
  calls: z.number(),
});
type Row = z.infer<typeof rowShape>;

export function createHistory({ source, stored, clock }: HistorySettings): History {
  let own: Row[] = [];
  let before: FiguresSource | null = null;
  const minuteNow = (): number => Math.floor(clock.now() / MINUTE_MS);

  function note(): void {
    const now = source();
    const row = rowOf(minuteNow(), now, before ?? now);
    before = now;
    own = [...own, row].slice(-MAX_ROWS);
    void stored?.append(JSON.stringify(row));
  }

  /** In a minute in which the owner changed, the last row counts. Another release may have had other rows. */
  async function load(from: Lines): Promise<Row[]> {
    const first = minuteNow() - MAX_ROWS;
    const rows = (await from.load()).flatMap((line) => rowShape.safeParse(parseJson(line)).data ?? []);
    const byMinute = new Map(rows.map((row) => [row.minute, row]));
    return [...byMinute.values()].filter(({ minute }) => minute > first).sort((a, b) => a.minute - b.minute);
  }

  return {
    keep() {
      note();
      return every(clock, MINUTE_MS, note);
    },
    async present() {
      const rows = stored === null ? own : await load(stored).catch(() => own);
      return {
        everyMs: MINUTE_MS,
        at: rows.map(({ minute }) => instant(minute * MINUTE_MS)),
        used: rows.map(({ used }) => used),
        budget: rows.map(({ budget }) => budget),
        waitMs: perLane((lane) => rows.map(({ waitMs }) => waitMs[lane])),
        hitRate: rows.map(({ hitRate }) => hitRate),
        meanMs: rows.map(({ meanMs }) => meanMs),
        p95Ms: rows.map(({ p95Ms }) => p95Ms),
        failed: rows.map(({ failed }) => failed),
        calls: rows.map(({ calls }) => calls),
      };
    },
  };
}

function rowOf(minute: number, now: FiguresSource, before: FiguresSource): Row {
  const { operations } = now.upstream.recent;
  const total = (of: (one: (typeof operations)[number]) => number): number =>
    operations.reduce((sum, one) => sum + of(one), 0);
  const calls = total((one) => one.calls);
  const [later, earlier] = [lookupsOf(now), lookupsOf(before)];
  const lookups = later.all - earlier.all;
  const misses = later.misses - earlier.misses;
  const waits = meanWaits(now.quota.lanes, before.quota.lanes);
  return {
    minute,
    used: now.quota.used,
    budget: now.quota.budget,
    waitMs: perLane((lane) => Math.round(waits[lane])),
    hitRate: lookups > 0 ? Math.round((1 - misses / lookups) * 1000) / 1000 : null,
    meanMs: calls === 0 ? null : Math.round(total((one) => one.calls * one.meanMs) / calls),
    p95Ms: calls === 0 ? null : Math.max(...operations.map(({ p95Ms }) => p95Ms)),
    failed: total(({ failed }) => failed),
    calls,
  };
}

function lookupsOf({ caches }: FiguresSource): Numbers<"all" | "misses"> {
  const counts = Object.values(caches).map((pool) => pool.counts);
  const misses = counts.reduce((sum, { miss }) => sum + miss, 0);
  return {
    all: counts.reduce((sum, { hit, inflight, stale }) => sum + hit + inflight + stale, misses),
    misses,
  };
}

/** The mean wait of those served in between, by lane, in ms; 0 if there were none. */
export function meanWaits(now: WaitCounts, before: WaitCounts): Record<Lane, number> {
  return perLane((lane) => {
    const served = now[lane].served - before[lane].served;
    return served > 0 ? (now[lane].waitedMsTotal - before[lane].waitedMsTotal) / served : 0;
  });
}
