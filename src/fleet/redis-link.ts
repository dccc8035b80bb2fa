/** The connection to Redis; the service loads it only if there is a REDIS_URL, because its client takes a tenth of a start. */
import { type Clock, every } from "../clock.js";
import type { Log } from "../logger.js";
import { RedisGoneError, type RedisLink, type RedisState } from "../redis.js";
import { NO_CLUSTER } from "../redis-address.js";
import type { Secret } from "../secret.js";
import { evaluate, isReply, modeOf, openConnection, type RedisClient } from "./redis-connection.js";

interface RedisSettings {
  /** In the format of `parseRedisAddress`; a changed file takes effect without a restart. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly log: Log;
}

/** How soon a changed address, or a client that has given up, is noticed. */
const RENEW_EVERY_MS = 250;
/** How often a write shows whether Redis works: one that is full or read-only still answers much else. */
const BEAT_MS = 1_000;
const BEAT_KEY = "af-storefront:beat";

/** Returns immediately; connects in the background and never gives up. */
export function connectRedis({ url, clock, log }: RedisSettings): RedisLink {
  const listeners: (() => void)[] = [];
  const waiting: { readonly done: () => void; readonly failed: (problem: Error) => void }[] = [];
  let isUsable = false;
  let state: RedisState = "gone";
  let refusal = "";
  let closed = false;

  const connection = openConnection(url, (client) => {
    client.on("ready", () => void arrived(client));
    client.on("close", () => {
      if (client === connection.client()) lost();
    });
    client.on("error", (error: unknown) => {
      if (isReply(error)) refused(error);
    });
  });

  /** Checks the mode, because a cluster or a sentinel answers like a Redis but can't be used. */
  async function arrived(client: RedisClient): Promise<void> {
    const mode = await modeOf(client);
    const { db = 0 } = client.options;
    try {
      // ioredis selects it too, but stays in database 0 if Redis refuses, where another shop's owner may be.
      if (db !== 0) await client.select(db);
    } catch (error) {
      if (isReply(error)) refused(error);
      return;
    }
    if (closed || client !== connection.client()) return;
    if (mode === "standalone") {
      isUsable = true;
      return beat();
    }
    log.error("redis.refused", { kind: mode });
    const problem = mode === "cluster" ? NO_CLUSTER : "is a Sentinel; use redis+sentinel://host:port/name";
    for (const { failed } of waiting.splice(0)) failed(new Error(`REDIS_URL: ${problem}`));
  }

  function works(): void {
    if (closed || state === "shared") return;
    state = "shared";
    refusal = "";
    log.info("redis.reached");
    for (const { done } of waiting.splice(0)) done();
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

  async function send(command: (client: RedisClient) => Promise<unknown>): Promise<unknown> {
    if (!isUsable) throw new RedisGoneError("Redis is gone");
    const client = connection.client();
    try {
      return await command(client);
    } catch (error) {
      if (isReply(error)) {
        // After a failover another Redis accepts writes; a new connection finds it.
        if (error.message.startsWith("READONLY")) client.disconnect(true);
        throw new RedisGoneError("Redis refused a command", { cause: error });
      }
      if (client === connection.client()) {
        // The next answers on this connection would be late, too.
        if (client.status === "ready") client.disconnect(true);
        lost();
      }
      throw new RedisGoneError("Redis didn't answer", { cause: error });
    }
  }

  async function beat(): Promise<void> {
    try {
      await send((client) => client.call("SET", BEAT_KEY, "1", "PX", 60 * BEAT_MS));
      works();
    } catch (error) {
      if (error instanceof RedisGoneError && isReply(error.cause)) refused(error.cause);
    }
  }

  const cancelBeat = every(clock, BEAT_MS, () => void beat());
  const cancelRenewal = every(clock, RENEW_EVERY_MS, () => {
    if (connection.renew()) lost();
  });

  return {
    state: () => state,
    firstContact: (withinMs) =>
      new Promise((done, failed) => {
        if (state === "shared") return done();
        waiting.push({ done, failed });
        clock.after(withinMs, done);
      }),
    run: (script, key, args) => send((client) => evaluate(client, script, key, args)),
    command: (name, ...args) => send((client) => client.call(name, ...args)),
    onReachable(act) {
      listeners.push(act);
      if (state === "shared") act();
    },
    close() {
      closed = true;
      isUsable = false;
      state = "gone";
      cancelBeat();
      cancelRenewal();
      connection.close();
    },
  };
}
