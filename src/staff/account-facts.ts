/** What the pools of account data hold. */
import type { Balance, DomainList, DomainRecord } from "../upstream/contract.js";

/** The three kinds of account data, in one pool under separate keys. */
export type AccountFact =
  | { readonly kind: "domains"; readonly list: DomainList }
  | { readonly kind: "domain"; readonly record: DomainRecord | null }
  | { readonly kind: "balance"; readonly balance: Balance };
