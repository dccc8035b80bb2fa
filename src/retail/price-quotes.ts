/**
 * The last quote for each combination, and whether decisions can be based on it: a quote contradicted by evidence is doubtful until it has been
 * refreshed. It is shown as stale and never signed.
 */
import type { Known, Pool } from "../cache/cache.js";
import type { Caution } from "../cache/facts.js";
import { justAfter } from "../clock.js";
import { isExpected, ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { compareWholesale, sameWholesale, type Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import { SharedAsk } from "../quota/shared-ask.js";
import type { Answered } from "../upstream/call.js";
import type { Observed } from "./agreement.js";
import type { Combination } from "../upstream/contract.js";
import type { InEpoch, PriceEpochs } from "./price-epoch.js";

/** A quote in the pool. */
export interface Quote {
  readonly wholesale: Wholesale;
  readonly epoch: string;
  /** What the upstream quoted before its last change. */
  readonly former: Wholesale | null;
}

/** While two quotes overlap, the higher one wins. */
export const quoteCaution: Caution<Quote> = (a, b) => compareWholesale(a.wholesale, b.wholesale);

/** A price that is trusted can decide and be signed. */
export interface QuotedPrice extends Observed, Pick<Quote, "former"> {
  /** Wall clock, ms. */
  readonly asOfMs: number;
  /** It is past its freshness, or doubtful. */
  readonly stale: boolean;
}

/** A price within its freshness. */
export interface FreshPrice extends QuotedPrice {
  /** When its freshness ends; monotonic clock, ms. */
  readonly untilAt: number;
}

export interface PriceQuotes {
  /**
   * The quote for one combination: from memory if it isn't doubtful, else from the upstream, else the doubtful one. Past its freshness, it is
   * stale and is refreshed in the background. With `askedSinceMs`, only a quote requested after that and after all evidence against it counts.
   */
  quote(ask: Ask, what: Combination, askedSinceMs?: number): Promise<QuotedPrice>;
  /** The quote in memory if it is within its freshness. */
  fresh(what: Combination): FreshPrice | undefined;
  /** The quote in memory, stale or not, unless it is implausible. */
  peek(what: Combination): QuotedPrice | undefined;
  /** The same, plausible or not. */
  remembered(what: Combination): QuotedPrice | undefined;
  /** Whether the quote in memory isn't above that of a shorter term, so that it is probably wrong. It is then neither shown nor signed. */
  isImplausible(what: Combination): boolean;
  /** Refreshes the quote with a call, unless another replica has a newer one or is already asking for it. */
  refresh(by: Ask, what: Combination): Promise<void>;
  /** Makes the call even if it has just failed, and learns from the answer. */
  tryQuote(by: Ask, what: Combination): Promise<void>;
  /** Whether no evidence contradicts a price of this combination with that stamp and epoch. */
  isTrusted(what: Combination, price: InEpoch): boolean;
  /**
   * Reports a check with another price, answered at that stamp; quotes requested before become doubtful. Returns whether this report is newer than
   * earlier ones.
   */
  dispute(what: Combination, answeredMs: number): boolean;
}

interface PriceQuotesSettings {
  readonly pool: Pool<Quote, Ask>;
  readonly ask: (ask: Ask, what: Combination) => Promise<Answered<Wholesale>>;
  readonly epochs: PriceEpochs;
  /** Called when a quote has ended an epoch. */
  readonly onEpochEnded: () => void;
  /** Called after each dispute. */
  readonly onDispute: () => void;
  readonly log: Log;
}

export const BELOW_SHORTER = "The registry service's price for this term isn't above that of a shorter term.";

/** Nobody can buy at a doubtful price, so refreshing it takes precedence over searches, whatever the load. */
function urgently(by: Ask): Ask {
  return { ...by, lane: "checkout" };
}

export function createPriceQuotes(settings: PriceQuotesSettings): PriceQuotes {
  const { pool, epochs, log } = settings;
  const disputedAtMs = new Map<string, number>();

  function isTrusted(what: Combination, price: InEpoch): boolean {
    return !epochs.isDoubtful(price) && price.askedMs > (disputedAtMs.get(keyOf(what)) ?? -Infinity);
  }

  function priceOf(what: Combination, { value, ...known }: Known<Quote>): QuotedPrice {
    const { askedMs, answeredMs, unchangedSinceMs, settled, asOfMs, source } = known;
    const trusted = settled && isTrusted(what, { epoch: value.epoch, askedMs });
    return {
      wholesale: value.wholesale,
      askedMs,
      answeredMs,
      unchangedSinceMs,
      former: value.former,
      settled,
      asOfMs,
      isTrusted: trusted,
      stale: source === "stale" || !trusted,
    };
  }

  /** Whether a shorter term costs as much, so that this total is probably wrong. A doubtful price decides nothing. */
  function isBelowShorter(what: Combination, price: Wholesale): boolean {
    for (let years = 1; years < what.years; years += 1) {
      const shorter = remembered({ ...what, years });
      if (shorter?.isTrusted !== true || shorter.wholesale.currency !== price.currency) continue;
      if (compareWholesale(shorter.wholesale, price) >= 0) return true;
    }
    return false;
  }

  function remembered(what: Combination): QuotedPrice | undefined {
    const known = pool.peek(keyOf(what));
    return known && priceOf(what, known);
  }

  function isImplausible(what: Combination): boolean {
    const price = pool.peek(keyOf(what))?.value.wholesale;
    return price !== undefined && isBelowShorter(what, price);
  }

  function fresh(what: Combination): FreshPrice | undefined {
    const known = pool.fresh(keyOf(what));
    if (known === undefined || isBelowShorter(what, known.value.wholesale)) return undefined;
    return { ...priceOf(what, known), untilAt: known.untilMs };
  }

  async function load(ask: Ask, what: Combination): Promise<Answered<Quote>> {
    const { value: wholesale, askedMs, answeredMs } = await settings.ask(ask, what);
    const before = pool.peek(keyOf(what));
    const differs = before !== undefined && !sameWholesale(before.value.wholesale, wholesale);
    const former = (differs ? before.value.wholesale : before?.value.former) ?? null;
    const answered = (epoch: string): Answered<Quote> => ({
      value: { wholesale, epoch, former },
      askedMs,
      answeredMs,
    });
    // A late answer that has already been replaced is no evidence.
    if (!differs || answeredMs < before.askedMs) return answered(epochs.of(askedMs));
    const { epoch, wholesale: from } = before.value;
    const isDoubtful = epochs.isDoubtful({ epoch, askedMs: before.askedMs });
    // A single price in another currency is more likely an upstream error than a new price, unless the known one is doubtful.
    if (from.currency !== wholesale.currency && !isDoubtful) {
      log.warn("prices.currency.changed", { tld: what.tld, action: what.action, years: what.years });
      throw new ServiceError(
        "upstream_contract",
        "The registry service returned a price in another currency.",
      );
    }
    log.warn("prices.changed", { tld: what.tld, action: what.action, years: what.years });
    if (epochs.hasChangedSince({ epoch, askedMs: before.askedMs })) return answered(epochs.of(askedMs));
    epochs.end({ kind: "quote", ...what, from, to: wholesale }, { askedMs, answeredMs });
    settings.onEpochEnded();
    return answered(epochs.current());
  }

  /** A quote requested since `askedSinceMs`, or an older one if the load fails. */
  async function ask(by: Ask, what: Combination, askedSinceMs: number | null): Promise<QuotedPrice> {
    const known = await pool.get(
      keyOf(what),
      by,
      (flight) => load(new SharedAsk(flight, by), what),
      askedSinceMs === null ? { whileRevalidating: true } : { askedSinceMs },
    );
    return priceOf(what, known);
  }

  async function quote(by: Ask, what: Combination, askedSinceMs?: number): Promise<QuotedPrice> {
    const price = await asQuoted(by, what, askedSinceMs);
    if (isBelowShorter(what, price.wholesale)) throw new ServiceError("upstream_contract", BELOW_SHORTER);
    return price;
  }

  async function asQuoted(by: Ask, what: Combination, askedSinceMs?: number): Promise<QuotedPrice> {
    const before = remembered(what);
    const isDoubtful = before !== undefined && !before.isTrusted;
    const sinceMs = isDoubtful ? newerThan(what, before) : -Infinity;
    if (askedSinceMs !== undefined) return ask(by, what, Math.max(askedSinceMs, sinceMs));
    if (!isDoubtful) return ask(by, what, null);
    return ask(by, what, sinceMs).catch((error: unknown) => {
      if (isExpected(error)) return before;
      throw error;
    });
  }

  /** The earliest stamp at which a quote must be requested to be trusted, given that this one isn't. */
  function newerThan(what: Combination, { askedMs, answeredMs, settled }: QuotedPrice): number {
    const lastMs = settled ? askedMs : answeredMs;
    return justAfter(Math.max(lastMs, disputedAtMs.get(keyOf(what)) ?? -Infinity));
  }

  return {
    quote,
    fresh,
    peek: (what) => (isImplausible(what) ? undefined : remembered(what)),
    remembered,
    isImplausible,
    async refresh(by, what) {
      const known = remembered(what);
      const sinceMs = known === undefined ? -Infinity : newerThan(what, known);
      await ask(known?.isTrusted === false ? urgently(by) : by, what, sinceMs);
    },
    tryQuote: async (by, what) => pool.learn(keyOf(what), await load(by, what)),
    isTrusted,
    dispute(what, answeredMs) {
      if (answeredMs <= (disputedAtMs.get(keyOf(what)) ?? -Infinity)) return false;
      disputedAtMs.set(keyOf(what), answeredMs);
      settings.onDispute();
      return true;
    },
  };
}

/** The key of a combination's quote in the pool. */
export function keyOf({ tld, action, years }: Combination): string {
  return `${tld} ${action} ${years}`;
}
