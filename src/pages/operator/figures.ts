/** What two looks at the overview say about the time between them. The service counts from its start; charts show what is new. */
import type { Overview } from "./staff-api.js";

export const LANES = ["checkout", "exact", "search", "account", "refresh", "suggestion"] as const;
export type Lane = (typeof LANES)[number];

export interface Figures {
  readonly used: number;
  readonly budget: number;
  /** The mean wait of those served, in ms; 0 when nobody was. */
  readonly waitMs: Readonly<Record<Lane, number>>;
  /** The share of questions that needed no call of their own, 0 to 1; null when there were none. */
  readonly hitRate: number | null;
  /** Over all operations, weighted by their calls; null without calls. */
  readonly meanMs: number | null;
  /** Of the slowest operation. */
  readonly p95Ms: number | null;
  /** Within the service's own window. */
  readonly failed: number;
  readonly calls: number;
}

export function figuresOf(now: Overview, before: Overview | null): Figures {
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

function waitOf(lane: Lane, now: Overview, before: Overview | null): number {
  const [later, earlier] = [now.quota.lanes[lane], before?.quota.lanes[lane]];
  const served = later.served - (earlier?.served ?? later.served);
  return served > 0 ? (later.waitedMsTotal - (earlier?.waitedMsTotal ?? 0)) / served : 0;
}

/** Since the service's start with null before. A count that has fallen is another start: nothing can be said. */
export function hitRate(now: Overview, before: Overview | null): number | null {
  const [later, earlier] = [asksOf(now), before === null ? { all: 0, called: 0 } : asksOf(before)];
  const all = later.all - earlier.all;
  const called = later.called - earlier.called;
  return all > 0 && called >= 0 ? (all - called) / all : null;
}

function asksOf({ caches }: Overview): { readonly all: number; readonly called: number } {
  const counts = Object.values(caches).map((pool) => pool.counts);
  const called = counts.reduce((sum, { miss }) => sum + miss, 0);
  return {
    all: counts.reduce((sum, { hit, inflight, stale }) => sum + hit + inflight + stale, called),
    called,
  };
}
