/** The services that answer visitors under one retail policy. An answer made by one shop never mixes two versions of the policy. */
import type { PriceChanges } from "../facts/price-changes.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { NameKinds } from "../retail/name-kinds.js";
import { type AvailabilityService, type AvailabilitySettings, createAvailability } from "./availability.js";
import { createNamePrices, type NamePrices } from "./name-prices.js";
import { createQuotes, type Quotes, type QuoteSettings } from "./quotes.js";
import { createSuggestions, type Suggestions, type SuggestionSettings } from "./suggestions.js";

export interface Shop {
  readonly policy: RetailPolicy;
  readonly availability: AvailabilityService;
  readonly namePrices: Pick<NamePrices, "isOrdinary">;
  readonly quotes: Quotes;
  readonly suggestions: Suggestions;
}

type ShopSettings = Omit<AvailabilitySettings, "policy" | "nameKinds"> &
  Pick<QuoteSettings, "promises"> &
  Pick<SuggestionSettings, "hasSpare"> & {
    readonly nameKinds: NameKinds;
    readonly changes: PriceChanges;
  };

/** Returns a function that returns the shop of the policy in effect: the same shop until the policy changes. */
export function createShops(current: () => RetailPolicy, settings: ShopSettings): () => Shop {
  let shop = open(current());

  function open(policy: RetailPolicy): Shop {
    const yearsSold = (tld: string): readonly number[] => policy.yearsSold(tld, "registration");
    const namePrices = createNamePrices({ ...settings, yearsSold });
    const availability = createAvailability({ ...settings, policy, namePrices });
    return {
      policy,
      availability,
      namePrices,
      quotes: createQuotes({ ...settings, policy, availability, namePrices }),
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
