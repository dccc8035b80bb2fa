/** The one home of ioredis: opens connections by REDIS_URL, with nothing queued, resent or waited for longer than a second. */
import { createHash } from "node:crypto";
import { Redis, type RedisOptions } from "ioredis";
import { z } from "zod";
import { parseRedisAddress, type RedisAddress } from "./redis-address.js";
import type { Secret } from "./secret.js";

export type RedisClient = Redis;

/** A Lua script, known to Redis by its SHA-1. */
export interface RedisScript {
  readonly text: string;
  readonly sha1: string;
}

export function redisScript(text: string): RedisScript {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

/** For the commands with which a connection begins. */
const CONNECT_TIMEOUT_MS = 1000;
/** After a connection that worked at once, else less and less often. */
const RECONNECT_AFTER_MS = 10;
const RECONNECT_AT_LEAST_EVERY_MS = 250;
const DISCONNECT_TIMEOUT_MS = 100;

/** A connection that begins again where the address has changed. */
export interface RedisConnection {
  client(): RedisClient;
  /** Opens another client if the address has changed or the former client gave up; whether it has. */
  renew(): boolean;
  close(): void;
}

export function openConnection(url: Secret, attach: (client: RedisClient) => void): RedisConnection {
  let text = url.current();
  let client = open();

  function open(): RedisClient {
    const read = parseRedisAddress(text);
    if (!read.ok) throw new Error(`REDIS_URL: ${read.problem}`);
    const made = new Redis(optionsOf(read.address));
    // Every failure shows as a state or a rejected command; an error event without a listener would end the process.
    made.on("error", () => {});
    attach(made);
    return made;
  }

  return {
    client: () => client,
    renew() {
      const now = url.current();
      const isOther = now !== text && parseRedisAddress(now).ok;
      // ioredis gives up where it is disconnected while it looks for the Redis behind Sentinel.
      if (!isOther && client.status !== "end") return false;
      if (isOther) text = now;
      client.disconnect();
      client = open();
      return true;
    },
    close() {
      client.disconnect();
    },
  };
}

function optionsOf({ at, tls, username, password, db }: RedisAddress) {
  const secured = tls ? {} : undefined;
  return {
    ...("sentinels" in at
      ? {
          sentinels: [...at.sentinels],
          name: at.name,
          // Sentinels rarely have users of their own; one without a password ignores it.
          ...(password !== null && { sentinelPassword: password }),
          ...(secured && { sentinelTLS: secured, enableTLSForSentinelMode: true }),
          sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
          sentinelRetryStrategy: () => RECONNECT_AT_LEAST_EVERY_MS,
        }
      : at),
    ...(username !== null && { username }),
    ...(password !== null && { password }),
    ...(secured && { tls: secured }),
    db,
    // For the commands with which a connection begins; all others have the deadline above.
    commandTimeout: CONNECT_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    enableOfflineQueue: false,
    // The probe tells more than INFO, which a user may not be allowed.
    enableReadyCheck: false,
    disableClientInfo: true,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    retryStrategy: (attempt: number) =>
      Math.min(RECONNECT_AFTER_MS * 2 ** (attempt - 1), RECONNECT_AT_LEAST_EVERY_MS),
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    protocol: 2,
  } satisfies RedisOptions;
}

const helloSchema = z.array(z.unknown());

/** Standalone also where Redis is too old to say, or says it to nobody. */
export async function modeOf(client: RedisClient): Promise<string> {
  const reply = helloSchema.safeParse(await client.call("HELLO").catch(() => null)).data ?? [];
  const at = reply.indexOf("mode");
  return at === -1 ? "standalone" : String(reply[at + 1]);
}

export async function evaluate(
  client: RedisClient,
  { sha1, text }: RedisScript,
  key: string,
  args: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await client.evalsha(sha1, 1, key, ...args);
  } catch (error) {
    if (!(isReply(error) && error.message.startsWith("NOSCRIPT"))) throw error;
    return client.eval(text, 1, key, ...args);
  }
}

export function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}
