/**
 * Refuses a name that nobody knows, without a promise or an abort signal of its own, where asking in full would end in the same refusal:
 * nothing about it is remembered, nobody is asking for it, and no other replica can know it.
 */
import type { DomainName } from "../domain-name.js";
import type { ServiceError } from "../errors.js";
import type { AvailabilityService } from "../storefront/availability.js";
import type { Upstream } from "../upstream/operations.js";
import type { ColdLimit } from "./cold-limit.js";
import { askerOf, clientOf } from "./edge/client.js";

export interface QuickRefusalParts {
  readonly isUnknown: AvailabilityService["isUnknown"];
  readonly upstream: Pick<Upstream, "refusal">;
  readonly cold: ColdLimit;
  readonly maxWaitMs: number;
}

/** The refusal of a visitor at this address who asks for a name; null where it must be asked in full. */
export type QuickRefusal = (address: string, name: DomainName, years: number) => ServiceError | null;

/** Nobody can leave while they are refused. */
const STAYS = new AbortController().signal;

export function quickRefusals({ isUnknown, upstream, cold, maxWaitMs }: QuickRefusalParts): QuickRefusal {
  return (address, name, years) => {
    if (!isUnknown(name, years)) return null;
    const client = clientOf(address);
    const asker = askerOf(address);
    const limited = cold.refusal(client, asker.client);
    if (limited !== null) return limited;
    const refusal = upstream.refusal({ lane: "exact", ...asker, maxWaitMs, signal: STAYS }, name, years);
    if (refusal !== null) cold.count(client);
    return refusal;
  };
}
