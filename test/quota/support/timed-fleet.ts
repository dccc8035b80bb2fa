/**
 * Replicas of the quota over one real Redis, on the test's clock, which also gives Redis its time. At any moment, a test can stop or kill a
 * replica, cut its connection or change Redis's clock.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../../src/clock.js";
import { systemClock } from "../../../src/clock.js";
import { createQuotas } from "../../../src/quota/quotas.js";
import type { Quota } from "../../../src/quota/quota.js";
import { RedisGoneError, type RedisLink, redisScript, type RedisScript } from "../../../src/redis.js";
import { connectRedis, deadlineMs } from "../../../src/redis-link.js";
import { evaluate as evaluateScript, openConnection } from "../../../src/redis-connection.js";
import { fixedSecret } from "../../../src/secret.js";
import { FakeClock, settle } from "../../support/fake-clock.js";
import { recordingLog, until } from "../../support/service.js";
import { WINDOW_MS } from "./asks.js";

export interface TimedFleetSettings {
  readonly redisUrl: string;
  readonly replicas: number;
  /** Default: `replicas`. */
  readonly replicasMax?: number;
  readonly budget: number;
  /** The latency of a command in each direction. */
  readonly latencyMs: () => number;
  /** How long a command waits for its answer. Default: as in the service, depending on recent round trips. */
  readonly commandTimeoutMs?: number;
  /**
   * Called for each command in flight when its connection is closed because an answer was late. Returns after how many ms Redis still executes
   * it; null: never.
   */
  readonly arrivesLate?: () => number | null;
}

export interface TimedReplica {
  readonly quota: Quota;
  /**
   * From now on commands aren't answered. `arrives` returns after how many ms Redis still executes a command that was in flight; null: never.
   */
  cutOff(arrives: () => number | null): void;
  /** Ends the cut. */
  heal(): void;
  /** Stops the process until it is resumed, as with SIGSTOP. */
  stop(): void;
  resume(): void;
  /** Ends the process as `kill -9` does. */
  kill(): void;
}

export interface TimedFleet {
  readonly clock: FakeClock;
  readonly replicas: TimedReplica[];
  /** Starts another replica. The former one in the same place, if any, must have been killed. Resolves within two seconds. */
  start(
    place: string,
    more?: { readonly budget?: number; readonly isCutOff?: boolean },
  ): Promise<TimedReplica>;
  stepRedisClock(byMs: number): void;
  /** Pauses Redis's machine for this long, and so its clock. */
  stopRedis(forMs: number): void;
  /** Saves a copy of the quota's table in Redis. */
  snapshot(name: string): Promise<unknown>;
  /** Replaces the table with that copy; without a name, deletes it. */
  rollBack(name?: string): Promise<unknown>;
  close(): void;
}

const REDIS_TIME = "redis.call('TIME')";
const TEST_TIME = "{ math.floor(ARGV[2] / 1000), ARGV[2] % 1000 * 1000 }";
const RECONNECT_MS = 10;
/** For so long replies still arrive on a connection that is being closed. */
const CLOSING_MS = 100;
/** The key of the ledger's table in Redis, with the fingerprint that tests use. */
export const TABLE = "af-storefront:quota:abc";
const COPY = redisScript(`redis.call('COPY', KEYS[1], ARGV[1], 'REPLACE')`);
const DELETE = redisScript(`redis.call('DEL', KEYS[1])`);

const timedScripts = new Map<RedisScript, RedisScript>();

function onTestTime(script: RedisScript): RedisScript {
  const known = timedScripts.get(script);
  if (known !== undefined) return known;
  if (!script.text.includes(REDIS_TIME)) throw new Error("the script doesn't read Redis's clock");
  const made = redisScript(script.text.replaceAll(REDIS_TIME, TEST_TIME));
  timedScripts.set(script, made);
  return made;
}

/** The timers of a process. They run neither while it is stopped nor after it was killed. */
class Process implements Clock {
  readonly #clock: FakeClock;
  #state: "running" | "stopped" | "dead" = "running";
  #missed: (() => void)[] = [];
  #received: (() => void)[] = [];

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  now = (): number => this.#clock.now();
  monotonic = (): number => this.#clock.monotonic();

