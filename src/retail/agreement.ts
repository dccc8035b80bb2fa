/**
 * What a name's checked price and the quote for its TLD and term say together. Where they agree the name is ordinary. Where they differ, one
 * of them may simply be older: the name is premium only if one was seen unchanged before and after the other. The only place that decides
 * "premium". Pure functions.
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
  /** Asked after everything that speaks against the quote, so that a check at the quote's amount settles it. */
  readonly canVouch: boolean;
  /** The name was found to be premium at this price before. */
  readonly isKnownPremium: boolean;
}

/** What they say, or which of the two to ask again before anything can be said. */
export type Verdict = "ordinary" | "premium" | "ask quote" | "ask check";

export function judge(check: CheckedPrice, quote: Observed): Verdict {
  if (!check.settled) return "ask check";
  if (!quote.settled) return "ask quote";
  if (sameWholesale(check.wholesale, quote.wholesale))
    return quote.isTrusted || (check.isTrusted && check.canVouch) ? "ordinary" : "ask quote";
  if (check.isTrusted && isAmid(check, quote)) return "premium";
  if (!quote.isTrusted) return "ask quote";
  if (!check.isTrusted) return "ask check";
  if (check.isKnownPremium || isAmid(quote, check)) return "premium";
  return quote.askedMs < check.askedMs ? "ask quote" : "ask check";
}

/** Whether `inner` was observed while `outer` is known to have been unchanged. */
function isAmid(inner: Observed, outer: Observed): boolean {
  return outer.unchangedSinceMs <= inner.askedMs && inner.answeredMs <= outer.askedMs;
}
