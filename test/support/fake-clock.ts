/** A clock that only the test advances. Due timers run in order, and everything that a timer triggers runs before the next one. */
import type { Clock } from "../../src/clock.js";

interface Timer {
  readonly at: number;
  /** Timers due at the same time run in the order in which they were set. */
  readonly order: number;
  readonly run: () => void;
  isPending: boolean;
}

export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #order = 0;
  #pending = 0;
  /** A binary heap; cancelled timers stay in it until they are on top. */
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
    this.#order += 1;
    const at = this.#monotonicMs + Math.max(delayMs, 0);
    const timer: Timer = { at, order: this.#order, run, isPending: true };
    this.#pending += 1;
    this.#push(timer);
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
    for (;;) {
      const next = this.#take(until);
      if (next === undefined) break;
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

  #take(until: number): Timer | undefined {
    for (;;) {
      const [first] = this.#timers;
      if (first === undefined || (first.isPending && first.at > until)) return undefined;
      this.#pop();
      if (!first.isPending) continue;
      first.isPending = false;
      this.#pending -= 1;
      return first;
    }
  }

  #push(timer: Timer): void {
    const timers = this.#timers;
    let at = timers.push(timer) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #pop(): void {
    const timers = this.#timers;
    this.#swap(0, timers.length - 1);
    timers.pop();
    for (let at = 0; ;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2])
        if (child < timers.length && this.#isBefore(child, least)) least = child;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#timers[a], this.#timers[b]];
    if (one === undefined || other === undefined) return false;
    return one.at < other.at || (one.at === other.at && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#timers[a], this.#timers[b]];
    if (one === undefined || other === undefined) return;
    this.#timers[a] = other;
    this.#timers[b] = one;
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
