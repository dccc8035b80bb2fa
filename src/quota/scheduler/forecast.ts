/** Predicts when slots return, from the ledger and the duration of earlier calls. */
import type { Forecast } from "../ledger/ledger.js";

/** When each slot can be used. */
export interface Returns {
  readonly slots: number;
  /** The ms until the n-th slot can be used; 0 = now. Never decreases with n, which starts at 0. */
  inMs(n: number): number;
  /** How long a slot rests once its call has ended. */
  readonly occupiedMs: number;
  /** How long a slot is away from the start of its call. */
  readonly awayMs: number;
}

/**
 * Converts the ledger's forecast, assuming that calls in flight take `callMs`. The last `taking` of them haven't been granted yet and count as
 * free.
 */
export function returnsOf(forecast: Forecast, callMs: number, taking = 0): Returns {
  const { resting, usableInMs, inFlightForMs, pausedForMs, occupiedMs } = forecast;
  const inFlight = inFlightForMs.length - taking;
  return {
    slots: resting + inFlightForMs.length,
    inMs(n) {
      if (n < taking) return pausedForMs;
      const rest = n - taking;
      if (rest < resting) return Math.max(usableInMs(rest), pausedForMs);
      // Slots in flight return after almost all resting ones, in the order in which they were taken.
      const forMs = rest < resting + inFlight ? (inFlightForMs[rest - resting] ?? 0) : 0;
      return Math.max(Math.max(0, callMs - forMs) + occupiedMs, pausedForMs);
    },
    occupiedMs,
    awayMs: occupiedMs + callMs,
  };
}

/** The forecast for urgent requests, which may borrow slots of other replicas. */
export function withBorrowed(forecast: Forecast): Forecast {
  const { resting, usableInMs, borrowableInMs } = forecast;
  if (borrowableInMs.length === 0) return forecast;
  const all = [...Array.from({ length: resting }, (_, n) => usableInMs(n)), ...borrowableInMs].sort(
    (a, b) => a - b,
  );
  return { ...forecast, resting: all.length, usableInMs: (n) => all[n] ?? Infinity };
}

/** How long calls take: the mean and twice the mean deviation, so that a forecast is seldom too early. */
export class CallTimes {
  #meanMs = 0;
  #deviationMs = 0;
  #seen = false;

  add(tookMs: number): void {
    if (!this.#seen) {
      this.#seen = true;
      this.#meanMs = tookMs;
      return;
    }
    this.#deviationMs += (Math.abs(tookMs - this.#meanMs) - this.#deviationMs) / 16;
    this.#meanMs += (tookMs - this.#meanMs) / 16;
  }

  get likelyMs(): number {
    return this.#meanMs + 2 * this.#deviationMs;
  }
}
