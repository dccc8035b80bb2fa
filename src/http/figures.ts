/** Rates between two overviews. The service counts from startup; the staff page and its history show the difference. */

export const LANES = ["checkout", "exact", "search", "account", "refresh", "suggestion"] as const;
export type Lane = (typeof LANES)[number];

/** What of an overview the figures are made of. */
export interface FiguresSource {
  readonly quota: {
    readonly used: number;
    readonly budget: number;
    readonly lanes: Readonly<Record<Lane, { readonly served: number; readonly waitedMsTotal: number }>>;
  };
  readonly caches: Readonly<
    Record<
      string,
      {
        readonly counts: {
          readonly hit: number;
          readonly inflight: number;
          readonly miss: number;
          readonly stale: number;
        };
      }
    >
  >;
  readonly upstream: {
    readonly recent: {
      readonly operations: readonly {
        readonly calls: number;
        readonly failed: number;
        readonly meanMs: number;
        readonly p95Ms: number;
      }[];
    };
  };
}

export interface Figures {
  readonly used: number;
  readonly budget: number;
  /** The mean wait of served requests, in ms; 0 if there were none. */
  readonly waitMs: Readonly<Record<Lane, number>>;
  /** The share of questions that needed no call of their own, 0 to 1; null if there were no questions. */
  readonly hitRate: number | null;
  /** The mean of all operations, weighted by calls; null without calls. */
  readonly meanMs: number | null;
  /** The 95th percentile of the slowest operation. */
  readonly p95Ms: number | null;
  /** In the window that the service reports. */
  readonly failed: number;
  readonly calls: number;
}

export function figuresOf(now: FiguresSource, before: FiguresSource | null): Figures {
  const { operations } = now.upstream.recent;
  const calls = operations.reduce((sum, one) => sum + one.calls, 0);
  const total = operations.reduce((sum, one) => sum + one.calls * one.meanMs, 0);
  return {
    used: now.quota.used,
    budget: now.quota.budget,
    waitMs: {
      checkout: waitOf("checkout", now, before),
      exact: waitOf("exact", now, before),
      search: waitOf("search", now, before),
      account: waitOf("account", now, before),
      refresh: waitOf("refresh", now, before),
      suggestion: waitOf("suggestion", now, before),
    },
    hitRate: before === null ? null : hitRate(now, before),
    meanMs: calls === 0 ? null : total / calls,
    p95Ms: calls === 0 ? null : Math.max(...operations.map(({ p95Ms }) => p95Ms)),
    failed: operations.reduce((sum, one) => sum + one.failed, 0),
    calls,
  };
}

function waitOf(lane: Lane, now: FiguresSource, before: FiguresSource | null): number {
  const later = now.quota.lanes[lane];
  const earlier = before?.quota.lanes[lane];
  const served = later.served - (earlier?.served ?? later.served);
  return served > 0 ? (later.waitedMsTotal - (earlier?.waitedMsTotal ?? 0)) / served : 0;
}

/** With null as `before`: since startup. Null if a count has decreased, because the service was restarted in between. */
export function hitRate(now: FiguresSource, before: FiguresSource | null): number | null {
  const [later, earlier] = [asksOf(now), before === null ? { all: 0, called: 0 } : asksOf(before)];
  const all = later.all - earlier.all;
  const called = later.called - earlier.called;
  return all > 0 && called >= 0 ? (all - called) / all : null;
}

function asksOf({ caches }: FiguresSource): { readonly all: number; readonly called: number } {
  const counts = Object.values(caches).map((pool) => pool.counts);
  const called = counts.reduce((sum, { miss }) => sum + miss, 0);
  return {
    all: counts.reduce((sum, { hit, inflight, stale }) => sum + hit + inflight + stale, called),
    called,
  };
}
