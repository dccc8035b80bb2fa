/**
 * Decides whether a name is ordinary or premium, which the upstream doesn't say: a check's own price is what registering the name costs, and it is
 * compared with the quote for the same TLD and term only to choose the rule. If they differ, one may just be older, so the name is premium only if one
 * was observed unchanged before and after the other. Pure functions; what is missing comes back as the one question to ask next.
 */
import { justAfter } from "../clock.js";
import type { Observed, Quote } from "../facts/notebook.js";
import { compareWholesale, sameWholesale, type Wholesale } from "../money.js";
import type { Sign } from "../upstream/signs.js";
import type { LastKind } from "./name-kinds.js";
import type { NameKind } from "./policy.js";

export interface Quoted extends Observed, Pick<Quote, "changed"> {}

export interface Checked extends Observed {
  readonly sign: Sign | undefined;
}

export interface Evidence {
  readonly years: number;
  /** The price in the last check of the name for a term, and the last quote for it. */
  readonly check: (years: number) => Checked | undefined;
  readonly quote: (years: number) => Quoted | undefined;
  /** The last decision about the name, by a check of any term. */
  readonly last: LastKind | undefined;
  /** Another term, by which an upstream is recognized that ignores it. */
  readonly otherYears: number;
  /** When prices may last have changed, and how recent the check and a quote that the price depends on must be: stamps. */
  readonly currentSince: number;
  readonly checkedSince: number;
  readonly quotedSince: number;
}

export type Decision =
  | {
      readonly kind: "priced";
      readonly nameKind: NameKind;
      readonly wholesale: Wholesale;
      /** Whether the quote says so as much as the check: its age is then that of the older one. */
      readonly needsQuote: boolean;
    }
  | { readonly kind: "unpriced"; readonly nameKind: NameKind; readonly why: "sign" | "currency" | "term" }
  | Question;

/** Nothing is decided before this has been asked, at that stamp or later. */
interface Question {
  readonly kind: "ask";
  readonly what: "check" | "quote";
  readonly years: number;
  readonly since: number;
  /** The check differs from this quote, so until it has been asked again either may be wrong. */
  readonly isContested?: true;
}

export function decide(evidence: Evidence): Decision {
  const { years, last, checkedSince } = evidence;
  const check = evidence.check(years);
  if (check === undefined || check.askedAt < checkedSince) return ask("check", years, checkedSince);
  if (check.sign === "unclear" || check.sign === "price")
    return { kind: "unpriced", nameKind: check.sign === "price" ? "ordinary" : "premium", why: "sign" };
  const decision = byPrice(evidence, check);
  if (decision.kind === "ask") return decision;
  // A flag beside the ordinary price: one of them is wrong.
  if (check.sign !== undefined && decision.nameKind === "ordinary")
    return { kind: "unpriced", nameKind: "premium", why: "sign" };
  if (last !== undefined && last.askedAt > check.answeredAt && last.kind !== decision.nameKind)
    return ask("check", years, last.askedAt);
  return decision;
}

function byPrice(evidence: Evidence, check: Checked): Decision {
  const { years, otherYears, quotedSince } = evidence;
  const { wholesale } = check;
  const own = compare(evidence, check, years);
  if (own === "same") return { kind: "priced", nameKind: "ordinary", wholesale, needsQuote: false };
  if (own === "other currency") return { kind: "unpriced", nameKind: "ordinary", why: "currency" };
  if (isOfOneYear(evidence, check)) return byQuote(evidence);
  if (own !== "different") return own;
  if ((evidence.quote(years)?.askedAt ?? -Infinity) < quotedSince) return ask("quote", years, quotedSince);
  const premium: Decision = { kind: "priced", nameKind: "premium", wholesale, needsQuote: true };
  if (years === 1) return premium;
  const other = evidence.check(otherYears);
  // An earlier one could differ only because the price has changed since.
  if (other === undefined || other.askedAt <= check.answeredAt)
    return ask("check", otherYears, justAfter(check.answeredAt));
  if (isAbove(years > otherYears ? [check, other] : [other, check])) return premium;
  // So this was the price of another term, and only that one shows whether the name is premium.
  const verdict = compare(evidence, other, otherYears);
  if (verdict === "same") return byQuote(evidence);
  return typeof verdict === "string" ? { kind: "unpriced", nameKind: "premium", why: "term" } : verdict;
}

/** Whether a check for a longer term shows the ordinary price of one year, because the upstream ignores the term. It then says nothing else. */
function isOfOneYear({ quote }: Evidence, { wholesale }: Checked): boolean {
  const ofYear = quote(1);
  return ofYear?.isCurrent === true && sameWholesale(ofYear.wholesale, wholesale);
}

/** An ordinary name whose check shows the price of another term costs what is quoted. */
function byQuote({ years, quote, currentSince, quotedSince }: Evidence): Decision {
  const own = quote(years);
  if (own?.isCurrent !== true) return ask("quote", years, currentSince);
  if (own.askedAt < quotedSince) return ask("quote", years, quotedSince);
  return { kind: "priced", nameKind: "ordinary", wholesale: own.wholesale, needsQuote: true };
}

function compare(
  { quote: quoteFor, currentSince }: Evidence,
  check: Checked,
  years: number,
): "same" | "different" | "other currency" | Question {
  const quote = quoteFor(years);
  if (quote?.isCurrent !== true) return ask("quote", years, justAfter(currentSince));
  if (sameWholesale(check.wholesale, quote.wholesale)) return "same";
  if (!check.isCurrent) return ask("check", years, justAfter(currentSince));
  // The ordinary price before the last change may be so again: that it was seen twice doesn't show that it never changed in between.
  const wasOrdinary = quote.changed !== undefined && sameWholesale(quote.changed.from, check.wholesale);
  if (isWithin(check, quote) || (isWithin(quote, check) && !wasOrdinary))
    return check.wholesale.currency === quote.wholesale.currency ? "different" : "other currency";
  // The one that was known before the other, since it may turn out to be the same after it; the quote rather than the check, for all who wait for it.
  return quote.sameSince <= check.askedAt
    ? { ...ask("quote", years, justAfter(check.answeredAt)), isContested: true }
    : ask("check", years, justAfter(quote.answeredAt));
}

/** Whether `inner` was observed between two identical observations of `outer`. */
function isWithin(inner: Observed, outer: Observed): boolean {
  return outer.sameSince <= inner.askedAt && inner.answeredAt <= outer.askedAt;
}

function isAbove([longer, shorter]: readonly [Observed, Observed]): boolean {
  return (
    longer.wholesale.currency === shorter.wholesale.currency &&
    compareWholesale(longer.wholesale, shorter.wholesale) > 0
  );
}

function ask(what: Question["what"], years: number, since: number): Question {
  return { kind: "ask", what, years, since };
}
