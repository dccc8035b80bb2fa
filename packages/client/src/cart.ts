/** A cart: collects items, confirms their prices and gets them signed for a checkout. Needs no framework and no DOM. */
import { callAt } from "./call.js";
import type { CartItem, Quotes, StorefrontClient } from "./client.js";
import { now } from "./clock.js";
import { asProblem, shaped, type StorefrontProblem } from "./problem.js";

export interface CartState {
  /**
   * `open`: prices aren't confirmed. `waiting`: retries at `untilMs`, because of `problem`. `confirmed`: the prices in `quotes` are confirmed; a line
   * without a price says why. `expired`: they no longer hold. `failed`: see `problem`.
   */
  readonly phase: "open" | "confirming" | "waiting" | "confirmed" | "expired" | "failed";
  readonly items: readonly CartItem[];
  /** The prices that were confirmed last. Signed ones stay until `heldUntilMs` while they are confirmed again, and if that fails. */
  readonly quotes: Quotes | null;
  /** Until when the signed prices in `quotes` hold, as a time of `now()`; null if none are signed. */
  readonly heldUntilMs: number | null;
  readonly problem: StorefrontProblem | null;
  /** When the confirmation that waits is retried, as a time of `now()`. */
  readonly untilMs: number | null;
}

export interface Cart {
  readonly state: CartState;
  /** Adds the item, or replaces the one with the same name; returns false if the cart is full. Discards the prices, as `remove` does. */
  add(item: CartItem): boolean;
  remove(domain: string): void;
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

export function createCart(
  client: Pick<StorefrontClient, "cart">,
  onChange: (state: CartState) => void = () => {},
): Cart {
  let state: CartState = { phase: "open", items: [], problem: null, untilMs: null, ...NO_PRICES };
  let current = new AbortController();

  function become(change: Partial<CartState>): void {
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
  function take(items: readonly CartItem[]): void {
    begin(NO_PRICES);
    become({ phase: "open", items });
  }
  function without(domain: string): readonly CartItem[] {
    return state.items.filter((item) => item.domain !== domain);
  }

  return {
    get state() {
      return state;
    },
    add(item) {
      const items = [...without(item.domain), item];
      if (items.length > MOST_ITEMS) return false;
      take(items);
      return true;
    },
    remove(domain) {
      take(without(domain));
    },
    async confirm() {
      const signal = begin(state.heldUntilMs === null ? NO_PRICES : state);
      let sentMs = 0;
      const onRetry = (): void => {
        sentMs = now();
        become({ phase: "confirming" });
      };
      onRetry();
      try {
        const quotes = await client.cart(state.items, {
          signal,
          onWait(problem, waitMs) {
            become({ phase: "waiting", problem, untilMs: now() + waitMs });
          },
          onRetry,
        });
        if (signal.aborted) return null;
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

type Prices = Pick<CartState, "quotes" | "heldUntilMs">;
const NO_PRICES: Prices = { quotes: null, heldUntilMs: null };
