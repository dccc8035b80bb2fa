/** The six things that the upstream can be asked (its document, section 4). */
export const OPERATIONS = ["check", "quote", "domains", "domain", "balance", "tier"] as const;
export type Operation = (typeof OPERATIONS)[number];
