/**
 * How often a client may spend upstream quota while others want it too: evenly over the minute, with a whole minute's worth at once. It
 * shares out scarcity and creates none: where nobody else is waiting or being refused, nobody is limited.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { SharedCounts } from "./edge/shared-counts.js";

const MINUTE_MS = 60_000;
/** Clients that are remembered: some 3 MB. When full, the client that spent longest ago is forgotten. */
const MOST_CLIENTS = 25_000;

export interface ColdLimit {
  /** The refusal of a client's next request that would spend quota, or null. `asker`: the client as the quota knows it. */
  refusal(client: string, asker: string): ServiceError | null;
  /** Counts a request that spends quota. */
  count(client: string): void;
  /** Refusals since the start. */
  refused(): number;
}

export interface ColdLimitSettings {
  readonly perMinute: number;
  /** Whether a call for this asker would be at the expense of another. */
  readonly isContested: (asker: string) => boolean;
  readonly clock: Clock;
  /** Counts for all replicas together. */
  readonly share?: (onCounted: (client: string, count: number) => void) => SharedCounts | null;
}

interface Spender {
  /** When all that it has spent is made up for. */
  freeAt: number;
  /** The last time that one of its requests was told to come back. */
  toldAt: number;
}

export function createColdLimit(settings: ColdLimitSettings): ColdLimit {
  const { perMinute, isContested, clock } = settings;
  const everyMs = MINUTE_MS / perMinute;
  /** Latest last. */
  const spenders = new Map<string, Spender>();
  let refused = 0;
  const shared = settings.share?.(count) ?? null;

  function count(client: string, times = 1): void {
    const now = clock.monotonic();
    const { freeAt, toldAt } = spenders.get(client) ?? { freeAt: now, toldAt: -Infinity };
    spenders.delete(client);
    // What was spent while nobody else wanted it is not held against the client for longer than a minute.
    spenders.set(client, {
      freeAt: Math.min(Math.max(freeAt, now) + times * everyMs, now + MINUTE_MS),
      toldAt,
    });
    if (spenders.size <= MOST_CLIENTS) return;
    const [oldest] = spenders.keys();
    if (oldest !== undefined) spenders.delete(oldest);
  }

  return {
    refusal(client, asker) {
      const now = clock.monotonic();
      const untold = shared?.untold(client) ?? 0;
      const spender = spenders.get(client) ?? { freeAt: now, toldAt: -Infinity };
      const nextAt = Math.max(spender.freeAt, now) + untold * everyMs - MINUTE_MS + everyMs;
      if (nextAt <= now || !isContested(asker)) return null;
      refused += 1;
      // People behind one address are told one time each, so that they do not all come back together.
      const toldAt = Math.max(nextAt, spender.toldAt + everyMs);
      spender.toldAt = toldAt > now + MINUTE_MS ? nextAt : toldAt;
      return new ServiceError("rate_limited", "Too many different names from this client within a minute.", {
        retryAfterMs: spender.toldAt - now,
      });
    },
    count(client) {
      if (shared === null) count(client);
      else shared.add(client);
    },
    refused: () => refused,
  };
}
