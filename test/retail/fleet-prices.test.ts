/**
 * Random histories of replicas and their prices: changes of the price list, late answers, a Redis that fails and loses data, lost messages, and
 * restarts. No replica may trust a price that was already replaced by its own evidence, or by evidence that reached it.
 */
import { describe, expect, test } from "@jest/globals";
import { createPool } from "../../src/cache/cache.js";
import { createInvalidation } from "../../src/cache/invalidation.js";
import { redisPool } from "../../src/cache/redis-pool.js";
import { type Clock, createStamps } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import type { Wholesale } from "../../src/money.js";
import type { Ask } from "../../src/quota/quota.js";
import { createPriceEpochs, type PriceEpochs } from "../../src/retail/price-epoch.js";
import { decodeStoredQuote } from "../../src/retail/price-facts.js";
import {
  createPriceQuotes,
  keyOf,
  type PriceQuotes,
  type Quote,
  quoteCaution,
} from "../../src/retail/price-quotes.js";
import type { Combination } from "../../src/upstream/contract.js";
import type { Answered } from "../../src/upstream/call.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";
import { type SimulatedLink, SimulatedRedis } from "../support/simulated-redis.js";
import { randomOf } from "../truth/history.js";

const HISTORIES = Number(process.env["FLEET_PRICES_RUNS"] ?? 150);
const FIRST = Number(process.env["FLEET_PRICES_FIRST"] ?? 1);
const STEPS = 60;
const REPLICAS = 3;
const SIGNED_WITHIN_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The maximum difference between the clocks of two replicas. */
const SKEW_MS = 90;

const TERMS: readonly Combination[] = [
  { tld: ".af", action: "registration", years: 1 },
  { tld: ".af", action: "renewal", years: 1 },
  { tld: ".af", action: "transfer", years: 1 },
];

/** The upstream's price list. Each version has its own price for every term, so a price identifies its version. */
class List {
  readonly #clock: FakeClock;
  readonly #random: () => number;
  /** When each version came into force. */
  readonly #sinceMs: number[] = [-Infinity];
  readonly #versions = new Map<string, number>();

  constructor(clock: FakeClock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
    this.#price(0);
  }

  get version(): number {
    return this.#sinceMs.length - 1;
  }

  change(): void {
    this.#sinceMs.push(this.#clock.monotonic());
    this.#price(this.version);
  }

  amount(what: Combination, version: number): string {
    const found = [...this.#versions].find(
      ([key, of]) => of === version && key.startsWith(`${keyOf(what)} at `),
    );
    return found?.[0].split(" at ")[1] ?? "";
  }

  versionOf(what: Combination, { amount }: Wholesale): number {
    return this.#versions.get(`${keyOf(what)} at ${amount}`) ?? -1;
  }

  /** When the version was replaced; Infinity if it is in force. */
  untilMs(version: number): number {
    return this.#sinceMs[version + 1] ?? Infinity;
  }

  #price(version: number): void {
    for (const what of TERMS) {
      // Prices rise and fall; the last digits keep them apart.
      const cents = (1000 + Math.floor(this.#random() * 9000)) * 100 + version;
      this.#versions.set(`${keyOf(what)} at ${(cents / 100).toFixed(2)}`, version);
    }
  }
}

interface Replica {
  readonly link: SimulatedLink;
  readonly clock: Clock;
  readonly epochs: PriceEpochs;
  readonly quotes: PriceQuotes;
  /** The version of the latest evidence that reached this replica. */
  knownVersion: number;
  close(): void;
}

class History {
  readonly clock = new FakeClock();
  readonly wrong: string[] = [];
  readonly trace: string[] = [];
  readonly replicas: Replica[] = [];
  readonly redis: SimulatedRedis;
  readonly list: List;
  readonly #random: () => number;
  #mayFail = true;
  /** The lowest version of the evidence that started each epoch. */
  readonly #versionOfMark = new Map<string, number>();