  after(delayMs: number, run: () => void): () => void {
    let isCancelled = false;
    const act = (): void => {
      if (isCancelled || this.#state === "dead") return;
      if (this.#state === "running") run();
      else this.#missed.push(act);
    };
    const cancel = this.#clock.after(delayMs, act);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** Handles a message from Redis. A stopped process handles it once it runs again, before its timers. */
  receive(act: () => void): void {
    if (this.#state === "running") act();
    else if (this.#state === "stopped") this.#received.push(act);
  }

  become(state: "running" | "stopped" | "dead"): void {
    if (this.#state === "dead") return;
    this.#state = state;
    if (state === "running")
      for (const act of [...this.#received.splice(0), ...this.#missed.splice(0)]) act();
  }
}

export async function openTimedFleet(settings: TimedFleetSettings): Promise<TimedFleet> {
  const { redisUrl, latencyMs, commandTimeoutMs, arrivesLate = () => 0 } = settings;
  const directory = mkdtempSync(join(tmpdir(), "timed-fleet-"));
  const pending = new Set<Promise<unknown>>();
  let redisAheadMs = 0;
  let redisRunsFrom = 0;
  const clock = new FakeClock(undefined, async () => {
    await settle();
    while (pending.size > 0) {
      await Promise.allSettled(pending);
      await settle();
    }
  });
  const url = fixedSecret(redisUrl);
  const real = connectRedis({ url, clock: systemClock, log: recordingLog([]) });
  // Has no deadlines, unlike the service's connection, whose deadlines are in real time.
  const connection = openConnection(url, () => {});
  await until(() => connection.client().status === "ready", "the connection");
  const replicas: TimedReplica[] = [];

  /** Runs a script without advancing the clock. */
  function evaluate(
    script: RedisScript,
    key: string,
    args: readonly (string | number)[] = [],
  ): Promise<unknown> {
    const work = evaluateScript(connection.client(), script, key, args).finally(() => pending.delete(work));
    pending.add(work);
    return work;
  }

  async function start(
    place: string,
    { budget = settings.budget, isCutOff = false } = {},
  ): Promise<TimedReplica> {
    const process = new Process(clock);
    let isNetworkUp = !isCutOff;
    let isConnected = isNetworkUp;
    let isDead = false;
    let connections = 0;
    let closedAt = -Infinity;
    let arrives = (): number | null => null;
    let sentAt = 0;
    let answeredAt = 0;
    let roundTripMs = 0;
    const listeners: (() => void)[] = [];

    /** Keeps the order of commands and of answers on the same connection. */
    function run(script: RedisScript, key: string, args: readonly (string | number)[]): Promise<unknown> {
      const on = connections;
      const isCut = (): boolean => on !== connections;
      return new Promise((done, failed) => {
        const askedAt = clock.monotonic();
        const cancelTimeout = process.after(commandTimeoutMs ?? deadlineMs(roundTripMs), () => {
          if (isConnected && !isCut()) reconnect();
          failed(new RedisGoneError("not answered in time"));
        });
        if (!isConnected) return;
        sentAt = Math.max(sentAt, askedAt + latencyMs());
        const execute = async (): Promise<void> => {
          const now = Math.floor(clock.now() + redisAheadMs);
          const reply = await evaluate(onTestTime(script), key, [...args, now]);
          answeredAt = Math.max(answeredAt, clock.monotonic() + latencyMs());
          clock.after(answeredAt - clock.monotonic(), () => {
            if (isCut() && clock.monotonic() > closedAt + CLOSING_MS) return;
            process.receive(() => {
              cancelTimeout();
              roundTripMs += (clock.monotonic() - askedAt - roundTripMs) / 8;
              done(reply);
            });
          });
        };
        const arrive = (): void => {
          const pausedForMs = redisRunsFrom - clock.monotonic();
          if (pausedForMs > 0) clock.after(pausedForMs, arrive);
          else void execute();
        };
        clock.after(sentAt - clock.monotonic(), () => {
          const inMs = isCut() ? arrives() : 0;
          if (inMs === 0) arrive();
          else if (inMs !== null) clock.after(inMs, arrive);
        });
      });
    }

    function connect(): void {
      isConnected = true;
      for (const act of listeners) process.after(0, act);
    }

    /** Reconnects after a late answer, as the service does. The new connection is ready after two round trips. */
    function reconnect(): void {
      connections += 1;
      closedAt = clock.monotonic();
      const mine = connections;
      arrives = arrivesLate;
      isConnected = false;
      roundTripMs = latencyMs() + latencyMs();
      process.after(RECONNECT_MS + 2 * roundTripMs, () => {
        if (isNetworkUp && mine === connections) connect();
      });
    }

    const link: RedisLink = {
      ...real,
      reachable: () => isConnected,
      run,
      onReachable(act) {
        listeners.push(act);
        if (isConnected) act();
      },
    };
    const opened = createQuotas({
      limit: budget,
      headroom: 0,
      windowMs: WINDOW_MS,
      // Only the first replicas can know that no calls have been made before.
      coldStart: clock.monotonic() === 0 ? "assume-free" : "assume-spent",
      replicasMax: settings.replicasMax ?? settings.replicas,
      longestCallMs: 2000,
      place,
      home: { redis: link, directory },
      clock: process,
      log: {
        ...recordingLog([]),
        error(event, fields) {
          throw new Error(`${event}: ${fields?.["what"]}`);
        },
      },
    });
    await opened.openAll(["abc"]);
    return {
      quota: await opened.of("abc"),
      cutOff(which) {
        // A killed replica must not continue without Redis.
        isNetworkUp = isDead;
        isConnected = isDead;
        connections += 1;
        closedAt = clock.monotonic();
        arrives = which;
      },
      heal() {
        isNetworkUp = true;
        connect();
      },
      stop: () => {
        process.become("stopped");
      },
      resume: () => {
        process.become("running");
      },
      kill() {
        process.become("dead");
        isDead = true;
        isNetworkUp = true;
        isConnected = true;
        connections += 1;
      },
    };
  }

  const starting = Array.from({ length: settings.replicas }, (_, replica) => start(`place ${replica}`));
  await clock.advance(2000);
  replicas.push(...(await Promise.all(starting)));
  return {
    clock,
    replicas,
    start,
    stepRedisClock(byMs) {
      redisAheadMs += byMs;
    },
    stopRedis(forMs) {
      redisAheadMs -= forMs;
      redisRunsFrom = Math.max(redisRunsFrom, clock.monotonic()) + forMs;
    },
    snapshot: (name) => evaluate(COPY, TABLE, [name]),
    rollBack: (name) => (name === undefined ? evaluate(DELETE, TABLE) : evaluate(COPY, name, [TABLE])),
    close() {
      real.close();
      connection.close();
      rmSync(directory, { recursive: true });
    },
  };
}
