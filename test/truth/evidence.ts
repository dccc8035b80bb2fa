/** What the service has learned from the upstream: each answer, with the times at which it was requested and at which it arrived. */
import type { Delivered } from "../../packages/sandbox/src/sandbox.js";
import type { TermName } from "./history.js";
import { NAMES, termOf } from "./world.js";

export interface Fact {
  readonly askedMs: number;
  readonly arrivedMs: number;
}

interface Counted {
  /** The fact was already known, and recent enough for everyone who waited, so only a doubt explains the call. */
  readonly isRepeated: boolean;
}

export interface CheckFact extends Fact {
  readonly name: number;
  readonly years: number;
  readonly available: boolean;
  readonly cents: number;
}

export interface QuoteFact extends Fact {
  readonly term: TermName;
  readonly cents: number;
}

interface TierFact extends Fact {
  readonly tier: string;
}

/** The end of a price epoch: prices requested before `askedMs` are doubtful. */
export interface EpochEnd extends Fact {
  readonly why: string;
}

const isBefore = (a: Fact, b: Fact): boolean => a.arrivedMs < b.askedMs;

/** The age in ms up to which a fact is requested again only because of a doubt: to be shown, and to be signed. */
const FRESH_MS = {
  shown: { available: 27_000, taken: 800_000, quote: 2_800_000 },
  signed: { available: 5_000, taken: 5_000, quote: 55_000 },
} as const;

export class Evidence {
  readonly checks: (CheckFact & Counted)[] = [];
  readonly quotes: (QuoteFact & Counted)[] = [];
  readonly epochEnds: EpochEnd[] = [];
  calls = 0;
  #tier: TierFact | null = null;
  #checksSinceMs = -1;
  #quotesSinceMs = -1;

  /** The number of calls for facts that were known and fresh. */
  get repeated(): number {
    return [...this.checks, ...this.quotes].filter(({ isRepeated }) => isRepeated).length;
  }

  /** The checks of a name since the last purge or restart. */
  checksOf(name: number): readonly CheckFact[] {
    return this.checks.filter((check) => check.name === name && check.arrivedMs > this.#checksSinceMs);
  }

  add(answer: Delivered, forCart: boolean): void {
    const when = { askedMs: answer.arrivedMs, arrivedMs: answer.deliveredMs };
    const freshMs = forCart ? FRESH_MS.signed : FRESH_MS.shown;
    this.calls += 1;
    switch (answer.operation) {
      case "check": {
        const { domain, years, available, price } = answer.fact;
        const name = NAMES.findIndex((one) => one === domain);
        const isRepeated = this.checksOf(name).some(
          (known) =>
            (!known.available || known.years === years) &&
            when.askedMs - known.askedMs <= freshMs[known.available ? "available" : "taken"],
        );
        this.checks.push({ ...when, name, years, available, cents: price?.cents ?? 0, isRepeated });
        break;
      }
      case "quote":
        this.#addQuote(
          { ...when, term: termNamed(answer.fact), cents: answer.fact.price.cents },
          freshMs.quote,
        );
        break;
      case "tier":
        this.#addTier({ ...when, tier: answer.fact.current });
        break;
      case "domains":
      case "domain":
      case "balance":
        break;
      default:
        answer satisfies never;
    }
  }

  /** The service has forgotten earlier checks, by a purge or a restart. */
  forgetChecks(atMs: number): void {
    this.#checksSinceMs = atMs;
  }

  /** The service requests prices again without a doubt, after a purge or a restart. Earlier contradictions still count. */
  forgetQuotes(atMs: number): void {
    this.#quotesSinceMs = atMs;
  }

  #addQuote(quote: QuoteFact, freshMs: number): void {
    const before = this.quotes.filter(({ term }) => term === quote.term);
    const isRepeated = before.some(
      (known) => known.arrivedMs > this.#quotesSinceMs && quote.askedMs - known.askedMs <= freshMs,
    );
    const last = before.findLast((known) => isBefore(known, quote));
    if (last !== undefined && last.cents !== quote.cents && !this.#isExplained(last, quote))
      this.epochEnds.push({ ...quote, why: `${quote.term} was ${last.cents} and is ${quote.cents}` });
    this.quotes.push({ ...quote, isRepeated });
  }

  /**
   * Whether the change that ended an epoch explains this difference too. That change may have happened as late as the answer that showed it,
   * so requests from before that answer don't rule it out.
   */
  #isExplained(last: QuoteFact, quote: QuoteFact): boolean {
    const confirmations = this.checks.filter(
      (check) => check.arrivedMs <= quote.arrivedMs && confirms(check, last),
    );
    const unchangedMs = Math.max(last.askedMs, ...confirmations.map(({ askedMs }) => askedMs));
    return this.epochEnds.some((end) => unchangedMs < end.arrivedMs && end.arrivedMs <= quote.arrivedMs);
  }

  #addTier(tier: TierFact): void {
    const last = this.#tier;
    if (last !== null && !isBefore(last, tier)) return;
    if (last !== null && last.tier !== tier.tier)
      this.epochEnds.push({ ...tier, why: `the tier was ${last.tier} and is ${tier.tier}` });
    this.#tier = tier;
  }

  /** Why a quote is doubtful at this time, if it is: the list has changed since, and no check of an ordinary name has confirmed the amount. */
  doubtAboutQuote(quote: QuoteFact, atMs: number): string | undefined {
    return this.#doubtAbout(quote, atMs, this.checks, (check) => confirms(check, quote));
  }

  /** The same for a check. A later quote for its term resolves the doubt if it agrees; for a premium name, any later quote does. */
  doubtAboutCheck(check: CheckFact, isPremium: boolean, atMs: number): string | undefined {
    return this.#doubtAbout(check, atMs, this.quotes, (quote) => {
      return quote.term === termOfCheck(check) && (isPremium || quote.cents === check.cents);
    });
  }

  #doubtAbout<F extends Fact>(
    fact: Fact,
    atMs: number,
    others: readonly F[],
    confirms: (other: F) => boolean,
  ): string | undefined {
    const isDoubted = (end: EpochEnd): boolean =>
      fact.askedMs < end.askedMs &&
      end.arrivedMs < atMs &&
      !others.some((other) => other.askedMs >= end.askedMs && other.arrivedMs <= atMs && confirms(other));
    return this.epochEnds.find(isDoubted)?.why;
  }
}

/** Whether the check found a name at exactly the quoted price, so as an ordinary one. */
const confirms = (check: CheckFact, quote: QuoteFact): boolean =>
  check.available && termOfCheck(check) === quote.term && check.cents === quote.cents;

const termOfCheck = ({ years }: CheckFact): TermName => termOf("registration", years);

function termNamed({ action, years }: { readonly action: string; readonly years: number }): TermName {
  if (action === "registration" || action === "renewal" || action === "transfer")
    return termOf(action, years);
  throw new Error(`${action} isn't sold`);
}
