/** The last known wholesale price of every combination sold, refreshed in the background and kept across restarts. */
import type { Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import type { Answered } from "../upstream/call.js";
import type { LivePolicy } from "./live-policy.js";
import type { Combination } from "../upstream/contract.js";
import { createPriceChanges, type PriceChange } from "./price-changes.js";
import type { PriceEpochs } from "./price-epoch.js";
import type { PriceFacts } from "./price-facts.js";
import { BELOW_SHORTER, createPriceQuotes, keyOf, type PriceQuotes, type Quote } from "./price-quotes.js";
import { createPriceRefresh, type PriceRefresh, type PriceRefreshSettings } from "./price-refresh.js";

export interface PriceFact extends Combination {
  readonly wholesale: Wholesale;
  readonly asOfMs: number;
  readonly stale: boolean;
  /** Evidence contradicts it, or staff have purged it; it is being refreshed. */
  readonly isDoubtful: boolean;
  /** Its last change, if less than a day ago. */
  readonly changed?: PriceChange;
  /** Until when it stays like this unless something new is learned; monotonic clock, ms. */
  readonly untilAt: number;
}

export interface PriceList
  extends
    Pick<PriceQuotes, "quote" | "tryQuote" | "fresh" | "peek" | "isTrusted">,
    Pick<PriceRefresh, "unknown" | "failures"> {
  /** Reports a check with another price, answered at that stamp; quotes requested before become doubtful. */
  dispute(what: Combination, answeredMs: number): void;
  /** Reports a check with the quote's amount; the quote becomes as recent as the check. */
  confirm(what: Combination, check: Answered<Quote>): void;
  /** Refreshes a doubtful price before the others. */
  refreshFirst(what: Combination): void;
  /** Every known price, from memory, in the order of the catalogue. */
  facts(): readonly PriceFact[];
  /** Whether the price of every registration sold is known, so that a name needs no call for it. */
  knowsRegistrations(): boolean;
  /** How many combinations are sold. */
  readonly size: number;
  /** Loads the last known prices, saved before a restart or by the former owner, without upstream calls. Never rejects. */
  restore(): Promise<void>;
  /** The stamp since which the tier must be requested before saved prices can be trusted; null if none wait for it. */
  awaitsTierSinceMs(): number | null;
  /** Starts the refresh loop; returns a function that stops it. */
  keepWarm(): () => void;
}

interface PriceListSettings extends Omit<PriceRefreshSettings, "sold" | "quotes" | "onRefreshed"> {
  /** Called when evidence has made a price doubtful. */
  readonly onDispute: () => void;
  /** Defines what is sold. */
  readonly policies: Pick<LivePolicy, "current" | "onChange">;
  readonly ask: (ask: Ask, what: Combination) => Promise<Answered<Wholesale>>;
  readonly epochs: PriceEpochs;
  readonly saved: PriceFacts;
}

/** How long refreshing waits on startup for the tier, which may confirm all saved prices with a single call. */
const TIER_FIRST_MS = 3_000;

export function createPriceList(settings: PriceListSettings): PriceList {
  const { policies, pool, epochs, clock, log } = settings;
  const sold = (): readonly Combination[] => policies.current().combinations();
  const changes = createPriceChanges(clock);
  const quotes = createPriceQuotes({ ...settings, onEpochEnded: save });
  const refresh = createPriceRefresh({
    ...settings,
    sold,
    quotes,
    onRefreshed(prices) {
      log.info("prices.refreshed", { refreshed: prices, known: facts().length, sold: sold().length });
      save();
    },
  });
  epochs.onChange(refresh.now);
  policies.onChange(refresh.now);

  function facts(): readonly PriceFact[] {
    return sold().flatMap((what): PriceFact[] => {
      const [known, price] = [pool.peek(keyOf(what)), quotes.peek(what)];
      if (known === undefined || price === undefined) return [];
      const { wholesale, asOfMs, stale, isTrusted } = price;
      const changed = changes.noted(keyOf(what), wholesale, asOfMs);
      const untilAt = known.untilMs;
      return [
        { ...what, wholesale, asOfMs, stale, isDoubtful: !isTrusted, untilAt, ...(changed && { changed }) },
      ];
    });
  }

  function save(): void {
    const prices = sold().flatMap((what) => {
      const known = quotes.peek(what);
      if (known === undefined) return [];
      const { wholesale, askedMs, answeredMs, isTrusted } = known;
      return [{ ...what, wholesale, askedMs, answeredMs, isDoubtful: !isTrusted }];
    });
    if (prices.length > 0) settings.saved.save({ tier: epochs.tier(), prices });
  }

  async function restore(): Promise<void> {
    const { prices, tier } = await settings.saved.load();
    for (const { wholesale, isDoubtful, askedMs, answeredMs, ...what } of prices) {
      const epoch = isDoubtful ? "" : epochs.current();
      if (sold().some((one) => keyOf(one) === keyOf(what)))
        pool.learn(keyOf(what), { value: { wholesale, epoch, former: null }, askedMs, answeredMs });
    }
    epochs.resume(tier);
  }

  function awaitsTierSinceMs(): number | null {
    const sinceMs = epochs.awaitsTierSinceMs();
    if (sinceMs === null) return null;
    const isSaved = (what: Combination): boolean => (pool.peek(keyOf(what))?.askedMs ?? Infinity) <= sinceMs;
    return sold().some(isSaved) ? sinceMs : null;
  }

  return {
    quote: quotes.quote,
    tryQuote: quotes.tryQuote,
    fresh: quotes.fresh,
    peek: quotes.peek,
    isTrusted: quotes.isTrusted,
    unknown: refresh.unknown,
    failures: () => [
      ...sold().flatMap((what) => (quotes.isImplausible(what) ? [BELOW_SHORTER] : [])),
      ...refresh.failures(),
    ],
    dispute(what, answeredMs) {
      if (quotes.dispute(what, answeredMs)) refresh.want(what);
    },
    confirm(what, check) {
      const known = pool.peek(keyOf(what));
      if (known === undefined || check.askedMs > known.askedMs) pool.learn(keyOf(what), check);
    },
    refreshFirst(what) {
      if (refresh.want(what)) refresh.now();
    },
    knowsRegistrations: () =>
      sold().every((what) => what.action !== "registration" || quotes.peek(what) !== undefined),
    facts,
    get size() {
      return sold().length;
    },
    restore,
    awaitsTierSinceMs,
    keepWarm() {
      const stop = refresh.start(awaitsTierSinceMs() === null ? 0 : TIER_FIRST_MS);
      return () => {
        stop();
        save();
      };
    },
  };
}

/** When the oldest of the facts was requested, or `otherwise` without any. */
export function oldest(facts: readonly PriceFact[], otherwise: number): number {
  return facts.reduce((least, { asOfMs }) => Math.min(least, asOfMs), otherwise);
}
