/**
 * Redis on the clock of a test, without a process: what the caches, the marks and the claims of replicas ask of it, over links that are slow,
 * break, or lose messages when the test says so. Its scripts are written again here; `test/redis/simulated.test.ts` compares them with those that Redis runs.
 */
import { z } from "zod";
import { RedisGoneError, type RedisLink, type RedisScript } from "../../src/redis.js";
import type { FakeClock } from "./fake-clock.js";

const DEADLINE_MS = 100;
const MOST_SLOW_MS = 4;
const NOTICED_WITHIN_MS = 300;

type Args = readonly (string | number)[];

/** The values, and what commands and scripts do to them at once. */
export class SimulatedValues {
  readonly #now: () => number;
  #values = new Map<string, { readonly text: string; readonly untilMs: number }>();

  constructor(now: () => number) {
    this.#now = now;
  }

  clear(): void {
    this.#values = new Map();
  }

  get(key: string): string | null {
    const found = this.#values.get(key);
    return found === undefined || found.untilMs <= this.#now() ? null : found.text;
  }

  set(key: string, text: string, ttlMs: number): void {
    this.#values.set(key, { text, untilMs: this.#now() + ttlMs });
  }

  claim(key: string, text: string, ttlMs: number): boolean {
    if (this.get(key) !== null) return false;
    this.set(key, text, ttlMs);
    return true;
  }

  run({ text }: RedisScript, key: string, args: Args): unknown {
    if (text.includes("cjson.encode(standing)")) return this.#add(key, args);
    if (text.includes("(%d+) (%S+)")) return this.#settle(key, args);
    if (text.includes("redis.call('PEXPIRE', KEYS[1], ARGV[2])")) return this.#hold(key, args);
    throw new Error("a script that isn't simulated");
  }

  #leftMs(key: string): number {
    return this.get(key) === null ? -2 : (this.#values.get(key)?.untilMs ?? 0) - this.#now();
  }

  #add(key: string, args: Args): string {
    const [fact, ttlMs, differMs] = z.tuple([z.string(), z.coerce.number(), z.coerce.number()]).parse(args);
    const facts = storedFacts.parse([
      ...z.array(z.unknown()).parse(JSON.parse(this.get(key) ?? "[]")),
      JSON.parse(fact),
    ]);
    const standing = facts.filter((one) =>
      facts.every((other) => other.askedAtMs - (other.by === one.by ? 0 : differMs) <= one.answeredAtMs),
    );
    const text = JSON.stringify(standing);
    this.set(key, text, Math.max(ttlMs, this.#leftMs(key)));
    return text;
  }

  #settle(key: string, args: Args): string {
    const [ours, sent, isFirst, ttlMs] = z
      .tuple([z.coerce.number(), z.string(), z.coerce.number(), z.coerce.number()])
      .parse(args);
    const stored = this.get(key) ?? "";
    const [, digits, id = ""] = /^(\d+) (\S+)$/.exec(stored) ?? [];
    const count = digits === undefined ? null : Number(digits);
    const isLater = id.length === sent.length ? id >= sent : id.length > sent.length;
    const stays = count !== null && (isFirst === 1 || count > ours || (count === ours && isLater));
    this.set(key, stays ? stored : `${ours} ${sent}`, ttlMs);
    return stored;
  }

  #hold(key: string, args: Args): number {
    const [token, ttlMs] = z.tuple([z.string(), z.coerce.number()]).parse(args);
    if (this.get(key) !== token) return 0;
    this.set(key, token, ttlMs);
    return 1;
  }
}

const storedFacts = z.array(
  z.looseObject({ askedAtMs: z.number(), answeredAtMs: z.number(), by: z.string() }),
);

export class SimulatedRedis {
  readonly values: SimulatedValues;
  readonly clock: FakeClock;
  readonly random: () => number;
  readonly links = new Set<SimulatedLink>();
  isUp = true;

