/** Time that passes only when a test says so: due timers run in order, each with everything that it sets off. */
import type { Clock } from "../../src/clock.js";

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  readonly #timers = new Set<Timer>();

  readonly #settle: () => Promise<void>;

  /** `settle` lets everything run that a timer has set off; default: what only waits for promises. */
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
    const timer = { at: this.#monotonicMs + Math.max(delayMs, 0), run };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Timers that are still pending. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Sets the wall clock, as an operator or a time server does; durations are not touched. */
  stepWall(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** Lets `ms` pass. */
  async advance(ms: number): Promise<void> {
    const until = this.#monotonicMs + ms;
    await this.#settle();
    for (;;) {
      const next = this.#first(until);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#jump(next.at);
      next.run();
      await this.#settle();
    }
    this.#jump(until);
    await this.#settle();
  }

  #first(until: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers)
      if (timer.at <= until && (first === undefined || timer.at < first.at)) first = timer;
    return first;
  }

  #jump(to: number): void {
    if (to <= this.#monotonicMs) return;
    this.#wallMs += to - this.#monotonicMs;
    this.#monotonicMs = to;
  }
}

/** Lets everything run that only waits for promises. */
export function settle(): Promise<void> {
  return new Promise((done) => {
    setImmediate(done);
  });
}
