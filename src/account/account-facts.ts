/** What the pools of account data hold, and how it is read back from where replicas share it. */
import { z } from "zod";
import type { Balance, DomainRecord, Tier } from "../upstream/contract.js";

/** The three kinds of account data, in one pool under separate keys. */
export type AccountFact =
  | { readonly kind: "domains"; readonly records: readonly DomainRecord[] }
  | { readonly kind: "domain"; readonly record: DomainRecord | null }
  | { readonly kind: "balance"; readonly balance: Balance };

const text = z.string();
const record = z.strictObject({
  domain: text,
  status: text.nullable(),
  registeredAt: text.nullable(),
  expiresAt: text.nullable(),
  autoRenew: z.boolean().nullable(),
  nameservers: z.array(text),
});
const amount = text.regex(/^-?\d{1,15}\.\d{2}$/);
const count = z.int().min(0);
const storedFact = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("domains"), records: z.array(record) }),
  z.strictObject({ kind: z.literal("domain"), record: record.nullable() }),
  z.strictObject({
    kind: z.literal("balance"),
    balance: z.strictObject({
      accountNumber: text,
      balance: amount,
      currency: text.regex(/^[A-Z]{3}$/),
      creditLimit: amount,
      activeDomains: count,
    }),
  }),
]);
const storedTier = z.strictObject({
  currentTier: text.min(1),
  nextTier: text.nullable(),
  domainsNeeded: count.nullable(),
});

/** A fact of the account pool that was saved as JSON under the key, or undefined if it isn't one. */
export function decodeStoredFact(data: unknown, key: string): AccountFact | undefined {
  const fact = storedFact.safeParse(data).data;
  const [kind, name] = key.split(" ");
  const isOfKey =
    fact?.kind === kind && (fact?.kind !== "domain" || [name, undefined].includes(fact.record?.domain));
  return isOfKey ? fact : undefined;
}

/** A tier that was saved as JSON, or undefined if it isn't one. */
export const decodeStoredTier = (data: unknown): Tier | undefined => storedTier.safeParse(data).data;
