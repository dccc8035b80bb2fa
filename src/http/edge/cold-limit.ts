/**
 * Limits how often a client spends upstream quota: a steady rate with a burst of one minute's worth. The limit applies only while other
 * clients wait for quota or are refused.
 */
import { BoundedMap } from "../../bounded-map.js";
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";
import type { Share } from "./shared-counts.js";

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
  readonly share: Share;
}

interface Spender {
  /** When its whole burst is available again. */
  refilledAt: number;
  /** The latest retry time that one of its requests was given. */
  retryAt: number;
}

/** With the `share` of a fleet, for all replicas together. */
export function createColdLimit(settings: ColdLimitSettings): ColdLimit {
  const { perMinute, isContested, clock } = settings;
  const everyMs = MINUTE_MS / perMinute;
  const spenders = new BoundedMap<string, Spender>(MAX_CLIENTS);
  let refused = 0;
  const shared = settings.share(count);
  // Each other replica may have admitted a request that this one doesn't know of yet. Together they may exceed the limit by a tenth; what is beyond
  // that is held back from the client, but at most a quarter of the limit.
  const beyond = shared.others - Math.floor(perMinute / 10);
  const heldBack = Math.min(Math.floor(perMinute / 4), Math.max(0, beyond));

  function count(client: string, times: number): void {
    const now = clock.monotonic();
    const { refilledAt, retryAt } = spenders.get(client) ?? { refilledAt: now, retryAt: -Infinity };
    // Quota spent while nobody else wanted it counts against the client for at most a minute.
    spenders.set(client, {
      refilledAt: Math.min(Math.max(refilledAt, now) + times * everyMs, now + MINUTE_MS),
      retryAt,
    });
  }

  return {
    refusal(client, asker) {
      const now = clock.monotonic();
      const unknown = shared.unpublished(client) + heldBack;
      const spender = spenders.get(client) ?? { refilledAt: now, retryAt: -Infinity };
      const nextAt = Math.max(spender.refilledAt, now) + unknown * everyMs - MINUTE_MS + everyMs;
      if (nextAt <= now || !isContested(asker)) return null;
      refused += 1;
      // People behind one address get different retry times, so that they don't all retry together.
      const retryAt = Math.max(nextAt, spender.retryAt + everyMs);
      spender.retryAt = retryAt > now + MINUTE_MS ? nextAt : retryAt;
      return new ServiceError("rate_limited", "Too many different names from this client within a minute.", {
        retryAfterMs: spender.retryAt - now,
      });
    },
    count: shared.add,
    refused: () => refused,
  };
}
