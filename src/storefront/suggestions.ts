/**
 * Other names for one that is taken. Every variant is a valid name that is not the taken one, and is asked for in spare quota alone, so
 * that no visitor waits for it.
 */
import type { Clock } from "../clock.js";
import { type DomainName, nameOf } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Affixes } from "../retail/retail-config.js";
import type { Availability, AvailabilityService, VisitorAsk } from "./availability.js";
import type { SearchedName } from "./search.js";

export interface SuggestionDesk {
  /** The names to try for this one, each once: the same list every time. */
  variantsOf(taken: SearchedName): SearchedName[];
  /**
   * Looks the variants up one after another and tells of those that are available. What would need a call while the quota has none to
   * spare is left out. Ends within `SUGGESTING_MS`, and never rejects.
   */
  suggest(
    variants: readonly SearchedName[],
    ask: VisitorAsk,
    tell: (found: Availability) => void,
  ): Promise<void>;
}

export interface SuggestionSettings {
  /** Null: nothing is suggested. */
  readonly affixes: Affixes | null;
  readonly desk: Pick<AvailabilityService, "lookUp">;
  /** Whether the quota has a call to spare. */
  readonly hasSpare: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** For so long people look at an answer before they read on below it. */
export const SUGGESTING_MS = 3_000;

export function createSuggestionDesk(settings: SuggestionSettings): SuggestionDesk {
  const { affixes, desk, clock, log } = settings;

  /** On behalf of all visitors, so that nobody is served later for what was suggested to them. */
  function inSpareQuota(ask: VisitorAsk, signal: AbortSignal): VisitorAsk {
    return {
      lane: "suggestion",
      client: "suggestions",
      maxWaitMs: ask.maxWaitMs,
      signal,
      spend() {
        // For the one that asks and not for others who wait for the same name, as only this code says.
        if (!settings.hasSpare()) throw new ServiceError("rate_limited", "There is no quota to spare.");
        ask.spend();
      },
    };
  }

  return {
    variantsOf: ({ name, years }) =>
      affixes === null ? [] : variantsOf(name, affixes).map((variant) => ({ name: variant, years })),

    async suggest(variants, ask, tell) {
      const timeUp = new AbortController();
      const cancelTimer = clock.after(SUGGESTING_MS, () => {
        timeUp.abort();
      });
      const signal = AbortSignal.any([ask.signal, timeUp.signal]);
      const spare = inSpareQuota(ask, signal);
      for (const { name, years } of variants) {
        if (signal.aborted) break;
        try {
          const found = await desk.lookUp(spare, name, years);
          if (found.status === "available" && !signal.aborted) tell(found);
        } catch (error) {
          const code = error instanceof ServiceError ? error.code : "internal";
          // What is in memory is shown all the same; anything else is no time to ask for more than people do.
          if (code === "rate_limited") continue;
          if (!signal.aborted) log.debug("suggestions.ended", { code });
          break;
        }
      }
      cancelTimer();
    },
  };
}

/** Prefixes and suffixes in turn, so that a few variants are of both kinds; what makes no name is left out. */
export function variantsOf(name: DomainName, { prefixes, suffixes, most }: Affixes): DomainName[] {
  const [label = ""] = name.unicode.split(".");
  const variants = new Map<string, DomainName>();
  for (let at = 0; at < Math.max(prefixes.length, suffixes.length); at += 1) {
    const labels = [
      ...prefixes.slice(at, at + 1).map((prefix) => prefix + label),
      ...suffixes.slice(at, at + 1).map((suffix) => label + suffix),
    ];
    for (const variant of labels.flatMap((text) => nameOf(text, name.tld) ?? []))
      if (variant.ascii !== name.ascii) variants.set(variant.ascii, variant);
  }
  return [...variants.values()].slice(0, most);
}
