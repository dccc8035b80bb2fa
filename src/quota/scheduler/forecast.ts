/** When slots return, and when a newcomer will be served: the first time that is not needed by those ahead and that leaves every kept place its own. */
import type { Forecast } from "../ledger/ledger.js";

/** When the n-th call from now (0 = the next) can be sent, in ms. */
export type SlotTimes = (n: number) => number;

/** When each slot can be used, as far as is known. */
export interface Returns {
  /** Ms from now, ascending; 0 = now. */
  readonly inMs: Float64Array;
  /** How long a slot rests once its call has ended. */
  readonly occupiedMs: number;
  /** The same from the start of its call. */
  readonly awayMs: number;
}

/** What the ledger knows, with calls in flight taken to last `callMs`. */
export function returnsOf(forecast: Forecast, callMs: number): Returns {
  const { usableInMs, inFlightForMs, pausedForMs, occupiedMs } = forecast;
  const inMs = new Float64Array(usableInMs.length + inFlightForMs.length);
  for (const [index, ms] of usableInMs.entries()) inMs[index] = Math.max(ms, pausedForMs);
  for (const [index, forMs] of inFlightForMs.entries())
    inMs[usableInMs.length + index] = Math.max(Math.max(0, callMs - forMs) + occupiedMs, pausedForMs);
  return { inMs: inMs.sort(), occupiedMs, awayMs: occupiedMs + callMs };
}

/**
 * The wait of a newcomer behind `ahead` others. `dues` are the promises, ascending, as the ms from now by which each needs a call:
 * the newcomer gets call k only if at every later moment there are calls for those ahead, the promises due by then and the newcomer.
 */
export function waitBehindAll(times: SlotTimes, ahead: number, dues: readonly number[]): number {
  let due = dues.length;
  let k = ahead + due;
  for (; k > ahead; k -= 1) {
    const at = times(k);
    while (due > 0 && (dues[due - 1] ?? 0) >= at) due -= 1;
    if (k - ahead - due < 1) break;
  }
  return times(k);
}

/** The same where promises leave most calls to newcomers: what is due later than the newcomer is served need not be looked at. */
export function waitBehindDue(times: SlotTimes, ahead: number, dues: readonly number[]): number {
  let before = 0;
  while (before < dues.length && (dues[before] ?? 0) < times(ahead + before)) before += 1;
  return times(ahead + before);
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
