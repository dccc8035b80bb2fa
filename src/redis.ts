/**
 * The connection to Redis, judged by what it does: every command ends within 100 ms, or a few round trips where Redis is far away, nothing is queued while Redis is gone or refuses to
 * serve, and any answer may be missing, so every caller has a way to go on without it.
 */
import type { Clock } from "./clock.js";
import type { Log } from "./logger.js";
import { NO_CLUSTER } from "./redis-address.js";
import {
  evaluate,
  isReply,
  modeOf,
  openConnection,
  type RedisClient,
  type RedisConnection,
  type RedisScript,
  redisScript,
} from "./redis-connection.js";
import { createRedisRefusals, refusalKind } from "./redis-refusals.js";
import type { Secret } from "./secret.js";

export { redisScript };

/** Rejected with by every command that was refused, not answered in time, or not sent because Redis is known not to serve. */
export class RedisGoneError extends Error {
  override readonly name = "RedisGoneError";
}

/** Serves everything, refuses some or all commands, or doesn't answer. */
export type RedisState = "shared" | "refusing" | "gone";

export interface RedisLink {
  /** Whether the last thing known is that Redis answers and does what it is asked. */
  reachable(): boolean;
  state(): RedisState;
  /** The commands refused since the start, by kind. */
  refusals(): Readonly<Record<string, number>>;
  /** Resolves at the first contact, at the latest after `withinMs`; rejects with a sentence if this Redis can never be used. */
  firstContact(withinMs: number): Promise<void>;
  run(script: RedisScript, key: string, args: readonly (string | number)[]): Promise<unknown>;
  get(key: string): Promise<string | null>;
  set(key: string, value: string, ttlMs: number): Promise<void>;
  /** Sets what is not there yet; false when it is. */
  claim(key: string, value: string, ttlMs: number): Promise<boolean>;
  publish(channel: string, message: string): Promise<void>;
  /**
   * Calls `onMessage` for every message of the channel. `onGap` is called once messages are received, and again each time that some may
   * have been missed. Nothing is ever rejected: without Redis there are no messages.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): void;
  /** Called each time that Redis can be asked again, and at the first time. */
  onReachable(act: () => void): void;
  close(): void;
}

export interface RedisSettings {
  /** What `parseRedisAddress` accepts; a changed file takes effect while we run. */
  readonly url: Secret;
  readonly clock: Clock;
  readonly log: Log;
}

const COMMAND_TIMEOUT_MS = 100;
/** Where Redis is far away: so many round trips, and never longer than this. */
const ROUND_TRIPS = 3;
const LONGEST_TIMEOUT_MS = 400;
const LOOK_EVERY_MS = 250;
/** After a command was refused, Redis must refuse nothing for so long, because the probe may be allowed what that command is not. */
const QUIET_MS = 1000;

/** Does all that the service needs to do, so that it is refused whatever the service would be. */
const PROBE = redisScript(`
redis.call('SET', KEYS[1], redis.call('TIME')[1], 'PX', 10000)
redis.call('GET', KEYS[1])
redis.call('PTTL', KEYS[1])
redis.call('PUBLISH', KEYS[1], '')
redis.call('PEXPIRE', KEYS[1], 0)
return 1`);
const PROBE_KEY = "af-storefront:probe";

