/**
 * When the next calls can be made: a burst may use three fifths of an idle budget, and the rest is spread until slots return, so that the next call is
 * never far.
 */
import type { SlotTable } from "./slot-table.js";

/** A burst ends when the calls after it would be this many times further apart than even ones; 2.5 uses three fifths of the budget. */
export const BURST = { none: 0, visitor: 2.5, urgent: 7 } as const;

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
/** The plan of a large budget looks at this many of its slots, evenly spaced. */
const SAMPLES = 128;

export function isPaced({ budget }: Pick<SlotTable, "budget">): boolean {
  return budget >= MIN_PACED_BUDGET;
}

/** When the n-th call from now can be made, counted from 0. Never decreases with n. */
export type Plan = (n: number) => number;

/** `lastAt`: when the last call was made; `burst`: how far apart the calls after a burst may be, as a multiple of even ones. */
export function planOf(table: SlotTable, now: number, lastAt: number, burst: number): Plan {
  const { budget, windowMs, awayMs } = table;
  const freeAt = (n: number): number =>
    Math.max(now, table.freeAt(n % budget)) + Math.floor(n / budget) * awayMs;
  if (!isPaced(table)) return freeAt;
  const even = awayMs / budget;
  const since = Math.max(lastAt, now - windowMs);
  let spacing = FASTEST * even;
  /** The slot before which the free ones must last longest. */
  let knee = 0;
  let together = burst === 0 ? 0 : budget;
  const stride = Math.ceil(budget / SAMPLES);
  for (let slot = stride - 1; slot < budget; slot += stride) {
    const at = table.freeAt(slot);
    if (at <= now) continue;
    const needed = (SOONER * (at - since)) / (slot + 1);
    if (needed > spacing) [spacing, knee] = [needed, slot];
    if (burst > 0) together = Math.min(together, slot + 1 - (at - now) / (burst * even));
  }
  if (spacing > MAX_SPACING * windowMs) return freeAt;
  const atOnce = Math.max(0, Math.floor(together + 1e-9));
  const first = atOnce > 0 ? now : Math.max(freeAt(0), since + spacing);
  const steadily = Math.max(spacing, even);
  return (n) => {
    const steps = Math.max(0, n - Math.max(0, atOnce - 1));
    const toKnee = Math.min(steps, Math.max(0, knee - atOnce + 1));
    return Math.max(freeAt(n), first + toKnee * steadily + (steps - toKnee) * even);
  };
}
