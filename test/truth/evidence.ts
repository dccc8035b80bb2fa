/** What the upstream has told the service, and when: each answer with the moments at which it was asked and at which it arrived. */
import type { Delivered } from "../../src/sandbox/sandbox.js";
import type { TermName } from "./history.js";
import { NAMES, termOf } from "./world.js";

export interface Fact {
  readonly askedMs: number;
  readonly arrivedMs: number;
}

interface Counted {
  /** It was known already, and not too old for anybody who waited: only a doubt asks again. */
  readonly isAgain: boolean;
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

/** From `askedMs` on everybody can know that prices asked before it are doubtful. */
export interface EpochEnd extends Fact {
  readonly why: string;
}

const isBefore = (a: Fact, b: Fact): boolean => a.arrivedMs < b.askedMs;

/** How old a fact may get before it is asked again without any doubt, in ms: to be shown, and to be signed. */
const FRESH_MS = {
  shown: { available: 27_000, taken: 800_000, quote: 2_800_000 },
  signed: { available: 5_000, taken: 5_000, quote: 55_000 },
} as const;

export class Evidence {
  readonly checks: (CheckFact & Counted)[] = [];
  readonly quotes: (QuoteFact & Counted)[] = [];
  readonly ends: EpochEnd[] = [];
  calls = 0;
  #tier: TierFact | null = null;
  #checksSinceMs = -1;
  #quotesSinceMs = -1;

  /** How many calls asked for what was known and fresh. */
  get again(): number {
    return [...this.checks, ...this.quotes].filter(({ isAgain }) => isAgain).length;
  }

  /** What is known of a name, unless it has been forgotten since. */
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
        const isAgain = this.checksOf(name).some(
          (known) =>
            (!known.available || known.years === years) &&
            when.askedMs - known.askedMs <= freshMs[known.available ? "available" : "taken"],
        );
        this.checks.push({ ...when, name, years, available, cents: price?.cents ?? 0, isAgain });
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

  /** Staff purge what is known of names: it need not be remembered any more. */
  forgetChecks(atMs: number): void {
    this.#checksSinceMs = atMs;
  }

  /** Staff purge the prices: they are asked again without a doubt, but what has contradicted them still does. */
  forgetQuotes(atMs: number): void {
    this.#quotesSinceMs = atMs;
  }

  #addQuote(quote: QuoteFact, freshMs: number): void {
    const before = this.quotes.filter(({ term }) => term === quote.term);
    const isAgain = before.some(
      (known) => known.arrivedMs > this.#quotesSinceMs && quote.askedMs - known.askedMs <= freshMs,
    );
    const last = before.findLast((known) => isBefore(known, quote));
    if (last !== undefined && last.cents !== quote.cents && !this.#isExplained(last, quote))
      this.ends.push({ ...quote, why: `${quote.term} was ${last.cents} and is ${quote.cents}` });
    this.quotes.push({ ...quote, isAgain });
  }

  /**
   * Whether the change that ended an epoch explains this one too. It may have happened as late as the answer that showed it, so what was
   * asked before that says nothing against it.
   */
  #isExplained(last: QuoteFact, quote: QuoteFact): boolean {
    const wasStill = this.checks.filter(
      (check) => check.arrivedMs <= quote.arrivedMs && confirms(check, last),
    );
    const unchangedMs = Math.max(last.askedMs, ...wasStill.map(({ askedMs }) => askedMs));
    return this.ends.some((end) => unchangedMs < end.arrivedMs && end.arrivedMs <= quote.arrivedMs);
  }

  #addTier(tier: TierFact): void {
    const last = this.#tier;
    if (last !== null && !isBefore(last, tier)) return;
    if (last !== null && last.tier !== tier.tier)
      this.ends.push({ ...tier, why: `the tier was ${last.tier} and is ${tier.tier}` });
    this.#tier = tier;
  }

  /** Why a quote is doubtful at this moment, if it is: the list has changed since, and no ordinary name has been checked at its amount. */
  doubtAboutQuote(quote: QuoteFact, atMs: number): string | undefined {
    return this.#doubtAbout(quote, atMs, this.checks, (check) => confirms(check, quote));
  }

  /** The same of a check: it stands again as soon as the quote for its term has been asked and agrees, or the name is premium. */
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
    return this.ends.find(isDoubted)?.why;
  }
}

/** An ordinary name has just this price. */
const confirms = (check: CheckFact, quote: QuoteFact): boolean =>
  check.available && termOfCheck(check) === quote.term && check.cents === quote.cents;

const termOfCheck = ({ years }: CheckFact): TermName => termOf("registration", years);

function termNamed({ action, years }: { readonly action: string; readonly years: number }): TermName {
  if (action === "registration" || action === "renewal" || action === "transfer")
    return termOf(action, years);
  throw new Error(`nobody sells ${action}`);
}