/** Starts connecting at once and never gives up; the answer does not wait for it. */
export function connectRedis({ url, clock, log }: RedisSettings): RedisLink {
  const refusals = createRedisRefusals(log);
  const listeners: (() => void)[] = [];
  const waiting: { readonly done: () => void; readonly failed: (problem: Error) => void }[] = [];
  const connections: RedisConnection[] = [];
  /** What a command and its answer take of late. Real time even in tests, as the deadline. */
  let roundTripMs = 0;
  let connected = false;
  /** Whether a probe has succeeded since the connection began and since the last refusal that concerns them all. */
  let serves = false;
  let quietFromMs = -Infinity;
  let closed = false;
  let cancelLook = (): void => {};

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

  /** A cluster or a sentinel answers like a Redis and then serves nothing. */
  async function arrived(client: RedisClient): Promise<void> {
    const askedAtMs = performance.now();
    const mode = await modeOf(client);
    roundTripMs = performance.now() - askedAtMs;
    if (closed || client !== main.client() || client.status !== "ready") return;
    if (mode === "standalone") {
      connected = true;
      return probe();
    }
    const isCluster = mode === "cluster";
    refusals.note(isCluster ? "MOVED" : "other");
    const problem = isCluster ? NO_CLUSTER : "is a Sentinel: it needs redis+sentinel://host:port/name";
    for (const { failed } of waiting.splice(0)) failed(new Error(`REDIS_URL: ${problem}`));
  }

  async function probe(): Promise<void> {
    const done = await ask((client) => evaluate(client, PROBE, PROBE_KEY, []), { isProbe: true }).catch(
      () => 0,
    );
    if (done !== 1 || closed || !connected || clock.monotonic() < quietFromMs) return;
    const wasUnreachable = !serves;
    serves = true;
    refusals.recovered();
    if (!wasUnreachable) return;
    log.info("redis.reached");
    for (const { done: resolve } of waiting.splice(0)) resolve();
    for (const act of listeners) act();
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
    // What befalls one command alone, such as a value of a wrong type, says nothing about the others.
    if (isProbe || kind !== "other") serves = false;
    quietFromMs = isProbe ? -Infinity : clock.monotonic() + QUIET_MS;
    // After a failover it is another Redis that takes writes; a new connection finds it.
    if (kind === "READONLY" && isProbe) main.client().disconnect(true);
  }

  async function ask<T>(
    command: (client: RedisClient) => Promise<T>,
    { isProbe } = { isProbe: false },
  ): Promise<T> {
    if (!connected || !(serves || isProbe)) throw new RedisGoneError("Redis is gone");
    const client = main.client();
    const askedAtMs = performance.now();
    try {
      const answer = await inTime(command(client), deadlineMs());
      roundTripMs += (performance.now() - askedAtMs - roundTripMs) / 8;
      return answer;
    } catch (error) {
      if (isReply(error)) {
        refused(error, isProbe);
        throw new RedisGoneError("Redis refused a command", { cause: error });
      }
      // A connection on which one answer is late would give it to nobody, and the next ones late too.
      if (connected && client === main.client()) client.disconnect(true);
      lost();
      throw new RedisGoneError("Redis did not answer");
    }
  }

  const deadlineMs = (): number =>
    Math.min(Math.max(COMMAND_TIMEOUT_MS, ROUND_TRIPS * roundTripMs), LONGEST_TIMEOUT_MS);

  /** So that what becomes of Redis is noticed while nobody asks. */
  function look(): void {
    cancelLook = clock.after(LOOK_EVERY_MS, look);
    if (main.renew()) lost();
    for (const one of connections) one.renew();
    if (connected) void probe();
  }
  look();

  return {
    reachable: () => connected && serves,
    state: () => (refusals.active() ? "refusing" : connected && serves ? "shared" : "gone"),
    refusals: refusals.totals,
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
        await client.publish(channel, message);
      }),
    subscribe(channel, onMessage, onGap) {
      connection((client) => {
        client.on("message", (_channel: string, message: string) => {
          onMessage(message);
        });
        client.on("ready", () => {
          client.subscribe(channel).then(onGap, (error: unknown) => {
            if (isReply(error)) refused(error, false);
            client.disconnect(true);
          });
        });
      });
    },
    onReachable(act) {
      listeners.push(act);
      if (connected && serves) act();
    },
    close() {
      closed = true;
      connected = false;
      cancelLook();
      for (const one of connections) one.close();
    },
  };
}

/**
 * Rejects when there is no answer within the deadline. A process that was busy for as long finds its timers due before it has read what
 * has arrived, so the socket is read once more first. Real time even in tests: this waits for the network.
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
