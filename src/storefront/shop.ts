/** The services that answer visitors under one retail policy. An answer made by one shop never mixes two versions of the policy. */
import type { RetailPolicy } from "../retail/policy.js";
import { type AvailabilityService, type AvailabilitySettings, createAvailability } from "./availability.js";
import { createPremiumNames, type PremiumNames, type PremiumNamesSettings } from "./premium-names.js";
import { createQuotes, type Quotes, type QuoteSettings } from "./quotes.js";
import { createSuggestions, type Suggestions, type SuggestionSettings } from "./suggestions.js";

export interface Shop {
  readonly policy: RetailPolicy;
  readonly availability: AvailabilityService;
  readonly premiumNames: PremiumNames;
  readonly quotes: Quotes;
  readonly suggestions: Suggestions;
}

type ShopSettings = Omit<AvailabilitySettings, "policy"> &
  Pick<PremiumNamesSettings, "marks"> &
  Pick<QuoteSettings, "promises" | "signableSinceMs"> &
  Pick<SuggestionSettings, "hasSpare">;

/** Returns a function that returns the shop of the policy in effect: the same shop until the policy changes. */
export function createShops(current: () => RetailPolicy, settings: ShopSettings): () => Shop {
  let shop = open(current());

  function open(policy: RetailPolicy): Shop {
    const availability = createAvailability({ ...settings, policy });
    const premiumNames = createPremiumNames({ ...settings, policy });
    return {
      policy,
      availability,
      premiumNames,
      quotes: createQuotes({ ...settings, policy, availability, premiumNames }),
      suggestions: createSuggestions({
        ...settings,
        affixes: policy.suggestions,
        takes: policy.takes,
        availability,
      }),
    };
  }

  return () => {
    const policy = current();
    if (shop.policy !== policy) shop = open(policy);
    return shop;
  };
}

/** Makes an answer, and makes it again if the policy changed before it was complete. */
export async function inOneShop<T>(shop: () => Shop, make: (shop: Shop) => Promise<T>): Promise<T> {
  for (;;) {
    const now = shop();
    const made = await make(now);
    if (now === shop()) return made;
  }
}
