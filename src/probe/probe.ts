/** Makes first contact with an upstream through the service's own quota, and describes it without revealing any data. */
import { type Result, resultOf } from "af-storefront-probe/result.js";
import { pause, systemClock as clock } from "../clock.js";
import type { Config } from "../config/env.js";
import { createFleet, type Fleet } from "../fleet/lease.js";
import type { Log } from "../logger.js";
import { InUseError } from "../quota/lock.js";
import { createQuotas } from "../quota/quotas.js";
import { createRecords } from "../quota/record.js";
import { connectRedis } from "../redis/link.js";
import type { RedisLink } from "../redis/redis.js";
import { createRetailPolicy } from "../retail/policy.js";
import { fixedSecret } from "../secret.js";
import { createCredentials, type CredentialSource } from "../upstream/credentials.js";
import { makeCalls } from "./calls.js";

const log: Log = { error() {}, warn() {}, info() {}, debug() {}, flush: () => Promise.resolve() };

/** How many windows a call waits for quota. A budget that counts as spent is free again after one. */
const WINDOWS_WAITED = 2;

/**
 * Makes the calls and evaluates the answers. Rejects with a message for the operator if another process holds the quota. An embedded sandbox,
 * which nobody else calls, has no record of its quota.
 */
export async function probe(
  config: Config,
  { baseUrl, active }: { readonly baseUrl: string; readonly active: CredentialSource },
  isEmbedded = false,
): Promise<Result> {
  const policy = createRetailPolicy(config.retail);
  // Only the active credential, with its current value: trying a second one would cost a second call.
  const source = { key: fixedSecret(active.key.current()), secret: fixedSecret(active.secret.current()) };
  const credentials = createCredentials(source, null, clock);
  const fingerprints = credentials.states().map(({ fingerprint }) => fingerprint);
  const redis =
    isEmbedded || config.redisUrl === null ? null : connectRedis({ url: config.redisUrl, clock, log });
  // With Redis, only the owner may call, so the probe becomes the owner for a while.
  const fleet =
    redis &&
    createFleet({
      ...config.quota,
      link: redis,
      url: () => "http://127.0.0.1:9",
      upstreamId: baseUrl,
      credentialInUse: () => fingerprints[0] ?? "",
      clock,
      factClock: clock,
      log,
    });
  const notes = isEmbedded ? null : (fleet ?? createRecords(config.stateDir, config.quota, clock));
  const quotas = createQuotas({ ...config.quota, notes, clock, log });
  try {
    if (fleet !== null && redis !== null) await becomeOwner(fleet, redis);
    await quotas.openAll(fingerprints);
    const contact = await makeCalls(
      {
        baseUrl,
        timeoutMs: config.upstreamTimeoutMs,
        windowMs: config.quota.windowMs,
        currencies: () => policy.wholesaleCurrencies,
        credentials,
        quotaOf: ({ fingerprint }) => quotas.of(fingerprint),
        clock,
        log,
      },
      policy.combinations(),
      {
        lane: "account",
        client: "probe",
        waitUntilAt: clock.monotonic() + WINDOWS_WAITED * config.quota.windowMs,
        signal: new AbortController().signal,
      },
    );
    return resultOf(contact, isEmbedded ? "the embedded sandbox" : baseUrl);
  } catch (error) {
    if (!(error instanceof InUseError)) throw error;
    throw new Error("A running service uses the quota in this STATE_DIR. Stop it first.", { cause: error });
  } finally {
    await quotas.close();
    fleet?.stop();
    redis?.close();
  }
}

const REDIS_WITHIN_MS = 3000;
/** A lease without its owner is free within this time. */
const OWNER_WITHIN_MS = 12_000;

async function becomeOwner(fleet: Fleet, redis: RedisLink): Promise<void> {
  await redis.firstContact(REDIS_WITHIN_MS);
  await fleet.start();
  const untilAt = clock.monotonic() + (redis.state() === "gone" ? 0 : OWNER_WITHIN_MS);
  while (fleet.role() !== "owner" && fleet.owner() === null && clock.monotonic() < untilAt)
    await pause(clock, 100, new AbortController().signal);
  if (fleet.role() === "owner") return;
  throw new Error(
    fleet.owner() === null
      ? "REDIS_URL is set, but Redis can't be reached, so it is unknown which process may call the upstream."
      : "A running service with this Redis uses the quota. Stop it first.",
  );
}
