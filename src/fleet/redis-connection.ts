/** Opens connections to REDIS_URL, which queue and resend nothing. */
import { Redis, type RedisOptions } from "ioredis";
import { z } from "zod";
import type { RedisScript } from "../redis.js";
import { parseRedisAddress, type RedisAddress } from "../redis-address.js";
import type { Secret } from "../secret.js";

export type RedisClient = Redis;

const CONNECT_TIMEOUT_MS = 1000;
const COMMAND_TIMEOUT_MS = 500;
/** Reconnects after this time; the interval then doubles up to the maximum below. */
const RECONNECT_AFTER_MS = 10;
const RECONNECT_AT_LEAST_EVERY_MS = 250;
const DISCONNECT_TIMEOUT_MS = 100;

/** A connection that follows changes of the address. */
export interface RedisConnection {
  client(): RedisClient;
  /** Opens a new client if the address has changed or the client has given up; returns whether it did. */
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
    // Failures are seen as states and rejected commands, but an error event without a listener would end the process.
    made.on("error", () => {});
    attach(made);
    return made;
  }

  return {
    client: () => client,
    renew() {
      const now = url.current();
      const isOther = now !== text && parseRedisAddress(now).ok;
      // ioredis gives up if it is disconnected while it asks the sentinels for the address.
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
          // Sentinels rarely have users of their own; one without a password ignores the password.
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

    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    enableOfflineQueue: false,
    // INFO may be forbidden to the user.
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

/** The mode that HELLO reports; "standalone" if Redis is too old for the command or forbids it. */
export async function modeOf(client: RedisClient): Promise<string> {
  const answer = await client.call("HELLO").catch(() => null);
  const reply = z.array(z.unknown()).safeParse(answer).data ?? [];
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
