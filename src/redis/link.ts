/** The connection to Redis; the service loads it only if there is a REDIS_URL, because its client takes a tenth of a start. */
import { Redis, type RedisOptions } from "ioredis";
import { z } from "zod";
import { type Clock, every, pause } from "../clock.js";
import type { Log } from "../logger.js";
import { RedisGoneError, type RedisLink, type RedisState } from "./redis.js";
import { NO_CLUSTER, parseRedisAddress } from "./address.js";
import type { Secret } from "../secret.js";

interface RedisSettings {
  /** In the format of `parseRedisAddress`; a changed file takes effect without a restart. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly log: Log;
}

const CONNECT_TIMEOUT_MS = 1000;
const COMMAND_TIMEOUT_MS = 500;
/** Reconnects after this time; the interval then doubles up to the maximum below. */
const RECONNECT_AFTER_MS = 10;
const RECONNECT_AT_LEAST_EVERY_MS = 250;
const DISCONNECT_TIMEOUT_MS = 100;
/** How soon a changed address, or a client that has given up, is noticed. */
const RENEW_EVERY_MS = 250;
/** How often a write shows whether Redis works: one that is full or read-only still answers much else. */
const BEAT_MS = 1_000;
const BEAT_KEY = "af-storefront:beat";

/** Returns immediately; connects in the background and never gives up. */
export function connectRedis({ url, clock, log }: RedisSettings): RedisLink {
  const listeners: (() => void)[] = [];
  let contacted = (): void => {};
  let unusable = (_why: Error): void => {};
  const contact = new Promise<void>((done, failed) => {
    [contacted, unusable] = [done, failed];
  });
  contact.catch(() => {});
  let isUsable = false;
  let state: RedisState = "gone";
  let refusal = "";
  let closed = false;
  let address = url.current();
  let client = open();

  function open(): Redis {
    const made = new Redis(optionsOf(address));
    // Without a listener, an error event would end the process.
    made.on("error", (error: unknown) => {
      if (isReply(error)) refused(error);
    });
    made.on("ready", () => void arrived(made));
    made.on("close", () => {
      if (made === client) lost();
    });
    return made;
  }

  /** ioredis gives up if it is disconnected while it asks the sentinels for the address. */
  function renew(): void {
    const now = url.current();
    const isOther = now !== address && parseRedisAddress(now).ok;
    if (!isOther && client.status !== "end") return;
    if (isOther) address = now;
    client.disconnect();
    client = open();
    lost();
  }

  /** Checks the mode, because a cluster or a sentinel answers like a Redis but can't be used. */
  async function arrived(made: Redis): Promise<void> {
    const mode = await modeOf(made);
    const { db = 0 } = made.options;
    try {
      // ioredis selects it too, but stays in database 0 if Redis refuses, where another shop's owner may be.
      if (db !== 0) await made.select(db);
    } catch (error) {
      if (isReply(error)) refused(error);
      return;
    }
    if (closed || made !== client) return;
    if (mode === "standalone") {
      isUsable = true;
      return beat();
    }
    log.error("redis.refused", { kind: mode });
    const problem = mode === "cluster" ? NO_CLUSTER : "is a Sentinel; use redis+sentinel://host:port/name";
    unusable(new Error(`REDIS_URL: ${problem}`));
  }

  async function beat(): Promise<void> {
    try {
      await command("SET", BEAT_KEY, "1", "PX", 60 * BEAT_MS);
    } catch (error) {
      if (error instanceof RedisGoneError && isReply(error.cause)) refused(error.cause);
      return;
    }
    if (closed || state === "shared") return;
    state = "shared";
    refusal = "";
    log.info("redis.reached");
    contacted();
    for (const act of listeners) act();
  }

  function lost(): void {
    isUsable = false;
    if (!closed && state === "shared") log.warn("redis.lost");
    state = "gone";
  }

  /** Its first word is the kind of the refusal, such as READONLY or OOM; the rest may quote a command. */
  function refused({ message }: Error): void {
    const [kind = ""] = /^[A-Z]+/.exec(message) ?? [];
    if (!closed && kind !== refusal) log.error("redis.refused", { kind });
    refusal = kind;
    state = "refusing";
  }

  async function command(name: string, ...args: readonly (string | number)[]): Promise<unknown> {
    if (!isUsable) throw new RedisGoneError("Redis is gone");
    const asked = client;
    try {
      return await asked.call(name, ...args);
    } catch (error) {
      // After a failover another Redis accepts writes, and the next answers of one that is late would be late, too; a new connection helps.
      const isRefused = isReply(error);
      if (isRefused ? error.message.startsWith("READONLY") : asked.status === "ready") asked.disconnect(true);
      if (!isRefused && asked === client) lost();
      throw new RedisGoneError(`Redis ${isRefused ? "refused a command" : "didn't answer"}`, {
        cause: error,
      });
    }
  }

  const stops = [every(clock, BEAT_MS, () => void beat()), every(clock, RENEW_EVERY_MS, renew)];

  return {
    state: () => state,
    firstContact: (withinMs) => Promise.race([contact, pause(clock, withinMs, new AbortController().signal)]),
    command,
    onReachable(act) {
      listeners.push(act);
      if (state === "shared") act();
    },
    close() {
      closed = true;
      isUsable = false;
      state = "gone";
      for (const stop of stops) stop();
      client.disconnect();
    },
  };
}

/** Nothing is queued or sent again. */
function optionsOf(text: string) {
  const read = parseRedisAddress(text);
  if (!read.ok) throw new Error(`REDIS_URL: ${read.problem}`);
  const { at, tls, username, password, db } = read.address;
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
async function modeOf(client: Redis): Promise<string> {
  const answer = await client.call("HELLO").catch(() => null);
  const reply = z.array(z.unknown()).safeParse(answer).data ?? [];
  const at = reply.indexOf("mode");
  return at === -1 ? "standalone" : String(reply[at + 1]);
}

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}
