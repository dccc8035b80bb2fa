/**
 * Decides from a name's checked price and the quote for its TLD and term whether the name is premium; nothing else does. If they agree, the
 * name is ordinary. If they differ, one may just be older, so the name is premium only if one was observed unchanged both before and after
 * the other. Pure functions.
 */
import { sameWholesale, type Wholesale } from "../money.js";

/** An observed price. Times are stamps. */
export interface Observed {
  readonly wholesale: Wholesale;
  readonly askedMs: number;
  readonly answeredMs: number;
  /** The same price was observed every time since then. */
  readonly unchangedSinceMs: number;
  /** False while overlapping answers contradict each other. */
  readonly settled: boolean;
  /** No evidence contradicts it. */
  readonly isTrusted: boolean;
}

export interface CheckedPrice extends Observed {
  /** Requested after all evidence against the quote, so that a check with the quote's amount confirms the quote. */
  readonly canVouch: boolean;
  /** The name was found to be premium at this price before. */
  readonly isKnownPremium: boolean;
}

/** The decision, or which of the two to request again first. */
export type Verdict = "ordinary" | "premium" | "ask quote" | "ask check";

export function judge(check: CheckedPrice, quote: Observed): Verdict {
  if (!check.settled) return "ask check";
  if (!quote.settled) return "ask quote";
  if (sameWholesale(check.wholesale, quote.wholesale))
    return quote.isTrusted || (check.isTrusted && check.canVouch) ? "ordinary" : "ask quote";
  if (check.isTrusted && isEnclosed(check, quote)) return "premium";
  if (!quote.isTrusted) return "ask quote";
  if (!check.isTrusted) return "ask check";
  if (check.isKnownPremium || isEnclosed(quote, check)) return "premium";
  return quote.askedMs < check.askedMs ? "ask quote" : "ask check";
}

/** Whether `inner` was observed between two identical observations of `outer`. */
function isEnclosed(inner: Observed, outer: Observed): boolean {
  return outer.unchangedSinceMs <= inner.askedMs && inner.answeredMs <= outer.askedMs;
}
