/** One ask on behalf of all who wait for the same answer: as urgent as the most urgent of them, whoever joins or leaves meanwhile. */
import { type Ask, type Lane, LANES } from "./quota.js";

export function sharedAsk(askers: ReadonlySet<Ask>, leader: Ask, signal: AbortSignal): Ask {
  return {
    get lane(): Lane {
      const lanes = new Set([...askers].map(({ lane }) => lane));
      return LANES.find((lane) => lanes.has(lane)) ?? leader.lane;
    },
    client: leader.client,
    maxWaitMs: leader.maxWaitMs,
    signal,
  };
}
