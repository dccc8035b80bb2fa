/** The purposes of calls. Browsers use this file too, so it imports nothing. */
export const LANES = ["checkout", "exact", "search", "account", "refresh", "suggestion"] as const;

export type Lane = (typeof LANES)[number];

/** Whether no visitor waits for it: for lanes, and for the kinds of requests with the same names. */
export function isBackground(of: string): of is "refresh" | "suggestion" {
  return of === "refresh" || of === "suggestion";
}

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
