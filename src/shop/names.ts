/**
 * What is known about names. Availability is a fact about the name: what was asked last counts, with any term, and if two answers overlap, "taken"
 * does. The price is a fact about the name and the term.
 */
import { type Answered, justAfter } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { Entry, Known, Page } from "../facts/page.js";
import type { Ask } from "../quota/quota.js";
import type { Check } from "../upstream/contract.js";

/**
 * A visitor's ask. `spend` is called before each check and each price of the visitor's own, so possibly several times, and may throw to prevent
 * the call. Quotes that only decide about a check cost the visitor nothing.
 */
export interface VisitorAsk extends Ask {
  spend(): void;
}

export interface NameFact {
  readonly status: "available" | "taken";
  /** The check that says so. */
  readonly known: Known<Check>;
}

/** A check of a name for one term that showed a price. */
interface PricedCheck {
  readonly years: number;
  readonly check: Entry<Check>;
}

export interface Names {
  /** The fresh fact in memory, if any. */
  fresh(name: DomainName, years: number): NameFact | undefined;
  /** The fact from memory or the upstream. With `askedSince` (a stamp), only one asked since then counts. */
  find(ask: VisitorAsk, name: DomainName, years: number, askedSince?: number): Promise<NameFact>;
  /** The fact that the name is taken, if it is known and still usable. */
  taken(name: DomainName): NameFact | undefined;
  /** The last check for this term, whatever its age. */
  check(name: Pick<DomainName, "ascii">, years: number): Entry<Check> | undefined;
  /** The last check that showed a price and is still usable, whether the name is available or taken. */
  priced(name: DomainName): PricedCheck | undefined;
  countHits(count: number): void;
}

interface NamesSettings {
  readonly checks: Page<Check>;
  readonly check: (ask: Ask, name: DomainName, years: number) => Promise<Answered<Check>>;
  /** Called with each check in which something says that this may not be an ordinary name. */
  readonly onSign: (name: DomainName, askedAt: number) => void;
}

/** The terms that a registry can have (`catalog[].years`). */
const TERMS: readonly number[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

export function createNames({ checks, check, onSign }: NamesSettings): Names {
  /** The check that says whether the name is taken. */
  function latest(name: DomainName): { readonly key: string; readonly check: Entry<Check> } | undefined {
    let last: { readonly key: string; readonly check: Entry<Check> } | undefined;
    for (const years of TERMS) {
      const key = keyOf(name, years);
      const one = checks.last(key);
      if (one !== undefined && (last === undefined || outweighs(one, last.check))) last = { key, check: one };
    }
    return last;
  }

  function taken(name: DomainName): NameFact | undefined {
    const last = latest(name);
    const known = last?.check.value.status === "taken" ? checks.peek(last.key) : undefined;
    return known && { status: "taken", known };
  }

  function fresh(name: DomainName, years: number): NameFact | undefined {
    const status = latest(name)?.check.value.status;
    const fact = status === "taken" ? taken(name) : available(name, years);
    return fact?.known.source === "hit" ? fact : undefined;
  }

  function available(name: DomainName, years: number): NameFact | undefined {
    const known = checks.peek(keyOf(name, years));
    return known?.value.status === "available" ? { status: "available", known } : undefined;
  }

  async function find(
    ask: VisitorAsk,
    name: DomainName,
    years: number,
    askedSince?: number,
  ): Promise<NameFact> {
    const key = keyOf(name, years);
    if (askedSince === undefined) {
      const known = taken(name);
      if (known?.known.source === "hit") {
        checks.countHits(1);
        return known;
      }
      // A later check, for another term, says that it is available again.
      const own = checks.last(key);
      if (own?.value.status === "taken" && latest(name)?.check.value.status === "available")
        return find(ask, name, years, justAfter(own.answeredAt));
    }
    const known = await checks.get(
      key,
      ask,
      async (shared) => {
        ask.spend();
        const answered = await check(shared, name, years);
        if (answered.value.sign !== undefined) onSign(name, answered.askedAt);
        return answered;
      },
      askedSince === undefined ? {} : { askedSince },
    );
    // In the meantime another term may have been found taken.
    return taken(name) ?? { status: known.value.status, known };
  }

  return {
    fresh,
    find,
    taken,
    check: (name, years) => checks.last(keyOf(name, years)),
    priced(name) {
      let last: PricedCheck | undefined;
      for (const years of TERMS) {
        const one = checks.peek(keyOf(name, years));
        if (one?.value.wholesale === undefined || one.askedAt < (last?.check.askedAt ?? -Infinity)) continue;
        last = { years, check: one };
      }
      return last;
    },
    countHits: checks.countHits,
  };
}

function outweighs(one: Entry<Check>, other: Entry<Check>): boolean {
  const [first, second] = one.askedAt < other.askedAt ? [one, other] : [other, one];
  const overlap = second.askedAt <= first.answeredAt;
  if (overlap && one.value.status !== other.value.status) return one.value.status === "taken";
  return one.askedAt > other.askedAt;
}

function keyOf(name: Pick<DomainName, "ascii">, years: number): string {
  return `${name.ascii} ${years}`;
}
