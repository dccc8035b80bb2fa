/**
 * A strict sliding log: at most `limit` admissions in any window of `windowMs`, both ends included, so an admission
 * leaves the window only when it is older than `windowMs`. Refusals aren't recorded.
 */
export interface RateLimit {
  readonly limit: number;
  readonly windowMs: number;
}

export class RollingWindow {
  #admitted: number[] = [];
  /** The first of them that is inside the window. */
  #first = 0;
  #largest = 0;

  /** The largest number of admissions in any window. */
  get largest(): number {
    return this.#largest;
  }

  /** Null if the call is admitted, otherwise the number of seconds after which a retry can be. */
  admit(at: number, { limit, windowMs }: RateLimit): number | null {
    while ((this.#admitted[this.#first] ?? Infinity) < at - windowMs) this.#first += 1;
    // Dropped only once they are the larger part, because all others have to be copied.
    if (this.#first > this.#admitted.length / 2) {
      this.#admitted = this.#admitted.slice(this.#first);
      this.#first = 0;
    }
    const blocker = this.#admitted.at(-limit);
    if (this.#admitted.length - this.#first >= limit && blocker !== undefined) {
      // One second more for an exact multiple, because at that instant the oldest admission still counts.
      return Math.floor((blocker + windowMs - at) / 1000) + 1;
    }
    this.#admitted.push(at);
    this.#largest = Math.max(this.#largest, this.#admitted.length - this.#first);
    return null;
  }
}
