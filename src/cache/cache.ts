/**
 * Read-through pools with single flight. A pool never grows past its bound, never shows a value older than it may be shown,
 * asks once for any number of simultaneous callers, and remembers a failure for a moment.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";

export interface Freshness {
  /** Answered from memory up to this age, in ms. */
  readonly freshMs: number;
  /** Shown, marked stale, up to this age in ms when the upstream cannot be asked. */
  readonly usableMs: number;
}

/** `hit` from memory, `inflight` from somebody else's question under way, `miss` asked for, `stale` from memory past its freshness. */
export type Source = "hit" | "inflight" | "miss" | "stale";

export interface Known<V> {
  readonly value: V;
  /** When the upstream said so: wall clock, ms. */
  readonly asOfMs: number;
  readonly source: Source;
}

export interface Asker {
  /** Aborted when this caller no longer wants the answer. */
  readonly signal: AbortSignal;
}

/** One question under way and all who wait for it. */
export interface Flight<A extends Asker> {
  readonly askers: ReadonlySet<A>;
  /** Aborted when the last of them has gone. */
  readonly signal: AbortSignal;
}

export interface GetOptions {
  /** A remembered value must be no older than this, in ms: for what has to be known anew. */
  readonly maxAgeMs?: number;
  /** Answer with a value past its freshness at once and ask in the background. */
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
   * The value for `key`: fresh from memory, or asked for once however many callers wait, or (when that fails) a value still usable.
   * `load` is called only for a miss; one caller's leaving does not fail the others. Rejects with what `load` rejected with.
   */
  get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<V>,
    options?: GetOptions,
  ): Promise<Known<V>>;
  /** What is known without asking anybody; `stale` when past its freshness but still usable. */
  peek(key: string): Known<V> | undefined;
  /** Adds what was learned elsewhere. */
  put(key: string, value: V, asOfMs: number): void;
  forget(key: string): void;
  /** Forgets everything and tells how much that was; a question under way is not remembered when it ends. */
  purge(): number;
  stats(): PoolStats;
}

export interface PoolSettings<V> {
  readonly entries: number;
  readonly freshness: (value: V) => Freshness;
  readonly failureMs: number;
  readonly clock: Clock;
}

interface Entry<V> {
  readonly value: V;
  readonly asOfMs: number;
  readonly learnedAtMs: number;
  readonly freshMs: number;
  readonly usableMs: number;
}

interface OpenFlight<V, A extends Asker> {
  readonly askers: Set<A>;
  readonly abort: AbortController;
  readonly outcome: Promise<Entry<V>>;
}

/** Expiry is spread over this share of the freshness, so that what was learned together is not asked again together. */
const EXPIRY_JITTER = 0.1;

