/**
 * Suggests other names for a taken one. Every variant is a valid name different from the taken one, and is looked up with spare quota only,
 * so no visitor waits for it.
 */
import type { Clock } from "../clock.js";
import { type DomainName, nameOf } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Affixes } from "../retail/price-file/retail-config.js";
import type { VisitorAsk } from "./names.js";
import type { Availability, AvailabilityService } from "./availability.js";
import type { SearchedName } from "./search.js";

export interface Suggestions {
  /** The names to try instead of this one, without duplicates: the same list every time. */
  variantsOf(taken: SearchedName): SearchedName[];
  /**
   * Looks the variants up one after another and reports those that are available. While the quota has no call to spare, only memory is
   * used. Ends within `SUGGESTING_MS` and never rejects.
   */
  suggest(
    variants: readonly SearchedName[],
    ask: VisitorAsk,
    onResult: (found: Availability) => void,
  ): Promise<void>;
}

export interface SuggestionSettings {
  /** Null: nothing is suggested. */
  readonly affixes: Affixes | null;
  /** Whether the registry takes the name. */
  readonly takes: (name: DomainName) => boolean;
  readonly availability: Pick<AvailabilityService, "lookUp">;
  /** Whether the quota has a call to spare. */
  readonly hasSpare: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** Roughly how long people look at an answer before they read on below it. */
export const SUGGESTING_MS = 3_000;

export function createSuggestions(settings: SuggestionSettings): Suggestions {
  const { affixes, takes, availability, clock, log } = settings;

  /** Asks on behalf of all visitors, so that suggestions don't count against the visitor who sees them. */
  function inSpareQuota(ask: VisitorAsk, signal: AbortSignal): VisitorAsk {
    return {
      lane: "suggestion",
      client: "suggestions",
      waitUntilAt: ask.waitUntilAt,
      signal,
      spend() {
        // Fails this caller alone: others waiting for the same name ask for themselves (`reachOf` in `facts/page.ts`).
        if (!settings.hasSpare()) throw new ServiceError("rate_limited", "The quota has no call to spare.");
        ask.spend();
      },
    };
  }

  return {
    variantsOf: ({ name, years }) =>
      affixes === null ? [] : variantsOf(name, affixes, takes).map((variant) => ({ name: variant, years })),

    async suggest(variants, ask, onResult) {
      const timeUp = new AbortController();
      const cancelTimer = clock.after(SUGGESTING_MS, () => {
        timeUp.abort();
      });
      const signal = AbortSignal.any([ask.signal, timeUp.signal]);
      const spare = inSpareQuota(ask, signal);
      for (const { name, years } of variants) {
        if (signal.aborted) break;
        try {
          const found = await availability.lookUp(spare, name, years);
          if (found.status === "available" && !signal.aborted) onResult(found);
        } catch (error) {
          const code = error instanceof ServiceError ? error.code : "internal";
          // Later variants may still be in memory. After any other failure, don't add to the load.
          if (code === "rate_limited") continue;
          if (!signal.aborted) log.debug("suggestions.ended", { code });
          break;
        }
      }
      cancelTimer();
    },
  };
}

/** Alternates prefixes and suffixes, so that even a few variants include both kinds, and skips invalid names. */
export function variantsOf(
  name: DomainName,
  { prefixes, suffixes, most }: Affixes,
  takes = (_variant: DomainName): boolean => true,
): DomainName[] {
  const [label = ""] = name.unicode.split(".");
  const variants = new Map<string, DomainName>();
  for (let at = 0; at < Math.max(prefixes.length, suffixes.length); at += 1) {
    const labels = [
      ...prefixes.slice(at, at + 1).map((prefix) => prefix + label),
      ...suffixes.slice(at, at + 1).map((suffix) => label + suffix),
    ];
    for (const variant of labels.flatMap((text) => nameOf(text, name.tld) ?? []))
      if (variant.ascii !== name.ascii && takes(variant)) variants.set(variant.ascii, variant);
  }
  return [...variants.values()].slice(0, most);
}
