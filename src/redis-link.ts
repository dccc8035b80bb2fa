/** The connection to Redis; the service loads it only if there is a REDIS_URL, because its client takes a tenth of a start. */
import { z } from "zod";
import { type Clock, every } from "./clock.js";
import type { Log } from "./logger.js";
import { RedisGoneError, type RedisLink, redisScript } from "./redis.js";
import { NO_CLUSTER } from "./redis-address.js";
import {
  evaluate,
  isReply,
  modeOf,
  openConnection,
  type RedisClient,
  type RedisConnection,
} from "./redis-connection.js";
import { createRedisRefusals, refusalKind } from "./redis-refusals.js";
import type { Secret } from "./secret.js";

interface RedisSettings {
  /** In the format of `parseRedisAddress`; a changed file takes effect without a restart. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly log: Log;
}

const COMMAND_TIMEOUT_MS = 100;
/** The deadline of a command in round trips, if Redis is far away, and its maximum. */
const ROUND_TRIPS = 3;
const MAX_TIMEOUT_MS = 400;
const PROBE_EVERY_MS = 250;
/** How long after a refused command probes don't count, because the probe may be allowed while that command isn't. */
const QUIET_MS = 1000;
/** The wall clock was set, or the machine suspended, if the wall clock and the monotonic clock differ by this much more than before. */
const STEP_MS = 100;

/** The wall clock minus the real monotonic clock. */
function wallAhead(): number {
  return Date.now() - performance.now();
}

/** Uses the commands of the quota and the cache, so it is refused whenever theirs would be. */
const PROBE = redisScript(`
local time = redis.call('TIME')
redis.call('SET', KEYS[1], time[1], 'PX', 10000)
redis.call('GET', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('PUBLISH', KEYS[1], '')
redis.call('PEXPIRE', KEYS[1], 0)
return time`);
const PROBE_KEY = "af-storefront:probe";
/** Seconds, and microseconds within the second. */
const probed = z.tuple([z.coerce.number(), z.coerce.number()]);

/** Returns immediately; connects in the background and never gives up. */
export function connectRedis({ url, clock, log }: RedisSettings): RedisLink {
  const refusals = createRedisRefusals(log);
  const listeners: (() => void)[] = [];
  const waiting: { readonly done: () => void; readonly failed: (problem: Error) => void }[] = [];
  const connections: RedisConnection[] = [];
  /** The average time of recent commands. Real time even in tests, like the deadline. */
  let roundTripMs = 0;
  /** Redis's clock minus the real monotonic clock. */
  let redisAheadMs: number | null = null;
  /** The wall clock minus the real monotonic clock, when Redis's clock was last read. */
  let wallAheadMs = NaN;
  let connected = false;
  /** How often a connection was opened, and the last one whose database was selected. */
  let arrivals = 0;
  let selectedOn = 0;
  /** Whether a probe has succeeded since the connection was opened and since the last refusal that concerns all commands. */
  let serves = false;
  let quietFromMs = -Infinity;
  let closed = false;

  const main = connection((client) => {
    client.on("ready", () => void arrived(client));
    client.on("close", () => {
      if (client === main.client()) lost();
    });
    client.on("error", (error: unknown) => {
      if (isReply(error)) refused(error, true);
      else if (!connected) refusals.clear();
    });
  });

  function connection(attach: (client: RedisClient) => void): RedisConnection {
    const made = openConnection(url, attach);
    connections.push(made);
    return made;
  }

  /** Checks the mode, because a cluster or a sentinel answers like a Redis but can't be used. */
  async function arrived(client: RedisClient): Promise<void> {
    const askedAtMs = performance.now();
    const mode = await modeOf(client);
    roundTripMs = performance.now() - askedAtMs;
    if (closed || client !== main.client() || client.status !== "ready") return;
    if (mode === "standalone") {
      connected = true;
      arrivals += 1;
      return probe();
    }
    const isCluster = mode === "cluster";
    refusals.note(isCluster ? "MOVED" : "other");
    const problem = isCluster ? NO_CLUSTER : "is a Sentinel; use redis+sentinel://host:port/name";
    for (const { failed } of waiting.splice(0)) failed(new Error(`REDIS_URL: ${problem}`));
  }

  async function probe(): Promise<void> {
    const askedAtMs = performance.now();
    const wallAheadThenMs = wallAhead();
    const time = await ask(
      async (client) => {
        await selectDatabase(client);
        return evaluate(client, PROBE, PROBE_KEY, []);
      },
      { isProbe: true },
    ).catch(() => null);
    const read = probed.safeParse(time);
    if (!read.success) return;
    const [seconds, microseconds] = read.data;
    compareClocks(seconds * 1000 + microseconds / 1000, askedAtMs);
    wallAheadMs = wallAheadThenMs;
    if (closed || !connected || clock.monotonic() < quietFromMs) return;
    const wasUnreachable = !serves;
    serves = true;
    refusals.recovered();
    if (!wasUnreachable) return;
    log.info("redis.reached");
    for (const { done: resolve } of waiting.splice(0)) resolve();
    for (const act of listeners) act();
  }

  /** ioredis selects it too, but stays in database 0 if Redis refuses. There this replica would spend the budget of the others once more. */
  async function selectDatabase(client: RedisClient): Promise<void> {
    const arrival = arrivals;
    if (selectedOn === arrival) return;
    const { db = 0 } = client.options;
    if (db !== 0) await client.select(db);
    selectedOn = arrival;
  }

  /** Redis's clock was read between the request and now. The estimate stays within what every probe allows, so that a slow one doesn't blur it. */
  function compareClocks(redisMs: number, askedAtMs: number): void {
    const [least, most] = [redisMs - performance.now(), redisMs - askedAtMs];
    redisAheadMs = Math.min(Math.max(redisAheadMs ?? (least + most) / 2, least), most);
  }

  function lost(): void {
    if (closed || !connected) return;
    connected = false;
    refusals.clear();
    if (serves) log.warn("redis.lost");
    serves = false;
  }

  function refused(error: Error, isProbe: boolean): void {
    if (closed) return;
    const kind = refusalKind(error.message);
    refusals.note(kind);
    // Other kinds, such as a value of the wrong type, concern a single command.
    if (isProbe || kind !== "other") serves = false;
    quietFromMs = isProbe ? -Infinity : clock.monotonic() + QUIET_MS;
    // After a failover another Redis accepts writes; a new connection finds it.
    if (kind === "READONLY" && isProbe) main.client().disconnect(true);
  }

  async function ask<T>(
    command: (client: RedisClient) => Promise<T>,
    { isProbe } = { isProbe: false },
  ): Promise<T> {
    if (!(isProbe ? connected : serves)) throw new RedisGoneError("Redis is gone");
    const client = main.client();
    const askedAtMs = performance.now();
    try {
      const answer = await inTime(command(client), deadlineMs(roundTripMs));
      roundTripMs += (performance.now() - askedAtMs - roundTripMs) / 8;
      return answer;
    } catch (error) {
      if (isReply(error)) {
        refused(error, isProbe);
        throw new RedisGoneError("Redis refused a command", { cause: error });
      }
      // After one late answer, the next ones on this connection would be late, too.
      if (client === main.client()) {
        if (connected) client.disconnect(true);
        lost();
      }
      throw new RedisGoneError("Redis didn't answer");
    }
  }

  /** Notices changes even while no commands are sent. */
  function poll(): void {
    if (main.renew()) lost();
    for (const one of connections) one.renew();
    if (connected) void probe();
  }
  poll();
  const cancelPoll = every(clock, PROBE_EVERY_MS, poll);

  return {
    reachable: () => serves,
    state: () => (refusals.active() ? "refusing" : serves ? "shared" : "gone"),
    refusals: refusals.totals,
    aheadMs: () => (redisAheadMs === null ? 0 : redisAheadMs + performance.now() - Date.now()),
    knowsTime: () => Math.abs(wallAhead() - wallAheadMs) < STEP_MS,
    firstContact: (withinMs) =>
      new Promise((done, failed) => {
        if (serves) return done();
        waiting.push({ done, failed });
        clock.after(withinMs, done);
      }),
    run: (script, key, args) => ask((client) => evaluate(client, script, key, args)),
    get: (key) => ask((client) => client.get(key)),
    set: (key, value, ttlMs) =>
      ask(async (client) => {
        await client.set(key, value, "PX", Math.max(1, Math.ceil(ttlMs)));
      }),
    claim: (key, value, ttlMs) =>
      ask(
        async (client) => (await client.set(key, value, "PX", Math.max(1, Math.ceil(ttlMs)), "NX")) === "OK",
      ),
    publish: (channel, message) =>
      ask(async (client) => {
        await client.publish(channelIn(client, channel), message);
      }),
    channel: (channel) => channelIn(main.client(), channel),
    subscribe(channel, onMessage, onGap) {
      connection((client) => {
        client.on("message", (_channel: string, message: string) => {
          onMessage(message);
        });
        client.on("ready", () => {
          client.subscribe(channelIn(client, channel)).then(onGap, (error: unknown) => {
            if (isReply(error)) refused(error, false);
            client.disconnect(true);
          });
        });
      });
    },
    onReachable(act) {
      listeners.push(act);
      if (serves) act();
    },
    close() {
      closed = true;
      connected = false;
      serves = false;
      cancelPoll();
      for (const one of connections) one.close();
    },
  };
}

/** Redis delivers messages to subscribers in every database, where another service may have the same channels. */
function channelIn({ options: { db = 0 } }: RedisClient, channel: string): string {
  return db === 0 ? channel : `${channel}:${db}`;
}

/** How long a command waits for its answer. */
export function deadlineMs(roundTripMs: number): number {
  return Math.min(Math.max(COMMAND_TIMEOUT_MS, ROUND_TRIPS * roundTripMs), MAX_TIMEOUT_MS);
}

/**
 * Rejects if there is no answer within the deadline. After a busy period, Node runs due timers before it reads the socket, so the socket
 * gets one more turn first. Uses real time even in tests, because it waits for the network.
 */
function inTime<T>(answer: Promise<T>, withinMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      setImmediate(() => {
        setImmediate(() => {
          reject(new Error("no answer in time"));
        });
      });
    }, withinMs);
    answer
      .finally(() => {
        clearTimeout(timer);
      })
      .then(resolve, reject);
  });
}
