/**
 * Judges what was shown: it must have been true within its claimed age, and the upstream must not have contradicted it. Answers in the same
 * millisecond don't contradict each other, because their order is unknown.
 */
import type { CheckFact, Evidence } from "./evidence.js";
import type { TermName } from "./history.js";
import { costOf, NAMES, registrationOf, retail, type State, type World } from "./world.js";

export interface Violation {
  readonly kind: Kind;
  readonly atMs: number;
  readonly what: string;
}

export type Kind =
  | "shown: a status that was not true"
  | "shown: a status that was already contradicted"
  | "shown: a price that was not true"
  | "shown: a doubtful price as certain"
  | "shown: nothing although the upstream was available"
  | "doubt: not resolved within two calls"
  | "signed: a name that was not available"
  | "signed: a status that was already contradicted"
  | "signed: below floor"
  | "signed: under the wrong rule"
  | "signed: an outdated price"
  | "signed: a price that was already doubtful"
  | "signed: an ordinary price for a name shown as premium"
  | "signed: different lines than shown"
  | "answered: never"
  | "failed: the service itself";

/** When a request was sent and answered. `isCalm`: nothing prevented the service from asking the upstream. */
export interface Exchange {
  readonly startedMs: number;
  readonly endedMs: number;
  readonly isCalm: boolean;
}

export interface ShownAvailability {
  readonly status: "available" | "taken" | "unknown";
  readonly premium: boolean;
  readonly cents: number | null;
  readonly asOfMs: number;
  readonly stale: boolean;
}

export const MINUTE_MS = 60_000;
const AVAILABLE_SHOWN_MS = 60_000;

export const minuteOf = (ms: number): number => Math.floor(ms / MINUTE_MS) * MINUTE_MS;

/** What contradicted the status, if every check that supported it had already been contradicted. */
export function contradiction(
  evidence: Evidence,
  name: number,
  status: "available" | "taken",
  atMs: number,
): string | undefined {
  const known = evidence.checksOf(name).filter(({ arrivedMs }) => arrivedMs <= atMs);
  const support = known.filter(({ available }) => available === (status === "available"));
  const against = known.filter((check) => !support.includes(check) && check.arrivedMs < atMs);
  // An overlapping "taken" may be believed; an overlapping "available" may not.
  const beats = (other: CheckFact, own: CheckFact): boolean =>
    status === "available" ? other.arrivedMs > own.askedMs : other.askedMs > own.arrivedMs;
  if (support.length === 0 || support.some((own) => !against.some((other) => beats(other, own))))
    return undefined;
  const last = against.at(-1);
  return `${status === "available" ? "taken" : "available"} had been answered at ${last?.arrivedMs} ms`;
}

/** Whether a value changes and later returns. */
function hasReturned(values: readonly number[]): boolean {
  return values.some((value, at) => values.slice(0, at).includes(value) && values[at - 1] !== value);
}

export class Oracle {
  readonly violations: Violation[] = [];
  readonly world: World;
  readonly evidence: Evidence;

  constructor(world: World, evidence: Evidence) {
    this.world = world;
    this.evidence = evidence;
  }

  report(kind: Kind, atMs: number, what: string): void {
    this.violations.push({ kind, atMs, what });
  }

  availability(
    name: number,
    years: number,
    shown: ShownAvailability,
    { startedMs, endedMs, isCalm }: Exchange,
  ): void {
    const { status, cents, premium, stale } = shown;
    if (status === "unknown") return;
    const domain = NAMES[name] ?? "";
    const what = `${domain} for ${years}: ${JSON.stringify(shown)}`;
    const sinceMs = minuteOf(shown.asOfMs);
    const claimed = this.world.during(sinceMs, endedMs);
    const isTaken = ({ taken }: State): boolean => taken.has(domain) === (status === "taken");
    const fromMs = status === "available" ? Math.max(sinceMs, endedMs - AVAILABLE_SHOWN_MS) : sinceMs;
    if (!this.world.during(fromMs, endedMs).some(isTaken))
      this.report("shown: a status that was not true", endedMs, what);
    const against = contradiction(this.evidence, name, status, endedMs);
    if (against !== undefined)
      this.report("shown: a status that was already contradicted", endedMs, `${what}, but ${against}`);
    if (status === "taken") return;
    if (cents === null) {
      if (isCalm && !stale) this.report("shown: nothing although the upstream was available", endedMs, what);
      return;
    }
    const costs = (state: State): number => registrationOf(state, domain, years);
    const isRight = (state: State): boolean =>
      isTaken(state) &&
      cents === retail(costs(state), state.premium.has(domain)) &&
      premium === state.premium.has(domain);
    const isPossible = (state: State): boolean =>
      [true, false].some((rule) => cents === retail(costs(state), rule));
    // Two calls can't distinguish a price that changes and returns between them from the price of a premium name.
    const cameBack = hasReturned(this.world.during(startedMs, endedMs).map(costs));
    if (!claimed.some(stale || (premium && cameBack) ? isPossible : isRight))
      return this.report(
        "shown: a price that was not true",
        endedMs,
        `${what}, costs ${claimed.map(costs).join(", ")}`,
      );
    if (!stale) this.#checkShownFresh(name, years, shown, endedMs, what);
  }

  /** A price that isn't marked stale must come from a check that no change of the list has made doubtful. */
  #checkShownFresh(name: number, years: number, shown: ShownAvailability, atMs: number, what: string): void {
    const sources = this.evidence.checks.filter(
      (check) =>
        check.name === name &&
        check.years === years &&
        check.available &&
        retail(check.cents, shown.premium) === shown.cents,
    );
    const doubts = sources.map((source) => this.evidence.doubtAboutCheck(source, shown.premium, atMs));
    if (doubts.length > 0 && doubts.every((doubt) => doubt !== undefined))
      this.report("shown: a doubtful price as certain", atMs, `${what}, but ${doubts.join("; ")}`);
  }

  quote(term: TermName, cents: number, asOfMs: number, stale: boolean, { endedMs }: Exchange): void {
    const what = `${term} at ${cents} as of ${asOfMs}${stale ? ", stale" : ""}`;
    this.listed(term, cents, asOfMs, endedMs);
    if (stale) return;
    const doubts = this.evidence.quotes
      .filter((quote) => quote.term === term && retail(quote.cents, false) === cents)
      .map((quote) => this.evidence.doubtAboutQuote(quote, endedMs));
    if (doubts.length > 0 && doubts.every((doubt) => doubt !== undefined))
      this.report("shown: a doubtful price as certain", endedMs, `${what}, but ${doubts.join("; ")}`);
  }

  /** A price of the list, which claims only its age. */
  listed(term: TermName, cents: number, asOfMs: number, atMs: number): void {
    const claimed = this.world.during(minuteOf(asOfMs), atMs);
    if (!claimed.some((state) => retail(costOf(state, term), false) === cents))
      this.report("shown: a price that was not true", atMs, `${term} at ${cents} as of ${asOfMs}`);
  }
}
