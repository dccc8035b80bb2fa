/** When a newcomer will be served: the first slot that is not needed by those ahead and that leaves every kept place its own slot. */
import type { Forecast } from "./ledger.js";

/** When the n-th call from now (0 = the next) can be sent, in ms. */
export type SlotTimes = (n: number) => number;

/** Slot times from what the ledger knows, with calls in flight taken to last `callMs`. */
export function slotTimes(forecast: Forecast, callMs: number): SlotTimes {
  const { pausedForMs, occupiedMs } = forecast;
  const flying = forecast.inFlightForMs.map((forMs) => Math.max(0, callMs - forMs) + occupiedMs);
  const times = [...forecast.usableInMs, ...flying]
    .map((ms) => Math.max(ms, pausedForMs))
    .sort((a, b) => a - b);
  return (n) => {
    if (times.length === 0) return Infinity;
    const round = Math.floor(n / times.length);
    return (times[n % times.length] ?? Infinity) + round * (occupiedMs + callMs);
  };
}

/**
 * The wait of a newcomer behind `ahead` others. `dues` are the kept places, ascending, as the ms from now by which each needs a slot:
 * the newcomer gets slot k only if at every later moment there are slots for those ahead, the places due by then and the newcomer.
 */
export function waitOf(times: SlotTimes, ahead: number, dues: readonly number[]): number {
  let due = dues.length;
  let k = ahead + due;
  for (; k > ahead; k -= 1) {
    const at = times(k);
    while (due > 0 && (dues[due - 1] ?? 0) >= at) due -= 1;
    if (k - ahead - due < 1) break;
  }
  return times(k);
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
