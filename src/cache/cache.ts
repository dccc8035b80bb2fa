/**
 * Read-through pools with single flight. A pool never grows past its bound, never shows a value older than it may be shown,
 * asks once for any number of simultaneous callers, on all replicas where they share, and remembers a failure for a moment.
 */
import { LRUCache } from "lru-cache";
import { type Clock, pause } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Claim, Fact, SharedPlace, SharedTier } from "./shared-tier.js";

export interface Freshness {
  /** Answered from memory up to this age, in ms. */
  readonly freshMs: number;
  /** Shown, marked stale, up to this age in ms when the upstream cannot be asked. */
  readonly usableMs: number;
}

/**
 * `hit` from memory, ours or another replica's, `inflight` from somebody else's question under way, `miss` asked for, `stale` from memory
 * past its freshness.
 */
export type Source = "hit" | "inflight" | "miss" | "stale";

export interface Known<V> extends Fact<V> {
  readonly source: Source;
}

/** What a pool knows without asking anybody. */
export interface Remembered<V> extends Known<V> {
  /** When it passes its freshness, or once past it is gone; on the monotonic clock, ms. */
  readonly untilMs: number;
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
  /** A remembered value must be no older than this at the time of asking, in ms: for what has to be known anew. */
  readonly maxAgeMs?: number;
  /** Answer with a value past its freshness at once and ask in the background. */
  readonly whileRevalidating?: boolean;
  /** Longest wait for other replicas that ask the same, in ms, before asking anyway; 0 for who must know now. Default: 10 s. */
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
   * The value for `key`: fresh from memory, or asked for once however many callers wait, here and on the replicas that share the pool, or
   * (when that fails) a value still usable.
   * `load` is called only for a miss; one caller's leaving does not fail the others. Rejects with what `load` rejected with.
   */
  get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<V>,
    options?: GetOptions,
  ): Promise<Known<V>>;
  /** What is known without asking anybody; `stale` when past its freshness but still usable. */
  peek(key: string): Remembered<V> | undefined;
  /** Whether `get` would call `load`: nothing is remembered, not even a failure, nobody is asking, and no other replica can know. */
  isUnknown(key: string): boolean;
  /** The fact that `get` would answer from memory, if it is fresh: the same value object until another is learned. */
  fresh(key: string): Fact<V> | undefined;
  /** Counts an answer that was made of fresh facts without `get`. */
  countHit(): void;
  /** Grows whenever something is learned or forgotten; until then only time changes what is known. */
  changes(): number;
  /** The newest that is known here or to another replica, without asking the upstream. Never rejects. */
  consult(key: string): Promise<Known<V> | undefined>;
  /** Adds what was learned elsewhere. */
  put(key: string, value: V, asOfMs: number): void;
  forget(key: string): void;
  /** Forgets everything, on all replicas, and tells how much that was here; a question under way is not remembered when it ends. */
  purge(): number;
  stats(): PoolStats;
}

export interface PoolSettings<V> {
  readonly entries: number;
  readonly freshness: (value: V) => Freshness;
  readonly failureMs: number;
  readonly clock: Clock;
  /** Null or absent: there is nobody to share with. */
  readonly shared?: SharedTier<V> | null;
}

interface Entry<V> {
  readonly value: V;
  readonly asOfMs: number;
  readonly learnedAtMs: number;
  readonly freshMs: number;
  readonly usableMs: number;
}

interface Landing<V> {
  readonly entry: Entry<V>;
  /** Whether it is another replica's answer. */
  readonly shared: boolean;
}

/** All who wait for one answer, and what the most demanding of them has said. */
interface Party<A extends Asker> {
  readonly askers: Set<A>;
  readonly abort: AbortController;
  /** On the monotonic clock, ms. */
  learnedSinceMs: number;
  othersUntilMs: number;
}

interface OpenFlight<V, A extends Asker> {
  readonly party: Party<A>;
  readonly outcome: Promise<Landing<V>>;
}

/** How far another replica's clock may be ahead of ours. */
const AHEAD_MS = 1_000;
const OTHERS_MS = 10_000;
/** How often a replica looks whether another one has its answer: this, and up to as much more. */
const LOOK_AGAIN_MS = 25;

/** Expiry is spread over this share of the freshness, so that what was learned together is not asked again together. */
const EXPIRY_JITTER = 0.1;