/** A pool with its own bound and times. */
export function createPool<V extends {} | null, A extends Asker>(settings: PoolSettings<V>): Pool<V, A> {
  const { clock } = settings;
  const known = new LRUCache<string, Entry<V>>({ max: settings.entries });
  const failed = new LRUCache<string, { error: unknown; untilMs: number }>({ max: settings.entries });
  const flights = new Map<string, OpenFlight<V, A>>();
  const counts = { hit: 0, inflight: 0, miss: 0, stale: 0, failed: 0 };
  let generation = 0;

  function ageMs(entry: Entry<V>): number {
    return clock.monotonic() - entry.learnedAtMs;
  }

  function usable(key: string): Entry<V> | undefined {
    const entry = known.get(key);
    if (entry === undefined) return undefined;
    if (ageMs(entry) <= entry.usableMs) return entry;
    known.delete(key);
    return undefined;
  }

  function entryOf(value: V, asOfMs: number): Entry<V> {
    const { freshMs, usableMs } = settings.freshness(value);
    return {
      value,
      asOfMs,
      learnedAtMs: clock.monotonic() - Math.max(0, clock.now() - asOfMs),
      freshMs: freshMs * (1 - EXPIRY_JITTER * Math.random()),
      usableMs,
    };
  }

  function remember(key: string, entry: Entry<V>): void {
    known.set(key, entry);
    failed.delete(key);
  }

  function answer(entry: Entry<V>, source: Source): Known<V> {
    counts[source] += 1;
    return { value: entry.value, asOfMs: entry.asOfMs, source };
  }

  function takeOff(key: string, load: (flight: Flight<A>) => Promise<V>): OpenFlight<V, A> {
    const askers = new Set<A>();
    const abort = new AbortController();
    const startedIn = generation;
    const fly = async (): Promise<Entry<V>> => {
      const value = await load({ askers, signal: abort.signal });
      const entry = entryOf(value, clock.now());
      if (startedIn === generation) remember(key, entry);
      return entry;
    };
    const outcome = fly().catch((error: unknown) => {
      counts.failed += 1;
      if (!abort.signal.aborted && isWorthRemembering(error) && startedIn === generation) {
        failed.set(key, { error, untilMs: clock.monotonic() + settings.failureMs });
      }
      throw error;
    });
    const flight = { askers, abort, outcome };
    flights.set(key, flight);
    const land = (): void => {
      takeDown(key, flight);
    };
    outcome.then(land, land);
    return flight;
  }

  /** After a purge another flight may have taken its place. */
  function takeDown(key: string, flight: OpenFlight<V, A>): void {
    if (flights.get(key) === flight) flights.delete(key);
  }

  /** Waits for the flight as long as this caller wants to; the last to leave calls it off. */
  function board(key: string, flight: OpenFlight<V, A>, asker: A): Promise<Entry<V>> {
    flight.askers.add(asker);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        flight.askers.delete(asker);
        if (flight.askers.size === 0) {
          if (flights.get(key) === flight) takeDown(key, flight);
          flight.abort.abort();
        }
        reject(gone());
      };
      asker.signal.addEventListener("abort", leave, { once: true });
      const arrive = (): void => {
        asker.signal.removeEventListener("abort", leave);
      };
      flight.outcome.then(
        (entry) => {
          arrive();
          resolve(entry);
        },
        (error: unknown) => {
          arrive();
          reject(error instanceof Error ? error : new Error("load failed"));
        },
      );
    });
  }

  return {
    async get(key, asker, load, options = {}) {
      const entry = usable(key);
      const { maxAgeMs = Infinity } = options;
      if (entry && ageMs(entry) <= Math.min(entry.freshMs, maxAgeMs)) return answer(entry, "hit");
      const mayBeShown = entry !== undefined && maxAgeMs === Infinity;
      if (asker.signal.aborted) throw gone();

      const failure = failed.get(key);
      if (failure && failure.untilMs > clock.monotonic()) {
        if (mayBeShown) return answer(entry, "stale");
        throw failure.error;
      }
      const under = flights.get(key);
      const flight = under ?? takeOff(key, load);
      const landing = board(key, flight, asker);
      if (mayBeShown && options.whileRevalidating === true) {
        landing.catch(() => undefined);
        return answer(entry, "stale");
      }
      try {
        return answer(await landing, under ? "inflight" : "miss");
      } catch (error) {
        const old = maxAgeMs === Infinity && !asker.signal.aborted ? usable(key) : undefined;
        if (old) return answer(old, "stale");
        throw error;
      }
    },
    peek(key) {
      const entry = usable(key);
      if (entry === undefined) return undefined;
      const source = ageMs(entry) <= entry.freshMs ? "hit" : "stale";
      return { value: entry.value, asOfMs: entry.asOfMs, source };
    },
    put(key, value, asOfMs) {
      remember(key, entryOf(value, asOfMs));
    },
    forget(key) {
      known.delete(key);
      failed.delete(key);
    },
    purge() {
      const { size } = known;
      generation += 1;
      known.clear();
      failed.clear();
      flights.clear();
      return size;
    },
    stats: () => ({
      entries: known.size,
      bound: settings.entries,
      inflight: flights.size,
      counts: { ...counts },
    }),
  };
}

/** A refusal for want of quota costs nothing and passes quickly: remembering it would refuse people who could be served. */
function isWorthRemembering(error: unknown): boolean {
  return error instanceof ServiceError && error.code.startsWith("upstream_");
}

function gone(): ServiceError {
  return new ServiceError("internal", "The caller has gone.");
}
