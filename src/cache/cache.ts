/**
 * Read-through caches. A pool never exceeds its size or returns a fact older than allowed, resolves answers that arrive out of order
 * (`facts.ts`), loads once for any number of simultaneous callers, and caches failures briefly. The age of a
 * fact counts from its request.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import { type Caution, type Evidence, type Fact, weigh } from "./facts.js";
import { type Asker, callerGone, type Flight, SingleFlight } from "./single-flight.js";

interface Freshness {
  /** Answered from memory up to this age, in ms. */
  readonly freshMs: number;
  /** Returned as stale up to this age, in ms, if it can't be loaded again. */
  readonly usableMs: number;
}

/** `hit`: from memory; `inflight`: from a load in flight; `miss`: loaded; `stale`: past its freshness. */
export type Source = "hit" | "inflight" | "miss" | "stale";

/** The current fact in a pool. */
export interface PooledFact<V> extends Fact<V> {
  /** When it was requested, on the wall clock: ms since the epoch. */
  readonly asOfMs: number;
  /** False while overlapping facts contradict each other; this is then the most cautious one. */
  readonly settled: boolean;
  /** Every answer since then was the same. */
  readonly unchangedSinceMs: number;
}

export interface Known<V> extends PooledFact<V> {
  readonly source: Source;
}

/** A fact from memory. */
export interface Remembered<V> extends Known<V> {
  /** When a fresh fact becomes stale, or a stale one unusable; on the monotonic clock, ms. */
  readonly untilMs: number;
}

export interface GetOptions {
  /** The fact must have been requested since then: monotonic ms. Older facts aren't returned as stale either. */
  readonly askedSinceMs?: number;
  /** Return a stale fact immediately and load in the background. */
  readonly whileRevalidating?: boolean;
}

export interface PoolStats {
  readonly entries: number;
  readonly bound: number;
  readonly inflight: number;
  readonly counts: Readonly<Record<Source | "failed", number>>;
}

export interface Pool<V, A extends Asker> {
  /**
   * The fact for `key`: fresh from memory, or loaded once for all callers, or, if that fails, one that is still usable. `load` is called only for a miss. A caller that leaves doesn't fail the others. Rejects with the error of `load`.
   */
  get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<Fact<V>>,
    options?: GetOptions,
  ): Promise<Known<V>>;
  /** The fact in memory; `stale` if past its freshness but still usable. */
  peek(key: string): Remembered<V> | undefined;
  /** The keys and facts in memory, stale ones included. */
  facts(): readonly (readonly [key: string, fact: Fact<V>])[];
  /** The fact in memory if it is fresh. */
  fresh(key: string): Remembered<V> | undefined;
  /** Counts hits for answers made from fresh facts without `get`. */
  countHits(count: number): void;
  /** Adds a fact learned elsewhere, unless it was requested before a purge. */
  learn(key: string, fact: Fact<V>): void;
  /**
   * Clears the pool and returns how many facts it had. Results of loads in flight aren't stored, except where they
   * contradict a later load that they overlap.
   */
  purge(): number;
  /** Corrects each `asOfMs` in memory. Call after the wall clock was set back. */
  redate(): void;
  stats(): PoolStats;
}

/** Whom a failed load affects besides the caller who started it. */
export type FailureKind =
  /** Everyone who waits, and callers shortly after. */
  | "remembered"
  /** Everyone who waits for this load. */
  | "shared"
  /** Nobody else; the others start their own load. */
  | "own";

export interface PoolSettings<V> {
  readonly entries: number;
  readonly freshness: (value: V) => Freshness;
  readonly failureMs: number;
  /** Default: every failure is remembered. */
  readonly failureKind?: (error: unknown) => FailureKind;
  /** Which of two values to use while it is unknown which is newer. Default: the one requested last. */
  readonly caution?: Caution<V>;
  readonly clock: Clock;
  /** Called whenever a fact is added or dropped; until then facts change only by age. */
  readonly onChange?: () => void;
  /** The stamps that facts carry. Default: the monotonic clock. */
  readonly stamp?: () => number;
}

