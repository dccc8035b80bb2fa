/**
 * Read-through pools. A pool never grows past its bound, never shows a fact older than allowed, keeps the fact that holds where answers
 * overtake each other (`facts.ts`), asks once for any number of simultaneous callers on all replicas that share it, and remembers a failure
 * for a moment. Ages count from the asking.
 */
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import { type Caution, type Evidence, type Fact, weigh } from "./facts.js";
import { askOnceAcrossReplicas, type SharedKey, type SharedPool } from "./replicas.js";
import {
  type Asker,
  callerGone,
  type Demand,
  type Flight,
  type OpenFlight,
  SingleFlight,
} from "./single-flight.js";

export type { Asker, Flight } from "./single-flight.js";

export interface Freshness {
  /** Answered from memory up to this age, in ms. */
  readonly freshMs: number;
  /** Shown, marked stale, up to this age in ms when the upstream cannot be asked. */
  readonly usableMs: number;
}

/**
 * `hit` from memory, ours or another replica's, `inflight` from a load under way, `miss` asked for, `stale` from memory past its freshness.
 */
export type Source = "hit" | "inflight" | "miss" | "stale";

/** The fact that holds, as a pool keeps it. */
export interface Kept<V> extends Fact<V> {
  /** When it was asked, on the wall clock: ms since the epoch. */
  readonly asOfMs: number;
  /** False while facts that overlap contradict each other; this is the cautious one. */
  readonly settled: boolean;
  /** The same answer was given every time since then. */
  readonly unchangedSinceMs: number;
}

export interface Known<V> extends Kept<V> {
  readonly source: Source;
}

/** What a pool knows without asking anybody. */
export interface Remembered<V> extends Known<V> {
  /** When it passes its freshness, or once past it is gone; on the monotonic clock, ms. */
  readonly untilMs: number;
}

export interface GetOptions {
  /** The fact must have been asked since then: monotonic ms. Facts asked earlier are not shown either. */
  readonly askedSinceMs?: number;
  /** Answer with a fact past its freshness at once and load in the background. */
  readonly whileRevalidating?: boolean;
  /** Longest wait for other replicas that ask the same, in ms, before asking anyway. Default: 10 s. */
  readonly othersMs?: number;
}

export interface PoolStats {
  readonly entries: number;
  readonly bound: number;
  readonly inflight: number;
  /** `shared` counts the questions that another replica's answer made unnecessary. */
  readonly counts: Readonly<Record<Source | "failed" | "shared", number>>;
}

export interface Pool<V, A extends Asker> {
  /**
   * The fact for `key`: fresh from memory, or loaded once however many callers wait, here and on the replicas that share the pool, or
   * (when that fails) one that is still usable. `load` is called only for a miss; one caller's leaving does not fail the others. Rejects
   * with what `load` rejected with.
   */
  get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<Fact<V>>,
    options?: GetOptions,
  ): Promise<Known<V>>;
  /** What is known without asking anybody; `stale` when past its freshness but still usable. */
  peek(key: string): Remembered<V> | undefined;
  /** Whether `get` would call `load`: nothing is remembered, not even a failure, nobody is asking, and no other replica can know. */
  isUnknown(key: string): boolean;
  /** What `get` would answer from memory, if it is fresh: the same object until something else holds. */
  fresh(key: string): Kept<V> | undefined;
  /** Counts facts that were answered with without `get`. */
  countHits(count: number): void;
  /** Grows whenever something is learned or forgotten; until then only time changes what is known. */
  changes(): number;
  /** What holds here or on another replica, without asking the upstream. Never rejects. */
  consult(key: string): Promise<Known<V> | undefined>;
  /**
   * Adds a fact learned elsewhere, unless it was asked before a purge, and shares it; resolves once what other replicas know is known here.
   * Never rejects.
   */
  learn(key: string, fact: Fact<V>): Promise<void>;
  /** Forgets everything, on all replicas, and returns how much that was here; a load under way is not remembered when it ends. */
  purge(): number;
  stats(): PoolStats;
}

/** What a failed load means for others than the caller who started it. */
export type FailureKind =
  /** Remembered: callers who come soon after fail likewise. */
  | "remembered"
  /** Everyone who waits for this load fails with it. */
  | "shared"
  /** Only the caller who started it; the others start their own. */
  | "own";

