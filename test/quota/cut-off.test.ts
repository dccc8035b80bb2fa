/** Replicas that Redis does not hear of, and clocks and networks that are not what they should be: never over the budget, and in use. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { openRedisLedger, type RedisLedgerSettings } from "../../src/quota/ledger/redis.js";
import type { RedisLink } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { type LinkProxy, startLinkProxy } from "../support/link-proxy.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { recordingLog } from "../support/service.js";
import { largestWindow } from "./support/rolling.js";
import { clockOfLife, stepping, unexpected } from "./support/shared-ledger.js";
import { TABLE } from "./support/timed-fleet.js";

const BUDGET = 12;
const WINDOW_MS = 2000;
const ALONE_AFTER_MS = 1000;

const pass = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** What one story plays with: a Redis, one way to it that can be disturbed, and replicas that take whatever they can get. */
interface Stage {
  readonly server: RedisServer;
  readonly proxy: LinkProxy;
  /** Removed at the end. */
  readonly directory: string;
  /** When calls were made, ms. */
  readonly arrivals: readonly number[];
  link(url: string): RedisLink;
  /** Returns what ends it as kill -9 does. */
  replica(redis: RedisLink, more?: Partial<RedisLedgerSettings>): Promise<() => void>;
  /** A busy machine takes some of the budget, so one of the next windows must show its use. */
  isUsedAgain(share: number): Promise<void>;
}

async function staged(play: (stage: Stage) => Promise<void>): Promise<void> {
  const server = await startRedis();
  const proxy = await startLinkProxy(server);
  const directory = await mkdtemp(join(tmpdir(), "cut-off-"));
  const over = new AbortController();
  const arrivals: number[] = [];
  const links: RedisLink[] = [];
  const busy: Promise<void>[] = [];

  async function takeAll(ledger: Ledger, end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      const taken = await ledger.take();
      if (end.aborted) return;
      if ("retryInMs" in taken) await pass(Math.min(20, taken.retryInMs));
      else {
        arrivals.push(performance.now());
        void ledger.settle(taken.slot, "answered");
      }
    }
  }

  const use = (fromMs: number, toMs: number): number =>
    arrivals.filter((at) => at >= fromMs && at < toMs).length / ((BUDGET * (toMs - fromMs)) / WINDOW_MS);

  try {
    await play({
      server,
      proxy,
      directory,
      arrivals,
      link(url) {
        const redis = connectRedis({ url: fixedSecret(url), clock: systemClock, log: recordingLog([]) });
        links.push(redis);
        return redis;
      },
      async replica(redis, more = {}) {
        const death = new AbortController();
        const { clock, end } = clockOfLife();
        for (const { signal } of [over, death]) signal.addEventListener("abort", end);
        const ledger = await openRedisLedger({
          redis,
          fingerprint: "abc",
          limit: BUDGET,
          headroom: 0,
          windowMs: WINDOW_MS,
          coldStart: "assume-free",
          replicasMax: 2,
          longestCallMs: 100,
          clock,
          onFault: unexpected,
          ...more,
        });
        busy.push(takeAll(ledger, AbortSignal.any([over.signal, death.signal])));
        return () => {
          death.abort();
          redis.close();
        };
      },
      async isUsedAgain(share) {
        for (let windows = 0; windows < 8; windows += 1) {
          const now = performance.now();
          if (use(now - WINDOW_MS, now) > share) return;
          await pass(WINDOW_MS);
        }
        throw new Error(`less than ${share} of the budget is used`);
      },
    });
  } finally {
    over.abort();
    await Promise.all(busy);
    for (const link of links) link.close();
    await proxy.close();
    await server.close();
    await rm(directory, { recursive: true });
  }
}

