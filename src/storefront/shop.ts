/** What visitors are answered by, for one retail policy. An answer that takes one shop and keeps to it never mixes two versions. */
import type { RetailPolicy } from "../retail/policy.js";
import { type AvailabilityService, type AvailabilitySettings, createAvailability } from "./availability.js";
import { createQuotes, type Quotes, type QuoteSettings } from "./quotes.js";
import { createSuggestionDesk, type SuggestionDesk, type SuggestionSettings } from "./suggestions.js";

export interface Shop {
  readonly policy: RetailPolicy;
  readonly availability: AvailabilityService;
  readonly quotes: Quotes;
  readonly suggestions: SuggestionDesk;
}

export type ShopSettings = Omit<AvailabilitySettings, "policy"> &
  Pick<QuoteSettings, "promises"> &
  Pick<SuggestionSettings, "hasSpare">;

/** Returns the shop of the policy in effect: the same one until another policy takes effect. */
export function createShops(current: () => RetailPolicy, settings: ShopSettings): () => Shop {
  let shop = open(current());

  function open(policy: RetailPolicy): Shop {
    const availability = createAvailability({ ...settings, policy });
    return {
      policy,
      availability,
      quotes: createQuotes({ ...settings, policy, availability }),
      suggestions: createSuggestionDesk({ ...settings, affixes: policy.suggestions, desk: availability }),
    };
  }

  return () => {
    const policy = current();
    if (shop.policy !== policy) shop = open(policy);
    return shop;
  };
}

/** Makes an answer, and makes it again if another policy took effect before it was complete. */
export async function inOneShop<T>(shop: () => Shop, make: (shop: Shop) => Promise<T>): Promise<T> {
  for (;;) {
    const now = shop();
    const made = await make(now);
    if (now === shop()) return made;
  }
}
