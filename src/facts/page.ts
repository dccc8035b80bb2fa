/**
 * A page of the notebook: what the upstream said about things of one kind. Everything is loaded once for all who ask at the same time, its age counts
 * from when it was asked, and what was asked later replaces what was asked earlier. Failures are remembered briefly.
 */
import { LRUCache } from "lru-cache";
import type { Answered, Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Ask } from "../quota/quota.js";
import { failureCodeOf } from "../upstream/failures.js";
import { callerGone, SharedLoads } from "./shared-load.js";

/** What was said about one thing. */
export interface Entry<V> extends Answered<V> {
  /** Every answer since then was the same: a stamp. */
  readonly sameSince: number;
}

/** `hit`: from memory; `inflight`: from a load in flight; `miss`: loaded; `stale`: past its freshness. */
type Source = "hit" | "inflight" | "miss" | "stale";

export interface Known<V> extends Entry<V> {
  /** When it was asked, on the wall clock: ms since the epoch. */
  readonly asOfMs: number;
  readonly source: Source;
  /** Until when it is fresh, or, if it is stale, usable; on the clock of facts, ms. */
  readonly untilAt: number;
}

export interface Freshness {
  /** Answered from memory below this age, in ms. */
  readonly freshMs: number;
  /** Answered as stale up to this age, in ms, if it can't be asked again. */
  readonly usableMs: number;
}

interface GetOptions {
  /** It must have been asked at this stamp or later. Older entries aren't returned as stale either. */
  readonly askedSince?: number;
  /** Return a stale entry immediately and load in the background. */
  readonly whileRevalidating?: boolean;
}

export interface PageStats {
  readonly entries: number;
  readonly bound: number;
  readonly inflight: number;
  readonly counts: Readonly<Record<Source | "failed", number>>;
}

export interface Page<V> {
  /**
   * The entry of `key`: fresh from memory, or loaded, or, if that fails, a stale one that is still usable. A caller that leaves doesn't fail the
   * others. `load` gets the ask of all who wait. Rejects with its error.
   */
  get(
    key: string,
    ask: Ask,
    load: (ask: Ask) => Promise<Answered<V>>,
    options?: GetOptions,
  ): Promise<Known<V>>;
  /** The entry in memory: fresh, or stale and still usable. */
  peek(key: string): Known<V> | undefined;
  /** The entry in memory, whatever its age. */
  last(key: string): Entry<V> | undefined;
  /** Counts hits for answers made without `get`. */
  countHits(count: number): void;
  /** Writes down what was learned in another way. */
  learn(key: string, answered: Answered<V>): void;
  /** Clears the page, and returns how many entries it had. What was asked before isn't written down when it arrives. */
  purge(): number;
  stats(): PageStats;
}

export interface PageSettings<V> {
  readonly entries: number;
  readonly freshness: (value: V) => Freshness;
  readonly failureMs: number;
  /** Whether an answer with this value continues the run of equal answers that the entry belongs to. */
  readonly continues?: (before: Entry<V>, value: V) => boolean;
  readonly clock: Clock;
  /** The stamps that entries carry. Default: the monotonic clock. */
  readonly stamp?: () => number;
  /** Called after an entry was written, with the one that it replaces. */
  readonly onWrite?: (entry: Entry<V>, before: Entry<V> | undefined) => void;
  /** Called whenever something was written or cleared; until then entries change only by age. */
  readonly onChange?: () => void;
}

