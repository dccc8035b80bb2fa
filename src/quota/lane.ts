/** The purposes of calls. Browsers use this file too, so it imports nothing. */
export const LANES = ["checkout", "exact", "search", "account", "refresh", "suggestion"] as const;

export type Lane = (typeof LANES)[number];

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
