/** Replicas that can't reach Redis, and faulty clocks and networks: the budget is never exceeded, and stays in use. */
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
import { killableClock, withSteppedClock, unexpected } from "./support/shared-ledger.js";
import { TABLE } from "./support/timed-fleet.js";

const BUDGET = 12;
const WINDOW_MS = 2000;
const ALONE_AFTER_MS = 1000;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** A Redis, a proxy to it that can be disturbed, and replicas that take every slot they can get. */
interface Fixture {
  readonly server: RedisServer;
  readonly proxy: LinkProxy;
  /** Removed after the test. */
  readonly directory: string;
  /** The times of calls, in ms. */
  readonly arrivals: readonly number[];
  link(url: string): RedisLink;
  /** Starts a replica; returns a function that ends it as `kill -9` does. */
  replica(redis: RedisLink, more?: Partial<RedisLedgerSettings>): Promise<() => void>;
  /** Waits for a window in which more than this share of the budget is used, because a busy machine can take some of it. */
  untilUsed(share: number): Promise<void>;
}

async function withFixture(run: (fixture: Fixture) => Promise<void>): Promise<void> {
  const server = await startRedis();
  const proxy = await startLinkProxy(server);
  const directory = await mkdtemp(join(tmpdir(), "cut-off-"));
  const over = new AbortController();
  const arrivals: number[] = [];
  const links: RedisLink[] = [];
  const takers: Promise<void>[] = [];

  async function takeAll(ledger: Ledger, end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      const taken = await ledger.take();
      if (end.aborted) return;
      if ("retryInMs" in taken) await sleep(Math.min(20, taken.retryInMs));
      else {
        arrivals.push(performance.now());
        void ledger.settle(taken.slot, "answered");
      }
    }
  }

  const use = (fromMs: number, toMs: number): number =>
    arrivals.filter((at) => at >= fromMs && at < toMs).length / ((BUDGET * (toMs - fromMs)) / WINDOW_MS);

  try {
    await run({
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
        const { clock, end } = killableClock();
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
        takers.push(takeAll(ledger, AbortSignal.any([over.signal, death.signal])));
        return () => {
          death.abort();
          redis.close();
        };
      },
      async untilUsed(share) {
        for (let windows = 0; windows < 8; windows += 1) {
          const now = performance.now();
          if (use(now - WINDOW_MS, now) > share) return;
          await sleep(WINDOW_MS);
        }
        throw new Error(`no window used more than ${share} of the budget`);
      },
    });
  } finally {
    over.abort();
    await Promise.all(takers);
    for (const link of links) link.close();
    await proxy.close();
    await server.close();
    await rm(directory, { recursive: true });
  }
}

