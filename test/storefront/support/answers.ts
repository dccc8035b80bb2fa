/** Answers about names, as the searches and suggestions that are tested here get them. */
import type { Availability } from "../../../src/storefront/availability.js";

/** Without a price, and true for ever. */
export function answered(
  { name, years }: Pick<Availability, "name" | "years">,
  status: Availability["status"],
): Availability {
  const noPrices = { premium: false, price: null, renewal: null } as const;
  return { name, years, status, ...noPrices, asOfMs: 0, stale: false, showUntilMs: Infinity };
}
