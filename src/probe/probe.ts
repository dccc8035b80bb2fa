/** Makes first contact with an upstream through the service's own quota, and describes it without revealing any data. */
import type { Clock } from "../clock.js";
import type { Config } from "../config/env.js";
import type { Log } from "../logger.js";
import { ServiceError } from "../errors.js";
import { InUseError } from "../quota/ledger/lock.js";
import { createQuotas } from "../quota/quotas.js";
import { connectRedis } from "../redis-link.js";
import { createRetailPolicy } from "../retail/policy.js";
import { fixedSecret } from "../secret.js";
import { createCredentials, type CredentialSource } from "../upstream/credentials.js";
import { contact } from "./contact.js";
import { type Result, resultOf } from "af-storefront-probe/result.js";

interface ProbeSettings {
  readonly config: Config;
  readonly upstream: { readonly baseUrl: string; readonly active: CredentialSource };
  /** The address to show; null for an embedded sandbox, which nobody else calls. */
  readonly live: string | null;
  readonly clock: Clock;
}

/** The probe made no call; the message says why. */
export class NotProbedError extends Error {}

const silent: Log = {
  error() {},
  warn() {},
  info() {},
  debug() {},
  flush: () => Promise.resolve(),
};

/** How many windows a call waits for quota. A budget that counts as spent is free again after one. */
const WINDOWS_WAITED = 2;

/** Makes the calls and evaluates the answers. Rejects with a NotProbedError if another process holds the quota. */
export async function probe({ config, upstream, live, clock }: ProbeSettings): Promise<Result> {
  const policy = createRetailPolicy(config.retail);
  // Only the active credential, with its current value: trying a second one would cost a second call.
  const { key, secret } = upstream.active;
  const source = { key: fixedSecret(key.current()), secret: fixedSecret(secret.current()) };
  const credentials = createCredentials(source, null, clock);
  const redis =
    live === null || config.redisUrl === null
      ? null
      : connectRedis({ url: config.redisUrl, clock, log: silent });
  const quotas = createQuotas({
    ...config.quota,
    longestCallMs: config.upstreamTimeoutMs,
    home: live === null ? "memory" : redis ? { redis } : { directory: config.stateDir },
    clock,
    log: silent,
  });
  // Without Redis, a running service continues with its own share of the quota, and so would the probe.
  const isShared = (): boolean => redis === null || redis.reachable();
  try {
    await quotas.openAll(credentials.states().map(({ fingerprint }) => fingerprint));
    if (!isShared()) {
      throw new NotProbedError(
        "REDIS_URL is set, but Redis can't be reached. Without it, the probe and a running service could exceed the quota together.",
      );
    }
    const seen = await contact({
      upstream: {
        baseUrl: upstream.baseUrl,
        timeoutMs: config.upstreamTimeoutMs,
        windowMs: config.quota.windowMs,
        currencies: () => policy.wholesaleCurrencies,
        credentials,
        quotaOf: ({ fingerprint }) => {
          if (!isShared())
            throw new ServiceError("quota_exhausted", "Redis can't be reached, so the quota is unknown.");
          return quotas.of(fingerprint);
        },
        clock,
        log: silent,
      },
      sold: policy.combinations(),
      ask: {
        lane: "account",
        client: "probe",
        waitUntilMs: clock.monotonic() + WINDOWS_WAITED * config.quota.windowMs,
        signal: new AbortController().signal,
      },
    });
    return resultOf(seen, live ?? "the embedded sandbox");
  } catch (error) {
    if (!(error instanceof InUseError)) throw error;
    throw new NotProbedError(
      "A running service uses the quota in this STATE_DIR. Stop it first, or let both share the quota through REDIS_URL.",
    );
  } finally {
    await quotas.close();
    redis?.close();
  }
}
