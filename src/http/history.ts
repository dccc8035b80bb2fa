/**
 * The figures of the last day, one row per minute, for the charts of the staff page. Replicas that share a Redis store them there and add them up;
 * otherwise, and while Redis is unreachable, each replica has its own in memory.
 */
import { z } from "zod";
import { type Clock, every } from "../clock.js";
import { parseJson } from "../json.js";
import { type Lane, perLane } from "../quota/lane.js";
import { type RedisLink, redisScript } from "../redis.js";
import type { AnswerOf } from "../wire/answer.js";
import type { historyShape } from "../wire/operators.js";
import { addUp, type Counts, countsOf, type FiguresSource, figuresOf } from "./figures.js";
import { instant } from "./presenters.js";

export interface History {
  /** Starts recording; returns a function that stops it. */
  keep(): () => void;
  /** Columns of equal length, the oldest row first. */
  present(): Promise<AnswerOf<typeof historyShape>>;
}

interface HistorySettings {
  readonly source: () => FiguresSource;
  readonly redis: RedisLink | null;
  readonly clock: Clock;
}

const MINUTE_MS = 60_000;
const MAX_ROWS = 24 * 60;
const DAY_MS = MAX_ROWS * MINUTE_MS;

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

const KEY = "af-storefront:history";
/** Adds the counts of one replica to those of its minute. */
const NOTE = redisScript(`
local key = KEYS[1] .. ':' .. ARGV[1]
redis.call('RPUSH', key, ARGV[2])
return redis.call('PEXPIRE', key, ARGV[3])`);
/** The counts of ARGV[2] minutes up to minute ARGV[1], one list per minute. */
const LOAD = redisScript(`
local minutes = {}
for back = tonumber(ARGV[2]) - 1, 0, -1 do
  minutes[#minutes + 1] = redis.call('LRANGE', string.format('%s:%d', KEYS[1], ARGV[1] - back), 0, -1)
end
return minutes`);
const loadedSchema = z.array(z.array(z.string()));

interface Row {
  readonly minute: number;
  readonly counts: Counts;
}

export function createHistory({ source, redis, clock }: HistorySettings): History {
  let own: Row[] = [];
  let before: FiguresSource | null = null;
  const minuteNow = (): number => Math.floor(clock.now() / MINUTE_MS);

  function note(): void {
    const now = source();
    const row = { minute: minuteNow(), counts: countsOf(now, before ?? now) };
    before = now;
    own = [...own, row].slice(-MAX_ROWS);
    redis?.run(NOTE, KEY, [row.minute, JSON.stringify(row.counts), DAY_MS]).catch(() => undefined);
  }

  async function load(from: RedisLink): Promise<Row[]> {
    const last = minuteNow();
    const minutes = loadedSchema.parse(await from.run(LOAD, KEY, [last, MAX_ROWS]));
    return minutes.flatMap((texts, index) => {
      // Another release may count other things.
      const ofReplicas = texts.flatMap((text) => countsSchema.safeParse(parseJson(text)).data ?? []);
      const [first, ...others] = ofReplicas;
      if (first === undefined) return [];
      return { minute: last - MAX_ROWS + 1 + index, counts: others.reduce(addUp, first) };
    });
  }

  return {
    keep() {
      note();
      return every(clock, MINUTE_MS, note);
    },
    async present() {
      const rows = redis === null ? own : await load(redis).catch(() => own);
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