interface Entry<V> {
  readonly evidence: Evidence<V>;
  /** Prepared once, because facts are read far more often than learned. */
  hit: Remembered<V>;
  stale: Remembered<V>;
}

/** The generation of facts from before a purge. */
const PURGED = -1;

/** Expiry is spread over this part of the freshness, so that facts learned together don't expire together. */
const EXPIRY_JITTER = 0.1;

/** Field by field, because spreading such an object takes fifty times as long. */
function remembered<V>(
  { held, settled, unchangedSinceMs }: Evidence<V>,
  asOfMs: number,
  source: Source,
  untilMs: number,
): Remembered<V> {
  const { value, askedMs, answeredMs } = held;
  return { value, askedMs, answeredMs, asOfMs, settled, unchangedSinceMs, source, untilMs };
}

/** Creates a pool with its own size and times. */
export function createPool<V extends {} | null, A extends Asker>(settings: PoolSettings<V>): Pool<V, A> {
  const {
    clock,
    stamp = () => clock.monotonic(),
    caution = () => 0,
    failureKind = () => "remembered",
    onChange = () => {},
  } = settings;
  const known = new LRUCache<string, Entry<V>>({ max: settings.entries });
  /** Facts requested before the last purge that arrived after it: at most as many as loads were in flight at the purge. */
  const late = new Map<string, Evidence<V>>();
  const failed = new LRUCache<string, { error: unknown; atMs: number }>({ max: settings.entries });
  const flights = new SingleFlight<Entry<V>, A>();
  const counts = { hit: 0, inflight: 0, miss: 0, stale: 0, failed: 0 };
  let generation = 0;
  let purgedAtMs = -Infinity;

  /** The recent failure of a key, if any, with the wait that is left of it. */
  function failure(key: string): { readonly error: unknown } | undefined {
    const last = failed.get(key);
    const agoMs = clock.monotonic() - (last?.atMs ?? -Infinity);
    if (last === undefined || agoMs >= settings.failureMs) return undefined;
    return { error: last.error instanceof ServiceError ? last.error.after(agoMs) : last.error };
  }

  function isFresh({ hit }: Entry<V>): boolean {
    return clock.monotonic() <= hit.untilMs;
  }

  function isUsable({ stale }: Entry<V>): boolean {
    return clock.monotonic() <= stale.untilMs;
  }

  function usable(key: string): Entry<V> | undefined {
    const entry = known.get(key);
    if (entry === undefined) return undefined;
    if (isUsable(entry)) return entry;
    known.delete(key);
    return undefined;
  }

  function wallTimeOf(monotonicMs: number): number {
    return Math.floor(clock.now() - (clock.monotonic() - monotonicMs) + 0.001);
  }

  function entryOf(evidence: Evidence<V>): Entry<V> {
    const { value, askedMs } = evidence.held;
    const { freshMs, usableMs } = settings.freshness(value);
    const asOfMs = wallTimeOf(askedMs);
    const spreadMs = Math.min(freshMs * (1 - EXPIRY_JITTER * Math.random()), usableMs);
    return {
      evidence,
      hit: remembered(evidence, asOfMs, "hit", askedMs + spreadMs),
      stale: remembered(evidence, asOfMs, "stale", askedMs + usableMs),
    };
  }

  /** Merges facts with the known ones and stores the result. If the pool was purged after `startedIn`, stores it only if a later fact is known. */
  function merge(key: string, facts: readonly Fact<V>[], startedIn: number): Entry<V> | undefined {
    const before = usable(key);
    const standing = before?.evidence ?? late.get(key);
    let evidence = standing;
    for (const fact of facts) evidence = weigh(evidence, fact, caution);
    if (evidence === undefined || evidence === standing) return before;
    const entry = entryOf(evidence);
    if (startedIn !== generation && before === undefined) late.set(key, evidence);
    else if (isUsable(entry)) {
      known.set(key, entry);
      failed.delete(key);
      onChange();
    }
    return entry;
  }

  function answer({ evidence, stale }: Entry<V>, source: Source): Known<V> {
    counts[source] += 1;
    return remembered(evidence, stale.asOfMs, source, stale.untilMs);
  }

  async function start(
    key: string,
    load: (flight: Flight<A>) => Promise<Fact<V>>,
    flight: Flight<A>,
  ): Promise<Entry<V>> {
    const startedIn = generation;
    try {
      const fact = await load(flight);
      const entry = merge(key, [fact], startedIn) ?? entryOf(weigh(undefined, fact, caution));
      return (startedIn === generation ? usable(key) : undefined) ?? entry;
    } catch (error) {
      counts.failed += 1;
      const isCurrent = !flight.signal.aborted && startedIn === generation;
      if (isCurrent && failureKind(error) === "remembered")
        failed.set(key, { error, atMs: clock.monotonic() });
      throw error;
    }
  }

  function peek(key: string): Remembered<V> | undefined {
    const entry = usable(key);
    if (entry === undefined) return undefined;
    return isFresh(entry) ? entry.hit : entry.stale;
  }

  async function get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<Fact<V>>,
    options: GetOptions = {},
  ): Promise<Known<V>> {
    const { askedSinceMs = -Infinity } = options;
    const entry = usable(key);
    const isRecentEnough = entry !== undefined && entry.hit.askedMs >= askedSinceMs;
    if (isRecentEnough && isFresh(entry)) return answer(entry, "hit");
    if (asker.signal.aborted) throw callerGone();

    const recentFailure = failure(key);
    if (recentFailure !== undefined) {
      if (isRecentEnough) return answer(entry, "stale");
      throw recentFailure.error;
    }
    const joins = flights.has(key);
    const loading = flights.join(key, asker, (flight) => start(key, load, flight));
    if (isRecentEnough && options.whileRevalidating === true) {
      loading.catch(() => undefined);
      return answer(entry, "stale");
    }
    try {
      const found = await loading;
      // The load was in flight before this caller joined, so its request may have been sent too early.
      if (found.hit.askedMs < askedSinceMs && joins) return await get(key, asker, load, options);
      return answer(found, joins ? "inflight" : "miss");
    } catch (error) {
      if (joins && !asker.signal.aborted && failureKind(error) === "own")
        return await get(key, asker, load, options);
      const old = asker.signal.aborted ? undefined : usable(key);
      if (old && old.hit.askedMs >= askedSinceMs) return answer(old, "stale");
      throw error;
    }
  }

  function clear(): number {
    const { size } = known;
    generation += 1;
    purgedAtMs = stamp();
    known.clear();
    late.clear();
    failed.clear();
    flights.detachAll();
    onChange();
    return size;
  }

  return {
    get,
    peek,
    facts: () =>
      [...known.entries()].flatMap(([key, entry]) =>
        isUsable(entry) ? [[key, entry.evidence.held] as const] : [],
      ),
    fresh(key) {
      const entry = known.get(key);
      return entry && isFresh(entry) ? entry.hit : undefined;
    },
    countHits: (count) => {
      counts.hit += count;
    },
    learn(key, fact) {
      if (fact.answeredMs < purgedAtMs) return;
      merge(key, [fact], fact.askedMs < purgedAtMs ? PURGED : generation);
    },
    purge: clear,
    redate() {
      for (const [, entry] of known.entries()) {
        const { evidence, hit, stale } = entry;
        const asOfMs = wallTimeOf(evidence.held.askedMs);
        entry.hit = remembered(evidence, asOfMs, "hit", hit.untilMs);
        entry.stale = remembered(evidence, asOfMs, "stale", stale.untilMs);
      }
      onChange();
    },
    stats: () => ({
      entries: known.size,
      bound: settings.entries,
      inflight: flights.size,
      counts: { ...counts },
    }),
  };
}
