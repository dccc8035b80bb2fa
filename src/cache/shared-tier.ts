/**
 * What a pool knows of other replicas: facts that they have learned, and who of them is asking already. Anything here may reject or be
 * absent at any time; a pool then goes on alone.
 */

/** A value and when the upstream said so: wall clock, ms. */
export interface Fact<V> {
  readonly value: V;
  readonly asOfMs: number;
}

/** The right to be the one replica that asks. */
export interface Claim {
  /** Never rejects. */
  letGo(): Promise<void>;
}

/** Where the replicas meet about one key. Facts written at a place are never found by those who have forgotten since. */
export interface SharedPlace<V> {
  /** Null when there is nothing, or nothing that can be read. How old it may be is for the reader to judge. */
  read(): Promise<Fact<V> | null>;
  write(fact: Fact<V>, ttlMs: number): Promise<void>;
  /** Held until it is let go or this process dies; null while another replica has it. */
  claim(): Promise<Claim | null>;
}

export interface SharedTier<V> {
  /** The place of `key` as things stand now; null while there is nobody to share with. */
  place(key: string): SharedPlace<V> | null;
  /** Has all other replicas forget the pool, at once or as soon as they can be told. */
  purge(): void;
  /** Has `forget` called when another replica has purged the pool, or may have. */
  onPurged(forget: () => void): void;
}
