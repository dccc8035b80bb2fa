/**
 * When calls go: some at once while capacity lies idle, the rest spread evenly until slots return, so that no part of a window is without
 * service. What may go now and what is foretold for later come from the same times.
 */
import type { Returns } from "./forecast.js";

/** Carts and reservations may use up idle capacity further than visitors, and background work may least. */
export type Urgency = "urgent" | "visitor" | "background";

/**
 * How far idle capacity may be used up at once: until the calls after it are this many times further apart than even ones. 2.5 takes three
 * fifths of an idle budget and leaves an honest visitor a wait of at most 2.5 / slots of a window.
 */
const BURST: Readonly<Record<Urgency, number>> = { urgent: 7, visitor: 2.5, background: 2 };

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

/** A timer that was late by up to this part of a window is made up for: where calls are a millisecond apart, all of them are. */
const CATCH_UP = 1 / 6000;

/** The plan of a large budget looks at so many of its slots, evenly chosen. */
const MOST_SAMPLES = 128;

/** The next calls of one urgency, as monotonic times. */
export interface Plan {
  /** When the n-th call from now can go, from 0 on. */
  timeAt(n: number): number;
  /** How many calls can go until then. */
  callsUntil(at: number): number;
  /** How far apart the next calls are. */
  readonly spacingMs: number;
}

export class Pacer {
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

