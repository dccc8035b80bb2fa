/** Answers about names for the tests of searches and suggestions. */
import type { Availability } from "../../src/shop/availability.js";

/** An answer without a price, which never expires. */
export function answered(
  { name, years }: Pick<Availability, "name" | "years">,
  status: Availability["status"],
): Availability {
  const noPrices = { kind: "ordinary", price: null, renewal: null } as const;
  return {
    name,
    years,
    status,
    ...noPrices,
    asOfMs: 0,
    stale: false,
    showUntilAt: Infinity,
    sameUntilAt: -Infinity,
  };
}
