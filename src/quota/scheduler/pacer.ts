/**
 * When calls go: some at once while capacity lies idle, the rest spread evenly until slots return, so that no part of a window is without
 * service. What may go now and what is foretold for later come from the same times.
 */
import type { Returns, SlotTimes } from "./forecast.js";
import type { Lane } from "../quota.js";

/**
 * How far a lane may dig at once: until the calls after it are this many times further apart than even ones. 2.5 takes three fifths of an
 * idle budget and leaves an honest visitor a wait of at most 2.5 / slots of a window. Checkout digs deepest, background work least.
 */
const BURST: Readonly<Record<Lane, number>> = {
  checkout: 7,
  exact: 2.5,
  search: 2.5,
  account: 2.5,
  refresh: 2,
  suggestion: 2,
};

/** A smaller budget is not spread: even calls would be more than 5 % of a window apart, and a burst is worth more. */
const LEAST_SPREAD = 20;

/** Where little is usable, as after a cold start, and spreading would put calls further apart than this part of a window, nobody waits for them: they go at once. */
const WIDEST_SPACING = 0.25;

/**
 * Calls that are spread exactly evenly wait behind every slot that returns a little late and never catch up, which costs a twentieth of
 * the budget. So they may follow one another somewhat faster than evenly, and use up what is free somewhat sooner than more returns.
 */
const FASTEST = 0.7;
const SOONER = 0.9;

export class Pace {
  /** Whether calls are spread; else each goes as soon as there is a slot. */
  readonly spreads: boolean;
  readonly #windowMs: number;
  #wentAt = -Infinity;
  /** Idle time that was not used yet: one call of a burst spends the time between two even calls. At most one window. */
  #creditMs: number;
  #creditAt = 0;
  #awaitedUntilAt = 0;

  constructor(budget: number, windowMs: number) {
    this.#windowMs = windowMs;
    this.spreads = budget >= LEAST_SPREAD;
    this.#creditMs = windowMs;
  }

  /** One of `slots` was used. */
  went(now: number, slots: number): void {
    this.#wentAt = now;
    this.#creditMs = Math.max(0, this.#creditMs - this.#windowMs / slots);
  }

  /**
   * Told at every change until when visitors wait or are expected back. Credit grows only while none is, so that a steady overload ends
   * in even calls instead of a burst a window.
   */
  awaited(now: number, untilAt: number): void {
    const idleMs = Math.max(0, now - Math.max(this.#creditAt, this.#awaitedUntilAt));
    this.#creditMs = Math.min(this.#windowMs, this.#creditMs + idleMs);
    this.#creditAt = now;
    this.#awaitedUntilAt = untilAt;
  }

  /** When the next calls can go, as seen by each lane. */
  plan(returns: Returns, now: number): (lane: Lane) => SlotTimes {
    const slots = returns.inMs.length;
    if (!this.spreads || slots === 0) {
      const times = asSlotsReturn(returns);
      return () => times;
    }
    const lastMs = Math.max(this.#wentAt - now, -this.#windowMs);
    const credit = Math.floor((this.#creditMs * slots) / this.#windowMs + 1e-9);
    const widestMs = WIDEST_SPACING * this.#windowMs;
    const plans = new Map<number, SlotTimes>();
    return (lane) => {
      const burst = { times: BURST[lane], credit, widestMs };
      const times = plans.get(burst.times) ?? spread(returns, next(returns, lastMs, burst));
      plans.set(burst.times, times);
      return times;
    };
  }
}

function asSlotsReturn({ inMs, awayMs }: Returns): SlotTimes {
  return (n) => (inMs[n % inMs.length] ?? Infinity) + Math.floor(n / inMs.length) * awayMs;
}

interface Burst {
  readonly times: number;
  readonly credit: number;
  readonly widestMs: number;
}

/** In how many ms the next call may go, and how many together with it. */
interface Next {
  readonly inMs: number;
  readonly calls: number;
}

/**
 * Even calls, or slower ones where free slots must last until others return; sooner while there is credit, as long as the calls after it
 * are no further apart than the burst allows.
 */
function next({ inMs, occupiedMs }: Returns, lastMs: number, burst: Burst): Next {
  const slots = inMs.length;
  const evenMs = occupiedMs / slots;
  const burstMs = burst.times * evenMs;
  let spacingMs = FASTEST * evenMs;
  let burstInMs = 0;
  let calls = slots + 1 - slots / burst.times;
  let free = slots;
  for (let i = slots - 1; i >= 0; i -= 1) {
    const returnsIn = inMs[i] ?? 0;
    spacingMs = Math.max(spacingMs, (SOONER * (returnsIn - lastMs)) / (i + 1));
    if (returnsIn <= 0) continue;
    free = i;
    burstInMs = Math.max(burstInMs, returnsIn - i * burstMs);
    calls = Math.min(calls, i + 1 - returnsIn / burstMs);
  }
  if (spacingMs > burst.widestMs) return { inMs: inMs[0] ?? 0, calls: Math.max(1, free) };
  const spreadInMs = Math.max(0, lastMs + spacingMs);
  if (burst.credit < 1) return { inMs: spreadInMs, calls: 1 };
  return {
    inMs: Math.min(spreadInMs, burstInMs),
    calls: Math.max(1, Math.min(burst.credit, free, Math.floor(calls + 1e-9))),
  };
}

/** The times from `first` on: along the least concave curve over the returns of the slots, and never faster than even calls. */
function spread({ inMs, occupiedMs, awayMs }: Returns, first: Next): SlotTimes {
  const slots = inMs.length;
  const evenMs = occupiedMs / slots;
  const times: number[] = Array.from({ length: first.calls }, () => first.inMs);
  const extend = (until: number): void => {
    if (times.length < slots) {
      for (const [call, at] of curve(inMs, first, awayMs))
        while (times.length <= call - 1) {
          const before = times.at(-1) ?? first.inMs;
          const left = call - times.length;
          times.push(before + Math.max(evenMs, (at - before) / left));
        }
    }
    while (times.length <= until)
      times.push(Math.max((times.at(-1) ?? 0) + evenMs, (times[times.length - slots] ?? 0) + awayMs));
  };
  return (n) => {
    // From the second round on the times repeat.
    const rounds = Math.max(0, Math.floor(n / slots) - 1);
    const call = n - rounds * slots;
    if (call >= times.length) extend(call);
    return (times[call] ?? Infinity) + rounds * awayMs;
  };
}

/** The corners of the least concave curve from the first calls over all later ones, as call number (from 1) and ms. */
function curve(inMs: Float64Array, first: Next, awayMs: number): [number, number][] {
  const corners: [number, number][] = [[first.calls, first.inMs]];
  const add = (call: number, at: number): void => {
    for (;;) {
      const [lastCall, lastAt] = corners.at(-1) ?? [0, 0];
      const [beforeCall, beforeAt] = corners.at(-2) ?? [0, 0];
      const under =
        corners.length > 1 &&
        (lastAt - beforeAt) * (call - lastCall) <= (at - lastAt) * (lastCall - beforeCall);
      if (!under) break;
      corners.pop();
    }
    corners.push([call, at]);
  };
  for (let call = first.calls + 1; call <= inMs.length; call += 1) add(call, inMs[call - 1] ?? 0);
  add(inMs.length + 1, first.inMs + awayMs);
  return corners.slice(1);
}
