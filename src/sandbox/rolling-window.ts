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
  #largest = 0;

  /** The largest number of admissions in any window. */
  get largest(): number {
    return this.#largest;
  }

  /** Null if the call is admitted, otherwise the number of seconds after which a retry can be. */
  admit(at: number, { limit, windowMs }: RateLimit): number | null {
    const firstInside = this.#admitted.findIndex((earlier) => earlier >= at - windowMs);
    if (firstInside === -1) this.#admitted = [];
    else if (firstInside > 0) this.#admitted = this.#admitted.slice(firstInside);
    const blocker = this.#admitted.at(-limit);
    if (this.#admitted.length >= limit && blocker !== undefined) {
      // One second more for an exact multiple, because at that instant the oldest admission still counts.
      return Math.floor((blocker + windowMs - at) / 1000) + 1;
    }
    this.#admitted.push(at);
    this.#largest = Math.max(this.#largest, this.#admitted.length);
    return null;
  }
}