/** A pool with its own bound and times. */
export function createPool<V extends {} | null, A extends Asker>(settings: PoolSettings<V>): Pool<V, A> {
  const { clock, shared = null } = settings;
  const known = new LRUCache<string, Entry<V>>({ max: settings.entries });
  const failed = new LRUCache<string, { error: unknown; untilMs: number }>({ max: settings.entries });
  const flights = new Map<string, OpenFlight<V, A>>();
  const counts = { hit: 0, inflight: 0, miss: 0, stale: 0, failed: 0, shared: 0 };
  let generation = 0;
  let changes = 0;

  function ageMs(entry: Entry<V>): number {
    return clock.monotonic() - entry.learnedAtMs;
  }

  function isFresh(entry: Entry<V>): boolean {
    return ageMs(entry) <= entry.freshMs;
  }

  function usable(key: string): Entry<V> | undefined {
    const entry = known.get(key);
    if (entry === undefined) return undefined;
    if (ageMs(entry) <= entry.usableMs) return entry;
    drop(key);
    return undefined;
  }

  function keep(key: string, entry: Entry<V>): void {
    changes += 1;
    known.set(key, entry);
  }

  function drop(key: string): void {
    changes += 1;
    known.delete(key);
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
    keep(key, entry);
    failed.delete(key);
  }

  function answer(entry: Entry<V>, source: Source): Known<V> {
    counts[source] += 1;
    return { value: entry.value, asOfMs: entry.asOfMs, source };
  }

  /** What other replicas know, remembered here if it is newer and was not purged meanwhile; else what is known here. */
  async function newest(
    key: string,
    place: SharedPlace<V>,
    startedIn: number,
  ): Promise<Landing<V> | undefined> {
    const fact = await place.read();
    const told = fact === null ? undefined : believed(fact);
    const own = usable(key);
    if (told !== undefined && (own === undefined || own.asOfMs < told.asOfMs)) {
      if (startedIn === generation) keep(key, told);
      return { entry: told, shared: true };
    }
    return own && { entry: own, shared: false };
  }

  function believed({ value, asOfMs }: Fact<V>): Entry<V> | undefined {
    const now = clock.now();
    if (asOfMs > now + AHEAD_MS) return undefined;
    const entry = entryOf(value, Math.min(asOfMs, now));
    return ageMs(entry) <= entry.usableMs ? entry : undefined;
  }

  /**
   * Another replica's answer as soon as there is one that is fresh enough, or the task to ask: as the only replica that does, unless the
   * others take too long or cannot be met.
   */
  async function meetOthers(
    key: string,
    place: SharedPlace<V>,
    party: Party<A>,
    startedIn: number,
  ): Promise<{ readonly landing: Landing<V> } | { readonly claim: Claim | null }> {
    let claim: Claim | null = null;
    try {
      while (!party.abort.signal.aborted) {
        const found = await newest(key, place, startedIn);
        if (found && isFresh(found.entry) && found.entry.learnedAtMs >= party.learnedSinceMs) {
          void claim?.letGo();
          return { landing: found };
        }
        // With the claim in hand nobody else was asking, and what they had learned before has been looked for once more.
        if (claim !== null) return { claim };
        claim = await place.claim();
        if (claim !== null) continue;
        if (clock.monotonic() >= party.othersUntilMs) return { claim };
        await pause(clock, LOOK_AGAIN_MS * (1 + Math.random()), party.abort.signal);
      }
    } catch {
      return { claim };
    }
    void claim?.letGo();
    throw gone();
  }

  function takeOff(key: string, load: (flight: Flight<A>) => Promise<V>): OpenFlight<V, A> {
    const abort = new AbortController();
    const party: Party<A> = {
      askers: new Set(),
      abort,
      learnedSinceMs: -Infinity,
      othersUntilMs: Infinity,
    };
    const startedIn = generation;
    const place = shared?.place(key) ?? null;

    const ask = async (): Promise<Landing<V>> => {
      const value = await load({ askers: party.askers, signal: abort.signal });
      const entry = entryOf(value, clock.now());
      if (startedIn === generation) {
        remember(key, entry);
        place?.write({ value, asOfMs: entry.asOfMs }, entry.usableMs).catch(() => undefined);
      }
      return { entry, shared: false };
    };
    const fly = async (): Promise<Landing<V>> => {
      if (place === null) return ask();
      const met = await meetOthers(key, place, party, startedIn);
      if ("landing" in met) {
        if (met.landing.shared) counts.shared += 1;
        return met.landing;
      }
      try {
        return await ask();
      } finally {
        void met.claim?.letGo();
      }
    };
    const outcome = fly().catch((error: unknown) => {
      counts.failed += 1;
      if (!abort.signal.aborted && isWorthRemembering(error) && startedIn === generation) {
        failed.set(key, { error, untilMs: clock.monotonic() + settings.failureMs });
      }
      throw error;
    });
    const flight = { party, outcome };
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
  function board(key: string, flight: OpenFlight<V, A>, asker: A, options: GetOptions): Promise<Landing<V>> {
    const { party } = flight;
    const now = clock.monotonic();
    const { maxAgeMs = Infinity, othersMs = OTHERS_MS } = options;
    party.askers.add(asker);
    party.learnedSinceMs = Math.max(party.learnedSinceMs, now - maxAgeMs);
    party.othersUntilMs = Math.min(party.othersUntilMs, now + othersMs);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        party.askers.delete(asker);
        if (party.askers.size === 0) {
          takeDown(key, flight);
          party.abort.abort();
        }
        reject(gone());
      };
      asker.signal.addEventListener("abort", leave, { once: true });
      const arrive = (): void => {
        asker.signal.removeEventListener("abort", leave);
      };
      flight.outcome.then(
        (landing) => {
          arrive();
          resolve(landing);
        },
        (error: unknown) => {
          arrive();
          reject(error instanceof Error ? error : new Error("load failed"));
        },
      );
    });
  }

  function peek(key: string): Remembered<V> | undefined {
    const entry = usable(key);
    if (entry === undefined) return undefined;
    const { value, asOfMs, learnedAtMs, freshMs, usableMs } = entry;
    return isFresh(entry)
      ? { value, asOfMs, source: "hit", untilMs: learnedAtMs + freshMs }
      : { value, asOfMs, source: "stale", untilMs: learnedAtMs + usableMs };
  }

  function fresh(key: string): Fact<V> | undefined {
    const entry = known.get(key);
    return entry && isFresh(entry) ? entry : undefined;
  }

  async function get(
    key: string,
    asker: A,
    load: (flight: Flight<A>) => Promise<V>,
    options: GetOptions = {},
  ): Promise<Known<V>> {
    const entry = usable(key);
    const { maxAgeMs = Infinity } = options;
    const learnedSinceMs = clock.monotonic() - maxAgeMs;
    if (entry && isFresh(entry) && entry.learnedAtMs >= learnedSinceMs) return answer(entry, "hit");
    const mayBeShown = entry !== undefined && maxAgeMs === Infinity;
    if (asker.signal.aborted) throw gone();

    const failure = failed.get(key);
    if (failure && failure.untilMs > clock.monotonic()) {
      if (mayBeShown) return answer(entry, "stale");
      throw failure.error;
    }
    const under = flights.get(key);
    const flight = under ?? takeOff(key, load);
    const landing = board(key, flight, asker, options);
    if (mayBeShown && options.whileRevalidating === true) {
      landing.catch(() => undefined);
      return answer(entry, "stale");
    }
    try {
      const { entry: found, shared: fromOthers } = await landing;
      // Found for the others of the party before this caller, who wants a newer one, had come.
      if (fromOthers && found.learnedAtMs < learnedSinceMs) return await get(key, asker, load, options);
      return answer(found, under ? "inflight" : fromOthers ? "hit" : "miss");
    } catch (error) {
      if (under && !asker.signal.aborted && isForTheLeaderAlone(error))
        return await get(key, asker, load, options);
      const old = maxAgeMs === Infinity && !asker.signal.aborted ? usable(key) : undefined;
      if (old) return answer(old, "stale");
      throw error;
    }
  }

  function forgetAll(): number {
    const { size } = known;
    generation += 1;
    changes += 1;
    known.clear();
    failed.clear();
    flights.clear();
    return size;
  }
  shared?.onPurged(forgetAll);

  return {
    get,
    isUnknown: (key) =>
      usable(key) === undefined &&
      !flights.has(key) &&
      (failed.get(key)?.untilMs ?? -Infinity) <= clock.monotonic() &&
      (shared?.place(key) ?? null) === null,
    peek,
    fresh,
    countHit: () => {
      counts.hit += 1;
    },
    changes: () => changes,
    async consult(key) {
      const place = shared?.place(key) ?? null;
      if (place !== null) await newest(key, place, generation).catch(() => undefined);
      return peek(key);
    },
    put(key, value, asOfMs) {
      remember(key, entryOf(value, asOfMs));
    },
    forget(key) {
      drop(key);
      failed.delete(key);
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

/** The leader of a party asked too much: the others have not. */
function isForTheLeaderAlone(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "rate_limited";
}

/** A refusal for want of quota costs nothing and passes quickly: remembering it would refuse people who could be served. */
function isWorthRemembering(error: unknown): boolean {
  return error instanceof ServiceError && error.code.startsWith("upstream_");
}

function gone(): ServiceError {
  return new ServiceError("internal", "The caller has gone.");
}
