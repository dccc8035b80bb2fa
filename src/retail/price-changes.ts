/** Remembers the previous wholesale price of each combination for a day after a change. */
import type { Clock } from "../clock.js";
import { sameWholesale, type Wholesale } from "../money.js";

export interface PriceChange {
  readonly from: Wholesale;
  /** When the new price was first seen; wall clock, ms. */
  readonly atMs: number;
}

interface PriceChanges {
  /** Records the price of the key; returns its last change if that is less than a day ago. */
  noted(key: string, wholesale: Wholesale, asOfMs: number): PriceChange | undefined;
}

const KEPT_MS = 24 * 3_600_000;

export function createPriceChanges(clock: Clock): PriceChanges {
  const seen = new Map<string, { readonly wholesale: Wholesale; readonly change: PriceChange | undefined }>();
  const isRecent = (change: PriceChange | undefined): change is PriceChange =>
    change !== undefined && clock.now() - change.atMs < KEPT_MS;

  return {
    noted(key, wholesale, asOfMs) {
      const before = seen.get(key);
      if (before === undefined || !sameWholesale(before.wholesale, wholesale)) {
        const change = before && { from: before.wholesale, atMs: asOfMs };
        seen.set(key, { wholesale, change });
        return change;
      }
      return isRecent(before.change) ? before.change : undefined;
    },
  };
}
