/**
 * What a pool knows of other replicas: the facts that they have learned, and which of them is asking already. Anything here may reject or
 * be absent at any time; a pool then goes on alone.
 */
import { type Clock, pause } from "../clock.js";
import type { Fact } from "./facts.js";
import { callerGone, type OpenFlight, type Asker } from "./single-flight.js";

/** The right to be the one replica that asks. */
export interface Claim {
  /** Never rejects. */
  release(): Promise<void>;
}

/** Where the replicas meet about one key. Facts written here are never found by replicas that have forgotten the pool since. */
export interface SharedKey<V> {
  /**
   * The facts standing, in this process's time; those of other replicas with intervals widened by what clocks may differ. Empty when there
   * are none, or none that can be read.
   */
  read(): Promise<readonly Fact<V>[]>;
  /** Adds a fact unless a later one stands, and returns all that stand. */
  write(fact: Fact<V>, ttlMs: number): Promise<readonly Fact<V>[]>;
  /** Held until it is released or this process dies; null while another replica holds it. */
  claim(): Promise<Claim | null>;
}

export interface SharedPool<V> {
  /** `key` as things stand now; null while there is nobody to share with. */
  at(key: string): SharedKey<V> | null;
  /** Makes all other replicas forget the pool, at once or as soon as they can be reached. */
  purge(): void;
  /** Calls `forget` when another replica has purged the pool, or may have. */
  onPurged(forget: () => void): void;
}

/** How often a replica checks whether another one has the answer: this, and up to as much more. */
const CHECK_EVERY_MS = 25;

/**
 * Another replica's answer as soon as `find` returns one that meets the demand, or the claim to ask: as the only replica that does, unless
 * the others take too long or cannot be reached. Rejects when every caller has gone.
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
      // While we hold the claim nobody else asks, and what others had learned before it has been read once more.
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
