import { type Clock, systemClock } from "../../src/clock.js";

/** The system clock, ahead by `aheadMs`. Timers still run in real time. */
export class AheadClock implements Clock {
  aheadMs = 0;
  now(): number {
    return systemClock.now() + this.aheadMs;
  }
  monotonic(): number {
    return systemClock.monotonic() + this.aheadMs;
  }
  after(delayMs: number, run: () => void): () => void {
    return systemClock.after(delayMs, run);
  }
}
