/**
 * Limits how often a client spends upstream quota: a steady rate with a burst of one minute's worth. The limit applies only while other
 * clients wait for quota or are refused.
 */
import { BoundedMap } from "../../bounded-map.js";
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";

const MINUTE_MS = 60_000;
/** Clients kept in memory, some 3 MB. When full, the one that spent least recently is dropped. */
const MAX_CLIENTS = 25_000;

export interface ColdLimit {
  /** The refusal if this client's next request may not spend quota, or null. `asker` identifies the client to the quota. */
  refusal(client: string, asker: string): ServiceError | null;
  /** Counts a request that spends quota. */
  count(client: string): void;
  /** Refusals since startup. */
  refused(): number;
}

interface ColdLimitSettings {
  readonly perMinute: number;
  /** Whether a call for this asker would take quota from another. */
  readonly isContested: (asker: string) => boolean;
  readonly clock: Clock;
}

interface Spender {
  /** When its whole burst is available again. */
  refilledAt: number;
  /** The latest retry time that one of its requests was given. */
  retryAt: number;
}

/** Counts in this process alone. */
export function createColdLimit({ perMinute, isContested, clock }: ColdLimitSettings): ColdLimit {
  const everyMs = MINUTE_MS / perMinute;
  const spenders = new BoundedMap<string, Spender>(MAX_CLIENTS);
  let refused = 0;
  const spenderOf = (client: string): Spender =>
    spenders.get(client) ?? { refilledAt: clock.monotonic(), retryAt: -Infinity };

  return {
    refusal(client, asker) {
      const now = clock.monotonic();
      const spender = spenderOf(client);
      const nextAt = Math.max(spender.refilledAt, now) - MINUTE_MS + everyMs;
      if (nextAt <= now || !isContested(asker)) return null;
      refused += 1;
      // People behind one address get different retry times, so that they don't all retry together.
      const retryAt = Math.max(nextAt, spender.retryAt + everyMs);
      spender.retryAt = retryAt > now + MINUTE_MS ? nextAt : retryAt;
      return new ServiceError("rate_limited", "Too many different names from this client within a minute.", {
        retryAfterMs: spender.retryAt - now,
      });
    },
    count(client) {
      const now = clock.monotonic();
      const { refilledAt, retryAt } = spenderOf(client);
      // Quota spent while nobody else wanted it counts against the client for at most a minute.
      spenders.set(client, {
        refilledAt: Math.min(Math.max(refilledAt, now) + everyMs, now + MINUTE_MS),
        retryAt,
      });
    },
    refused: () => refused,
  };
}
