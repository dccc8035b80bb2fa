/**
 * Saves the last known wholesale prices and the tier they were learned under, so that they survive a restart: in a file that only its owner
 * can read, or with Redis, where the prices are shared anyway, only the tier. Prices of another upstream or credential are ignored, since
 * they may be another reseller's.
 */
import { z } from "zod";
import type { Pool } from "../cache/cache.js";
import { fromSavedTimes, savedTimes, toSavedTimes } from "../cache/saved-facts.js";
import type { SavedFile } from "../saved-file.js";
import type { Clock } from "../clock.js";
import { parseWholesale, type Wholesale } from "../money.js";
import { ACTIONS, type Combination } from "../upstream/contract.js";
import type { Quote } from "./price-quotes.js";

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

interface LoadedPrices extends SavedPrices {
  /** Since when (a stamp) another replica has been loading them, if it doesn't know the tier yet. */
  readonly liveSinceMs?: number;
}

export interface PriceFacts {
  /** Never rejects. */
  load(): Promise<LoadedPrices>;
  /** Never throws; a failure is logged. */
  save(saved: SavedPrices): void;
}

const NOTHING: LoadedPrices = { tier: null, prices: [] };

/** A wholesale price that was stored as JSON. */
export const storedWholesale = z
  .object({ amount: z.unknown(), currency: z.unknown() })
  .transform(({ amount, currency }, context): Wholesale => {
    const read = parseWholesale(amount, currency);
    if (read !== null) return read;
    context.addIssue({ code: "custom", message: "isn't a price" });
    return z.NEVER;
  });

const quote = z.strictObject({
  wholesale: storedWholesale,
  epoch: z.string(),
  former: storedWholesale.nullable(),
});

/** Decodes a quote that was stored as JSON; undefined if the data isn't one. */
export const decodeStoredQuote = (data: unknown): Quote | undefined => quote.safeParse(data).data;

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

/** Saves prices and tier in a file of this process. Those learned before `sinceMs`, with another credential, may be another reseller's. */
export function createPriceFile(
  file: SavedFile<z.output<typeof savedPrices>>,
  sinceMs: () => number,
  clock: Clock,
): PriceFacts {
  return {
    async load() {
      const saved = file.load();
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

/** The tier and epoch of the prices that replicas share in Redis. */
export interface LearnedUnder {
  /** Null until the replica that loads the prices knows it. */
  readonly tier: string | null;
  readonly epoch: string;
}

const learnedUnder = z.strictObject({ tier: z.string().nullable(), epoch: z.string() });

/** Decodes a `LearnedUnder` that was stored as JSON; undefined if the data isn't one. */
export const decodeLearnedUnder = (data: unknown): LearnedUnder | undefined =>
  learnedUnder.safeParse(data).data;

const KEY = "prices";
/** How long a replica that started without prices may take to learn the tier. */
const LEARNING_MS = 60_000;

/** Saves only the tier, because replicas already share the prices in Redis. */
export function createSharedPriceFacts(
  pool: Pick<Pool<LearnedUnder, never>, "consult" | "learn">,
  epoch: () => string,
  stamp: () => number,
): PriceFacts {
  function save(tier: string | null): void {
    const nowMs = stamp();
    void pool.learn(KEY, { value: { tier, epoch: epoch() }, askedMs: nowMs, answeredMs: nowMs });
  }
  return {
    async load() {
      const known = await pool.consult(KEY);
      const isCurrent = known?.value.epoch === epoch();
      if (!isCurrent) save(null);
      const tier = isCurrent ? known.value.tier : null;
      const isLive = isCurrent && tier === null && stamp() - known.askedMs < LEARNING_MS;
      return { tier, prices: [], ...(isLive && { liveSinceMs: known.askedMs }) };
    },
    save({ tier }) {
      if (tier !== null) save(tier);
    },
  };
}

/** Saves nothing, for an upstream that ends with the process. */
export const noPriceFacts: PriceFacts = { load: () => Promise.resolve(NOTHING), save: () => {} };
