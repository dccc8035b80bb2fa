/** Replicas on one machine whose ledgers share a real Redis. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/clock.js";
import type { Ledger } from "../../../src/quota/ledger/ledger.js";
import { timesOf } from "../../../src/quota/ledger/protocol.js";
import { openRedisLedger, type RedisLedgerSettings } from "../../../src/quota/ledger/redis.js";
import { RedisGoneError, type RedisLink, redisScript } from "../../../src/redis.js";
import { connectRedis } from "../../../src/redis-link.js";
import { fixedSecret } from "../../../src/secret.js";
import { type RedisServer, startRedis } from "../../support/redis.js";
import { recordingLog, until } from "../../support/service.js";
import type { World } from "../../support/stories.js";

export interface Replica {
  readonly ledger: Ledger;
  /** Ends the replica as `kill -9` does. */
  kill(): void;
  /** Redis still executes commands, but every reply comes too late, until the returned function is called. */
  dropReplies(): () => void;
  /** From now on every reply takes this much longer. */
  delay(ms: number): void;
  /** From now on replies wait; the returned function delivers them in the same turn of the event loop, as after a busy period. */
  holdReplies(): () => void;
  /** From now on requests fail, but stay underway. */
  delayRequests(): DelayedRequests;
  /** Nothing reaches Redis until `heal`. */
  cutOff(): void;
  heal(): void;
}

export interface DelayedRequests {
  /** From now on requests are answered again. */
  end(): void;
  /** Lets the delayed requests arrive. */
  arrive(): Promise<unknown>;
}

export interface SharedLedger extends World {
  readonly server: RedisServer;
  /** The folder of the replicas. */
  readonly directory: string;
  /** Stops Redis's clock for this long, as if its machine were paused. After that the clock is slow by this much. */
  stopClock(forMs: number): Promise<void>;
  replica(more?: Partial<RedisLedgerSettings>): Promise<Replica>;
  /** Resolves when a new table can be used and each replica has its share. */
  ready(): Promise<void>;
  /** Resolves when all replicas know what each of them has told Redis, and have answered that. */
  updated(): Promise<void>;
  /** Resolves when all replicas can reach Redis. */
  reconnected(): Promise<void>;
}

/** The default `onFault`. A test that expects faults passes its own. */
export function unexpected(what: string, error: unknown): never {
  throw new Error(what, { cause: error });
}

/** A clock for a process that can be killed. After `end` its timers don't run any more. */
export function killableClock(): { readonly clock: Clock; end(): void } {
  let isOver = false;
  return {
    clock: {
      ...systemClock,
      after: (delayMs, run) => systemClock.after(delayMs, () => void (isOver || run())),
    },
    end() {
      isOver = true;
    },
  };
}

/** A Redis whose clock is `test:ahead` ms fast and stops from `test:from` to `test:until`. */
export function withSteppedClock(redis: RedisLink): RedisLink {
  const time = `(function()
    local time = redis.call('TIME')
    local function set(name) return tonumber(redis.call('GET', 'test:' .. name) or '0') end
    local ms = time[1] * 1000 + time[2] / 1000 + set('ahead')
    ms = ms - math.max(0, math.min(ms, set('until')) - set('from'))
    return { math.floor(ms / 1000), ms % 1000 * 1000 }
  end)()`;
  return {
    ...redis,
    run: (script, key, args) =>
      redis.run(redisScript(script.text.replace("redis.call('TIME')", time)), key, args),
  };
}

export async function openSharedLedger(
  settings: Pick<RedisLedgerSettings, "limit" | "headroom" | "windowMs" | "replicasMax" | "longestCallMs">,
): Promise<SharedLedger> {
  const server = await startRedis();
  const directory = await mkdtemp(join(tmpdir(), "shared-ledger-"));
  const links: RedisLink[] = [];
  const ledgers = new Set<Ledger>();
  async function updated(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round += 1)
      await Promise.all([...ledgers].map((ledger) => ledger.pause(0)));
  }
  return {
    server,
    directory,
    async stopClock(forMs) {
      const now = Date.now();
      await server.command("MSET", "test:from", String(now), "test:until", String(now + forMs));
    },
    async replica(more = {}) {
      const url = fixedSecret(server.url);
      const redis = withSteppedClock(connectRedis({ url, clock: systemClock, log: recordingLog([]) }));
      links.push(redis);
      const { clock, end } = killableClock();
      let dropsReplies = false;
      let isCutOff = false;
      let delayMs = 0;
      let underway: Parameters<RedisLink["run"]>[] | null = null;
      let delivery: Promise<void> = Promise.resolve();
      const ledger = await openRedisLedger({
        redis: {
          ...redis,
          reachable: () => !isCutOff && redis.reachable(),
          async run(...command) {
            if (isCutOff) throw new RedisGoneError("Redis is gone");
            if (underway !== null) {
              underway.push(command);
              throw new RedisGoneError("Redis didn't answer");
            }
            const reply = await redis.run(...command);
            if (delayMs > 0) await new Promise((done) => setTimeout(done, delayMs));
            await delivery;
            if (dropsReplies) throw new RedisGoneError("the reply came too late");
            return reply;
          },
        },
        fingerprint: "abc",
        coldStart: "assume-free",
        directory,
        clock,
        onFault: unexpected,
        ...settings,
        ...more,
      });
      ledgers.add(ledger);
      return {
        ledger,
        kill() {
          ledgers.delete(ledger);
          end();
          redis.close();
        },
        dropReplies() {
          dropsReplies = true;
          return () => {
            dropsReplies = false;
          };
        },
        delay(ms) {
          delayMs = ms;
        },
        holdReplies() {
          let deliver = (): void => {};
          delivery = new Promise((done) => {
            deliver = done;
          });
          return deliver;
        },
        delayRequests() {
          const delayed: Parameters<RedisLink["run"]>[] = (underway = []);
          return {
            end() {
              underway = null;
            },
            arrive: () => Promise.all(delayed.map((command) => redis.run(...command))),
          };
        },
        cutOff() {
          isCutOff = true;
        },
        heal() {
          isCutOff = false;
        },
      };
    },
    async ready() {
      const { evictMs } = timesOf(settings.windowMs, settings.longestCallMs);
      await new Promise((done) => setTimeout(done, evictMs + 50));
      // A replica gets its share with the first request after the others have learned of it.
      await updated(2);
    },
    updated: () => updated(3),
    reconnected: () => until(() => links.every((link) => link.reachable()), "the reconnection"),
    async close() {
      await Promise.all([...ledgers].map((ledger) => ledger.close()));
      for (const link of links) link.close();
      await server.close();
      await rm(directory, { recursive: true });
    },
  };
}
