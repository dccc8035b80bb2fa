/** What a doubt may cost: two calls, as long as it is one doubt. */
import type { Evidence } from "./evidence.js";
import { type TermName, TERMS } from "./history.js";
import type { Oracle } from "./oracle.js";
import { costOf, NAMES, registrationOf, type State, termOf } from "./world.js";

/** Calls spent so far on doubts that a question for this name can have. */
export function doubtCalls({ checks, quotes }: Evidence, name: number, years: number): number {
  const ofName = checks.filter((check) => check.isAgain && check.name === name && check.years === years);
  const ofTerm = quotes.filter(({ isAgain, term }) => isAgain && term === termOf("registration", years));
  return ofName.length + ofTerm.length;
}

/**
 * Whether what the service knew and what is true now differ by one change at most, in everything that decides a price of this name: each
 * further change is a doubt of its own. A premium name's price for two years changes with the list, so that is two.
 */
export function isOneDoubt({ evidence, world }: Oracle, name: number, term: TermName): boolean {
  const domain = NAMES[name] ?? "";
  const terms = TERMS.filter((one) => one === term || one.startsWith("registration"));
  const { checks, quotes } = evidence;
  const lastMs = [
    ...terms.map((one) => quotes.findLast((quote) => quote.term === one)),
    ...[1, 2].map((years) => checks.findLast((check) => check.name === name && check.years === years)),
  ].map((last) => last?.askedMs ?? Infinity);
  const deciding = (state: State): string =>
    JSON.stringify([
      terms.map((one) => costOf(state, one)),
      [1, 2].map((years) => registrationOf(state, domain, years)),
      state.taken.has(domain),
    ]);
  const follows = term === "registration 2" && world.now.premium.has(domain);
  return world.changesSince(Math.min(...lastMs), deciding) <= (follows ? 0 : 1);
}
