/**
 * Counts requests per client and minute in bounded memory: each client's minute begins with its first request. Clients are kept in the
 * order in which their minutes began, so those whose minute is over are always at the front and expiry costs nothing.
 */
import type { ClientRateLimitInfo, Store } from "express-rate-limit";
import type { Clock } from "../clock.js";

export const CLIENT_WINDOW_MS = 60_000;
/** About 20 MB. Past this the client whose minute began first is forgotten: a flood of addresses cannot take more memory. */
const MOST_CLIENTS = 100_000;

/** One client's minute. */
export interface ClientWindow {
  readonly client: string;
  count: number;
  /** On the monotonic clock, ms. */
  readonly resetAtMs: number;
  /** What is told of it in every answer, made with the first. */
  policy: string | null;
}

export class ClientWindows implements Store {
  /** Tells express-rate-limit that nothing is shared between processes. */
  readonly localKeys = true;
  readonly #windows = new Map<string, ClientWindow>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The minute that the client is in, begun now if there is none. */
  of(client: string): ClientWindow {
    const now = this.#clock.monotonic();
    const open = this.#windows.get(client);
    if (open && open.resetAtMs > now) return open;
    this.#windows.delete(client);
    for (const [key, { resetAtMs }] of this.#windows) {
      if (resetAtMs > now && this.#windows.size < MOST_CLIENTS) break;
      this.#windows.delete(key);
    }
    const begun = { client, count: 0, resetAtMs: now + CLIENT_WINDOW_MS, policy: null };
    this.#windows.set(client, begun);
    return begun;
  }

  /** How long until it is over. */
  untilResetMs({ resetAtMs }: ClientWindow): number {
    return Math.max(0, resetAtMs - this.#clock.monotonic());
  }

  increment(client: string): ClientRateLimitInfo {
    const window = this.of(client);
    window.count += 1;
    const resetTime = new Date(this.#clock.now() + this.untilResetMs(window));
    return { totalHits: window.count, resetTime };
  }

  decrement(client: string): void {
    const open = this.#windows.get(client);
    if (open) open.count -= 1;
  }

  resetKey(client: string): void {
    this.#windows.delete(client);
  }
}
