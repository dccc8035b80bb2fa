/** What it may cost to resolve a doubt: two calls, as long as it is a single doubt. */
import type { Evidence } from "./evidence.js";
import { type TermName, TERMS } from "./history.js";
import type { Oracle } from "./oracle.js";
import { costOf, NAMES, registrationOf, type State, termOf } from "./world.js";

/** The number of calls so far that were made to resolve a doubt about this name or its term. */
export function doubtCalls({ checks, quotes }: Evidence, name: number, years: number): number {
  const ofName = checks.filter((check) => check.isRepeated && check.name === name && check.years === years);
  const ofTerm = quotes.filter(
    ({ isRepeated, term }) => isRepeated && term === termOf("registration", years),
  );
  return ofName.length + ofTerm.length;
}

/**
 * Whether at most one change separates what the service knew from what is true now, in everything that determines a price of this name. Each
 * further change is a separate doubt. A change of the list also changes a premium name's price for two years, so it counts as two.
 */
export function isOneDoubt({ evidence, world }: Oracle, name: number, term: TermName): boolean {
  const domain = NAMES[name] ?? "";
  const terms = TERMS.filter((one) => one === term || one.startsWith("registration"));
  const { checks, quotes } = evidence;
  const lastMs = [
    ...terms.map((one) => quotes.findLast((quote) => quote.term === one)),
    ...[1, 2].map((years) => checks.findLast((check) => check.name === name && check.years === years)),
  ].map((last) => last?.askedMs ?? Infinity);
  const determinants = (state: State): string =>
    JSON.stringify([
      terms.map((one) => costOf(state, one)),
      [1, 2].map((years) => registrationOf(state, domain, years)),
      state.taken.has(domain),
    ]);
  const countsTwice = term === "registration 2" && world.now.premium.has(domain);
  return world.changesSince(Math.min(...lastMs), determinants) <= (countsTwice ? 0 : 1);
}
