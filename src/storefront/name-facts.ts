/**
 * The known facts about names. Availability is a fact about the name: "taken", learned with any term, replaces "available" for every term.
 * The price is a fact about the name and the term. When answers overlap, "taken" and the higher price win.
 */
import type { Pool, PooledFact, Source } from "../cache/cache.js";
import type { Caution, Fact } from "../cache/facts.js";
import { justAfter } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import { compareWholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import { SharedAsk } from "../quota/shared-ask.js";
import type { PriceEpochs } from "../retail/price-epoch.js";
import type { Answered } from "../upstream/call.js";
import type { Check, Combination } from "../upstream/contract.js";
import type { PremiumMarks } from "./premium-marks.js";

/**
 * A visitor's ask. `spend` is called before each check and each price of the visitor's own, so possibly several times, and may throw to prevent
 * the call. Quotes that only decide about a check cost the visitor nothing.
 */
export interface VisitorAsk extends Ask {
  spend(): void;
}

/**
 * The same ask for a further call that a check needs, such as the quote for its TLD. It goes first: the check has been paid for, perhaps with a
 * reserved call, and would be wasted without it.
 */
export function toComplete(ask: VisitorAsk): VisitorAsk {
  return { ...ask, lane: "checkout" };
}

export type NameStatus = "available" | "taken";

/** A check with the price epoch in which it was requested. */
export type PricedCheck = Check & { readonly epoch: string };

type Available = Extract<PricedCheck, { status: "available" }>;

export interface TakenFact {
  readonly status: "taken";
  readonly source: Source;
  readonly pooled: PooledFact<unknown>;
}

export interface AvailableFact {
  readonly status: "available";
  readonly source: Source;
  readonly pooled: PooledFact<Available>;
}

export type NameFact = TakenFact | AvailableFact;

/** A fact in memory. */
export type FreshFact = NameFact & {
  /** When its freshness ends; monotonic clock, ms. */
  readonly untilAt: number;
};

export interface ShownPrice {
  readonly what: Combination;
  readonly pooled: PooledFact<Available>;
}

export interface NameFacts {
  /** The fresh fact in memory, if any. */
  fresh(name: DomainName, years: number): FreshFact | undefined;
  /** The fact from memory or the upstream. With `askedSinceMs` (a stamp), only one requested since then counts. */
  find(ask: VisitorAsk, name: DomainName, years: number, askedSinceMs?: number): Promise<NameFact>;
  /** The fact that the name is taken, if one is known. */
  taken(name: DomainName): TakenFact | undefined;
  /** The registration prices in known checks of the name, whether it is available or taken. */
  shownPrices(name: DomainName, terms: readonly number[]): readonly ShownPrice[];
  countHits(count: number): void;
}

interface NameFactPools {
  readonly statuses: Pool<NameStatus, VisitorAsk>;
  readonly checks: Pool<PricedCheck, VisitorAsk>;
}

interface NameFactSettings {
  readonly pools: NameFactPools;
  readonly marks: Pick<PremiumMarks, "note">;
  readonly check: (ask: Ask, name: DomainName, years: number) => Promise<Answered<Check>>;
  readonly epochs: Pick<PriceEpochs, "of">;
}

export const statusCaution: Caution<NameStatus> = (a, b) => Number(a === "taken") - Number(b === "taken");

/** The prices of a taken name can contradict each other, too: then one may have changed with the list, which doesn't make the name premium. */
export const checkCaution: Caution<PricedCheck> = (a, b) =>
  statusCaution(a.status, b.status) ||
  (a.wholesale !== undefined && b.wholesale !== undefined
    ? compareWholesale(a.wholesale, b.wholesale)
    : Number(a.wholesale !== undefined) - Number(b.wholesale !== undefined));

export function createNameFacts({ pools, marks, check, epochs }: NameFactSettings): NameFacts {
  const { statuses, checks } = pools;
  const keyOf = (name: DomainName, years: number): string => `${name.ascii} ${years}`;

  async function load(
    ask: VisitorAsk,
    name: DomainName,
    years: number,
    shared: Ask,
  ): Promise<Fact<PricedCheck>> {
    ask.spend();
    const { value, askedMs, answeredMs } = await check(shared, name, years);
    statuses.learn(name.ascii, { value: value.status, askedMs, answeredMs });
    if (value.sign !== undefined)
      marks.note(name, {
        value: { isPremium: true, years, isBySign: true },
        askedMs,
        answeredMs,
      });
    return { value: { ...value, epoch: epochs.of(askedMs) }, askedMs, answeredMs };
  }

  function fresh(name: DomainName, years: number): FreshFact | undefined {
    const status = statuses.fresh(name.ascii);
    if (status?.value === "taken")
      return { status: "taken", source: "hit", pooled: status, untilAt: status.untilMs };
    const pooled = checks.fresh(keyOf(name, years));
    if (pooled === undefined) return undefined;
    // The status that outdates a check may be past its freshness before the check is.
    const last = pooled.value.status === "taken" ? statuses.peek(name.ascii) : undefined;
    if (last !== undefined && isOutdated(pooled, last)) return undefined;
    return { ...factOf(pooled, "hit"), untilAt: pooled.untilMs };
  }

  async function find(
    ask: VisitorAsk,
    name: DomainName,
    years: number,
    askedSinceMs?: number,
  ): Promise<NameFact> {
    if (askedSinceMs === undefined) {
      const status = statuses.fresh(name.ascii);
      if (status?.value === "taken") {
        checks.countHits(1);
        return { status: "taken", source: "hit", pooled: status };
      }
    }
    const key = keyOf(name, years);
    const { source, ...pooled } = await checks.get(
      key,
      ask,
      (flight) => load(ask, name, years, new SharedAsk(flight, ask)),
      askedSinceMs === undefined ? {} : { askedSinceMs },
    );
    const status = statuses.peek(name.ascii);
    if (status !== undefined && source !== "miss" && isOutdated(pooled, status))
      return find(ask, name, years, justAfter(pooled.answeredMs));
    if (status?.value !== "taken" || pooled.value.status === "taken") return factOf(pooled, source);
    // An overlapping answer said "taken", so a demanding caller needs a third one to decide.
    if (askedSinceMs !== undefined && askedSinceMs <= status.answeredMs)
      return find(ask, name, years, justAfter(Math.max(status.answeredMs, pooled.answeredMs)));
    return { status: "taken", source: status.source === "stale" ? "stale" : source, pooled: status };
  }

  return {
    fresh,
    find,
    taken(name) {
      const status = statuses.peek(name.ascii);
      return status?.value === "taken"
        ? { status: "taken", source: status.source, pooled: status }
        : undefined;
    },
    shownPrices(name, terms) {
      const shown: ShownPrice[] = [];
      for (const years of terms) {
        const known = checks.peek(keyOf(name, years));
        const wholesale = known?.value.wholesale;
        if (known === undefined || wholesale === undefined) continue;
        const { source: _, value, ...times } = known;
        shown.push({
          what: { tld: name.tld, action: "registration", years },
          pooled: { ...times, value: { ...value, status: "available", wholesale } },
        });
      }
      return shown;
    },
    countHits: checks.countHits,
  };
}

/** Whether the check says "taken" and a later one, for another term, says "available". */
function isOutdated(check: PooledFact<PricedCheck>, status: PooledFact<NameStatus>): boolean {
  return check.value.status === "taken" && status.value === "available" && check.askedMs < status.askedMs;
}

function factOf(pooled: PooledFact<PricedCheck>, source: Source): NameFact {
  return isAvailable(pooled) ? { status: "available", source, pooled } : { status: "taken", source, pooled };
}

function isAvailable(pooled: PooledFact<PricedCheck>): pooled is PooledFact<Available> {
  return pooled.value.status === "available";
}
