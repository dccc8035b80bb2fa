/** A clock that only the test advances. Due timers run in order, and everything that a timer triggers runs before the next one. */
import type { Clock } from "../../src/clock.js";

interface Timer {
  readonly at: number;
  readonly run: () => void;
  isPending: boolean;
}

export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #pending = 0;
  /** By time; those due at the same time in the order in which they were set. Cancelled ones stay until they are first. */
  readonly #timers: Timer[] = [];

  readonly #settle: () => Promise<void>;

  /** `settled` resolves when everything that a timer triggered has run. The default runs only what waits for promises. */
  constructor(wallMs = Date.UTC(2026, 2, 20), settled = settle) {
    this.#wallMs = wallMs;
    this.#settle = settled;
  }

  now(): number {
    return this.#wallMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer: Timer = { at: this.#monotonicMs + Math.max(delayMs, 0), run, isPending: true };
    let [low, high] = [0, this.#timers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#timers[middle]?.at ?? Infinity) <= timer.at) low = middle + 1;
      else high = middle;
    }
    this.#timers.splice(low, 0, timer);
    this.#pending += 1;
    return () => {
      if (timer.isPending) this.#pending -= 1;
      timer.isPending = false;
    };
  }

  /** The number of pending timers. */
  get pending(): number {
    return this.#pending;
  }

  /** Steps the wall clock, as an operator or a time server does. The monotonic clock isn't affected. */
  stepWall(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** Advances time by `ms`. */
  async advance(ms: number): Promise<void> {
    const until = this.#monotonicMs + ms;
    await this.#settle();
    for (let [next] = this.#timers; next !== undefined && next.at <= until; [next] = this.#timers) {
      this.#timers.shift();
      if (!next.isPending) continue;
      next.isPending = false;
      this.#pending -= 1;
      this.#jump(next.at);
      next.run();
      await this.#settle();
    }
    this.#jump(until);
    await this.#settle();
  }

  /** Time passes at once, as for a machine that was suspended: each timer that is due runs once, late. Much faster than `advance`. */
  async leap(ms: number): Promise<void> {
    this.#jump(this.#monotonicMs + ms);
    await this.advance(0);
  }

  #jump(to: number): void {
    if (to <= this.#monotonicMs) return;
    this.#wallMs += to - this.#monotonicMs;
    this.#monotonicMs = to;
  }
}

/** Runs everything that waits only for promises. */
export function settle(): Promise<void> {
  return new Promise((done) => {
    setImmediate(done);
  });
}