// These tests mostly wait, so they run concurrently.
describeWithRedis("replicas of one budget", () => {
  test.concurrent.each([0.7, 1.5, 4])(
    "never exceed it when one is cut off for %s windows and continues alone while another process starts",
    (windows) =>
      withFixture(async ({ server, proxy, arrivals, link, replica }) => {
        await replica(link(server.url));
        await replica(link(proxy.url));
        await sleep(WINDOW_MS);
        proxy.cut();
        await sleep(windows * 0.5 * WINDOW_MS);
        await replica(link(server.url));
        await sleep(windows * 0.5 * WINDOW_MS + 2 * ALONE_AFTER_MS);
        proxy.heal();
        await sleep(2 * WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent.each([
    ["immediately", 100],
    ["after a while", 3 * ALONE_AFTER_MS],
  ])(
    "use it again, and never exceed it, when a killed one is replaced in its place %s",
    (_name, afterMs) =>
      withFixture(async ({ server, arrivals, link, replica, untilUsed }) => {
        await replica(link(server.url));
        const kill = await replica(link(server.url), { place: "here" });
        await sleep(WINDOW_MS);
        kill();
        await sleep(afterMs);
        await replica(link(server.url), { place: "here" });
        // The slots that it may have used alone until then have to rest.
        await sleep(3.5 * WINDOW_MS);
        await untilUsed(0.8);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "never exceed it when a new one finds an old snapshot before the others have reported",
    () =>
      withFixture(async ({ server, proxy, arrivals, link, replica }) => {
        await replica(link(proxy.url));
        await sleep(WINDOW_MS);
        await server.command("SAVE");
        await sleep(1.2 * WINDOW_MS);
        proxy.cut();
        await server.kill();
        await server.start();
        await replica(link(server.url));
        await sleep(ALONE_AFTER_MS / 2);
        proxy.heal();
        await sleep(2 * WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent.each([
    ["small steps forward", (n: number) => n * 90],
    ["forward steps of less than a second", (n: number) => n * 400],
    ["steps back and forth", (n: number) => (n % 2) * 900],
    ["one large step forward", (n: number) => (n > 5 ? 60_000 : 0)],
  ])(
    "never exceed it while Redis's clock makes %s",
    (_name, aheadMs) =>
      withFixture(async ({ server, arrivals, link, replica, untilUsed }) => {
        await replica(withSteppedClock(link(server.url)));
        await replica(withSteppedClock(link(server.url)));
        await sleep(WINDOW_MS);
        for (let n = 1; n <= 10; n += 1) {
          await server.command("SET", "test:ahead", String(aheadMs(n)));
          await sleep(100 + Math.random() * 200);
        }
        await sleep(2 * WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
        await untilUsed(0.7);
      }),
    60_000,
  );

  test.concurrent(
    "never exceed it when another process starts just after Redis's clock has stepped",
    () =>
      withFixture(async ({ server, arrivals, link, replica }) => {
        for (let count = 0; count < 2; count += 1) await replica(withSteppedClock(link(server.url)));
        await sleep(1.2 * WINDOW_MS);
        const redis = withSteppedClock(link(server.url));
        await server.command("SET", "test:ahead", "60000");
        await replica(redis);
        await sleep(WINDOW_MS);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent.each([
    ["reconnects", (_kill: () => void, { proxy }: Fixture): void => proxy.cut()],
    ["is killed and replaced in its place", (kill: () => void): void => kill()],
  ] as const)(
    "never exceed it when the only one %s, even if Redis's clock has stepped unnoticed",
    (name, end) =>
      withFixture(async (fixture) => {
        const { server, proxy, directory, arrivals, link, replica } = fixture;
        const settings = { windowMs: 4 * WINDOW_MS, place: "here", directory };
        const kill = await replica(withSteppedClock(link(proxy.url)), settings);
        await sleep(ALONE_AFTER_MS);
        end(kill, fixture);
        await server.command("SET", "test:ahead", "60000");
        await sleep(ALONE_AFTER_MS);
        await replica(withSteppedClock(link(server.url)), {
          ...settings,
          place: name === "reconnects" ? "there" : "here",
        });
        // After that it can notice steps of the clock itself.
        await sleep(2 * ALONE_AFTER_MS);
        proxy.heal();
        await sleep(ALONE_AFTER_MS);
        expect(largestWindow(arrivals, settings.windowMs)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "never exceed it when another process replaces one just after Redis's clock has stepped",
    () =>
      withFixture(async ({ server, directory, arrivals, link, replica }) => {
        const settings = { windowMs: 4 * WINDOW_MS, replicasMax: 3, directory };
        for (const place of ["one", "two"])
          await replica(withSteppedClock(link(server.url)), { ...settings, place });
        const kill = await replica(withSteppedClock(link(server.url)), { ...settings, place: "three" });
        const redis = withSteppedClock(link(server.url));
        await sleep(settings.windowMs - 1.15 * ALONE_AFTER_MS);
        kill();
        await sleep(1.2 * ALONE_AFTER_MS);
        await server.command("SET", "test:ahead", "450");
        await replica(redis, { ...settings, place: "three" });
        await sleep(settings.windowMs / 2);
        expect(largestWindow(arrivals, settings.windowMs)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "use it again after Redis has lost everything, even if its clock had stepped before",
    () =>
      withFixture(async ({ server, arrivals, link, replica, untilUsed }) => {
        for (let count = 0; count < 2; count += 1) await replica(withSteppedClock(link(server.url)));
        await sleep(WINDOW_MS);
        await server.command("SET", "test:ahead", "60000");
        await sleep(WINDOW_MS);
        await server.command("DEL", TABLE);
        await sleep(2 * WINDOW_MS);
        await untilUsed(0.7);
        expect(largestWindow(arrivals, WINDOW_MS)).toBeLessThanOrEqual(BUDGET);
      }),
    60_000,
  );

  test.concurrent(
    "never exceed it while the round-trip time keeps changing",
    () =>
      withFixture(async ({ proxy, arrivals, link, replica }) => {
        const [limit, windowMs] = [60, 3000];
        for (let count = 0; count < 2; count += 1) await replica(link(proxy.url), { limit, windowMs });
        for (let n = 0; n < 120; n += 1) {
          proxy.roundTrip((n % 2) * 100);
          await sleep(20 + Math.random() * 130);
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
    "use it, and never exceed it, despite %s",
    (_name, disturb) =>
      withFixture(async ({ proxy, arrivals, link, replica }) => {
        disturb(proxy);
        const [limit, windowMs] = [60, 6000];
        for (let count = 0; count < 2; count += 1) await replica(link(proxy.url), { limit, windowMs });
        await sleep(1.5 * windowMs);
        // A busy machine takes some of the budget, so one of several windows has to reach this use.
        const uses: number[] = [];
        while (uses.length < 5 && !uses.some((one) => one > 0.85)) {
          const from = arrivals.length;
          await sleep(windowMs);
          uses.push((arrivals.length - from) / limit);
        }
        expect(Math.max(...uses)).toBeGreaterThan(0.85);
        expect(largestWindow(arrivals, windowMs)).toBeLessThanOrEqual(limit);
      }),
    60_000,
  );
});
