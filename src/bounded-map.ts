import { LRUCache } from "lru-cache";

/**
 * An LRU cache of at most this many entries that grows as they come. With lru-cache's `max`, it would allocate them all at the start, at 0.15 ms
 * per thousand.
 */
export function createLru<K extends string, V extends number | string | object>(
  most: number,
): LRUCache<K, V> {
  return new LRUCache({ maxSize: most, sizeCalculation: () => 1 });
}

/**
 * A map that drops its oldest entry when another would exceed its maximum size. Setting an entry makes it the newest; reading it doesn't.
 *
 * An LRU cache, which moves an entry without deleting it: a Map in which entries are deleted and set again leaves tables behind that V8 keeps,
 * with what they refer to, until the next full garbage collection.
 */
export class BoundedMap<K extends string, V extends number | string | object> {
  readonly #entries: LRUCache<K, V>;

  constructor(most: number) {
    this.#entries = createLru(most);
  }

  get(key: K): V | undefined {
    return this.#entries.peek(key);
  }

  set(key: K, value: V): this {
    this.#entries.set(key, value);
    return this;
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  /** Calls `act` for each value, the oldest first; it may delete entries. */
  forEach(act: (value: V) => void): void {
    this.#entries.rforEach(act);
  }

  /** The oldest value. */
  first(): V | undefined {
    return this.#entries.rvalues().next().value ?? undefined;
  }
}
