/** What a staff token can allow. */
export const SCOPES = ["read", "operate", "metrics"] as const;
export type Scope = (typeof SCOPES)[number];