/** Creates a page with its own size and times. */
export function createPage<V extends {} | null>(settings: PageSettings<V>): Page<V> {
  const { entries: max, freshness, failureMs, continues, clock, onChange = () => {} } = settings;
  const stamp = settings.stamp ?? (() => clock.monotonic());
  const entries = new LRUCache<string, Entry<V>>({ max });
  const failures = new LRUCache<string, { readonly error: unknown; readonly failedAt: number }>({ max });
  const loads = new SharedLoads<Entry<V>>();
  const counts = { hit: 0, inflight: 0, miss: 0, stale: 0, failed: 0 };
  let notBefore = -Infinity;

  function known(entry: Entry<V>, source?: Source): Known<V> {
    const { value, askedAt, answeredAt, sameSince } = entry;
    const { freshMs, usableMs } = freshness(value);
    const ageMs = clock.monotonic() - askedAt;
    const isFresh = ageMs < freshMs;
    return {
      value,
      askedAt,
      answeredAt,
      sameSince,
      // Both clocks count in fractions of a millisecond.
      asOfMs: Math.floor(clock.now() - ageMs + 0.001),
      source: source ?? (isFresh ? "hit" : "stale"),
      untilAt: askedAt + (isFresh ? Math.min(freshMs, usableMs) : usableMs),
    };
  }

  function usable(key: string): Known<V> | undefined {
    const entry = entries.get(key);
    if (entry === undefined) return undefined;
    const found = known(entry);
    return clock.monotonic() <= found.untilAt ? found : undefined;
  }

  function write(key: string, answered: Answered<V>): Entry<V> {
    const { value, askedAt, answeredAt } = answered;
    const before = entries.peek(key);
    const isSame = before !== undefined && continues?.(before, value) === true;
    const entry = { value, askedAt, answeredAt, sameSince: isSame ? before.sameSince : answeredAt };
    if (before !== undefined && before.askedAt > askedAt) return before;
    if (askedAt < notBefore) return entry;
    entries.set(key, entry);
    failures.delete(key);
    onChange();
    settings.onWrite?.(entry, before);
    return entry;
  }

  async function load(key: string, ask: Ask, loadOne: (ask: Ask) => Promise<Answered<V>>): Promise<Entry<V>> {
    const startedAt = stamp();
    try {
      return write(key, await loadOne(ask));
    } catch (error) {
      counts.failed += 1;
      if (!ask.signal.aborted && startedAt > notBefore && reachOf(error) === "remembered")
        failures.set(key, { error, failedAt: clock.monotonic() });
      throw error;
    }
  }

  /** A recent failure, with the wait that is left of it. */
  function recentFailure(key: string): { readonly error: unknown } | undefined {
    const failure = failures.get(key);
    const agoMs = clock.monotonic() - (failure?.failedAt ?? -Infinity);
    if (failure === undefined || agoMs >= failureMs) return undefined;
    const { error } = failure;
    return { error: error instanceof ServiceError ? error.after(agoMs) : error };
  }

  function counted(found: Known<V>): Known<V> {
    counts[found.source] += 1;
    return found;
  }

  async function get(
    key: string,
    ask: Ask,
    loadOne: (ask: Ask) => Promise<Answered<V>>,
    options: GetOptions = {},
  ): Promise<Known<V>> {
    const askedSince = Math.max(options.askedSince ?? -Infinity, notBefore);
    const before = usable(key);
    const old = before !== undefined && before.askedAt >= askedSince ? before : undefined;
    if (old?.source === "hit") return counted(old);
    if (ask.signal.aborted) throw callerGone();

    const failure = recentFailure(key);
    if (failure !== undefined) {
      if (old !== undefined) return counted(old);
      throw failure.error;
    }
    const joins = loads.has(key);
    const loading = loads.join(key, ask, (shared) => load(key, shared, loadOne));
    if (old !== undefined && options.whileRevalidating === true) {
      loading.catch(() => undefined);
      return counted(old);
    }
    try {
      const entry = await loading;
      // The load was in flight before this caller joined, so its request may have been sent too early.
      if (entry.askedAt < askedSince && joins) return await get(key, ask, loadOne, options);
      return counted(known(entry, joins ? "inflight" : "miss"));
    } catch (error) {
      if (joins && !ask.signal.aborted && reachOf(error) === "own")
        return await get(key, ask, loadOne, options);
      const stale = ask.signal.aborted ? undefined : usable(key);
      if (stale !== undefined && stale.askedAt >= askedSince) return counted({ ...stale, source: "stale" });
      throw error;
    }
  }

  return {
    get,
    peek: usable,
    last: (key) => entries.peek(key),
    countHits: (count) => {
      counts.hit += count;
    },
    learn: (key, answered) => void write(key, answered),
    purge() {
      const { size } = entries;
      notBefore = stamp();
      entries.clear();
      failures.clear();
      onChange();
      return size;
    },
    stats: () => ({ entries: entries.size, bound: max, inflight: loads.size, counts: { ...counts } }),
  };
}

/**
 * Whom a failed load affects. Refusals because of the quota pass quickly, so remembering them would refuse visitors who could be served; and their
 * wait and place belong to the caller who started the load, so each of the others asks for itself. The upstream's failures are remembered; others
 * reach everyone who waits.
 */
function reachOf(error: unknown): "own" | "shared" | "remembered" {
  if (!(error instanceof ServiceError)) return "shared";
  if (error.code === "rate_limited" || error.code === "quota_exhausted") return "own";
  return failureCodeOf(error) === null ? "shared" : "remembered";
}