export interface PoolSettings<V> {
  readonly entries: number;
  readonly freshness: (value: V) => Freshness;
  readonly failureMs: number;
  /** Default: every failure is remembered. */
  readonly failureKind?: (error: unknown) => FailureKind;
  /** Which of two values to act on while nobody knows which is newer. Default: the younger. */
  readonly caution?: Caution<V>;
  readonly clock: Clock;
  /** The stamps that facts carry. Default: the monotonic clock. */
  readonly stamp?: () => number;
  /** Null or absent: there is nobody to share with. */
  readonly shared?: SharedPool<V> | null;
}

interface Entry<V> {
  readonly evidence: Evidence<V>;
  /** What is told of it while it is fresh, and after that: made once, because most is read far more often than learned. */
  readonly hit: Remembered<V>;
  readonly stale: Remembered<V>;
}

interface Landing<V> {
  readonly entry: Entry<V>;
  readonly isShared: boolean;
}

const OTHERS_MS = 10_000;

/** Expiry is spread over this share of the freshness, so that what was learned together is not asked again together. */
const EXPIRY_JITTER = 0.1;

/** A pool with its own bound and times. */
export function createPool<V extends {} | null, A extends Asker>(settings: PoolSettings<V>): Pool<V, A> {
  const {
    clock,
    stamp = () => clock.monotonic(),
    shared = null,
    caution = () => 0,
    failureKind = () => "remembered",
  } = settings;
  const known = new LRUCache<string, Entry<V>>({ max: settings.entries });
  const failed = new LRUCache<string, { error: unknown; untilMs: number }>({ max: settings.entries });
  const flights = new SingleFlight<Landing<V>, A>();
  const counts = { hit: 0, inflight: 0, miss: 0, stale: 0, failed: 0, shared: 0 };
  let generation = 0;
  let forgottenMs = -Infinity;
  let changes = 0;

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
    changes += 1;
    known.delete(key);
    return undefined;
  }

  function entryOf(evidence: Evidence<V>): Entry<V> {
    const { held, settled, unchangedSinceMs } = evidence;
    const { freshMs, usableMs } = settings.freshness(held.value);
    const asOfMs = Math.floor(clock.now() - (clock.monotonic() - held.askedMs) + 0.001);
    const kept = { ...held, asOfMs, settled, unchangedSinceMs };
    const spreadMs = Math.min(freshMs * (1 - EXPIRY_JITTER * Math.random()), usableMs);
    return {
      evidence,
      hit: { ...kept, source: "hit", untilMs: held.askedMs + spreadMs },
      stale: { ...kept, source: "stale", untilMs: held.askedMs + usableMs },
    };
  }

  /** Weighs the facts against what is known; remembered unless the pool was purged since `startedIn`. */
  function weighed(key: string, facts: readonly Fact<V>[], startedIn: number): Entry<V> | undefined {
    const before = usable(key);
    let evidence = before?.evidence;
    for (const fact of facts) evidence = weigh(evidence, fact, caution);
    if (evidence === undefined || evidence === before?.evidence) return before;
    const entry = entryOf(evidence);
    if (startedIn === generation && isUsable(entry)) {
      changes += 1;
      known.set(key, entry);
      failed.delete(key);
    }
    return entry;
  }

  function answer({ stale }: Entry<V>, source: Source): Known<V> {
    counts[source] += 1;
    const { untilMs: _, ...known } = stale;
    return { ...known, source };
  }

  function meets(entry: Entry<V>, { askedSinceMs }: Pick<Demand, "askedSinceMs">): boolean {
    return isFresh(entry) && entry.hit.askedMs >= askedSinceMs;
  }

  async function share(key: string, at: SharedKey<V>, fact: Fact<V>, startedIn: number): Promise<void> {
    const { usableMs } = settings.freshness(fact.value);
    const standing = await at.write(fact, usableMs).catch(() => []);
    weighed(key, standing, startedIn);
  }

  async function start(
    key: string,
    load: (flight: Flight<A>) => Promise<Fact<V>>,
    flight: OpenFlight<A>,
  ): Promise<Landing<V>> {
    const startedIn = generation;
    const at = shared?.at(key) ?? null;
    const ask = async (): Promise<Landing<V>> => {
      const fact = await load(flight);
      const entry = weighed(key, [fact], startedIn) ?? entryOf(weigh(undefined, fact, caution));
      if (at !== null && startedIn === generation) await share(key, at, fact, startedIn);
      // Another replica may know something later.
      return { entry: (startedIn === generation ? usable(key) : undefined) ?? entry, isShared: false };
    };
    try {
      if (at === null) return await ask();
      const find = async (): Promise<Entry<V> | undefined> => {
        const entry = weighed(key, await at.read(), startedIn);
        return entry !== undefined && meets(entry, flight.demand) ? entry : undefined;
      };
      const met = await askOnceAcrossReplicas(at, flight, find, clock);
      if ("found" in met) {
        counts.shared += 1;
        return { entry: met.found, isShared: true };
      }
      try {
        return await ask();
      } finally {
        void met.claim?.release();
      }
    } catch (error) {
      counts.failed += 1;
      const isNews = !flight.signal.aborted && startedIn === generation;
      if (isNews && failureKind(error) === "remembered")
        failed.set(key, { error, untilMs: clock.monotonic() + settings.failureMs });
      throw error;
    }
  }

  function peek(key: string): Remembered<V> | undefined {
    const entry = usable(key);
    if (entry === undefined) return undefined;
    return isFresh(entry) ? entry.hit : entry.stale;
  }

  /** `cameMs`: when the caller first asked, on the monotonic clock. */
  async function get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<Fact<V>>,
    options: GetOptions = {},
    cameMs = clock.monotonic(),
  ): Promise<Known<V>> {
    const { askedSinceMs = -Infinity, othersMs = OTHERS_MS } = options;
    const entry = usable(key);
    if (entry && meets(entry, { askedSinceMs })) return answer(entry, "hit");
    const mayBeShown = entry !== undefined && entry.hit.askedMs >= askedSinceMs;
    if (asker.signal.aborted) throw callerGone();

    const failure = failed.get(key);
    if (failure && failure.untilMs > clock.monotonic()) {
      if (mayBeShown) return answer(entry, "stale");
      throw failure.error;
    }
    const joins = flights.has(key);
    const now = clock.monotonic();
    const demand = { askedSinceMs, othersUntilMs: now + othersMs };
    const landing = flights.join(key, asker, demand, now - cameMs, (flight) => start(key, load, flight));
    if (mayBeShown && options.whileRevalidating === true) {
      landing.catch(() => undefined);
      return answer(entry, "stale");
    }
    try {
      const { entry: found, isShared } = await landing;
      // The load began before this caller made its demand: its question may have left too early.
      if (found.hit.askedMs < askedSinceMs && (joins || isShared))
        return await get(key, asker, load, options, cameMs);
      return answer(found, joins ? "inflight" : isShared ? "hit" : "miss");
    } catch (error) {
      if (joins && !asker.signal.aborted && failureKind(error) === "own")
        return await get(key, asker, load, options, cameMs);
      const old = asker.signal.aborted ? undefined : usable(key);
      if (old && old.hit.askedMs >= askedSinceMs) return answer(old, "stale");
      throw error;
    }
  }

  function forgetAll(): number {
    const { size } = known;
    generation += 1;
    forgottenMs = stamp();
    changes += 1;
    known.clear();
    failed.clear();
    flights.detachAll();
    return size;
  }
  shared?.onPurged(forgetAll);

  return {
    get: (key, asker, load, options) => get(key, asker, load, options),
    isUnknown: (key) =>
      usable(key) === undefined &&
      !flights.has(key) &&
      (failed.get(key)?.untilMs ?? -Infinity) <= clock.monotonic() &&
      (shared?.at(key) ?? null) === null,
    peek,
    fresh(key) {
      const entry = known.get(key);
      return entry && isFresh(entry) ? entry.hit : undefined;
    },
    countHits: (count) => {
      counts.hit += count;
    },
    changes: () => changes,
    async consult(key) {
      const startedIn = generation;
      const facts =
        (await shared
          ?.at(key)
          ?.read()
          .catch(() => [])) ?? [];
      weighed(key, facts, startedIn);
      return peek(key);
    },
    async learn(key, fact) {
      if (fact.askedMs < forgottenMs) return;
      const startedIn = generation;
      const at = shared?.at(key) ?? null;
      weighed(key, [fact], startedIn);
      if (at !== null) await share(key, at, fact, startedIn);
    },
    purge() {
      shared?.purge();
      return forgetAll();
    },
    stats: () => ({
      entries: known.size,
      bound: settings.entries,
      inflight: flights.size,
      counts: { ...counts },
    }),
  };
}
