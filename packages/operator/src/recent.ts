/** What happened between two overviews, which count from startup. */
import type { Overview } from "./staff-api.js";

export type Lane = keyof Overview["quota"]["lanes"];

export const LANES = [
  "checkout",
  "exact",
  "search",
  "account",
  "refresh",
  "suggestion",
] as const satisfies readonly Lane[];

type Counted = Pick<Overview, "caches"> & { readonly quota: Pick<Overview["quota"], "lanes"> };

export interface Recent {
  /** The mean wait of served requests, in ms; 0 if there were none. */
  readonly waitMs: Readonly<Record<Lane, number>>;
  /** The share of lookups that needed no call of their own, 0 to 1; null if there were no lookups. */
  readonly hitRate: number | null;
}

/** With null as `before`: since startup. */
export function recentOf(now: Counted, before: Counted | null): Recent {
  const waitOf = (lane: Lane): number => {
    const [later, earlier] = [now.quota.lanes[lane], before?.quota.lanes[lane]];
    const served = later.served - (earlier?.served ?? 0);
    return served > 0 ? (later.waitedMsTotal - (earlier?.waitedMsTotal ?? 0)) / served : 0;
  };
  const waitMs = {
    checkout: waitOf("checkout"),
    exact: waitOf("exact"),
    search: waitOf("search"),
    account: waitOf("account"),
    refresh: waitOf("refresh"),
    suggestion: waitOf("suggestion"),
  };
  const [later, earlier] = [lookupsOf(now), before === null ? { all: 0, called: 0 } : lookupsOf(before)];
  const all = later.all - earlier.all;
  const called = later.called - earlier.called;
  return { waitMs, hitRate: all > 0 && called >= 0 ? (all - called) / all : null };
}

function lookupsOf({ caches }: Counted): { readonly all: number; readonly called: number } {
  const counts = Object.values(caches).map((pool) => pool.counts);
  const called = counts.reduce((sum, { miss }) => sum + miss, 0);
  return {
    all: counts.reduce((sum, { hit, inflight, stale }) => sum + hit + inflight + stale, called),
    called,
  };
}

/** The calls of the last minutes, of all operations together. */
export function callsOf({ upstream }: Pick<Overview, "upstream">) {
  const { operations } = upstream.recent;
  const calls = operations.reduce((sum, one) => sum + one.calls, 0);
  return {
    calls,
    failed: operations.reduce((sum, one) => sum + one.failed, 0),
    /** Weighted by calls; null without calls. */
    meanMs: calls === 0 ? null : operations.reduce((sum, one) => sum + one.calls * one.meanMs, 0) / calls,
    /** The 95th percentile of the slowest operation; null without calls. */
    p95Ms: calls === 0 ? null : Math.max(...operations.map(({ p95Ms }) => p95Ms)),
  };
}
