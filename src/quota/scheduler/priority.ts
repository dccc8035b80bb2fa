/**
 * Who goes next: a lane that has not had its reserved share of the window before all others, then the more urgent lane, then the network
 * and the client that had least of late. So no lane starves, nothing idles for a share that nobody asks for, and who asks much waits.
 */
import { type Lane, LANES } from "../quota.js";
import type { Usage } from "./fair-share.js";

/** The part of the slots that a lane gets even when every other lane asks for more. */
export const RESERVED_SHARES: Readonly<Record<Lane, number>> = {
  checkout: 10 / 57,
  exact: 0.25,
  search: 0.1,
  account: 0.05,
  refresh: 0.1,
  // Served when nobody else waits, and never before.
  suggestion: 0,
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
    suggestion: of("suggestion"),
  };
}

/** The shares of so many slots as whole calls, less what each lane was served in the last window. */
export function owedOf(slots: number, served: readonly { readonly lane: Lane }[]): Owed {
  const had = perLane(() => 0);
  for (const call of served) had[call.lane] += 1;
  return perLane((lane) => Math.max(0, Math.ceil(RESERVED_SHARES[lane] * slots - 1e-9) - had[lane]));
}

export interface Waiting {
  readonly lane: Lane;
  /** Came back to a kept place and has waited for half of its patience. */
  readonly first: boolean;
  readonly usage: Usage;
  /** Smaller = came earlier. */
  readonly place: number;
}

/** Whether `a` goes before `b`. */
function precedes(a: Waiting, b: Waiting, owed: Owed): boolean {
  if (a.lane === b.lane) return precedesInLane(a, b);
  const aOwed = owed[a.lane] > 0;
  if (aOwed !== owed[b.lane] > 0) return aOwed;
  return LANES.indexOf(a.lane) < LANES.indexOf(b.lane);
}

/** The same for two of one lane. */
export function precedesInLane(a: Waiting, b: Waiting): boolean {
  if (a.first !== b.first) return a.first;
  if (!a.first) {
    const { usage } = a;
    const other = b.usage;
    if (usage.network !== other.network) return usage.network < other.network;
    if (usage.client !== other.client) return usage.client < other.client;
  }
  return a.place < b.place;
}

/** Who gets the next slot. */
export function nextOf<W extends Waiting>(waiting: Iterable<W>, owed: Owed): W | undefined {
  let best: W | undefined;
  for (const one of waiting) if (best === undefined || precedes(one, best, owed)) best = one;
  return best;
}

/** How many of those who wait now will be served before a newcomer. */
export function aheadOf(newcomer: Waiting, waiting: Iterable<Waiting>, owed: Owed): number {
  const queued = perLane(() => 0);
  let own = 0;
  for (const one of waiting) {
    const { lane } = one;
    if (lane !== newcomer.lane) queued[lane] += 1;
    else if (precedesInLane(one, newcomer)) own += 1;
  }
  const mine = LANES.indexOf(newcomer.lane);
  const withinShare = own < owed[newcomer.lane];
  let ahead = own;
  for (const [index, other] of LANES.entries()) {
    if (index < mine) ahead += withinShare ? Math.min(queued[other], owed[other]) : queued[other];
    if (index > mine && !withinShare) ahead += Math.min(queued[other], owed[other]);
  }
  return ahead;
}
