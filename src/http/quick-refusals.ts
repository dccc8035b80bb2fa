/**
 * Refuses a lookup synchronously if the full lookup would end in the same refusal: memory has nothing about the name, no request for it is
 * in flight, and no other replica can be asked.
 */
import type { Clock } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { ServiceError } from "../errors.js";
import type { Shop } from "../storefront/shop.js";
import type { Upstream } from "../upstream/operations.js";
import type { ColdLimit } from "./edge/cold-limit.js";
import { askerOf, clientOf } from "./edge/client.js";

interface QuickRefusalParts {
  readonly shop: () => Shop;
  readonly upstream: Pick<Upstream, "refusal">;
  readonly cold: ColdLimit;
  readonly maxWaitMs: number;
  readonly clock: Clock;
}

/** The refusal for a visitor at this address, or null if the full lookup must decide. */
export type QuickRefusal = (address: string, name: DomainName, years: number) => ServiceError | null;

/** A client can't disconnect during a synchronous call. */
const NEVER_ABORTED = new AbortController().signal;

export function quickRefusals({ shop, upstream, cold, maxWaitMs, clock }: QuickRefusalParts): QuickRefusal {
  return (address, name, years) => {
    if (!shop().availability.isUnknown(name, years)) return null;
    const client = clientOf(address);
    const asker = askerOf(address);
    const limited = cold.refusal(client, asker.client);
    if (limited !== null) return limited;
    const waitUntilMs = clock.monotonic() + maxWaitMs;
    const ask = { lane: "exact", ...asker, waitUntilMs, signal: NEVER_ABORTED } as const;
    const refusal = upstream.refusal(ask, name, years);
    if (refusal !== null) cold.count(client);
    return refusal;
  };
}
