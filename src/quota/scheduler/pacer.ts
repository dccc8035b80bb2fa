/**
 * Decides when calls are made: some immediately while capacity is idle, the rest spread evenly until slots return, so that no part of a window is
 * without service. Decisions and predictions are based on the same times.
 */
import type { Returns } from "./forecast.js";

/** Decides how much idle capacity a burst of these calls may use: the most for urgent ones, the least for background work. */
export type Urgency = "urgent" | "visitor" | "background";

/**
 * A burst ends when the calls after it would be this many times further apart than even ones. 2.5 uses three fifths of an idle budget, and lets a
 * well-behaved visitor wait at most 2.5 / slots of a window.
 */
const BURST: Readonly<Record<Urgency, number>> = { urgent: 7, visitor: 2.5, background: 2 };

/** A smaller budget isn't spread: even calls would be more than 5 % of a window apart, and a burst is worth more. */
const MIN_PACED_BUDGET = 20;

/**
 * If few slots are usable, as after a cold start, and spreading would put calls further apart than this part of a window, they are made immediately
 * instead.
 */
const MAX_SPACING = 0.25;

/**
 * Exactly even calls would wait for every slot that returns slightly late and never catch up, which costs a twentieth of the budget. So calls may
 * follow each other somewhat faster than that, and use free slots somewhat before others return.
 */
const FASTEST = 0.7;
const SOONER = 0.9;

/** How much lateness of a timer is made up for, as a part of the window. If calls are a millisecond apart, every timer is late. */
const CATCH_UP = 1 / 6000;

/** The plan of a large budget samples this many of its slots, evenly spaced. */
const MAX_SAMPLES = 128;

/** The times of the next calls of one urgency; monotonic. */
export interface Plan {
  /** When the n-th call from now can be made, counted from 0. */
  timeAt(n: number): number;
  /** How many calls can be made until then. */
  callsUntil(at: number): number;
  /** The time between the next calls. */
  readonly spacingMs: number;
}

export class Pacer {
  /** Whether calls are spread; otherwise each is made as soon as a slot is free. */
  readonly spreads: boolean;
  readonly #windowMs: number;
  #wentAt = -Infinity;
  /** Unused idle time, at most one window. Each call that is wanted spends the time between two even ones. */
  #creditMs: number;
  #creditAt = 0;
  #awaitedUntilAt = 0;

  constructor(budget: number, windowMs: number) {
    this.#windowMs = windowMs;
    this.spreads = budget >= MIN_PACED_BUDGET;
    this.#creditMs = windowMs;
  }

