/**
 * The wholesale price of every combination sold, refreshed in the background, so that no visitor waits for a price. A price that evidence
 * contradicts is doubtful until it has been refreshed: it is shown as stale and decides nothing. Prices that visitors need come first.
 */
import type { Known, Pool } from "../cache/cache.js";
import type { Caution } from "../cache/facts.js";
import { type Clock, justAfter } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { compareWholesale, sameWholesale, type Wholesale } from "../money.js";
import { type Background, inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import { sharedAsk } from "../quota/shared-ask.js";
import type { Answered } from "../upstream/call.js";
import type { Combination } from "./policy.js";
import type { InEpoch, PriceEpochs } from "./price-epoch.js";
import type { LivePolicy } from "./live-policy.js";
import { createPriceChanges, type PriceChange } from "./price-changes.js";
import type { PriceFacts } from "./price-facts.js";

/** A quote in the pool. */
export interface Quote {
  readonly wholesale: Wholesale;
  readonly epoch: string;
}

/** While two quotes overlap, the higher one wins. */
export const quoteCaution: Caution<Quote> = (a, b) => compareWholesale(a.wholesale, b.wholesale);

export interface QuotedPrice {
  readonly wholesale: Wholesale;
  readonly askedMs: number;
  readonly answeredMs: number;
  readonly unchangedSinceMs: number;
  /** What the upstream quoted before its last change, as far as this process has seen. */
  readonly former: Wholesale | null;
  readonly settled: boolean;
  /** Wall clock, ms. */
  readonly asOfMs: number;
  /** No known fact contradicts it, so it can decide and be signed. */
  readonly isTrusted: boolean;
  /** It is past its freshness, or doubtful. */
  readonly stale: boolean;
}

export interface PriceFact extends Combination {
  readonly wholesale: Wholesale;
  readonly asOfMs: number;
  readonly stale: boolean;
  /** Evidence contradicts it, and it is being refreshed. */
  readonly isDoubtful: boolean;
  /** Its last change, if less than a day ago. */
  readonly changed?: PriceChange;
}

export interface PriceList {
  /**
   * The quote for one combination: from memory if it is fresh and not doubtful, else from the upstream, else the old one marked as stale.
   * With `askedSinceMs`, only a quote requested since then and since all evidence against it is used.
   */
  quote(ask: Ask, what: Combination, askedSinceMs?: number): Promise<QuotedPrice>;
  /** The quote in memory if it is within its freshness: the same object until something about it changes. */
  fresh(what: Combination): QuotedPrice | undefined;
  /** The quote in memory, stale or not. */
  peek(what: Combination): QuotedPrice | undefined;
  /** Whether no evidence contradicts a price of this combination with that stamp and epoch. */
  isTrusted(what: Combination, price: InEpoch): boolean;
  /** Reports a check with another price, answered at that stamp; quotes requested before become doubtful. */
  dispute(what: Combination, answeredMs: number): void;
  /** Reports a check with the quote's amount; the quote becomes as recent as the check. */
  confirm(what: Combination, check: Answered<Quote>): void;
  /** Refreshes a doubtful price before the others. */
  renewFirst(what: Combination): void;
  /** Every known price, from memory, in the order of the catalogue: the same list until something changes. */
  facts(): readonly PriceFact[];
  /** How long until unknown prices can be expected, in ms: at most a window, unless the quota has no room for longer. */
  expectedInMs(): number;
  /** How many combinations are sold. */
  readonly size: number;
  /** For each price whose last refresh failed at the upstream: the reason, as a sentence for staff. */
  failures(): string[];
  /** Loads the last known prices, saved before a restart or shared by other replicas, without upstream calls. Never rejects. */
  restore(): Promise<void>;
  /** Starts the refresh loop; returns a function that stops it. */
  keepWarm(): () => void;
}

interface PriceListSettings {
  /** Defines what is sold. */
  readonly policies: Pick<LivePolicy, "current" | "onChange">;
  readonly pool: Pool<Quote, Ask>;
  readonly ask: (ask: Ask, what: Combination) => Promise<Answered<Wholesale>>;
  readonly epochs: PriceEpochs;
  readonly saved: PriceFacts;
  readonly freshMs: number;
  /** How long until the quota has room for background work, in ms. */
  readonly roomInMs: () => number;
  /** Of the quota. */
  readonly windowMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

/** The last list of facts, and what it depends on. */
interface Listed {
  readonly facts: readonly PriceFact[];
  readonly sold: readonly Combination[];
  readonly version: number;
  readonly untilMs: number;
  readonly untilNowMs: number;
}

/** Prices are refreshed at this share of their freshness. */
const REFRESH_AT = 0.8;
const CHECK_EVERY_MS = 5_000;
const AT_A_TIME = 2;
/** Nobody can buy at a doubtful price, so refreshing it takes precedence over searches, whatever the load. */
function urgently(by: Ask): Ask {
  return { ...by, lane: "checkout" };
}

/** Waits on startup for the tier, which may confirm all saved prices with a single call. */
const TIER_FIRST_MS = 3_000;
/** The longest that a visitor waits for another replica's call, which may be background work waiting for quota. */
const VISITOR_OTHERS_MS = 1_000;

export function createPriceList(settings: PriceListSettings): PriceList {
  const { policies, pool, epochs, windowMs, clock, log } = settings;
  const sold = (): readonly Combination[] => policies.current().combinations();
  const changes = createPriceChanges(clock);
  const failed = new Map<string, { readonly why: string; readonly atMs: number }>();
  const disputedAtMs = new Map<string, number>();
  const formers = new Map<string, Wholesale>();
  const quoted = new WeakMap<object, { readonly price: QuotedPrice; readonly version: number }>();
  const wanted = new Set<string>();
  let listed: Listed | null = null;
  let disputes = 0;
  let background: Background | null = null;

  const version = (): number => pool.changes() + epochs.changes() + disputes;

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
      former: formers.get(keyOf(what)) ?? null,
      settled,
      asOfMs,
      isTrusted: trusted,
      stale: source === "stale" || !trusted,
    };
  }

  function peek(what: Combination): QuotedPrice | undefined {
    const known = pool.peek(keyOf(what));
    return known && priceOf(what, known);
  }

  function fresh(what: Combination): QuotedPrice | undefined {
    const kept = pool.fresh(keyOf(what));
    if (kept === undefined) return undefined;
    const before = quoted.get(kept);
    const now = epochs.changes() + disputes;
    if (before?.version === now) return before.price;
    const price = priceOf(what, { ...kept, source: "hit" });
    quoted.set(kept, { price, version: now });
    return price;
  }

  async function load(ask: Ask, what: Combination): Promise<Answered<Quote>> {
    const { value: wholesale, askedMs, answeredMs } = await settings.ask(ask, what);
    const answered = (epoch: string): Answered<Quote> => ({
      value: { wholesale, epoch },
      askedMs,
      answeredMs,
    });
    const before = pool.peek(keyOf(what));
    const differs = before !== undefined && !sameWholesale(before.value.wholesale, wholesale);
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
    formers.set(keyOf(what), from);
    if (epochs.hasChangedSince({ epoch, askedMs: before.askedMs })) return answered(epochs.of(askedMs));
    epochs.end({ kind: "quote", ...what, from, to: wholesale });
    save();
    return answered(epochs.current());
  }

  /** A quote requested since `askedSinceMs`, or an older one if the load fails. */
  async function ask(by: Ask, what: Combination, askedSinceMs: number | null): Promise<QuotedPrice> {
    const known = await pool.get(keyOf(what), by, (flight) => load(sharedAsk(flight, by), what), {
      ...(askedSinceMs === null ? { whileRevalidating: true } : { askedSinceMs }),
      ...(by.lane !== "refresh" && { othersMs: VISITOR_OTHERS_MS }),
    });
    return priceOf(what, known);
  }

  async function quote(by: Ask, what: Combination, askedSinceMs?: number): Promise<QuotedPrice> {
    const before = peek(what);
    const isDoubtful = before !== undefined && !before.isTrusted;
    const sinceMs = isDoubtful ? newerThan(what, before) : -Infinity;
    if (askedSinceMs !== undefined) return ask(by, what, Math.max(askedSinceMs, sinceMs));
    if (!isDoubtful) return ask(by, what, null);
    return ask(by, what, sinceMs).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code !== "internal") return before;
      throw error;
    });
  }

  /** The earliest stamp at which a quote must be requested to be trusted, given that this one isn't. */
  function newerThan(what: Combination, { askedMs, answeredMs, settled }: QuotedPrice): number {
    const lastMs = settled ? askedMs : answeredMs;
    return justAfter(Math.max(lastMs, disputedAtMs.get(keyOf(what)) ?? -Infinity));
  }

  const isOverdue = (price: QuotedPrice | undefined): boolean => price?.stale === true;
  const isDue = (price: QuotedPrice | undefined): boolean =>
    price === undefined || price.askedMs <= clock.monotonic() - settings.freshMs * REFRESH_AT;

  /** Refreshes one price if it is due. */
  async function refresh(what: Combination, by: Ask): Promise<"refreshed" | "known" | "no room"> {
    const before = peek(what);
    if (!isOverdue(before) && !isDue(before)) return "known";
    // Another replica may have it already; reading that costs nothing, so it needs no room in the quota.
    await pool.consult(keyOf(what));
    const known = peek(what);
    if (!isOverdue(known) && !(isDue(known) && settings.roomInMs() === 0)) {
      if (isDue(known)) return "no room";
      return known?.asOfMs === before?.asOfMs ? "known" : "refreshed";
    }
    const sinceMs = known === undefined ? -Infinity : newerThan(what, known);
    await ask(known?.isTrusted === false ? urgently(by) : by, what, sinceMs);
    return "refreshed";
  }

  async function round(by: Ask): Promise<number | "no room"> {
    const todo = inOrder();
    let refreshed = 0;
    let left = 0;
    const work = async (): Promise<void> => {
      for (let what = todo.shift(); what !== undefined && !by.signal.aborted; what = todo.shift()) {
        try {
          const outcome = await refresh(what, by);
          if (outcome === "refreshed") refreshed += 1;
          if (outcome === "no room") left += 1;
          wanted.delete(keyOf(what));
        } catch (error) {
          if (!by.signal.aborted) noteFailure(what, error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    if (refreshed > 0) {
      const list = facts();
      log.info("prices.renewed", { renewed: refreshed, known: list.length, sold: sold().length });
      save();
    }
    return left > 0 ? "no room" : CHECK_EVERY_MS;
  }

  /** Prices that visitors need first; the others in random order, so that replicas refreshing at the same time share the work. */
  function inOrder(): Combination[] {
    return sold()
      .map((what) => ({ what, place: wanted.has(keyOf(what)) ? -1 : Math.random() }))
      .sort((a, b) => a.place - b.place)
      .map(({ what }) => what);
  }

  function noteFailure(what: Combination, error: unknown): void {
    const code = error instanceof ServiceError ? error.code : "internal";
    log.debug("prices.renewal.failed", { code });
    if (error instanceof ServiceError && code.startsWith("upstream_"))
      failed.set(keyOf(what), { why: error.detail, atMs: clock.monotonic() });
  }

  function facts(): readonly PriceFact[] {
    const isCurrent =
      listed?.version === version() &&
      listed.sold === sold() &&
      clock.monotonic() <= listed.untilMs &&
      clock.now() < listed.untilNowMs;
    if (listed !== null && isCurrent) return listed.facts;
    let untilMs = Infinity;
    const list = sold().flatMap((what): PriceFact[] => {
      const known = pool.peek(keyOf(what));
      if (known === undefined) return [];
      untilMs = Math.min(untilMs, known.untilMs);
      const { wholesale, asOfMs, stale, isTrusted: trusted } = priceOf(what, known);
      const changed = changes.noted(keyOf(what), wholesale, asOfMs);
      return [{ ...what, wholesale, asOfMs, stale, isDoubtful: !trusted, ...(changed && { changed }) }];
    });
    listed = {
      facts: list,
      sold: sold(),
      version: version(),
      untilMs,
      untilNowMs: changes.nextForgottenAtMs(),
    };
    return list;
  }

  function save(): void {
    const prices = sold().flatMap((what) => {
      const known = peek(what);
      if (known === undefined) return [];
      const { wholesale, askedMs, answeredMs, isTrusted: trusted } = known;
      return [{ ...what, wholesale, askedMs, answeredMs, isDoubtful: !trusted }];
    });
    if (prices.length > 0) settings.saved.save({ tier: epochs.tier(), prices });
  }

  function refreshNow(): void {
    background?.now();
  }
  epochs.onChange(refreshNow);
  policies.onChange(refreshNow);

  return {
    quote,
    fresh,
    peek,
    isTrusted,
    dispute(what, answeredMs) {
      if (answeredMs <= (disputedAtMs.get(keyOf(what)) ?? -Infinity)) return;
      disputedAtMs.set(keyOf(what), answeredMs);
      disputes += 1;
      wanted.add(keyOf(what));
    },
    confirm(what, check) {
      const known = pool.peek(keyOf(what));
      if (known === undefined || check.askedMs > known.askedMs) void pool.learn(keyOf(what), check);
    },
    renewFirst(what) {
      if (wanted.has(keyOf(what))) return;
      wanted.add(keyOf(what));
      refreshNow();
    },
    facts,
    expectedInMs() {
      const inMs = settings.roomInMs();
      // The time in which the list is read does not make it more than a window, nor does the thousandth that a slot rests longer.
      return Math.max(inMs - windowMs / 1000, Math.min(inMs + CHECK_EVERY_MS, windowMs));
    },
    get size() {
      return sold().length;
    },
    failures: () =>
      sold().flatMap((what) => {
        const failure = failed.get(keyOf(what));
        return failure && (pool.peek(keyOf(what))?.answeredMs ?? -Infinity) < failure.atMs
          ? [failure.why]
          : [];
      }),
    async restore() {
      const { tier, prices, isLive } = await settings.saved.load();
      for (const { wholesale, isDoubtful, askedMs, answeredMs, ...what } of prices) {
        const epoch = isDoubtful ? "" : epochs.current();
        if (sold().some((one) => keyOf(one) === keyOf(what)))
          void pool.learn(keyOf(what), { value: { wholesale, epoch }, askedMs, answeredMs });
      }
      await Promise.all(sold().map((what) => pool.consult(keyOf(what))));
      epochs.resume(facts().length === 0 || isLive ? null : { tier });
    },
    keepWarm() {
      const { roomInMs } = settings;
      const firstInMs = epochs.awaitsTier() ? TIER_FIRST_MS : 0;
      const running = inBackground({ client: "price-list", round, firstInMs, roomInMs, clock });
      background = running;
      return () => {
        running.stop();
        save();
      };
    },
  };
}

function keyOf({ tld, action, years }: Combination): string {
  return `${tld} ${action} ${years}`;
}
