/** A Map that drops its oldest entry when another would exceed its maximum size. To make an entry the newest, delete it before setting it. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override set(key: K, value: V): this {
    super.set(key, value);
    if (this.size > this.#most) {
      const oldest = this.keys().next();
      if (oldest.done !== true) this.delete(oldest.value);
    }
    return this;
  }
}