  /** Records a call on one of `slots`, planned `spacingMs` after the last one. */
  went(now: number, slots: number, spacingMs: number): void {
    const dueAt = Math.min(now, this.#wentAt + spacingMs);
    this.#wentAt = Math.max(dueAt, now - CATCH_UP * this.#windowMs);
    this.wanted(now, slots);
  }

  /**
   * Records that a visitor wanted a call, even if none was possible: slots that return together after an outage aren't used in one burst, because
   * they would only return together again.
   */
  wanted(now: number, slots: number): void {
    this.#earn(now);
    this.#creditMs = Math.max(0, this.#creditMs - this.#windowMs / slots);
  }

  /**
   * Call on every change, with the time until which visitors wait or are expected to return. Credit grows only while there are none, so that a
   * steady overload leads to even calls instead of one burst per window.
   */
  awaited(now: number, untilAt: number): void {
    this.#earn(now);
    this.#awaitedUntilAt = untilAt;
  }

  /** The plan of the next calls, by urgency. */
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

  #earn(now: number): void {
    const idleMs = Math.max(0, now - Math.max(this.#creditAt, this.#awaitedUntilAt));
    this.#creditMs = Math.min(this.#windowMs, this.#creditMs + idleMs);
    this.#creditAt = now;
  }

  #plan(returns: Returns, urgency: Urgency, now: number): Plan {
    const { slots } = returns;
    // A replica that has just joined others doesn't know any slot yet: it requests one but promises none.
    if (slots === 0) return { timeAt: () => now, callsUntil: () => 0, spacingMs: 0 };
    if (!this.spreads) return asSlotsReturn(returns, now);
    const samples = sampled(returns);
    const lastMs = Math.max(this.#wentAt - now, -this.#windowMs);
    const credit = Math.floor((this.#creditMs * slots) / this.#windowMs + 1e-9);
    const widestMs = MAX_SPACING * this.#windowMs;
    const first = next(returns, samples, lastMs, { times: BURST[urgency], credit, widestMs });
    return spread(returns, samples, first, now);
  }
}

/** The plan in which calls are made as soon as slots return. */
export function asSlotsReturn({ slots, inMs, awayMs }: Returns, now: number): Plan {
  return planned(
    (n) => now + inMs(n % slots) + Math.floor(n / slots) * awayMs,
    (ms) => slots * (2 + Math.ceil(ms / awayMs)),
    now,
    0,
  );
}

/** The plan whose n-th call is made at `timeAt(n)`, with fewer than `bound(ms)` calls within `ms`. */
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

/** One of the slots, and in how many ms it can be used. */
interface Sample {
  readonly slot: number;
  readonly inMs: number;
}

function sampled({ slots, inMs }: Returns): readonly Sample[] {
  const stride = Math.ceil(slots / MAX_SAMPLES);
  const samples: Sample[] = [];
  for (let slot = 0; slot < slots - 1; slot += stride) samples.push({ slot, inMs: inMs(slot) });
  samples.push({ slot: slots - 1, inMs: inMs(slots - 1) });
  return samples;
}

interface Burst {
  readonly times: number;
  readonly credit: number;
  readonly widestMs: number;
}

/** In how many ms the next call may be made, how many together with it, and how far apart the ones after it are. */
interface Next {
  readonly inMs: number;
  readonly calls: number;
  readonly spacingMs: number;
}

/**
 * Even calls, or slower ones if the free slots must last until others return. While there is credit, calls are made sooner, as long as the calls
 * after them are no further apart than the burst allows.
 */
function next(
  { slots, occupiedMs, inMs }: Returns,
  samples: readonly Sample[],
  lastMs: number,
  burst: Burst,
): Next {
  const evenMs = occupiedMs / slots;
  const burstMs = burst.times * evenMs;
  let spacingMs = FASTEST * evenMs;
  let burstInMs = 0;
  let calls = slots + 1 - slots / burst.times;
  let free = slots;
  for (let index = samples.length - 1; index >= 0; index -= 1) {
    const sample = samples[index];
    if (sample === undefined || sample.inMs <= 0) break;
    spacingMs = Math.max(spacingMs, (SOONER * (sample.inMs - lastMs)) / (sample.slot + 1));
    free = sample.slot;
    burstInMs = Math.max(burstInMs, sample.inMs - sample.slot * burstMs);
    calls = Math.min(calls, sample.slot + 1 - sample.inMs / burstMs);
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

/** The times from `first` on: along the least concave majorant of the slots' return times, and never faster than even calls. */
function spread(returns: Returns, samples: readonly Sample[], first: Next, now: number): Plan {
  const { slots, occupiedMs, awayMs } = returns;
  const evenMs = occupiedMs / slots;
  const [start, ...rest] = curve(samples, first, returns);
  let last = start;
  const corners = rest.map(({ call, inMs }) => {
    last = { call, inMs: Math.max(inMs, last.inMs + (call - last.call) * evenMs) };
    return last;
  });
  const timeAt = (n: number): number => {
    const wanted = n + 1;
    if (wanted <= start.call) return now + start.inMs;
    let from = start;
    for (const to of corners) {
      if (wanted <= to.call)
        return now + from.inMs + ((wanted - from.call) / (to.call - from.call)) * (to.inMs - from.inMs);
      from = to;
    }
    return now + from.inMs + ((wanted - from.call) * awayMs) / slots;
  };
  return planned(timeAt, (ms) => start.call + Math.ceil(ms / evenMs) + 2, now, first.spacingMs);
}

/** The n-th call, counted from 1, and in how many ms it can be made. */
interface Corner {
  readonly call: number;
  readonly inMs: number;
}

/** The corners of the least concave majorant from the first calls over all later ones. */
function curve(samples: readonly Sample[], first: Next, { slots, awayMs }: Returns): [Corner, ...Corner[]] {
  const corners: [Corner, ...Corner[]] = [{ call: first.calls, inMs: first.inMs }];
  const add = (call: number, inMs: number): void => {
    for (;;) {
      const last = corners.at(-1);
      const before = corners.at(-2);
      if (last === undefined || before === undefined) break;
      const isUnder =
        (last.inMs - before.inMs) * (call - last.call) <= (inMs - last.inMs) * (last.call - before.call);
      if (!isUnder) break;
      corners.pop();
    }
    corners.push({ call, inMs });
  };
  for (const { slot, inMs } of samples) if (slot + 1 > first.calls) add(slot + 1, inMs);
  add(slots + 1, first.inMs + awayMs);
  return corners;
}
