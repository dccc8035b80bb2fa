/**
 * Decides when calls are made, and predicts it from the same times: a burst may use three fifths of an idle budget, and the rest is spread until
 * slots return, so that the next call is never far.
 */
import type { Ledger } from "./ledger.js";

/** Decides how much of an idle budget a burst of these calls may use. */
export type Urgency = "urgent" | "visitor" | "background";

/** A burst ends when the calls after it would be this many times further apart than even ones; 2.5 uses three fifths of the budget. */
const STRETCH: Readonly<Record<Urgency, number>> = { urgent: 7, visitor: 2.5, background: 2 };

/** A smaller budget isn't spread: even calls would be more than 5 % of a window apart, and a burst is worth more. */
const MIN_PACED_BUDGET = 20;
/** If spreading would put calls further apart than this part of a window, as after a cold start, each is made as soon as a slot is free. */
const MAX_SPACING = 0.25;
/**
 * Exactly even calls would wait for every slot that returns slightly late and never catch up, which costs a twentieth of the budget. So calls may
 * follow each other somewhat faster, and use free slots somewhat before others return.
 */
const FASTEST = 0.7;
const SOONER = 0.9;
/** How much lateness of a timer is made up for, as a part of the window. */
const CATCH_UP = 1 / 6000;
/** The plan of a large budget looks at this many of its slots, evenly spaced. */
const SAMPLES = 128;

export function isPaced(budget: number): boolean {
  return budget >= MIN_PACED_BUDGET;
}

/** The times of the next calls of one urgency; monotonic. */
export interface Plan {
  /** When the n-th call from now can be made, counted from 0. */
  at(n: number): number;
  /** How many calls can be made until then. */
  callsUntil(at: number): number;
  readonly spacingMs: number;
}

export class Pace {
  readonly #ledger: Ledger;
  #lastAt = -Infinity;
  /** Calls that a burst may still make: at most a window's, earned while nobody waits. */
  #credit: number;
  #creditAt = 0;
  #awaitedUntilAt = -Infinity;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    this.#credit = ledger.budget;
  }

  /** Records a call that was planned `spacingMs` after the last one. */
  went(now: number, spacingMs: number): void {
    const dueAt = Math.min(now, this.#lastAt + spacingMs);
    this.#lastAt = Math.max(dueAt, now - CATCH_UP * this.#ledger.windowMs);
    this.wanted(now);
  }

  /** Records that a visitor wanted a call, even if none was possible: slots that return together must not be used together again. */
  wanted(now: number): void {
    this.#earn(now);
    this.#credit = Math.max(0, this.#credit - 1);
  }

  /** Visitors wait, or are expected back, until then. Credit grows only afterwards, so a steady overload isn't served in bursts. */
  awaited(now: number, untilAt: number): void {
    this.#earn(now);
    this.#awaitedUntilAt = untilAt;
  }

  plan(urgency: Urgency, now: number): Plan {
    const { budget, windowMs, awayMs } = this.#ledger;
    // The clock may advance during the calculation, so `now` is read only once.
    const freeAt = (n: number): number =>
      Math.max(now, this.#ledger.freeAt(n % budget)) + Math.floor(n / budget) * awayMs;
    if (!isPaced(budget)) return planOf(freeAt, 0);

    const even = awayMs / budget;
    const stretched = STRETCH[urgency] * even;
    const lastAt = Math.max(this.#lastAt, now - windowMs);
    const resting = this.#samples().filter(([, at]) => at > now);
    // The slot before which the free ones must last longest.
    let knee = budget - 1;
    let spacingMs = FASTEST * even;
    let burst = budget;
    for (const [slot, at] of resting) {
      const needed = (SOONER * (at - lastAt)) / (slot + 1);
      if (needed > spacingMs) [spacingMs, knee] = [needed, slot];
      burst = Math.min(burst, slot + 1 - (at - now) / stretched);
    }
    if (spacingMs > MAX_SPACING * windowMs) return planOf(freeAt, 0);
    this.#earn(now);
    const together = Math.floor(Math.min(burst, this.#credit) + 1e-9);
    if (together >= 1) {
      // What is left after the burst is spread.
      spacingMs = FASTEST * even;
      for (const [slot, at] of resting)
        if (slot >= together) spacingMs = Math.max(spacingMs, (at - now) / (slot + 1 - together));
    }
    const first = together >= 1 ? now : Math.max(freeAt(0), lastAt + spacingMs);
    const steadily = Math.max(spacingMs, even);
    const at = (n: number): number => {
      if (n < together) return Math.max(first, freeAt(n));
      const steps = n - Math.max(0, together - 1);
      const toKnee = Math.min(steps, Math.max(0, knee - Math.max(0, together - 1)));
      return Math.max(freeAt(n), first + toKnee * steadily + (steps - toKnee) * even);
    };
    return planOf(at, spacingMs);
  }

  #samples(): readonly (readonly [slot: number, at: number])[] {
    const { budget } = this.#ledger;
    const stride = Math.ceil(budget / SAMPLES);
    const slots = Array.from({ length: Math.ceil(budget / stride) }, (_, n) => n * stride);
    return [...slots.filter((slot) => slot < budget - 1), budget - 1].map(
      (slot) => [slot, this.#ledger.freeAt(slot)] as const,
    );
  }

  #earn(now: number): void {
    const { budget, windowMs } = this.#ledger;
    const idleMs = Math.max(0, now - Math.max(this.#creditAt, this.#awaitedUntilAt));
    this.#credit = Math.min(budget, this.#credit + (idleMs * budget) / windowMs);
    this.#creditAt = now;
  }
}

function planOf(at: (n: number) => number, spacingMs: number): Plan {
  return {
    at,
    spacingMs,
    callsUntil(until) {
      let most = 1;
      while (at(most - 1) <= until) most *= 2;
      // The first call that comes too late has an index from `least` to `most - 1`.
      let least = Math.floor(most / 2);
      most -= 1;
      while (least < most) {
        const middle = (least + most) >> 1;
        if (at(middle) <= until) least = middle + 1;
        else most = middle;
      }
      return least;
    },
  };
}
