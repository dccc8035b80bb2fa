/**
 * Refreshes every price in the background, so that no visitor waits for one: prices that visitors need first, the others before they are stale, as
 * the quota has room.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { type Background, inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import { failureCodeOf } from "../upstream/failures.js";
import type { Combination } from "../upstream/contract.js";

export interface PriceRefresh {
  /** Refreshes this price before the others. */
  first(what: Combination): void;
  /** Checks now what is due. */
  now(): void;
  /**
   * Why no price is known: the last failure at the upstream to load one that is sold; without any, the list is still being loaded, which takes at
   * most a window if the quota has room within one.
   */
  unknown(): ServiceError;
  /** For each price whose last refresh failed at the upstream: the reason, as a sentence for staff. */
  failures(): string[];
  /** Starts the loop; returns a function that stops it. */
  start(): () => void;
}

/** What is known of a price. */
interface Refreshable {
  readonly askedAt: number;
  readonly isCurrent: boolean;
  readonly isOutdated: boolean;
  readonly stale: boolean;
}

export interface PriceRefreshSettings {
  readonly sold: () => readonly Combination[];
  readonly peek: (what: Combination) => Refreshable | undefined;
  /** The stamp of the last answer about it, whatever its age. */
  readonly lastAnswerAt: (what: Combination) => number;
  readonly refresh: (by: Ask, what: Combination) => Promise<void>;
  readonly freshMs: number;
  /** How long until the quota has room for background work, in ms. */
  readonly backgroundRoomInMs: () => number;
  /** Whether an operation of the upstream keeps failing. */
  readonly hasOutage: () => boolean;
  /** The quota's window. */
  readonly windowMs: number;
  /** Called with the number of prices that a round has refreshed, if any. */
  readonly onRefreshed: (prices: number) => void;
  readonly clock: Clock;
  readonly log: Log;
}

interface Failure {
  readonly error: ServiceError;
  /** On the clock of facts, ms. */
  readonly failedAt: number;
}

/** Prices are refreshed after this part of their freshness, and sooner while the quota has room. */
const REFRESH_AT = 0.8;
const REFRESH_IDLE_MS = 9.5 * 60_000;
const CHECK_EVERY_MS = 5_000;
const AT_A_TIME = 2;

export function createPriceRefresh(settings: PriceRefreshSettings): PriceRefresh {
  const { sold, peek, backgroundRoomInMs, hasOutage, windowMs, clock, log } = settings;
  const dueAfterMs = Math.min(settings.freshMs * REFRESH_AT, REFRESH_IDLE_MS);
  const failed = new Map<string, Failure>();
  const wanted = new Set<string>();
  let background: Background | null = null;

  /** Refreshes one price if it is due. */
  async function refresh(what: Combination, by: Ask): Promise<"refreshed" | "known" | "no room"> {
    const price = peek(what);
    const isDue = price === undefined || price.stale || price.askedAt <= clock.monotonic() - dueAfterMs;
    if (!isDue) return "known";
    // Old prices are refreshed whatever the load, but those of a former process only as there is room.
    const isOverdue = price !== undefined && (price.isOutdated || (price.isCurrent && price.stale));
    if (!isOverdue && !wanted.has(keyOf(what)) && backgroundRoomInMs() > 0) return "no room";
    await settings.refresh(by, what);
    return "refreshed";
  }

  async function round(by: Ask): Promise<number | "no room"> {
    const todo = shuffled(sold());
    /** Prices that were wanted only after the round had begun come before the others too. */
    const next = (): Combination | undefined => {
      const at = todo.findIndex((what) => wanted.has(keyOf(what)));
      return at === -1 ? todo.shift() : todo.splice(at, 1)[0];
    };
    let refreshed = 0;
    let left = 0;
    const work = async (): Promise<void> => {
      for (let what = next(); what !== undefined && !by.signal.aborted; what = next()) {
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
    // During an outage, one at a time: if its call fails, the circuit opens, and no other call is made.
    await Promise.all(Array.from({ length: hasOutage() ? 1 : AT_A_TIME }, work));
    if (refreshed > 0) settings.onRefreshed(refreshed);
    return left > 0 ? "no room" : CHECK_EVERY_MS;
  }

  function noteFailure(what: Combination, error: unknown): void {
    const code = error instanceof ServiceError ? error.code : "internal";
    log.debug("prices.refresh.failed", { code });
    if (error instanceof ServiceError && failureCodeOf(error) !== null)
      failed.set(keyOf(what), { error, failedAt: clock.monotonic() });
  }

  /** The failures to refresh prices that are sold and haven't been answered since. */
  function lasting(): readonly Failure[] {
    return sold().flatMap((what) => {
      const failure = failed.get(keyOf(what));
      return failure && settings.lastAnswerAt(what) < failure.failedAt ? [failure] : [];
    });
  }

  return {
    first(what) {
      if (wanted.has(keyOf(what))) return;
      wanted.add(keyOf(what));
      background?.now();
    },
    now() {
      background?.now();
    },
    unknown() {
      const [last] = lasting().toSorted((a, b) => b.failedAt - a.failedAt);
      if (last !== undefined) {
        const { code, detail, retryAfterMs = 0 } = last.error;
        const leftMs = last.failedAt + retryAfterMs - clock.monotonic();
        return new ServiceError(code, detail, { retryAfterMs: Math.max(CHECK_EVERY_MS, leftMs) });
      }
      const inMs = backgroundRoomInMs();
      // If there is room within a window, the wait is at most a window. A slot rests for a thousandth more than that, which isn't counted.
      const retryAfterMs = Math.max(inMs - windowMs / 1000, Math.min(inMs + CHECK_EVERY_MS, windowMs));
      return new ServiceError("quota_exhausted", "The price list hasn't been loaded yet.", { retryAfterMs });
    },
    failures: () => lasting().map(({ error }) => error.detail),
    start() {
      background = inBackground({ client: "price-list", round, backgroundRoomInMs, clock });
      return background.stop;
    },
  };
}

/** In random order, so that a part that keeps failing doesn't keep the rest from being refreshed. */
function shuffled(sold: readonly Combination[]): Combination[] {
  return sold
    .map((what) => ({ what, rank: Math.random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ what }) => what);
}

/** Identifies a combination. */
export function keyOf({ tld, action, years }: Combination): string {
  return `${tld} ${action} ${years}`;
}
