/** A first contact as one piece of work: through the quota that the service has, whoever else is using it, and told without any data. */
import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import type { Log } from "../logger.js";
import { ServiceError } from "../errors.js";
import { InUseError } from "../quota/ledger/lock.js";
import { createQuotas } from "../quota/quotas.js";
import { connectRedis } from "../redis.js";
import { createRetailPolicy } from "../retail/policy.js";
import { fixedSecret } from "../secret.js";
import { createCredentials, type CredentialSource } from "../upstream/credentials.js";
import { contact } from "./contact.js";
import { type Result, resultOf } from "./result.js";

export interface ProbeSettings {
  readonly config: Config;
  readonly upstream: { readonly baseUrl: string; readonly active: CredentialSource };
  /** Null: an embedded sandbox, which nobody else calls. */
  readonly live: string | null;
  readonly clock: Clock;
}

/** Nothing could be asked; the message tells why, in a sentence. */
export class NotProbedError extends Error {}

const silent: Log = {
  error() {},
  warn() {},
  info() {},
  debug() {},
  flush: () => Promise.resolve(),
};

/** How many windows a call waits for the quota: after one, a budget that was taken for spent is free. */
const WINDOWS_WAITED = 2;

/** Asks and judges. Rejects with a NotProbedError where the quota is somebody else's. */
export async function probe({ config, upstream, live, clock }: ProbeSettings): Promise<Result> {
  const policy = createRetailPolicy(config.retail);
  // The active credential as it is now, and no other: a second one would be a second call.
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
    onFault: () => {},
  });
  // Without Redis a running service goes on with its own share, and so would we.
  const isShared = (): boolean => redis === null || redis.reachable();
  try {
    await quotas.openAll(credentials.states().map(({ fingerprint }) => fingerprint));
    if (!isShared()) {
      throw new NotProbedError(
        "REDIS_URL is set, but Redis does not answer: without it the probe and a running service could exceed the quota together.",
      );
    }
    const heard = await contact({
      upstream: {
        baseUrl: upstream.baseUrl,
        timeoutMs: config.upstreamTimeoutMs,
        currencies: policy.wholesaleCurrencies,
        credentials,
        quotaOf: ({ fingerprint }) => {
          if (!isShared()) throw new ServiceError("quota_exhausted", "Redis is gone, and the quota with it.");
          return quotas.of(fingerprint);
        },
        clock,
        log: silent,
      },
      sold: policy.combinations(),
      ask: {
        lane: "account",
        client: "probe",
        maxWaitMs: WINDOWS_WAITED * config.quota.windowMs,
        signal: new AbortController().signal,
      },
    });
    return resultOf(heard, live ?? "embedded sandbox");
  } catch (error) {
    if (!(error instanceof InUseError)) throw error;
    throw new NotProbedError(
      "A running service holds the quota in this STATE_DIR: stop it first, or let both share the quota through REDIS_URL.",
    );
  } finally {
    await quotas.close();
    redis?.close();
  }
}
