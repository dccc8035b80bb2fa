/** The differences between two overviews, and the rates that follow from them. An overview counts from startup. */
import { type Lane, perLane } from "../quota/lane.js";

/** The part of an overview that is counted. */
export interface FiguresSource {
  readonly quota: {
    readonly used: number;
    readonly budget: number;
    readonly lanes: Readonly<Record<Lane, Numbers<"served" | "waitedMsTotal">>>;
  };
  readonly caches: Readonly<
    Record<string, { readonly counts: Numbers<"hit" | "inflight" | "miss" | "stale"> }>
  >;
  readonly upstream: {
    readonly recent: {
      readonly operations: readonly Numbers<"calls" | "failed" | "meanMs" | "p95Ms">[];
    };
  };
}

type Numbers<Name extends string> = Readonly<Record<Name, number>>;

type PerLane = Numbers<Lane>;

/** The differences between two overviews. Those of several replicas can be added up. */
export interface Counts {
  /** Lookups, and those of them that needed a call. */
  readonly asks: number;
  readonly called: number;
  /** Calls in the window of `upstream.recent`. */
  readonly calls: number;
  readonly callMs: number;
  readonly failed: number;
  readonly served: PerLane;
  readonly waitedMs: PerLane;
  /** Across replicas, the largest value. */
  readonly used: number;
  readonly budget: number;
  readonly p95Ms: number;
}

export interface Figures {
  readonly used: number;
  readonly budget: number;
  /** The mean wait of served requests, in ms; 0 if there were none. */
  readonly waitMs: PerLane;
  /** The share of lookups that needed no call of their own, 0 to 1; null if there were no lookups. */
  readonly hitRate: number | null;
  /** The mean of all operations, weighted by calls; null without calls. */
  readonly meanMs: number | null;
  /** The 95th percentile of the slowest operation; null without calls. */
  readonly p95Ms: number | null;
  /** Calls in the window of `upstream.recent`. */
  readonly failed: number;
  readonly calls: number;
}

/** With null as `before`: since startup. Negative where a count has decreased, because the service was restarted in between. */
export function countsOf(now: FiguresSource, before: FiguresSource | null): Counts {
  const { operations } = now.upstream.recent;
  const total = (of: (one: (typeof operations)[number]) => number): number =>
    operations.reduce((sum, one) => sum + of(one), 0);
  const [later, earlier] = [questionsOf(now), before === null ? { asks: 0, called: 0 } : questionsOf(before)];
  return {
    asks: later.asks - earlier.asks,
    called: later.called - earlier.called,
    calls: total(({ calls }) => calls),
    callMs: total(({ calls, meanMs }) => calls * meanMs),
    failed: total(({ failed }) => failed),
    served: perLane((lane) => now.quota.lanes[lane].served - (before?.quota.lanes[lane].served ?? 0)),
    waitedMs: perLane(
      (lane) => now.quota.lanes[lane].waitedMsTotal - (before?.quota.lanes[lane].waitedMsTotal ?? 0),
    ),
    used: now.quota.used,
    budget: now.quota.budget,
    p95Ms: Math.max(0, ...operations.map(({ p95Ms }) => p95Ms)),
  };
}

/** The counts of two processes in the same minute. */
export function addUp(one: Counts, other: Counts): Counts {
  return {
    asks: one.asks + other.asks,
    called: one.called + other.called,
    calls: one.calls + other.calls,
    callMs: one.callMs + other.callMs,
    failed: one.failed + other.failed,
    served: perLane((lane) => one.served[lane] + other.served[lane]),
    waitedMs: perLane((lane) => one.waitedMs[lane] + other.waitedMs[lane]),
    used: Math.max(one.used, other.used),
    budget: Math.max(one.budget, other.budget),
    p95Ms: Math.max(one.p95Ms, other.p95Ms),
  };
}

export function figuresOf(counts: Counts): Figures {
  const { asks, called, calls, callMs, failed, served, waitedMs, used, budget, p95Ms } = counts;
  return {
    used,
    budget,
    waitMs: perLane((lane) => (served[lane] > 0 ? waitedMs[lane] / served[lane] : 0)),
    hitRate: asks > 0 && called >= 0 ? (asks - called) / asks : null,
    meanMs: calls === 0 ? null : callMs / calls,
    p95Ms: calls === 0 ? null : p95Ms,
    failed,
    calls,
  };
}

function questionsOf({ caches }: FiguresSource): { readonly asks: number; readonly called: number } {
  const counts = Object.values(caches).map((pool) => pool.counts);
  const called = counts.reduce((sum, { miss }) => sum + miss, 0);
  return {
    asks: counts.reduce((sum, { hit, inflight, stale }) => sum + hit + inflight + stale, called),
    called,
  };
}
