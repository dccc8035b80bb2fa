/**
 * The connection to Redis: every command ends within 100 ms, nothing is queued while it is gone, and what it says may be missing at any
 * time, so every caller has a way to go on without it. The one home of ioredis.
 */
import { createHash } from "node:crypto";
import { Redis as Client, type RedisOptions } from "ioredis";
import type { Clock } from "./clock.js";
import type { Log } from "./logger.js";
import type { Secret } from "./secret.js";

/** Rejected with by every command that was not answered in time, or not sent because Redis is known to be gone. */
export class RedisGoneError extends Error {
  override readonly name = "RedisGoneError";
}

/** A Lua script, known to Redis by its SHA-1. */
export interface RedisScript {
  readonly text: string;
  readonly sha1: string;
}

export function redisScript(text: string): RedisScript {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

export interface RedisLink {
  /** Whether the last thing known is that Redis answers. */
  reachable(): boolean;
  run(script: RedisScript, key: string, args: readonly (string | number)[]): Promise<unknown>;
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Sets what is not there yet; false when it is. */
  claim(key: string, value: string, ttlMs: number): Promise<boolean>;
  publish(channel: string, message: string): Promise<void>;
  /**
   * Has every message of the channel told. `onGap` is called once messages are received, and again each time that some may have been
   * missed. Nothing is ever rejected: without Redis there are no messages.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): void;
  /** Called each time that Redis can be asked again, and at the first time. */
  onReachable(act: () => void): void;
  close(): void;
}

export interface RedisSettings {
  readonly url: Secret;
  readonly clock: Clock;
  readonly log: Log;
}

const COMMAND_TIMEOUT_MS = 100;
const CONNECT_TIMEOUT_MS = 1000;
const RECONNECT_AFTER_MS = 250;
const LOOK_EVERY_MS = 250;

/** Starts connecting at once and never gives up; the answer does not wait for it. */
export function connectRedis(settings: RedisSettings): RedisLink {
  const { clock, log } = settings;
  const listeners: (() => void)[] = [];
  let reachable = false;
  let closed = false;
  let cancelLook = (): void => {};

  const client = open(settings.url.current());
  const ears: Client[] = [];
  client.on("ready", arrived);
  client.on("close", lost);

  function arrived(): void {
    if (closed || reachable) return;
    reachable = true;
    log.info("redis.reached");
    for (const act of listeners) act();
  }

  function lost(): void {
    if (closed || !reachable) return;
    reachable = false;
    log.warn("redis.lost");
  }

  async function ask<T>(command: () => Promise<T>): Promise<T> {
    if (!reachable) throw new RedisGoneError("Redis is gone");
    try {
      return await inTime(command());
    } catch (error) {
      if (isReply(error)) throw new RedisGoneError("Redis refused a command", { cause: error });
      // A connection on which one answer is late would give it to nobody, and the next ones late too.
      if (reachable) client.disconnect(true);
      lost();
      throw new RedisGoneError("Redis did not answer");
    }
  }

  /** So that a hung Redis is noticed while nobody asks. */
  function look(): void {
    cancelLook = clock.after(LOOK_EVERY_MS, look);
    if (reachable) ask(() => client.ping()).catch(() => undefined);
  }
  look();

  return {
    reachable: () => reachable,
    run: ({ sha1, text }, key, args) =>
      ask(async () => {
        try {
          return await client.evalsha(sha1, 1, key, ...args);
        } catch (error) {
          if (!(isReply(error) && error.message.startsWith("NOSCRIPT"))) throw error;
          return client.eval(text, 1, key, ...args);
        }
      }),
    get: (key) => ask(() => client.get(key)),
    set: (key, value, ttlMs) =>
      ask(async () => {
        await client.set(key, value, "PX", Math.max(1, Math.ceil(ttlMs)));
      }),
    claim: (key, value, ttlMs) =>
      ask(async () => (await client.set(key, value, "PX", Math.max(1, Math.ceil(ttlMs)), "NX")) === "OK"),
    publish: (channel, message) =>
      ask(async () => {
        await client.publish(channel, message);
      }),
    subscribe(channel, onMessage, onGap) {
      const ear = open(settings.url.current());
      ears.push(ear);
      ear.on("message", (_channel: string, message: string) => {
        onMessage(message);
      });
      ear.on("ready", () => {
        ear.subscribe(channel).then(onGap, () => {
          ear.disconnect(true);
        });
      });
    },
    onReachable(act) {
      listeners.push(act);
      if (reachable) act();
    },
    close() {
      closed = true;
      reachable = false;
      cancelLook();
      for (const one of [client, ...ears]) one.disconnect();
    },
  };
}

/**
 * Rejects when there is no answer within the deadline. A process that was busy for as long finds its timers due before it has read what
 * has arrived, so the socket is read once more first. Real time even in tests: this waits for the network.
 */
function inTime<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => {
        setImmediate(() => {
          reject(new Error("no answer in time"));
        });
      });
    }, COMMAND_TIMEOUT_MS);
    answer
      .finally(() => {
        clearTimeout(timer);
      })
      .then(resolve, reject);
  });
}

function open(url: string): Client {
  const options = {
    // For the commands with which a connection begins; all others have the deadline above.
    commandTimeout: CONNECT_TIMEOUT_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    retryStrategy: () => RECONNECT_AFTER_MS,
    disconnectTimeout: COMMAND_TIMEOUT_MS,
    protocol: 2,
  } satisfies RedisOptions;
  const client = new Client(url.replace(/^unix:\/\//, ""), options);
  // Every failure shows as a state or a rejected command; an error event without a listener would end the process.
  client.on("error", () => {});
  return client;
}

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}
