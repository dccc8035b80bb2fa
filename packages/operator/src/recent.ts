/** What happened between two overviews, which count from startup. */
import type { Overview } from "./staff-api.js";

type Lane = keyof Overview["quota"]["lanes"];

export const LANES = [
  "checkout",
  "exact",
  "search",
  "account",
  "refresh",
  "suggestion",
] as const satisfies readonly Lane[];

type Lanes = { readonly quota: Pick<Overview["quota"], "lanes"> };

/** The mean wait of each lane's requests served since `before`, in ms; 0 if there were none. */
export function meanWaits(now: Lanes, before: Lanes): number[] {
  return LANES.map((lane) => {
    const [later, earlier] = [now.quota.lanes[lane], before.quota.lanes[lane]];
    const served = later.served - earlier.served;
    return served > 0 ? (later.waitedMsTotal - earlier.waitedMsTotal) / served : 0;
  });
}
