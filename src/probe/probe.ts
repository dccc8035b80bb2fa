/** Makes first contact with an upstream through the service's own quota, and describes it without revealing any data. */
import { type Clock, pause } from "../clock.js";
import type { Config } from "../config/env.js";
import type { Log } from "../logger.js";
import type { RedisLink } from "../redis/redis.js";
import { InUseError } from "../quota/lock.js";
import { createQuotas } from "../quota/quotas.js";
import { createRecords } from "../quota/record.js";
import { createFleet, type Fleet } from "../fleet/lease.js";
import { connectRedis } from "../redis/link.js";
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
  const fingerprints = credentials.states().map(({ fingerprint }) => fingerprint);
  // With Redis, only the owner may call, so the probe becomes the owner for a while.
  const fleet =
    redis &&
    createFleet({
      ...config.quota,
      link: redis,
      url: () => "http://127.0.0.1:9",
      upstreamId: upstream.baseUrl,
      credentialInUse: () => fingerprints[0] ?? "",
      clock,
      factClock: clock,
      log: silent,
    });
  const quotas = createQuotas({
    ...config.quota,
    home: live === null ? null : (fleet ?? createRecords(config.stateDir, config.quota, clock)),
    clock,
    log: silent,
  });
  try {
    if (fleet !== null && redis !== null) await becomeOwner(fleet, redis, clock);
    await quotas.openAll(fingerprints);
    const seen = await contact({
      upstream: {
        baseUrl: upstream.baseUrl,
        timeoutMs: config.upstreamTimeoutMs,
        windowMs: config.quota.windowMs,
        currencies: () => policy.wholesaleCurrencies,
        credentials,
        quotaOf: ({ fingerprint }) => quotas.of(fingerprint),
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
    throw new NotProbedError("A running service uses the quota in this STATE_DIR. Stop it first.");
  } finally {
    await quotas.close();
    fleet?.stop();
    redis?.close();
  }
}

/** A lease without its owner is free within this time. */
const OWNER_WITHIN_MS = 12_000;

async function becomeOwner(fleet: Fleet, redis: RedisLink, clock: Clock): Promise<void> {
  await redis.firstContact(1_000);
  await fleet.start();
  const untilAt = clock.monotonic() + OWNER_WITHIN_MS;
  while (fleet.role() !== "owner" && fleet.owner() === null && clock.monotonic() < untilAt)
    await pause(clock, 100, new AbortController().signal);
  if (fleet.role() === "owner") return;
  throw new NotProbedError(
    fleet.owner() === null
      ? "REDIS_URL is set, but Redis can't be reached, so it is unknown which process may call the upstream."
      : "A running service with this Redis uses the quota. Stop it first.",
  );
}
