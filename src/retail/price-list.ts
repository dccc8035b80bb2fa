/**
 * The last known quote of every combination sold, refreshed in the background and kept across restarts. A quote that isn't current
 * (`facts/price-changes.ts`) is shown as stale and never signed.
 */
import { isExpected, ServiceError } from "../errors.js";
import type { Notebook, Observed, Quote } from "../facts/notebook.js";
import type { Known } from "../facts/page.js";
import { type Answered, justAfter } from "../clock.js";
import { compareWholesale, sameWholesale, type Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import type { Combination } from "../upstream/contract.js";
import type { LivePolicy } from "./live-policy.js";
import { createPriceRefresh, keyOf, type PriceRefresh, type PriceRefreshSettings } from "./price-refresh.js";
import type { SavedPrices } from "./saved-prices.js";

/** A known quote. Only a current one decides and is signed. */
export interface KnownQuote extends Quote, Observed {
  /** Wall clock, ms. */
  readonly asOfMs: number;
  /** It is past its freshness, or not current. */
  readonly stale: boolean;
  /** Evidence contradicts it, or staff have purged it. */
  readonly isOutdated: boolean;
  /** Until when it stays like this unless something new is learned; on the clock of facts, ms. */
  readonly untilAt: number;
}

export interface PriceList extends Pick<PriceRefresh, "unknown"> {
  /**
   * The price of one combination: from memory if it is current, else from the upstream, else the last one. Past its freshness, it is stale and is
   * refreshed in the background. With `askedSince`, it is asked at that stamp or later and after all evidence that has arrived by now, or this rejects.
   */
  ask(ask: Ask, what: Combination, askedSince?: number): Promise<KnownQuote>;
  /** The price in memory, stale or not, unless it is implausible. */
  peek(what: Combination): KnownQuote | undefined;
  /** Every known price, from memory, in the order of the catalogue. */
  all(): readonly KnownQuote[];
  /** A check shows another price, so one asked before that stamp isn't current any more. */
  contest(what: Combination, since: number): void;
  /** Asks again for a stale price before the others. */
  refreshFirst(what: Combination): void;
  /** Makes the call even if it has just failed, and learns from the answer. */
  tryQuote(ask: Ask, what: Combination): Promise<void>;
  /** For each price that is missing, refused or couldn't be refreshed: the reason, as a sentence for staff. */
  failures(): string[];
  /** How many combinations are sold. */
  readonly size: number;
  /** Loads the prices that were saved before a restart or by the former owner, without upstream calls. Never rejects. */
  restore(): Promise<void>;
  /** Starts the refresh loop; returns a function that stops it. */
  keepWarm(): () => void;
}

interface PriceListSettings extends Omit<
  PriceRefreshSettings,
  "sold" | "peek" | "refresh" | "lastAnswerAt" | "onRefreshed"
> {
  readonly notebook: Pick<Notebook, "quotes" | "changes">;
  /** Defines what is sold. */
  readonly policies: Pick<LivePolicy, "current" | "onChange">;
  readonly quote: (ask: Ask, what: Combination) => Promise<Answered<Wholesale>>;
  readonly saved: SavedPrices;
  /** Called when a price was contested. */
  readonly onChange: () => void;
}

const BELOW_SHORTER = "The registry service's price for this term isn't above that of a shorter term.";

export function createPriceList(settings: PriceListSettings): PriceList {
  const { policies, saved, log } = settings;
  const { quotes, changes } = settings.notebook;
  const sold = (): readonly Combination[] => policies.current().combinations();
  const contestedAt = new Map<string, number>();
  /** The stamp since which it must be asked because a check has shown another price. */
  const contestedSince = (what: Combination): number => contestedAt.get(keyOf(what)) ?? -Infinity;
  const refresh = createPriceRefresh({
    ...settings,
    sold,
    peek: remembered,
    lastAnswerAt: (what) => quotes.last(keyOf(what))?.answeredAt ?? -Infinity,
    async refresh(by, what) {
      const price = remembered(what);
      // Nobody can buy at an outdated price, so refreshing it takes precedence over searches, whatever the load.
      const urgently: Ask = price?.isOutdated === true ? { ...by, lane: "checkout" } : by;
      await load(urgently, what, justAfter(price?.askedAt ?? -Infinity));
    },
    onRefreshed(prices) {
      log.info("prices.refreshed", { refreshed: prices, known: all().length, sold: sold().length });
      save();
    },
  });
  changes.onChange(() => {
    save();
    refresh.now();
  });
  policies.onChange(refresh.now);

  function priceOf({ value, source, ...times }: Known<Quote>): KnownQuote {
    const isContested = times.askedAt < contestedSince(value);
    const isCurrent = changes.isCurrent(times) && !isContested;
    const isOutdated = changes.isOutdated(times) || isContested;
    return { ...value, ...times, isCurrent, isOutdated, stale: source === "stale" || !isCurrent };
  }

  function remembered(what: Combination): KnownQuote | undefined {
    const known = quotes.peek(keyOf(what));
    return known && priceOf(known);
  }

  /** Whether a shorter term costs as much, so that this total is probably wrong. */
  function isImplausible({ tld, action, years, wholesale }: KnownQuote): boolean {
    for (let fewer = 1; fewer < years; fewer += 1) {
      const shorter = remembered({ tld, action, years: fewer });
      if (shorter?.isCurrent !== true || shorter.wholesale.currency !== wholesale.currency) continue;
      if (compareWholesale(shorter.wholesale, wholesale) >= 0) return true;
    }
    return false;
  }

  function peek(what: Combination): KnownQuote | undefined {
    const price = remembered(what);
    return price === undefined || isImplausible(price) ? undefined : price;
  }

  async function quoted(by: Ask, what: Combination): Promise<Answered<Quote>> {
    const { value: wholesale, ...times } = await settings.quote(by, what);
    const { tld, action, years } = what;
    const before = quotes.peek(keyOf(what));
    if (before === undefined) return { value: { tld, action, years, wholesale }, ...times };
    const from = before.value.wholesale;
    if (sameWholesale(from, wholesale)) return { value: before.value, ...times };
    // A single price in another currency is more likely an upstream error than a new price, unless the known one is outdated.
    if (from.currency !== wholesale.currency && changes.isCurrent(before)) {
      log.warn("prices.currency.changed", { tld, action, years });
      throw new ServiceError(
        "upstream_contract",
        "The registry service returned a price in another currency.",
      );
    }
    return {
      value: { tld, action, years, wholesale, changed: { from, atMs: settings.clock.now() } },
      ...times,
    };
  }

  async function load(by: Ask, what: Combination, askedSince: number): Promise<KnownQuote> {
    const known = await quotes.get(
      keyOf(what),
      by,
      (shared) => quoted(shared, what),
      askedSince === -Infinity ? { whileRevalidating: true } : { askedSince },
    );
    return priceOf(known);
  }

  async function ask(by: Ask, what: Combination, askedSince?: number): Promise<KnownQuote> {
    const before = remembered(what);
    const currentSince =
      before?.isCurrent === false
        ? Math.max(justAfter(changes.currentSince()), contestedSince(what))
        : -Infinity;
    let price: KnownQuote;
    try {
      price = await load(by, what, Math.max(askedSince ?? -Infinity, currentSince));
    } catch (error) {
      if (askedSince !== undefined || before === undefined || !isExpected(error)) throw error;
      price = before;
    }
    if (isImplausible(price)) throw new ServiceError("upstream_contract", BELOW_SHORTER);
    return price;
  }

  function all(): readonly KnownQuote[] {
    return sold().flatMap((what) => peek(what) ?? []);
  }

  function save(): void {
    const prices = all().map(({ tld, action, years, wholesale, askedAt }) => {
      return { tld, action, years, wholesale, askedAt };
    });
    if (prices.length > 0) saved.save({ tier: changes.tier(), prices });
  }

  return {
    ask,
    peek,
    all,
    unknown: refresh.unknown,
    refreshFirst: refresh.first,
    contest(what, since) {
      if (since <= contestedSince(what)) return;
      contestedAt.set(keyOf(what), since);
      settings.onChange();
    },
    tryQuote: async (by, what) => {
      quotes.learn(keyOf(what), await quoted(by, what));
    },
    failures: () => [
      ...sold().flatMap((what) => {
        const price = remembered(what);
        return price !== undefined && isImplausible(price) ? [BELOW_SHORTER] : [];
      }),
      ...refresh.failures(),
    ],
    get size() {
      return sold().length;
    },
    async restore() {
      const { prices, tier } = await saved.load();
      const known = new Set(sold().map(keyOf));
      for (const { wholesale, askedAt, ...what } of prices)
        if (known.has(keyOf(what)))
          quotes.learn(keyOf(what), { value: { ...what, wholesale }, askedAt, answeredAt: askedAt });
      changes.restart(tier);
    },
    keepWarm() {
      const stop = refresh.start();
      return () => {
        stop();
        save();
      };
    },
  };
}

/** When the oldest of the prices was asked, or `otherwise` without any. */
export function oldest(prices: readonly Pick<KnownQuote, "asOfMs">[], otherwise: number): number {
  return prices.reduce((least, { asOfMs }) => Math.min(least, asOfMs), otherwise);
}
