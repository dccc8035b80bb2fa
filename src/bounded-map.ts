import { LRUCache } from "lru-cache";

/** A map that drops its oldest entry when another would exceed its maximum size. Setting an entry makes it the newest; reading it doesn't. */
export class BoundedMap<K extends string, V extends number | string | object> {
  readonly #entries: LRUCache<K, V>;

  constructor(max: number) {
    this.#entries = new LRUCache({ max });
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
