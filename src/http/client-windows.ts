/**
 * Counts requests per client and minute in bounded memory: each client's minute begins with its first request. Clients are kept in two
 * generations; the older one goes as a whole when its minutes are over or the younger one is full, so forgetting costs nothing.
 */
import type { ClientRateLimitInfo, Store } from "express-rate-limit";
import type { Clock } from "../clock.js";

export const CLIENT_WINDOW_MS = 60_000;
/** Both generations together some 10 MB. A flood of addresses takes no more, and those who keep asking are not forgotten for it. */
const MOST_PER_GENERATION = 25_000;

/** One client's minute. */
export interface ClientWindow {
  readonly client: string;
  count: number;
  /** Of these, admitted by this replica; null while nothing but this replica has counted. */
  admittedHere: number | null;
  /** On the monotonic clock, ms. */
  resetAtMs: number;
  /** What is told of it in every answer, once it is kept. */
  policy: string | null;
}

export class ClientWindows implements Store {
  /** Tells express-rate-limit that these are not shared between processes. */
  readonly localKeys = true;
  readonly #clock: Clock;
  #younger = new Map<string, ClientWindow>();
  #older = new Map<string, ClientWindow>();
  #agesAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#agesAtMs = clock.monotonic() + CLIENT_WINDOW_MS;
  }

  /** The minute that the client is in, begun now if there is none. */
  of(client: string): ClientWindow {
    const now = this.#clock.monotonic();
    const known = this.#younger.get(client);
    if (known && known.resetAtMs > now) return known;
    if (now >= this.#agesAtMs || this.#younger.size >= MOST_PER_GENERATION) {
      this.#older = this.#younger;
      this.#younger = new Map();
      this.#agesAtMs = now + CLIENT_WINDOW_MS;
    }
    const old = this.#older.get(client);
    const window =
      old && old.resetAtMs > now
        ? old
        : { client, count: 0, admittedHere: null, resetAtMs: now + CLIENT_WINDOW_MS, policy: null };
    this.#younger.set(client, window);
    return window;
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
    const window = this.of(client);
    window.count = Math.max(0, window.count - 1);
  }

  resetKey(client: string): void {
    this.#younger.delete(client);
    this.#older.delete(client);
  }
}
