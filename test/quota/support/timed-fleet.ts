/**
 * Replicas of the quota over one real Redis, on the test's clock: Redis is told that clock's time too. What can happen to replicas and to
 * their connections can happen here at any moment.
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
  /** Default: these replicas and no more. */
  readonly replicasMax?: number;
  readonly budget: number;
  /** Of a command, each way. */
  readonly latencyMs: () => number;
  /** How long a command waits for its answer; default: as the service's connection decides, by recent round trips. */
  readonly commandTimeoutMs?: number;
  /** Which commands Redis still carries out when their connection is given up, because one wasn't answered in time, and after how many ms. */
  readonly arrivesLate?: () => number | null;
}

export interface TimedReplica {
  readonly quota: Quota;
  /** Commands are no longer answered; of those under way, `arrives` says which Redis still carries out, and after how many ms. */
  cutOff(arrives: () => number | null): void;
  mend(): void;
  /** Nothing happens in this process until it is resumed, as with SIGSTOP. */
  stop(): void;
  resume(): void;
  /** As with kill -9. */
  kill(): void;
}

export interface TimedFleet {
  readonly clock: FakeClock;
  readonly replicas: TimedReplica[];
  /** Starts another replica, in the same place only if the one there was killed; resolves within two seconds. */
  start(
    place: string,
    more?: { readonly budget?: number; readonly isCutOff?: boolean },
  ): Promise<TimedReplica>;
  stepRedisClock(byMs: number): void;
  /** For so long, Redis's machine stands still, and so does its clock. */
  stopRedis(forMs: number): void;
  /** Remembers what Redis knows of the quota, or lets it know that again; without a name, it forgets. */
  keep(name: string): Promise<unknown>;
  lose(name?: string): Promise<unknown>;
  close(): void;
}

const REDIS_TIME = "redis.call('TIME')";
const TEST_TIME = "{ math.floor(ARGV[2] / 1000), ARGV[2] % 1000 * 1000 }";
const RECONNECT_MS = 10;
/** Where the ledgers of tests keep their table in Redis: their fingerprint is abc. */
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

/** A process: its timers, which run neither while it is stopped nor once it is dead. */
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

  /** Once it runs again, a process reads what it was sent before its timers run. */
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
  const underWay = new Set<Promise<unknown>>();
  let redisAheadMs = 0;
  let redisRunsFrom = 0;
  const clock = new FakeClock(undefined, async () => {
    await settle();
    while (underWay.size > 0) {
      await Promise.allSettled(underWay);
      await settle();
    }
  });
  const url = fixedSecret(redisUrl);
  const real = connectRedis({ url, clock: systemClock, log: recordingLog([]) });
  // Without the deadlines of the service, which are in real time.
  const connection = openConnection(url, () => {});
  await until(() => connection.client().status === "ready", "the connection");
  const replicas: TimedReplica[] = [];

  /** No time passes meanwhile. */
  function evaluate(
    script: RedisScript,
    key: string,
    args: readonly (string | number)[] = [],
  ): Promise<unknown> {
    const work = evaluateScript(connection.client(), script, key, args).finally(() => underWay.delete(work));
    underWay.add(work);
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
    let arrives = (): number | null => null;
    let sentAt = 0;
    let answeredAt = 0;
    let roundTripMs = 0;
    const listeners: (() => void)[] = [];

    /** Nothing overtakes what was sent before it on the same connection. */
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
        const carryOut = async (): Promise<void> => {
          const now = Math.floor(clock.now() + redisAheadMs);
          const reply = await evaluate(onTestTime(script), key, [...args, now]);
          answeredAt = Math.max(answeredAt, clock.monotonic() + latencyMs());
          clock.after(answeredAt - clock.monotonic(), () => {
            if (isCut()) return;
            process.receive(() => {
              cancelTimeout();
              roundTripMs += (clock.monotonic() - askedAt - roundTripMs) / 8;
              done(reply);
            });
          });
        };
        const arrive = (): void => {
          const standsStillMs = redisRunsFrom - clock.monotonic();
          if (standsStillMs > 0) clock.after(standsStillMs, arrive);
          else void carryOut();
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

    /** After one late answer, as the service does: its connection is ready again after two round trips. */
    function reconnect(): void {
      connections += 1;
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
      // Only the first ones know that nobody has called before.
      coldStart: clock.monotonic() === 0 ? "assume-free" : "assume-spent",
      replicasMax: settings.replicasMax ?? settings.replicas,
      longestCallMs: 2000,
      place,
      home: { redis: link, directory },
      clock: process,
      onFault: (what, error) => {
        throw new Error(what, { cause: error });
      },
    });
    await opened.openAll(["abc"]);
    return {
      quota: await opened.of("abc"),
      cutOff(which) {
        // A dead one doesn't go on without Redis.
        isNetworkUp = isDead;
        isConnected = isDead;
        connections += 1;
        arrives = which;
      },
      mend() {
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
    keep: (name) => evaluate(COPY, TABLE, [name]),
    lose: (name) => (name === undefined ? evaluate(DELETE, TABLE) : evaluate(COPY, name, [TABLE])),
    close() {
      real.close();
      connection.close();
      rmSync(directory, { recursive: true });
    },
  };
}
