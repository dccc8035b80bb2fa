/**
 * The wholesale price of every combination sold, kept warm in the background, so that no visitor waits for a price. A price that turns
 * out to have changed has the whole list asked for anew, once for all replicas: the reseller's tier has probably changed. A change is told
 * for a day, whichever replica or visitor brought it to light.
 */
import type { Known, Pool } from "../cache/cache.js";
import type { Topic } from "../cache/news.js";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { sameWholesale, type Wholesale } from "../money.js";
import { type Background, inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import { sharedAsk } from "../quota/shared-ask.js";
import type { Combination } from "./policy.js";
import type { PriceFacts } from "./price-facts.js";

export interface PriceFact extends Combination {
  readonly wholesale: Wholesale;
  readonly asOfMs: number;
  readonly stale: boolean;
  /** What it was before, and when the upstream first said otherwise, if that is less than a day ago. */
  readonly changed?: { readonly from: Wholesale; readonly atMs: number };
}

export interface PriceList {
  /** The quote for one combination: from memory, else asked for. `maxAgeMs` asks anew for what is older. */
  quote(ask: Ask, what: Combination, maxAgeMs?: number): Promise<Known<Wholesale>>;
  /** The quote for one combination if it is fresh in memory: what `quote` would answer. */
  freshQuote(what: Combination): Wholesale | undefined;
  /** Every price known now, without asking anybody, in the order of the catalogue. The same list until something of it changes. */
  facts(): readonly PriceFact[];
  knows(what: Combination): boolean;
  /** How long until prices that are not known yet can be expected, in ms. */
  expectedInMs(): number;
  /** How many combinations are sold. */
  readonly size: number;
  /** For each price whose last renewal failed at the upstream: why, in a sentence for staff. */
  failures(): string[];
  /**
   * Has every price learned up to then (wall clock, ms; default: now) asked for anew at once, once for all replicas, and tells how many are
   * known; each is shown until its successor is.
   */
  renewAll(learnedUntilMs?: number): number;
  /** Takes up the last known prices, from before a restart or from other replicas, without asking for any. Never rejects. */
  restore(): Promise<void>;
  /** Starts keeping the list warm; the answer stops it. */
  keepWarm(): () => void;
}

export interface PriceListSettings {
  readonly combinations: readonly Combination[];
  readonly pool: Pool<Wholesale, Ask>;
  readonly ask: (ask: Ask, what: Combination) => Promise<Wholesale>;
  readonly saved: PriceFacts;
  /** Where replicas tell each other from which moment on the prices are to be asked for anew; null without others. */
  readonly renewals: Topic | null;
  readonly freshMs: number;
  /** How long until the quota has room for work that nobody waits for, in ms. */
  readonly roomInMs: () => number;
  readonly clock: Clock;
  readonly log: Log;
}

/** Prices are asked for anew at this share of their freshness, so that they are renewed before they pass it. */
const RENEW_AT = 0.8;
const LOOK_EVERY_MS = 5_000;
const CHANGE_TOLD_MS = 24 * 3_600_000;
const AT_A_TIME = 2;
/** A visitor waits no longer for another replica's question, which may be one that waits for its quota without haste. */
const VISITOR_OTHERS_MS = 1_000;

export function createPriceList(settings: PriceListSettings): PriceList {
  const { combinations, pool, clock, log } = settings;
  let listed: { facts: readonly PriceFact[]; changes: number; untilMs: number; toldUntilMs: number } | null =
    null;
  const failed = new Map<string, { readonly why: string; readonly atMs: number }>();
  const seen = new Map<string, { readonly wholesale: Wholesale; readonly changed?: PriceFact["changed"] }>();
  let renewOlderThanMs = -Infinity;
  let background: Background | null = null;

  /** The moment may come from a clock that is ahead of ours. */
  function renewOlderThan(atMs: number): void {
    renewOlderThanMs = Math.max(renewOlderThanMs, Math.min(atMs, clock.now()));
  }
  settings.renewals?.onTold((atMs) => {
    renewOlderThan(atMs);
    background?.now();
  });

  async function load(ask: Ask, what: Combination, before: Known<Wholesale> | undefined): Promise<Wholesale> {
    const wholesale = await settings.ask(ask, what);
    // One currency among others is a slip of the upstream's, not its new price: it counts when the known one has had its time, or when
    // the list is being asked for anew.
    if (before && before.value.currency !== wholesale.currency && before.asOfMs > renewOlderThanMs) {
      log.warn("prices.currency.changed", { tld: what.tld, action: what.action, years: what.years });
      throw new ServiceError("upstream_contract", "The registry service names a price in another currency.");
    }
    if (before && !sameWholesale(before.value, wholesale)) {
      log.warn("prices.changed", { tld: what.tld, action: what.action, years: what.years });
      // One that is being renewed already on suspicion confirms it; it is no reason to begin again.
      if (before.asOfMs > renewOlderThanMs) {
        renewOlderThan(clock.now() - 1);
        settings.renewals?.tell(renewOlderThanMs);
        background?.now();
      }
    }
    return wholesale;
  }

  function quote(ask: Ask, what: Combination, maxAgeMs?: number): Promise<Known<Wholesale>> {
    const before = pool.peek(keyOf(what));
    return pool.get(
      keyOf(what),
      ask,
      ({ askers, signal }) => load(sharedAsk(askers, ask, signal), what, before),
      {
        ...(maxAgeMs === undefined ? { whileRevalidating: true } : { maxAgeMs }),
        ...(ask.lane !== "refresh" && { othersMs: VISITOR_OTHERS_MS }),
      },
    );
  }

  const isOverdue = (known: Known<Wholesale> | undefined): boolean =>
    known !== undefined && (known.source === "stale" || known.asOfMs <= renewOlderThanMs);
  const isDue = (known: Known<Wholesale> | undefined): boolean =>
    known === undefined || known.asOfMs <= clock.now() - settings.freshMs * RENEW_AT;

  /** Whether a newer price is known now than before, or is still to be asked for when there is room. */
  async function renew(what: Combination, ask: Ask): Promise<"renewed" | "known" | "no room"> {
    const before = pool.peek(keyOf(what));
    if (!isOverdue(before) && !isDue(before)) return "known";
    // What another replica has learned costs nothing, so it needs no room in the quota.
    const known = await pool.consult(keyOf(what));
    if (!isOverdue(known) && !(isDue(known) && settings.roomInMs() === 0)) {
      if (isDue(known)) return "no room";
      return known?.asOfMs === before?.asOfMs ? "known" : "renewed";
    }
    const newerThanMs = Math.max(known?.asOfMs ?? -Infinity, renewOlderThanMs);
    await quote(ask, what, Math.max(0, clock.now() - newerThanMs - 1));
    return "renewed";
  }

  async function round(ask: Ask): Promise<number | "no room"> {
    const todo = shuffled(combinations);
    let renewed = 0;
    let left = 0;
    const work = async (): Promise<void> => {
      for (let what = todo.shift(); what !== undefined && !ask.signal.aborted; what = todo.shift()) {
        try {
          const outcome = await renew(what, ask);
          if (outcome === "renewed") renewed += 1;
          if (outcome === "no room") left += 1;
        } catch (error) {
          if (!ask.signal.aborted) noteFailure(what, error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_A_TIME }, work));
    noteChanges();
    if (renewed > 0) {
      log.info("prices.renewed", { renewed, known: facts().length, sold: combinations.length });
      settings.saved.save(facts());
    }
    return left > 0 ? "no room" : LOOK_EVERY_MS;
  }

  function noteFailure(what: Combination, error: unknown): void {
    const code = error instanceof ServiceError ? error.code : "internal";
    log.debug("prices.renewal.failed", { code });
    if (error instanceof ServiceError && code.startsWith("upstream_"))
      failed.set(keyOf(what), { why: error.detail, atMs: clock.now() });
  }

  /** Compares what is known with what was known before, whichever way it was learned. */
  function noteChanges(): void {
    for (const what of combinations) {
      const known = pool.peek(keyOf(what));
      if (known === undefined) continue;
      const before = seen.get(keyOf(what));
      if (before === undefined) seen.set(keyOf(what), { wholesale: known.value });
      else if (!sameWholesale(before.wholesale, known.value)) {
        seen.set(keyOf(what), {
          wholesale: known.value,
          changed: { from: before.wholesale, atMs: known.asOfMs },
        });
        listed = null;
      }
    }
  }

  function changeOf(what: Combination): Pick<PriceFact, "changed"> {
    const changed = seen.get(keyOf(what))?.changed;
    return changed && clock.now() - changed.atMs < CHANGE_TOLD_MS ? { changed } : {};
  }

  function facts(): readonly PriceFact[] {
    if (
      listed?.changes === pool.changes() &&
      clock.monotonic() <= listed.untilMs &&
      clock.now() < listed.toldUntilMs
    )
      return listed.facts;
    const known = combinations.flatMap((what) => {
      const found = pool.peek(keyOf(what));
      return found ? [{ what, found }] : [];
    });
    const facts = known.map(({ what, found: { value, asOfMs, source } }) => ({
      ...what,
      wholesale: value,
      asOfMs,
      stale: source === "stale",
      ...changeOf(what),
    }));
    listed = {
      facts,
      changes: pool.changes(),
      untilMs: known.reduce((least, { found }) => Math.min(least, found.untilMs), Infinity),
      toldUntilMs: facts.reduce(
        (least, { changed }) => Math.min(least, changed ? changed.atMs + CHANGE_TOLD_MS : Infinity),
        Infinity,
      ),
    };
    return listed.facts;
  }

  return {
    quote,
    freshQuote: (what) => pool.fresh(keyOf(what))?.value,
    facts,
    knows: (what) => pool.peek(keyOf(what)) !== undefined,
    expectedInMs: () => settings.roomInMs() + LOOK_EVERY_MS,
    size: combinations.length,
    failures: () =>
      [...failed].flatMap(([key, { why, atMs }]) =>
        (pool.peek(key)?.asOfMs ?? -Infinity) < atMs ? [why] : [],
      ),
    renewAll(learnedUntilMs = clock.now()) {
      if (learnedUntilMs > renewOlderThanMs) {
        renewOlderThan(learnedUntilMs);
        settings.renewals?.tell(renewOlderThanMs);
        background?.now();
      }
      return facts().length;
    },
    async restore() {
      for (const { wholesale, asOfMs, ...what } of settings.saved.load()) {
        if (combinations.some((sold) => keyOf(sold) === keyOf(what)))
          pool.put(keyOf(what), wholesale, asOfMs);
      }
      await Promise.all(combinations.map((what) => pool.consult(keyOf(what))));
      noteChanges();
    },
    keepWarm() {
      const { roomInMs } = settings;
      const running = inBackground({ client: "price-list", round, roomInMs, clock });
      background = running;
      return () => {
        running.stop();
        if (facts().length > 0) settings.saved.save(facts());
      };
    },
  };
}

/** In another order in each process, so that replicas that renew at the same time share the work. */
function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}

function keyOf({ tld, action, years }: Combination): string {
  return `${tld} ${action} ${years}`;
}
