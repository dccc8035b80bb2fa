/** A cart: collects items, confirms their prices and gets them signed for a checkout. Needs no framework and no DOM. */
import { callAt } from "./call.js";
import type { CartItem, Quotes, StorefrontClient } from "./client.js";
import { now } from "./clock.js";
import { asProblem, shaped, StorefrontProblem } from "./problem.js";

export interface CartState<Item extends CartItem = CartItem> {
  /**
   * `open`: prices aren't confirmed. `waiting`: retries at `untilMs`, because of `problem`. `confirmed`: the prices in `quotes` are confirmed; a line
   * without a price says why. `expired`: they no longer hold. `failed`: see `problem`.
   */
  readonly phase: "open" | "confirming" | "waiting" | "confirmed" | "expired" | "failed";
  readonly items: readonly Item[];
  /** The prices that were confirmed last. Signed ones stay until `heldUntilMs` while they are confirmed again, and if that fails or gives no price. */
  readonly quotes: Quotes | null;
  /** Until when the signed prices in `quotes` hold, as a time of `now()`; null if none are signed. */
  readonly heldUntilMs: number | null;
  readonly problem: StorefrontProblem | null;
  /** When the confirmation that waits is retried, as a time of `now()`. */
  readonly untilMs: number | null;
}

/** What an app stores of a cart. `heldUntilMs` is a time of `now()`, which another page or app start doesn't share. */
export type SavedCart<Item extends CartItem = CartItem> = Pick<CartState<Item>, "items"> &
  Partial<Pick<CartState, "quotes" | "heldUntilMs">>;

export interface Cart<Item extends CartItem = CartItem> {
  readonly state: CartState<Item>;
  /** Adds the item, or replaces the one with the same name; returns false if the cart is full. Discards the prices, as `remove` does. */
  add(item: Item): boolean;
  remove(domain: string): void;
  /** Replaces all items, and the prices by these or by none: to continue with a cart that was stored, or to change several items at once. */
  restore(saved: SavedCart<Item>): void;
  /**
   * Resolves to the signed promise, for the `promise` field of the checkout's form, or to null if nothing was signed; see `state`, which may still hold
   * the prices that were signed before.
   */
  confirm(): Promise<string | null>;
  /** Cancels all requests and timers. */
  stop(): void;
}

export const MOST_ITEMS = 20;

/**
 * Until when the signed prices hold, as a time of `now()`; null without a promise. `sentMs` is when the request was sent, on the same clock: the promise
 * was signed later, however long the answer travelled, and a clock that is wrong, even by hours, doesn't matter.
 */
export function heldUntilMs(
  { promise, validUntil }: Pick<Quotes, "promise" | "validUntil">,
  sentMs: number,
): number | null {
  if (!promise || !validUntil) return null;
  try {
    const text = decoded(promise.split(".")[1] ?? "");
    const { exp, iat } = shaped<{ readonly exp: number; readonly iat: number }>(text);
    // `iat` is rounded down: the promise may have been signed up to a second later.
    return sentMs + (exp - iat - 1) * 1000;
  } catch {
    return Date.parse(validUntil);
  }
}

/** base64url of ASCII text, without `atob`, which React Native lacked for long. */
function decoded(base64url: string): string {
  let bits = 0;
  let text = "";
  for (const [at, letter] of Array.from(base64url).entries()) {
    bits = ((bits << 6) | BASE64URL.indexOf(letter)) & 0xffff;
    // Four letters are three characters; each after the first completes one.
    if (at % 4 > 0) text += String.fromCharCode((bits >> (6 - 2 * (at % 4))) & 0xff);
  }
  return text;
}
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Items may have more fields, such as a label or a price to show; they stay in the state, and aren't sent. */
export function createCart<Item extends CartItem = CartItem>(
  client: Pick<StorefrontClient, "cart">,
  onChange: (state: CartState<Item>) => void = () => {},
): Cart<Item> {
  let state: CartState<Item> = { phase: "open", items: [], problem: null, untilMs: null, ...NO_PRICES };
  let current = new AbortController();

  function become(change: Partial<CartState<Item>>): void {
    state = { ...state, problem: null, untilMs: null, ...change };
    onChange(state);
  }
  /** Cancels all work and returns the signal for what follows. Meanwhile these prices are held, until they end. */
  function begin(prices: Prices): AbortSignal {
    state = { ...state, ...prices };
    current.abort();
    current = new AbortController();
    if (state.heldUntilMs !== null)
      callAt(state.heldUntilMs, current.signal, () => {
        const phase = state.phase === "confirmed" ? "expired" : state.phase;
        become({ ...state, ...NO_PRICES, phase });
      });
    return current.signal;
  }
  function restore({ items, quotes = null, heldUntilMs = null }: SavedCart<Item>): void {
    begin({ quotes, heldUntilMs });
    become({ phase: quotes ? "confirmed" : "open", items });
  }

  return {
    get state() {
      return state;
    },
    add(item) {
      const items = [...new Map([...state.items, item].map((one) => [one.domain, one])).values()];
      if (items.length > MOST_ITEMS) return false;
      restore({ items });
      return true;
    },
    remove(domain) {
      restore({ items: state.items.filter((item) => item.domain !== domain) });
    },
    restore,
    async confirm() {
      const signal = begin(state.heldUntilMs === null ? NO_PRICES : state);
      let sentMs = 0;
      const onRetry = (): void => {
        sentMs = now();
        become({ phase: "confirming" });
      };
      onRetry();
      try {
        const items = state.items.map(({ domain, action, years }) =>
          years === undefined ? { domain, action } : { domain, action, years },
        );
        const quotes = await client.cart(items, {
          signal,
          onWait(problem, waitMs) {
            become({ phase: "waiting", problem, untilMs: now() + waitMs });
          },
          onRetry,
        });
        if (signal.aborted) return null;
        const problem = state.quotes && problemDespite(state.quotes, quotes);
        if (problem) throw problem;
        begin({ quotes, heldUntilMs: heldUntilMs(quotes, sentMs) });
        become({ phase: "confirmed" });
        return quotes.promise;
      } catch (error) {
        if (!signal.aborted) become({ phase: "failed", problem: asProblem(error) });
        return null;
      }
    },
    stop() {
      current.abort();
    },
  };
}

/**
 * The problem of an answer about the same names that has no price for any in `held`, whose prices then still hold. Null if the answer replaces them:
 * also if one of these names is taken.
 */
function problemDespite(held: Quotes, { items, promise }: Quotes): StorefrontProblem | null {
  if (promise) return null;
  const problem = items.find((line) => line.problem)?.problem;
  return problem && held.items.every(({ price }, at) => !price || items[at]?.problem)
    ? new StorefrontProblem(problem.code, problem.detail, { ...problem, status: 200 })
    : null;
}

type Prices = Pick<CartState, "quotes" | "heldUntilMs">;
const NO_PRICES: Prices = { quotes: null, heldUntilMs: null };