// The stories mostly wait, so they are told side by side.
describeWithRedis("replicas of one budget", () => {
  test.concurrent.each([0.7, 1.5, 4])(
    "one cut off for %s windows goes on alone while another process takes its chance: never over the budget",
    (windows) =>
      staged(async ({ server, proxy, arrivals, link, replica }) => {
        await replica(link(server.url));
        await replica(link(proxy.url));
        await pass(WINDOW_MS);
        proxy.cut();
        await pass(windows * 0.5 * WINDOW_MS);
        await replica(link(server.url));
        await pass(windows * 0.5 * WINDOW_MS + 2 * ALONE_AFTER_MS);
        proxy.heal();
        await pass(2 * WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent.each([
    ["at once", 100],
    ["after a while", 3 * ALONE_AFTER_MS],
  ])(
    "one that is killed is replaced %s by another in its place",
    (_name, afterMs) =>
      staged(async ({ server, arrivals, link, replica, isUsedAgain }) => {
        await replica(link(server.url));
        const kill = await replica(link(server.url), { place: "here" });
        await pass(WINDOW_MS);
        kill();
        await pass(afterMs);
        await replica(link(server.url), { place: "here" });
        // What it may have used alone until then has to come to rest.
        await pass(3.5 * WINDOW_MS);
        await isUsedAgain(0.8);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "one that comes first to an old snapshot takes nothing before the others have reported",
    () =>
      staged(async ({ server, proxy, arrivals, link, replica }) => {
        await replica(link(proxy.url));
        await pass(WINDOW_MS);
        await server.command("SAVE");
        await pass(1.2 * WINDOW_MS);
        proxy.cut();
        await server.kill();
        await server.start();
        await replica(link(server.url));
        await pass(ALONE_AFTER_MS / 2);
        proxy.heal();
        await pass(2 * WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent.each([
    ["small steps ahead", (n: number) => n * 90],
    ["steps ahead of less than a second", (n: number) => n * 400],
    ["steps back and ahead", (n: number) => (n % 2) * 900],
    ["one large step ahead", (n: number) => (n > 5 ? 60_000 : 0)],
  ])(
    "are never over it while Redis's clock takes %s",
    (_name, aheadMs) =>
      staged(async ({ server, arrivals, link, replica, isUsedAgain }) => {
        await replica(stepping(link(server.url)));
        await replica(stepping(link(server.url)));
        await pass(WINDOW_MS);
        for (let n = 1; n <= 10; n += 1) {
          await server.command("SET", "test:ahead", String(aheadMs(n)));
          await pass(100 + Math.random() * 200);
        }
        await pass(2 * WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
        await isUsedAgain(0.7);
      }),
    60_000,
  );

  test.concurrent(
    "are never over it though another process starts just after Redis's clock has stepped",
    () =>
      staged(async ({ server, arrivals, link, replica }) => {
        for (let count = 0; count < 2; count += 1) await replica(stepping(link(server.url)));
        await pass(1.2 * WINDOW_MS);
        const redis = stepping(link(server.url));
        await server.command("SET", "test:ahead", "60000");
        await replica(redis);
        await pass(WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent.each([
    ["comes back", (_kill: () => void, { proxy }: Stage): void => proxy.cut()],
    ["is killed, and replaced by another in its place", (kill: () => void): void => kill()],
  ] as const)(
    "are never over it when the only one %s, though Redis's clock has stepped while nobody could tell",
    (name, end) =>
      staged(async (stage) => {
        const { server, proxy, directory, arrivals, link, replica } = stage;
        const settings = { windowMs: 4 * WINDOW_MS, place: "here", directory };
        const kill = await replica(stepping(link(proxy.url)), settings);
        await pass(ALONE_AFTER_MS);
        end(kill, stage);
        await server.command("SET", "test:ahead", "60000");
        await pass(ALONE_AFTER_MS);
        await replica(stepping(link(server.url)), {
          ...settings,
          place: name === "comes back" ? "there" : "here",
        });
        // After that it can tell of steps itself.
        await pass(2 * ALONE_AFTER_MS);
        proxy.heal();
        await pass(ALONE_AFTER_MS);
        expect(largestWindow(arrivals, settings.windowMs)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "are never over it though another process replaces one just after Redis's clock has stepped",
    () =>
      staged(async ({ server, directory, arrivals, link, replica }) => {
        const settings = { windowMs: 4 * WINDOW_MS, replicasMax: 3, directory };
        for (const place of ["one", "two"]) await replica(stepping(link(server.url)), { ...settings, place });
        const kill = await replica(stepping(link(server.url)), { ...settings, place: "three" });
        const redis = stepping(link(server.url));
        await pass(settings.windowMs - 1.15 * ALONE_AFTER_MS);
        kill();
        await pass(1.2 * ALONE_AFTER_MS);
        await server.command("SET", "test:ahead", "450");
        await replica(redis, { ...settings, place: "three" });
        await pass(settings.windowMs / 2);
        expect(largestWindow(arrivals, settings.windowMs)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "use it again when Redis has lost everything, though its clock had stepped before",
    () =>
      staged(async ({ server, arrivals, link, replica, isUsedAgain }) => {
        for (let count = 0; count < 2; count += 1) await replica(stepping(link(server.url)));
        await pass(WINDOW_MS);
        await server.command("SET", "test:ahead", "60000");
        await pass(WINDOW_MS);
        await server.command("DEL", TABLE);
        await pass(2 * WINDOW_MS);
        await isUsedAgain(0.7);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "are never over it while the round trip changes all the time",
    () =>
      staged(async ({ proxy, arrivals, link, replica }) => {
        const [limit, windowMs] = [60, 3000];
        for (let count = 0; count < 2; count += 1) await replica(link(proxy.url), { limit, windowMs });
        for (let n = 0; n < 120; n += 1) {
          proxy.roundTrip((n % 2) * 100);
          await pass(20 + Math.random() * 130);
        }
        expect(largestWindow(arrivals, windowMs)).toBeLessThanOrEqual(limit);
        expect(arrivals.length).toBeGreaterThan(limit);
      }),
    60_000,
  );

  test.concurrent.each([
    ["a round trip of 100 ms", (proxy: LinkProxy): void => proxy.roundTrip(100)],
    ["connections that are reset every 150 ms", (proxy: LinkProxy): void => proxy.resetAfter(150)],
  ])(
    "use it in spite of %s, and never more",
    (_name, disturb) =>
      staged(async ({ proxy, arrivals, link, replica }) => {
        disturb(proxy);
        const [limit, windowMs] = [60, 6000];
        for (let count = 0; count < 2; count += 1) await replica(link(proxy.url), { limit, windowMs });
        await pass(1.5 * windowMs);
        // A busy machine takes some of it, so one window must show it sooner or later.
        const uses: number[] = [];
        while (uses.length < 5 && !uses.some((one) => one > 0.85)) {
          const from = arrivals.length;
          await pass(windowMs);
          uses.push((arrivals.length - from) / limit);
        }
        expect(Math.max(...uses)).toBeGreaterThan(0.85);
        expect(largestWindow(arrivals, windowMs)).toBeLessThanOrEqual(limit);
      }),
    60_000,
  );
});