  constructor(seed: number) {
    this.#random = randomOf(seed);
    this.redis = new SimulatedRedis(this.clock, this.#random);
    this.list = new List(this.clock, this.#random);
  }

  note(what: string): void {
    this.trace.push(`${Math.round(this.clock.monotonic())} ${what}`);
  }

  async start(at: number): Promise<void> {
    const { clock, list } = this;
    const skewMs = (this.#random() - 0.5) * SKEW_MS;
    const aheadMs = Math.floor(this.#random() * HOUR_MS);
    const own: Clock = {
      now: () => clock.now() + skewMs,
      monotonic: () => clock.monotonic() + aheadMs,
      after: (delayMs, run) => clock.after(delayMs, run),
    };
    const stamp = createStamps(own);
    const link = this.redis.link();
    const invalidation = createInvalidation(link, own);
    let lastVersion = 0;
    const recorded = recordingLog([]);
    const epochs = createPriceEpochs({
      channel: invalidation.channel("prices"),
      stamp,
      clock: own,
      log: {
        ...recorded,
        warn: (event, fields = {}) => {
          this.note(`replica ${at} ${event} ${JSON.stringify(fields)}`);
          if (event === "prices.epoch.ended" && fields["evidence"] === "quote") ended(lastVersion);
        },
      },
    });
    const pool = createPool<Quote, Ask>({
      entries: 10,
      freshness: () => ({ freshMs: 48 * 60_000, usableMs: 48 * HOUR_MS }),
      failureMs: 5_000,
      failureKind: () => "own",
      caution: quoteCaution,
      clock: own,
      shared: redisPool({
        link,
        name: "prices",
        purges: null,
        source: () => "the upstream",
        decode: decodeStoredQuote,
        clock: own,
      }),
    });
    const ask = async (_ask: Ask, what: Combination): Promise<Answered<Wholesale>> => {
      const askedMs = stamp();
      await this.#wait(this.#random() < 0.2 ? 4_000 : 200);
      const version = list.version;
      const amount = list.amount(what, version);
      await this.#wait(this.#random() < 0.2 ? 4_000 : 200);
      if (this.#mayFail && this.#random() < 0.05)
        throw new ServiceError("upstream_failed", "The registry service failed.");
      lastVersion = version;
      this.note(`replica ${at} learns ${keyOf(what)} at ${amount}, version ${version}`);
      return { value: { kind: "wholesale", amount, currency: "USD" }, askedMs, answeredMs: stamp() };
    };
    const quotes = createPriceQuotes({ pool, ask, epochs, onEpochEnded: () => {}, log: recorded });
    const replica: Replica = {
      link,
      clock: own,
      epochs,
      quotes,
      knownVersion: 0,
      close: () => {
        invalidation.close();
        link.close();
      },
    };
    const ended = (version: number): void => {
      replica.knownVersion = Math.max(replica.knownVersion, version);
      const mark = epochs.current();
      // The mark is published after the log line.
      void Promise.resolve().then(() => {
        const now = epochs.current();
        this.note(`replica ${at} begins ${now.slice(0, 14)} instead of ${mark.slice(0, 14)}`);
        this.#versionOfMark.set(now, Math.min(this.#versionOfMark.get(now) ?? Infinity, version));
      });
    };
    this.replicas[at] = replica;
    const known = invalidation.known(1_000);
    await clock.advance(1_000);
    await known;
    const consulted = Promise.all(TERMS.map((what) => pool.consult(keyOf(what))));
    await clock.advance(150);
    await consulted;
    epochs.resume({ tier: null, liveSinceMs: -Infinity });
    this.note(`replica ${at} started in ${epochs.current().slice(0, 14)}`);
  }

  /** Reports prices that a replica trusts although it must not. */
  check(): void {
    for (const [at, { quotes, epochs, knownVersion, clock }] of this.replicas.entries()) {
      const leastVersion = Math.max(knownVersion, this.#versionOfMark.get(epochs.current()) ?? 0);
      for (const what of TERMS) {
        const price = quotes.peek(what);
        if (price?.isTrusted !== true) continue;
        const version = this.list.versionOf(what, price.wholesale);
        const askedMs = price.askedMs - (clock.monotonic() - this.clock.monotonic());
        if (version < leastVersion)
          this.#fault(
            `replica ${at} trusts ${keyOf(what)} of version ${version}, but knows of ${leastVersion}`,
          );
        if (this.list.untilMs(version) < askedMs - SKEW_MS - 100)
          this.#fault(
            `replica ${at} trusts ${keyOf(what)} of version ${version}, replaced before it was requested`,
          );
      }
    }
  }

  #fault(what: string): void {
    if (this.wrong.length > 0) return;
    this.note(what);
    this.wrong.push(what);
  }

  #wait(maxMs: number): Promise<void> {
    return new Promise((done) => {
      this.clock.after(this.#random() * maxMs, done);
    });
  }

  asker(lane: Ask["lane"]): Ask {
    return { lane, client: "somebody", waitUntilMs: Infinity, signal: new AbortController().signal };
  }

  /** Requests a price as a cart does: no older than a minute. */
  quote({ quotes, clock }: Replica, what: Combination): Promise<unknown> {
    return quotes
      .quote(this.asker("checkout"), what, clock.monotonic() - SIGNED_WITHIN_MS)
      .catch(() => undefined);
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      await this.clock.advance(Math.min(50, left));
      this.check();
    }
  }

  async step(): Promise<void> {
    const random = this.#random;
    const at = Math.floor(random() * REPLICAS);
    const replica = this.replicas[at];
    const what = TERMS[Math.floor(random() * TERMS.length)];
    if (replica === undefined || what === undefined) return;
    const dice = random();
    if (dice < 0.5) void this.quote(replica, what);
    else if (dice < 0.6) void replica.quotes.refresh(this.asker("refresh"), what).catch(() => undefined);
    else if (dice < 0.7) {
      this.list.change();
      this.note(`the list changes to version ${this.list.version}`);
    } else if (dice < 0.74) {
      this.note("Redis fails");
      this.redis.setUp(false);
      if (random() < 0.5) this.redis.values.clear();
    } else if (dice < 0.82) {
      this.note("Redis is back");
      this.redis.setUp(true);
    } else if (dice < 0.86) {
      this.note(`replica ${at} is cut off or reconnected`);
      replica.link.cut(random() < 0.5);
    } else if (dice < 0.9) {
      replica.link.losesMessages = !replica.link.losesMessages;
      this.note(`replica ${at} ${replica.link.losesMessages ? "misses" : "gets"} messages`);
    } else if (dice < 0.92) {
      replica.epochs.end({ kind: "purge" });
    } else if (dice < 0.94) {
      this.note(`replica ${at} restarts`);
      replica.close();
      await this.start(at);
    }
    await this.pass(random() < 0.5 ? random() * 100 : random() * 3_000);
  }

  async play(): Promise<void> {
    for (let at = 0; at < REPLICAS; at += 1) await this.start(at);
    for (let step = 0; step < STEPS && this.wrong.length === 0; step += 1) await this.step();
    if (this.wrong.length === 0) await this.#end();
    for (const { close } of this.replicas) close();
  }

  /** Checks that all replicas trust the current prices once nothing disturbs them. */
  async #end(): Promise<void> {
    this.redis.setUp(true);
    for (const { link } of this.replicas) {
      link.cut(false);
      link.losesMessages = false;
    }
    this.#mayFail = false;
    // Longer than the maximum age of a price that is signed.
    await this.pass(61_000);
    for (let round = 0; round < 3; round += 1) {
      const asked = this.replicas.flatMap((replica) => TERMS.map((what) => this.quote(replica, what)));
      await this.pass(10_000);
      await Promise.all(asked);
    }
    for (const [at, { quotes }] of this.replicas.entries())
      for (const what of TERMS)
        if (quotes.peek(what)?.isTrusted !== true)
          this.#fault(`replica ${at} doesn't come to trust ${keyOf(what)}`);
  }
}

describe("replicas", () => {
  const seeds = Array.from({ length: HISTORIES }, (_, at) => FIRST + at);
  test(`never trust prices that evidence known to them has replaced, in ${HISTORIES} random histories`, async () => {
    for (const seed of seeds) {
      const history = new History(seed);
      await history.play();
      expect({ seed, wrong: history.wrong, trace: history.wrong.length === 0 ? [] : history.trace }).toEqual({
        seed,
        wrong: [],
        trace: [],
      });
    }
  });
});
