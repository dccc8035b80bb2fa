/**
 * Simulates Redis on a test's clock: what replicas need for their caches, premium marks and claims, over links that are slow, and that a test can
 * break or make lose messages. The scripts are reimplemented here; `test/redis/simulated.test.ts` compares them with those that Redis runs.
 */
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { RedisGoneError, type RedisLink, type RedisScript } from "../../src/redis.js";
import type { FakeClock } from "./fake-clock.js";

const DEADLINE_MS = 100;
const MAX_LATENCY_MS = 4;
const NOTICED_WITHIN_MS = 300;

type Args = readonly (string | number)[];

/** The stored values. Each command and script is atomic. */
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
    throw new Error("this script isn't simulated");
  }

  #leftMs(key: string): number {
    return this.get(key) === null ? -2 : (this.#values.get(key)?.untilMs ?? 0) - this.#now();
  }

  #add(key: string, args: Args): string {
    const [fact, ttlMs, differMs] = z.tuple([z.string(), z.coerce.number(), z.coerce.number()]).parse(args);
    const added = storedFact.parse(JSON.parse(fact));
    const isSame = ({ by, stamps }: StoredFact): boolean =>
      by === added.by && stamps !== undefined && isDeepStrictEqual(stamps, added.stamps);
    const before = z.array(storedFact).parse(JSON.parse(this.get(key) ?? "[]"));
    const facts = [added, ...before.filter((one) => !isSame(one))];
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

const storedFact = z.looseObject({
  askedAtMs: z.number(),
  answeredAtMs: z.number(),
  by: z.string(),
  stamps: z.tuple([z.string(), z.string()]).optional(),
});
type StoredFact = z.output<typeof storedFact>;

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

/** One replica's connection. Commands are executed and answered in order. */
export class SimulatedLink implements RedisLink {
  readonly #redis: SimulatedRedis;
  readonly #onReachable: (() => void)[] = [];
  readonly #subscriptions: { readonly channel: string; onMessage(message: string): void; onGap(): void }[] =
    [];
  #isCut = false;
  #isReachable = false;
  #isClosed = false;
  #lastMs = 0;
  /** Whether published messages are lost without anyone noticing. */
  losesMessages = false;

  constructor(redis: SimulatedRedis) {
    this.#redis = redis;
    this.look();
  }

  cut(isCut: boolean): void {
    this.#isCut = isCut;
    this.look();
  }

  /** Notices with a delay whether Redis can be reached. */
  look(): void {
    this.#redis.clock.after(this.#redis.random() * NOTICED_WITHIN_MS, () => {
      if (this.#works === this.#isReachable) return;
      this.#isReachable = this.#works;
      if (!this.#isReachable) return;
      for (const act of this.#onReachable) act();
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

  aheadMs(): number {
    return 0;
  }

  knowsTime(): boolean {
    return true;
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

  channel(channel: string): string {
    return channel;
  }

  subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): void {
    this.#subscriptions.push({ channel, onMessage, onGap });
  }

  onReachable(act: () => void): void {
    this.#onReachable.push(act);
  }

  close(): void {
    this.#isClosed = true;
    this.#isReachable = false;
    this.#redis.links.delete(this);
  }

  #deliver(channel: string, message: string): void {
    if (this.losesMessages) return;
    this.#later(() => {
      for (const { channel: subscribed, onMessage } of this.#subscriptions)
        if (subscribed === channel) onMessage(message);
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

  /** Runs `act` after the connection's latency, unless the connection breaks first. */
  #later(act: () => void): void {
    const { clock, random } = this.#redis;
    this.#lastMs = Math.max(this.#lastMs, clock.monotonic() + random() * MAX_LATENCY_MS);
    clock.after(this.#lastMs - clock.monotonic(), () => {
      if (this.#works) act();
    });
  }
}
