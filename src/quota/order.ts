/**
 * Who goes next: a lane that has not had its reserved share of the window before all others, then the more urgent lane, then who came
 * first. So no lane starves, and nothing idles for a share that nobody asks for. A fairer order inside a lane belongs here.
 */
import { type Lane, LANES } from "./quota.js";

/** The part of the budget that a lane gets even when every other lane asks for more. */
export const RESERVED_SHARES: Readonly<Record<Lane, number>> = {
  checkout: 10 / 57,
  exact: 0.25,
  search: 0.1,
  account: 0.05,
  refresh: 0.1,
};

/** What is left of each lane's share in the window that ends now; never negative. */
export type Owed = Readonly<Record<Lane, number>>;

/** Something for each lane. */
export function perLane<V>(of: (lane: Lane) => V): Record<Lane, V> {
  return {
    checkout: of("checkout"),
    exact: of("exact"),
    search: of("search"),
    account: of("account"),
    refresh: of("refresh"),
  };
}

/** The shares of a budget as whole calls, less what each lane was served in the last window. */
export function owedOf(budget: number, served: readonly { readonly lane: Lane }[]): Owed {
  const had = perLane(() => 0);
  for (const call of served) had[call.lane] += 1;
  return perLane((lane) => Math.max(0, Math.ceil(RESERVED_SHARES[lane] * budget - 1e-9) - had[lane]));
}

export interface Waiting {
  readonly lane: Lane;
  /** Smaller = came earlier. */
  readonly place: number;
}

/** Whether `a` goes before `b`. */
function precedes(a: Waiting, b: Waiting, owed: Owed): boolean {
  const aOwed = owed[a.lane] > 0;
  if (aOwed !== owed[b.lane] > 0) return aOwed;
  if (a.lane !== b.lane) return LANES.indexOf(a.lane) < LANES.indexOf(b.lane);
  return a.place < b.place;
}

/** Who gets the next slot. */
export function nextOf<W extends Waiting>(waiting: Iterable<W>, owed: Owed): W | undefined {
  let best: W | undefined;
  for (const one of waiting) if (best === undefined || precedes(one, best, owed)) best = one;
  return best;
}

/** How many of those queued now will be served before a newcomer to `lane`. */
export function aheadOf(lane: Lane, queued: Readonly<Record<Lane, number>>, owed: Owed): number {
  const mine = LANES.indexOf(lane);
  const withinShare = queued[lane] < owed[lane];
  let ahead = queued[lane];
  for (const [index, other] of LANES.entries()) {
    if (index < mine) ahead += withinShare ? Math.min(queued[other], owed[other]) : queued[other];
    if (index > mine && !withinShare) ahead += Math.min(queued[other], owed[other]);
  }
  return ahead;
}