  /** One of `slots` was used, `spacingMs` after the last one by the plan. */
  went(now: number, slots: number, spacingMs: number): void {
    const dueAt = Math.min(now, this.#wentAt + spacingMs);
    this.#wentAt = Math.max(dueAt, now - CATCH_UP * this.#windowMs);
    this.#creditMs = Math.max(0, this.#creditMs - this.#windowMs / slots);
  }

  /**
   * Called at every change with the time until which visitors wait or are expected back. Credit grows only while none is, so that a steady
   * overload ends in even calls instead of a burst a window.
   */
  awaited(now: number, untilAt: number): void {
    const idleMs = Math.max(0, now - Math.max(this.#creditAt, this.#awaitedUntilAt));
    this.#creditMs = Math.min(this.#windowMs, this.#creditMs + idleMs);
    this.#creditAt = now;
    this.#awaitedUntilAt = untilAt;
  }

  /** When the next calls can go, by their urgency. */
  plan(returns: Returns, now: number): (urgency: Urgency) => Plan {
    const plans = new Map<Urgency, Plan>();
    return (urgency) => {
      const known = plans.get(urgency);
      if (known !== undefined) return known;
      const plan = this.#plan(returns, urgency, now);
      plans.set(urgency, plan);
      return plan;
    };
  }

  #plan(returns: Returns, urgency: Urgency, now: number): Plan {
    const { slots } = returns;
    // A replica that has just joined others knows of no slot yet: it asks for one, and promises none.
    if (slots === 0) return { timeAt: () => now, callsUntil: () => 0, spacingMs: 0 };
    if (!this.spreads) return asSlotsReturn(returns, now);
    const samples = sampled(returns);
    const lastMs = Math.max(this.#wentAt - now, -this.#windowMs);
    const credit = Math.floor((this.#creditMs * slots) / this.#windowMs + 1e-9);
    const widestMs = WIDEST_SPACING * this.#windowMs;
    const first = next(returns, samples, lastMs, { times: BURST[urgency], credit, widestMs });
    return spread(returns, samples, first, now);
  }
}

/** The plan in which calls go as soon as there are slots. */
export function asSlotsReturn({ slots, inMs, awayMs }: Returns, now: number): Plan {
  return planned(
    (n) => now + inMs(n % slots) + Math.floor(n / slots) * awayMs,
    (ms) => slots * (2 + Math.ceil(ms / awayMs)),
    now,
    0,
  );
}

/** The plan whose n-th call goes at `timeAt(n)`, and which has fewer than `bound(ms)` calls within so many ms. */
function planned(
  timeAt: (n: number) => number,
  bound: (ms: number) => number,
  now: number,
  spacingMs: number,
): Plan {
  return {
    timeAt,
    spacingMs,
    callsUntil(at) {
      let low = 0;
      let high = bound(Math.max(0, at - now));
      while (low < high) {
        const middle = (low + high) >> 1;
        if (timeAt(middle) <= at) low = middle + 1;
        else high = middle;
      }
      return low;
    },
  };
}

/** Slots by number, and the ms until each can be used. */
type Samples = readonly (readonly [slot: number, inMs: number])[];

function sampled({ slots, inMs }: Returns): Samples {
  const stride = Math.ceil(slots / MOST_SAMPLES);
  const samples: [number, number][] = [];
  for (let slot = 0; slot < slots - 1; slot += stride) samples.push([slot, inMs(slot)]);
  samples.push([slots - 1, inMs(slots - 1)]);
  return samples;
}

interface Burst {
  readonly times: number;
  readonly credit: number;
  readonly widestMs: number;
}

/** In how many ms the next call may go, how many together with it, and how far apart the next ones are. */
interface Next {
  readonly inMs: number;
  readonly calls: number;
  readonly spacingMs: number;
}

/**
 * Even calls, or slower ones where free slots must last until others return; sooner while there is credit, as long as the calls after it
 * are no further apart than the burst allows.
 */
function next({ slots, occupiedMs, inMs }: Returns, samples: Samples, lastMs: number, burst: Burst): Next {
  const evenMs = occupiedMs / slots;
  const burstMs = burst.times * evenMs;
  let spacingMs = FASTEST * evenMs;
  let burstInMs = 0;
  let calls = slots + 1 - slots / burst.times;
  let free = slots;
  for (let index = samples.length - 1; index >= 0; index -= 1) {
    const [slot = 0, returnsIn = 0] = samples[index] ?? [];
    if (returnsIn <= 0) break;
    spacingMs = Math.max(spacingMs, (SOONER * (returnsIn - lastMs)) / (slot + 1));
    free = slot;
    burstInMs = Math.max(burstInMs, returnsIn - slot * burstMs);
    calls = Math.min(calls, slot + 1 - returnsIn / burstMs);
  }
  const soonestMs = inMs(0);
  if (spacingMs > burst.widestMs) return { inMs: soonestMs, calls: Math.max(1, free), spacingMs: 0 };
  const spreadInMs = Math.max(soonestMs, lastMs + spacingMs);
  if (burst.credit < 1) return { inMs: spreadInMs, calls: 1, spacingMs };
  return {
    inMs: Math.max(soonestMs, Math.min(spreadInMs, burstInMs)),
    calls: Math.max(1, Math.min(burst.credit, free, Math.floor(calls + 1e-9))),
    spacingMs,
  };
}

/** The times from `first` on: along the least concave curve over the returns of the slots, and never faster than even calls. */
function spread(returns: Returns, samples: Samples, first: Next, now: number): Plan {
  const { slots, occupiedMs, awayMs } = returns;
  const evenMs = occupiedMs / slots;
  const [start, ...rest] = curve(samples, first, returns);
  const corners: [call: number, inMs: number][] = [start];
  let [call, inMs] = start;
  for (const [nextCall, nextInMs] of rest) {
    inMs = Math.max(nextInMs, inMs + (nextCall - call) * evenMs);
    call = nextCall;
    corners.push([call, inMs]);
  }
  const timeAt = (n: number): number => {
    const wanted = n + 1;
    if (wanted <= start[0]) return now + start[1];
    let [fromCall, fromInMs] = start;
    for (const [toCall, toInMs] of corners) {
      if (wanted <= toCall)
        return now + fromInMs + ((wanted - fromCall) / (toCall - fromCall)) * (toInMs - fromInMs);
      fromCall = toCall;
      fromInMs = toInMs;
    }
    return now + fromInMs + ((wanted - fromCall) * awayMs) / slots;
  };
  return planned(timeAt, (ms) => start[0] + Math.ceil(ms / evenMs) + 2, now, first.spacingMs);
}

type Corner = [call: number, inMs: number];

/** The corners of the least concave curve from the first calls over all later ones, as call number (from 1) and ms. */
function curve(samples: Samples, first: Next, { slots, awayMs }: Returns): [Corner, ...Corner[]] {
  const corners: [Corner, ...Corner[]] = [[first.calls, first.inMs]];
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
  for (const [slot, inMs] of samples) if (slot + 1 > first.calls) add(slot + 1, inMs);
  add(slots + 1, first.inMs + awayMs);
  return corners;
}
