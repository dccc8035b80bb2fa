/**
 * Counts requests per client and minute in bounded memory: each client's minute begins with its first request. Clients are kept in the
 * order in which their minutes began, so those whose minute is over are always at the front and expiry costs nothing.
 */
import type { ClientRateLimitInfo, Store } from "express-rate-limit";
import type { Clock } from "../clock.js";

export const CLIENT_WINDOW_MS = 60_000;
/** About 10 MB. Past this the client whose minute began first is forgotten: a flood of addresses cannot take more memory. */
const MOST_CLIENTS = 100_000;

export class ClientWindows implements Store {
  /** Tells express-rate-limit that nothing is shared between processes. */
  readonly localKeys = true;
  readonly #windows = new Map<string, { count: number; resetAtMs: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one request and tells how many that makes in this client's minute. */
  hit(client: string): number {
    const now = this.#clock.monotonic();
    const open = this.#windows.get(client);
    if (open && open.resetAtMs > now) {
      open.count += 1;
      return open.count;
    }
    this.#windows.delete(client);
    for (const [key, { resetAtMs }] of this.#windows) {
      if (resetAtMs > now && this.#windows.size < MOST_CLIENTS) break;
      this.#windows.delete(key);
    }
    this.#windows.set(client, { count: 1, resetAtMs: now + CLIENT_WINDOW_MS });
    return 1;
  }

  /** How long until the client's minute is over; 0 when it has none. */
  untilResetMs(client: string): number {
    return Math.max(0, (this.#windows.get(client)?.resetAtMs ?? 0) - this.#clock.monotonic());
  }

  increment(client: string): ClientRateLimitInfo {
    const totalHits = this.hit(client);
    return { totalHits, resetTime: new Date(this.#clock.now() + this.untilResetMs(client)) };
  }

  decrement(client: string): void {
    const open = this.#windows.get(client);
    if (open) open.count -= 1;
  }

  resetKey(client: string): void {
    this.#windows.delete(client);
  }
}
