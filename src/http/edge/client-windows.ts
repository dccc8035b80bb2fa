/**
 * Counts requests per client and minute in bounded memory; a client's minute begins with its first request. Clients are kept in two
 * generations. The older one is dropped as a whole when its minutes are over or the younger one is full, so expiry is free.
 */
import type { Clock } from "../../clock.js";

export const CLIENT_WINDOW_MS = 60_000;
/** Some 10 MB for both generations. Evicting a client takes 25,000 to 50,000 new addresses between two of its requests. */
const MAX_PER_GENERATION = 25_000;

/** One client's minute. */
export interface ClientWindow {
  readonly client: string;
  count: number;
  /** The part of `count` that this replica admitted; null while no other replica has been consulted. */
  admittedHere: number | null;
  /** On the monotonic clock, ms. */
  resetAtMs: number;
  /** The cached RateLimit-Policy field. */
  policy: string | null;
}

export class ClientWindows {
  readonly #clock: Clock;
  #younger = new Map<string, ClientWindow>();
  #older = new Map<string, ClientWindow>();
  #agesAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#agesAtMs = clock.monotonic() + CLIENT_WINDOW_MS;
  }

  /** The client's current minute, started now if it has none. */
  of(client: string): ClientWindow {
    const now = this.#clock.monotonic();
    const known = this.#younger.get(client);
    if (known && known.resetAtMs > now) return known;
    if (now >= this.#agesAtMs || this.#younger.size >= MAX_PER_GENERATION) {
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

  /** The time until the minute is over. */
  untilResetMs({ resetAtMs }: ClientWindow): number {
    return Math.max(0, resetAtMs - this.#clock.monotonic());
  }
}
