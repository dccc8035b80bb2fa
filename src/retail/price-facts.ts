/**
 * Saves the last known wholesale prices and the tier they were learned under, so that they survive a restart. Prices of another upstream or
 * credential are ignored, since they may be another reseller's.
 */
import { z } from "zod";
import { fromSavedTimes, savedTimes, toSavedTimes } from "../cache/saved-facts.js";
import type { SavedFile } from "../saved-file.js";
import type { Clock } from "../clock.js";
import { parseWholesale, type Wholesale } from "../money.js";
import { ACTIONS, type Combination } from "../upstream/contract.js";

interface SavedPrice extends Combination {
  readonly wholesale: Wholesale;
  /** On the monotonic clock; negative if before the machine booted. */
  readonly askedMs: number;
  readonly answeredMs: number;
  /** Evidence contradicted it when it was saved. */
  readonly isDoubtful: boolean;
}

interface SavedPrices {
  /** The tier that they were learned under; null if unknown. */
  readonly tier: string | null;
  readonly prices: readonly SavedPrice[];
}

export interface PriceFacts {
  /** Never rejects. */
  load(): Promise<SavedPrices>;
  /** Never throws; a failure is logged. */
  save(saved: SavedPrices): void;
}

const NOTHING: SavedPrices = { tier: null, prices: [] };

/** A wholesale price that was stored as JSON. */
export const storedWholesale = z
  .object({ amount: z.unknown(), currency: z.unknown() })
  .transform(({ amount, currency }, context): Wholesale => {
    const read = parseWholesale(amount, currency);
    if (read !== null) return read;
    context.addIssue({ code: "custom", message: "isn't a price" });
    return z.NEVER;
  });

/** The prices and their tier as saved. */
export const savedPrices = z.strictObject({
  tier: z.string().nullable(),
  prices: z.array(
    z.strictObject({
      tld: z.string(),
      action: z.enum(ACTIONS),
      years: z.int().positive(),
      wholesale: storedWholesale,
      isDoubtful: z.boolean(),
      ...savedTimes,
    }),
  ),
});

/** Those learned before `sinceMs`, with another credential, may be another reseller's. */
export function savePrices(
  file: SavedFile<z.output<typeof savedPrices>>,
  sinceMs: () => number,
  clock: Clock,
): PriceFacts {
  return {
    async load() {
      const saved = await file.load();
      if (saved === null) return NOTHING;
      const prices = saved.prices.flatMap(({ askedAtMs, answeredAtMs, ...price }) => {
        const times = fromSavedTimes(clock, { askedAtMs, answeredAtMs });
        return times === null ? [] : [{ ...price, ...times }];
      });
      // If some are from the future, the clock has been set back, and the others only seem to be recent.
      const isSetBack = prices.length < saved.prices.length;
      return { tier: isSetBack ? null : saved.tier, prices };
    },
    save({ tier, prices }) {
      const saved = prices
        .filter(({ askedMs }) => askedMs > sinceMs())
        .map(({ askedMs, answeredMs, ...price }) => ({
          ...price,
          ...toSavedTimes(clock, { askedMs, answeredMs }),
        }));
      if (saved.length > 0) file.save({ tier, prices: saved });
    },
  };
}

/** Saves nothing, for an upstream that ends with the process. */
export const noPriceFacts: PriceFacts = { load: () => Promise.resolve(NOTHING), save: () => {} };
