/** A cart: collects items, confirms their prices and gets them signed for a checkout. Needs no framework and no DOM. */
import { callAt } from "./call.js";
import type { CartItem, Quotes, StorefrontClient } from "./client.js";
import { now } from "./clock.js";
import { StorefrontProblem } from "./problem.js";

export interface CartState {
  /**
   * `open`: prices aren't confirmed. `waiting`: retries at `untilMs`, because of `problem`. `confirmed`: the prices in `quotes` are valid until
   * `untilMs`; a line without a price says why. `expired`: they no longer are. `failed`: see `problem`.
   */
  readonly phase: "open" | "confirming" | "waiting" | "confirmed" | "expired" | "failed";
  readonly items: readonly CartItem[];
  readonly quotes: Quotes | null;
  readonly problem: StorefrontProblem | null;
  /** A time of `now()`. */
  readonly untilMs: number | null;
}

export interface Cart {
  readonly state: CartState;
  /** Adds the item, or replaces the one with the same name; returns false if the cart is full. Discards confirmed prices, as `remove` does. */
  add(item: CartItem): boolean;
  remove(domain: string): void;
  /** Resolves to the signed promise, for the `promise` field of the checkout's form, or to null if nothing was signed; see `state`. */
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
    // Of names and amounts alone, base64url makes the same text as base64.
    const text = atob(promise.split(".")[1] ?? "");
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the service's own text
    const { exp, iat } = JSON.parse(text) as { readonly exp: number; readonly iat: number };
    // `iat` is rounded down: the promise may have been signed up to a second later.
    return sentMs + (exp - iat - 1) * 1000;
  } catch {
    return Date.parse(validUntil);
  }
}

export function createCart(
  client: Pick<StorefrontClient, "cart">,
  onChange: (state: CartState) => void = () => {},
): Cart {
  let state: CartState = { phase: "open", items: [], quotes: null, problem: null, untilMs: null };
  let current = new AbortController();

  function become(change: Partial<CartState>): void {
    state = { ...state, quotes: null, problem: null, untilMs: null, ...change };
    onChange(state);
  }
  function begin(): AbortSignal {
    current.abort();
    current = new AbortController();
    return current.signal;
  }
  function hold(items: readonly CartItem[]): void {
    begin();
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
      hold(items);
      return true;
    },
    remove(domain) {
      hold(without(domain));
    },
    async confirm() {
      const signal = begin();
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
        const untilMs = heldUntilMs(quotes, sentMs);
        become({ phase: "confirmed", quotes, untilMs });
        if (untilMs !== null) callAt(untilMs, signal, () => become({ phase: "expired" }));
        return quotes.promise;
      } catch (error) {
        if (signal.aborted) return null;
        if (!(error instanceof StorefrontProblem)) throw error;
        become({ phase: "failed", problem: error });
        return null;
      }
    },
    stop() {
      begin();
    },
  };
}
