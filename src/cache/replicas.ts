/**
 * The connection of a pool to other replicas: their facts, and which of them is loading a key. Any call may reject and Redis may be missing
 * at any time; the pool then works alone.
 */
import { type Clock, pause } from "../clock.js";
import type { Fact } from "./facts.js";
import { callerGone, type OpenFlight, type Asker } from "./single-flight.js";

/** The right to be the only replica that loads a key. */
export interface Claim {
  /** Never rejects. */
  release(): Promise<void>;
}

/** One key shared by the replicas. Facts written here are no longer found by a replica that has purged the pool in the meantime. */
export interface SharedKey<V> {
  /**
   * The facts that no later one has replaced, in this process's time; intervals of other replicas' facts are widened by the clock tolerance. Empty
   * if there are none or they can't be decoded.
   */
  read(): Promise<readonly Fact<V>[]>;
  /** Adds a fact and returns all facts that no later one has replaced. */
  write(fact: Fact<V>, ttlMs: number): Promise<readonly Fact<V>[]>;
  /** Held until it is released or this process dies; null while another replica holds it. */
  claim(): Promise<Claim | null>;
}

export interface SharedPool<V> {
  /** Whether other replicas can be asked. */
  isAvailable(): boolean;
  /** The shared key; null while other replicas can't be asked. */
  at(key: string): SharedKey<V> | null;
  /** Clears the pool on all other replicas, immediately or as soon as they are reachable. */
  purge(): void;
  /** Calls `forget` when another replica has purged the pool, or may have. */
  onPurged(forget: () => void): void;
}

/** How often a replica checks for another's answer; up to as much again is added as jitter. */
const CHECK_EVERY_MS = 25;

/**
 * Returns another replica's answer as soon as `find` returns one, or else the claim to load the key. The claim is exclusive, or null if the
 * others take too long or Redis is unreachable. Rejects when every caller has left.
 */
export async function askOnceAcrossReplicas<F, A extends Asker>(
  shared: Pick<SharedKey<unknown>, "claim">,
  flight: OpenFlight<A>,
  find: () => Promise<F | undefined>,
  clock: Clock,
): Promise<{ readonly found: F } | { readonly claim: Claim | null }> {
  let claim: Claim | null = null;
  try {
    while (!flight.signal.aborted) {
      const found = await find();
      if (found !== undefined) {
        void claim?.release();
        return { found };
      }
      // We held the claim during this last `find`, so no other replica can have loaded the key unnoticed.
      if (claim !== null) return { claim };
      claim = await shared.claim();
      if (claim !== null) continue;
      if (clock.monotonic() >= flight.demand.othersUntilMs) return { claim };
      await pause(clock, CHECK_EVERY_MS * (1 + Math.random()), flight.signal);
    }
  } catch {
    return { claim };
  }
  void claim?.release();
  throw callerGone();
}