  constructor(clock: FakeClock, random: () => number) {
    this.clock = clock;
    this.random = random;
    this.values = new SimulatedValues(() => clock.monotonic());
  }

  link(): SimulatedLink {
    const link = new SimulatedLink(this);
    this.links.add(link);
    return link;
  }

  setUp(isUp: boolean): void {
    this.isUp = isUp;
    for (const link of this.links) link.look();
  }
}

/** One replica's connection: commands are executed and answered in their order. */
export class SimulatedLink implements RedisLink {
  readonly #redis: SimulatedRedis;
  readonly #acts: (() => void)[] = [];
  readonly #subscriptions: { readonly channel: string; onMessage(message: string): void; onGap(): void }[] =
    [];
  #isCut = false;
  #isReachable = false;
  #isClosed = false;
  #lastMs = 0;
  /** Messages are lost, and nobody notices. */
  isDeaf = false;

  constructor(redis: SimulatedRedis) {
    this.#redis = redis;
    this.look();
  }

  cut(isCut: boolean): void {
    this.#isCut = isCut;
    this.look();
  }

  /** Notices after a while whether Redis works. */
  look(): void {
    this.#redis.clock.after(this.#redis.random() * NOTICED_WITHIN_MS, () => {
      if (this.#works === this.#isReachable) return;
      this.#isReachable = this.#works;
      if (!this.#isReachable) return;
      for (const act of this.#acts) act();
      for (const { onGap } of this.#subscriptions) onGap();
    });
  }

  get #works(): boolean {
    return this.#redis.isUp && !this.#isCut && !this.#isClosed;
  }

  reachable(): boolean {
    return this.#isReachable;
  }

  state(): "shared" | "gone" {
    return this.#isReachable ? "shared" : "gone";
  }

  refusals(): Readonly<Record<string, number>> {
    return {};
  }

  firstContact(): Promise<void> {
    return Promise.resolve();
  }

  run(script: RedisScript, key: string, args: Args): Promise<unknown> {
    return this.#command((values) => values.run(script, key, args));
  }

  get(key: string): Promise<string | null> {
    return this.#command((values) => values.get(key));
  }

  set(key: string, value: string, ttlMs: number): Promise<void> {
    return this.#command((values) => {
      values.set(key, value, ttlMs);
    });
  }

  claim(key: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#command((values) => values.claim(key, value, ttlMs));
  }

  publish(channel: string, message: string): Promise<void> {
    return this.#command(() => {
      for (const link of this.#redis.links) link.#deliver(channel, message);
    });
  }

  subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): void {
    this.#subscriptions.push({ channel, onMessage, onGap });
  }

  onReachable(act: () => void): void {
    this.#acts.push(act);
  }

  close(): void {
    this.#isClosed = true;
    this.#isReachable = false;
    this.#redis.links.delete(this);
  }

  #deliver(channel: string, message: string): void {
    if (this.isDeaf) return;
    this.#later(() => {
      for (const { channel: heard, onMessage } of this.#subscriptions)
        if (heard === channel) onMessage(message);
    });
  }

  #command<T>(execute: (values: SimulatedValues) => T): Promise<T> {
    const { clock, values } = this.#redis;
    return new Promise((resolve, reject) => {
      if (!this.#isReachable) {
        reject(new RedisGoneError("unreachable"));
        return;
      }
      const cancel = clock.after(DEADLINE_MS, () => {
        reject(new RedisGoneError("no answer in time"));
      });
      this.#later(() => {
        const result = execute(values);
        this.#later(() => {
          cancel();
          resolve(result);
        });
      });
    });
  }

  /** What passes the connection, unless it breaks before. */
  #later(act: () => void): void {
    const { clock, random } = this.#redis;
    this.#lastMs = Math.max(this.#lastMs, clock.monotonic() + random() * MOST_SLOW_MS);
    clock.after(this.#lastMs - clock.monotonic(), () => {
      if (this.#works) act();
    });
  }
}
