/**
 * The wholesale price of every combination sold, kept warm in the background, so that no visitor waits for a price. A price that turns
 * out to have changed has the whole list asked for anew: the reseller's tier has probably changed.
 */
import type { Known, Pool } from "../cache/cache.js";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { sameWholesale, type Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import { sharedAsk } from "../quota/shared-ask.js";
import type { Combination } from "./policy.js";
import type { PriceFacts } from "./price-facts.js";

export interface PriceFact extends Combination {
  readonly wholesale: Wholesale;
  readonly asOfMs: number;
  readonly stale: boolean;
}

export interface PriceList {
  /** The quote for one combination: from memory, else asked for. `maxAgeMs` asks anew for what is older. */
  quote(ask: Ask, what: Combination, maxAgeMs?: number): Promise<Known<Wholesale>>;
  /** Every price known now, without asking anybody, in the order of the catalogue. */
  facts(): PriceFact[];
  knows(what: Combination): boolean;
  /** How long until prices that are not known yet can be expected, in ms. */
  expectedInMs(): number;
  /** How many combinations are sold. */
  readonly size: number;
  /** Has every price asked for anew at once and tells how many that are; each is shown until its successor is known. */
  renewAll(): number;
  /** Starts keeping the list warm; the answer stops it. */
  keepWarm(): () => void;
}

export interface PriceListSettings {
  readonly combinations: readonly Combination[];
  readonly pool: Pool<Wholesale, Ask>;
  readonly ask: (ask: Ask, what: Combination) => Promise<Wholesale>;
  readonly saved: PriceFacts;
  readonly freshMs: number;
  /** How long until the quota has room for work that nobody waits for, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Prices are asked for anew at this share of their freshness, so that they are renewed before they pass it. */
const RENEW_AT = 0.8;
const LOOK_EVERY_MS = 5_000;
const AT_A_TIME = 2;

export function createPriceList(settings: PriceListSettings): PriceList {
  const { combinations, pool, clock, log } = settings;
  let renewOlderThanMs = -Infinity;
  let warming: Promise<void> | null = null;
  let look = (): void => {};

  for (const { wholesale, asOfMs, ...what } of settings.saved.load()) {
    if (combinations.some((sold) => keyOf(sold) === keyOf(what))) pool.put(keyOf(what), wholesale, asOfMs);
  }

  async function load(ask: Ask, what: Combination, before: Known<Wholesale> | undefined): Promise<Wholesale> {
    const wholesale = await settings.ask(ask, what);
    if (before && !sameWholesale(before.value, wholesale)) {
      log.warn("prices.changed", { tld: what.tld, action: what.action, years: what.years });
      renewOlderThanMs = Math.max(renewOlderThanMs, clock.now() - 1);
    }
    return wholesale;
  }

  function quote(ask: Ask, what: Combination, maxAgeMs?: number): Promise<Known<Wholesale>> {
    const before = pool.peek(keyOf(what));
    return pool.get(
      keyOf(what),
      ask,
      ({ askers, signal }) => load(sharedAsk(askers, ask, signal), what, before),
      maxAgeMs === undefined ? { whileRevalidating: true } : { maxAgeMs },
    );
  }

  async function renew(what: Combination, signal: AbortSignal): Promise<boolean> {
    const known = pool.peek(keyOf(what));
    const overdue = known !== undefined && (known.source === "stale" || known.asOfMs <= renewOlderThanMs);
    const due = known === undefined || known.asOfMs <= clock.now() - settings.freshMs * RENEW_AT;
    if (!overdue && !(due && settings.roomInMs() === 0)) return false;
    const ask: Ask = { lane: "refresh", client: "price-list", maxWaitMs: Infinity, signal };
    await quote(ask, what, known === undefined ? undefined : Math.max(0, clock.now() - known.asOfMs - 1));
    return true;
  }

  async function warm(signal: AbortSignal): Promise<void> {
    const todo = [...combinations];
    let renewed = 0;
    const work = async (): Promise<void> => {
      for (let what = todo.shift(); what !== undefined && !signal.aborted; what = todo.shift()) {
        try {
          if (await renew(what, signal)) renewed += 1;
        } catch (error) {
          if (!signal.aborted)
            log.debug("prices.renewal.failed", {
              code: error instanceof ServiceError ? error.code : "internal",
            });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    if (renewed > 0) {
      log.info("prices.renewed", { renewed, known: facts().length, sold: combinations.length });
      settings.saved.save(facts());
    }
  }

  function facts(): PriceFact[] {
    return combinations.flatMap((what) => {
      const known = pool.peek(keyOf(what));
      return known
        ? [{ ...what, wholesale: known.value, asOfMs: known.asOfMs, stale: known.source === "stale" }]
        : [];
    });
  }

  return {
    quote,
    facts,
    knows: (what) => pool.peek(keyOf(what)) !== undefined,
    expectedInMs: () => settings.roomInMs() + LOOK_EVERY_MS,
    size: combinations.length,
    renewAll() {
      renewOlderThanMs = clock.now();
      look();
      return facts().length;
    },
    keepWarm() {
      const stop = new AbortController();
      let cancelTimer = (): void => {};
      look = () => {
        cancelTimer();
        cancelTimer = clock.after(LOOK_EVERY_MS, look);
        warming ??= warm(stop.signal).finally(() => {
          warming = null;
        });
      };
      look();
      return () => {
        look = () => {};
        cancelTimer();
        stop.abort();
        if (facts().length > 0) settings.saved.save(facts());
      };
    },
  };
}

function keyOf({ tld, action, years }: Combination): string {
  return `${tld} ${action} ${years}`;
}
