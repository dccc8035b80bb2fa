/** Judges what was signed, which is stricter: the cost must have been valid recently, by facts that nothing has contradicted. */
import { costOf, floorOf, NAMES, partsOf, registrationOf, retail, type State } from "./world.js";
import type { TermName } from "./history.js";
import { contradiction, type Exchange, type Oracle } from "./oracle.js";

export interface SignedLine {
  readonly name: number;
  readonly term: TermName;
  readonly cents: number;
}

const CHECKED_MS = 5_000;
const PRICED_MS = 60_000;

/** `wasPremium`: the name had been shown as premium and nothing has said otherwise since. */
export function judgeSigned(
  oracle: Oracle,
  line: SignedLine,
  wasPremium: boolean,
  { endedMs }: Exchange,
): void {
  const { name, term, cents } = line;
  const { action, years } = partsOf(term);
  const isRegistration = action === "registration";
  const domain = NAMES[name] ?? "";
  const what = `${domain}, ${term} at ${cents}`;
  const claimed = oracle.world.during(endedMs - (isRegistration ? CHECKED_MS : PRICED_MS), endedMs);
  const cost = (state: State): number =>
    isRegistration ? registrationOf(state, domain, years) : costOf(state, term);
  const isPremium = (state: State): boolean => isRegistration && state.premium.has(domain);
  const isAvailable = (state: State): boolean => !isRegistration || !state.taken.has(domain);

  if (!claimed.some(isAvailable)) oracle.report("signed: a name that was not available", endedMs, what);
  const against = isRegistration ? contradiction(oracle.evidence, name, "available", endedMs) : undefined;
  if (against !== undefined)
    oracle.report("signed: a status that was already contradicted", endedMs, `${what}, but ${against}`);
  if (!isRegistration && wasPremium)
    oracle.report("signed: an ordinary price for a name shown as premium", endedMs, what);

  if (claimed.some((state) => cents === retail(cost(state), isPremium(state)))) {
    judgeDoubt(oracle, line, endedMs, what);
    return;
  }
  const costs = `costs ${claimed.map(cost).join(", ")}`;
  if (claimed.every((state) => cents < floorOf(cost(state))))
    oracle.report("signed: below floor", endedMs, `${what}, ${costs}`);
  else if (claimed.some((state) => cents === retail(cost(state), !isPremium(state))))
    oracle.report("signed: under the wrong rule", endedMs, `${what}, ${costs}`);
  else oracle.report("signed: an outdated price", endedMs, `${what}, ${costs}`);
}

/** Reports the price if every fact that it could be based on had become doubtful before the cart was answered. */
function judgeDoubt(oracle: Oracle, line: SignedLine, atMs: number, what: string): void {
  const { evidence } = oracle;
  const { name, term, cents } = line;
  const { action, years } = partsOf(term);
  const yieldsPrice = (cost: number, premium: boolean): boolean => retail(cost, premium) === cents;
  const doubts =
    action === "registration"
      ? evidence.checks
          .filter((check) => check.name === name && check.years === years && check.available)
          .flatMap((check) =>
            [true, false]
              .filter((premium) => yieldsPrice(check.cents, premium))
              .map((premium) => evidence.doubtAboutCheck(check, premium, atMs)),
          )
      : evidence.quotes
          .filter((quote) => quote.term === term && yieldsPrice(quote.cents, false))
          .map((quote) => evidence.doubtAboutQuote(quote, atMs));
  if (doubts.length > 0 && doubts.every((doubt) => doubt !== undefined))
    oracle.report("signed: a price that was already doubtful", atMs, `${what}, but ${doubts.join("; ")}`);
}
