/** One ask for everyone who waits for the same answer: always as urgent as the most urgent of those who currently wait. */
import { type Lane, LANES } from "./lane.js";
import type { Ask } from "./quota.js";

/** Those who wait for the same answer. */
interface Together {
  readonly askers: ReadonlySet<Ask>;
  /** Aborted when the last of them has left. */
  readonly signal: AbortSignal;
  /** How much of its patience the leader had used up before. */
  readonly waitedMs: number;
}

/** The leader's ask while it waits; after that it is on behalf of the first who remains. */
export function sharedAsk({ askers, signal, waitedMs }: Together, leader: Ask): Ask {
  const payer = (): Ask => {
    if (askers.has(leader)) return leader;
    const [first = leader] = askers;
    return first;
  };
  return {
    get lane(): Lane {
      const lanes = new Set([...askers].map(({ lane }) => lane));
      return LANES.find((lane) => lanes.has(lane)) ?? leader.lane;
    },
    get client() {
      return payer().client;
    },
    get network() {
      return payer().network;
    },
    maxWaitMs: Math.max(0, leader.maxWaitMs - waitedMs),
    signal,
  };
}
