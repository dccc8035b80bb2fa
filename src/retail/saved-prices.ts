/**
 * Saves the last known wholesale prices and the tier they were learned under, so that they survive a restart. Prices of another upstream or
 * credential are ignored, since they may be another reseller's.
 */
import { z } from "zod";
import { bootedAt, type Clock } from "../clock.js";
import { parseWholesale, type Wholesale } from "../money.js";
import type { SavedFile } from "../saved-file.js";
import { ACTIONS, type Combination } from "../upstream/contract.js";

interface SavedPrice extends Combination {
  readonly wholesale: Wholesale;
  /** On the monotonic clock; negative if before the machine booted. */
  readonly askedAt: number;
}

interface Saved {
  /** The last known tier; null if unknown. */
  readonly tier: string | null;
  readonly prices: readonly SavedPrice[];
}

export interface SavedPrices {
  /** Never rejects. */
  load(): Promise<Saved>;
  /** Never throws; a failure is logged. */
  save(saved: Saved): void;
}

const storedWholesale = z
  .object({ amount: z.unknown(), currency: z.unknown() })
  .transform(({ amount, currency }, context): Wholesale => {
    const read = parseWholesale(amount, currency);
    if (read !== null) return read;
    context.addIssue({ code: "custom", message: "isn't a price" });
    return z.NEVER;
  });

/** The prices and their tier as saved. The times are of the wall clock, because the machine may restart before they are read. */
export const savedPricesShape = z.strictObject({
  tier: z.string().nullable(),
  prices: z.array(
    z.strictObject({
      tld: z.string(),
      action: z.enum(ACTIONS),
      years: z.int().positive(),
      wholesale: storedWholesale,
      askedAtMs: z.number().positive(),
    }),
  ),
});

/** Null: nothing outlives the process. Those learned before `since`, with another credential, may be another reseller's. */
export function savePrices(
  file: SavedFile<z.output<typeof savedPricesShape>> | null,
  since: () => number,
  clock: Clock,
): SavedPrices {
  return {
    async load() {
      const { tier, prices } = (await file?.load()) ?? NOTHING;
      return {
        tier,
        prices: prices.flatMap(({ askedAtMs, ...price }) =>
          // If it is from the future, the clock has been set back, and its age is unknown.
          askedAtMs > clock.now() ? [] : [{ ...price, askedAt: askedAtMs - bootedAt(clock) }],
        ),
      };
    },
    save({ tier, prices }) {
      const saved = prices
        .filter(({ askedAt }) => askedAt > since())
        .map(({ askedAt, ...price }) => ({ ...price, askedAtMs: Math.floor(bootedAt(clock) + askedAt) }));
      if (saved.length > 0) file?.save({ tier, prices: saved });
    },
  };
}

const NOTHING = { tier: null, prices: [] };
