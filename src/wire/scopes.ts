/** What a staff token can allow. */
export const SCOPES = ["read", "operate", "order", "metrics"] as const;
export type Scope = (typeof SCOPES)[number];
