/** The shared ledger in a real Redis when requests, replies, writes or time are lost together: the budget is kept, and no share is lost. */
import { describe, expect } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { describeWithRedis } from "../support/redis.js";
import { until } from "../support/service.js";
import { concurrentTest } from "../support/stories.js";
import { largestWindow } from "./support/rolling.js";
import { openSharedLedger, type SharedLedger } from "./support/shared-ledger.js";
import { TABLE } from "./support/timed-fleet.js";

const BUDGET = 12;
const SHARE = BUDGET / 2;
const WINDOW_MS = 1500;
const ALONE_AFTER_MS = 1000;
const DEAD_AFTER_MS = 60_000;
/** Long enough for a replica that is alone to use what it has lent. */
const PAUSE_MS = 7000;

const open = (): Promise<SharedLedger> =>
  openSharedLedger({ limit: BUDGET, headroom: 0, windowMs: WINDOW_MS, replicasMax: 2, longestCallMs: 100 });

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Makes calls, which end immediately, and remembers when. */
function caller() {
  const calls: number[] = [];
  /** Makes as many as possible. */
  async function drain(ledger: Ledger, most = Infinity): Promise<number> {
    for (let count = 0; count < most; count += 1) {
      const taken = await ledger.take();
      if ("retryInMs" in taken) return count;
      calls.push(performance.now());
      await ledger.settle(taken.slot, "answered");
    }
    return most;
  }
  return { calls, drain, largest: () => largestWindow(calls, WINDOW_MS) };
}

describeWithRedis("the shared ledger", () => {
  const test = concurrentTest(open);

  describe("keeps the budget", () => {
    test("if a replica makes calls alone while its request to rejoin is unanswered, and Redis was emptied", async ({
      server,
      replica,
      ready,
    }) => {
      const { ledger, delay, cutOff, heal } = await replica({ replicasMax: 1 });
      await ready();
      const { drain, largest } = caller();
      await drain(ledger, SHARE);
      cutOff();
      await server.command("DEL", TABLE);
      await sleep(ALONE_AFTER_MS + 50);
      heal();
      delay(50);
      const rejoins = ledger.pause(0);
      // The first reply has given the time, and the second is underway.
      await sleep(75);
      cutOff();
      await drain(ledger);
      await rejoins;
      heal();
      delay(0);
      await drain(ledger);
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });

    test("if Redis is emptied and then restored while replies are underway", async ({
      server,
      replica,
      ready,
    }) => {
      const { ledger, delay } = await replica({ replicasMax: 1 });
      await ready();
      const { calls, drain, largest } = caller();
      delay(200);
      await sleep(250);
      await ledger.pause(0);
      await server.command("COPY", TABLE, "copy");
      await server.command("DEL", TABLE);
      const taking = ledger.take();
      await sleep(30);
      await server.command("COPY", "copy", TABLE, "REPLACE");
      const last = ledger.pause(0);
      const taken = await taking;
      if ("slot" in taken) calls.push(performance.now());
      await last;
      delay(0);
      if ("slot" in taken) await ledger.settle(taken.slot, "answered");
      await sleep(200);
      await drain(ledger);
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });

    test("if a failover loses the last writes, to a Redis whose clock is slow by as much", async ({
      server,
      replica,
      ready,
    }) => {
      const [survivor, other] = [await replica({ replicasMax: 4 }), await replica({ replicasMax: 4 })];
      await ready();
      const { drain, largest } = caller();
      survivor.cutOff();
      await sleep(30);
      await server.command("COPY", TABLE, "copy");
      await drain(other.ledger);
      other.kill();
      await sleep(500);
      await server.command("SET", "test:ahead", "-1500");
      await server.command("COPY", "copy", TABLE, "REPLACE");
      survivor.heal();
      for (let times = 0; times < 6; times += 1) {
        await drain(survivor.ledger);
        await sleep(50);
      }
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });

    test("if a replica that the restored table doesn't know has seen a later one, and another writes first", async ({
      server,
      replica,
      ready,
    }) => {
      const older = await replica();
      await ready();
      const { drain, largest } = caller();
      older.cutOff();
      await sleep(30);
      await server.command("COPY", TABLE, "copy");
      await sleep(ALONE_AFTER_MS / 2);
      const younger = await replica();
      await sleep(3500);
      await drain(younger.ledger);
      younger.cutOff();
      await server.command("COPY", "copy", TABLE, "REPLACE");
      older.heal();
      for (let times = 0; times < 40; times += 1) await older.ledger.pause(0);
      younger.heal();
      for (let times = 0; times < 8; times += 1) {
        await drain(younger.ledger);
        await drain(older.ledger);
        await sleep(50);
      }
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });

    test("if Redis's clock steps by more than the longest silence before a process starts, while the other is cut off", async ({
      server,
      replica,
      ready,
    }) => {
      const old = await replica();
      await ready();
      const { drain, largest } = caller();
      old.cutOff();
      await sleep(50);
      await server.command("SET", "test:ahead", String(DEAD_AFTER_MS + 5000));
      const { ledger } = await replica();
      await sleep(2 * WINDOW_MS + 5000);
      await drain(ledger);
      expect(await drain(old.ledger)).toBe(SHARE);
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });

    test("if Redis is emptied while a replica with a larger share than the others is cut off", async ({
      server,
      replica,
      ready,
    }) => {
      const larger = await replica();
      await ready();
      const smaller = await replica({ replicasMax: 4 });
      await ready();
      const { drain, largest } = caller();
      larger.cutOff();
      await server.command("DEL", TABLE);
      await sleep(WINDOW_MS + 2500 + ALONE_AFTER_MS);
      await drain(smaller.ledger);
      expect(await drain(larger.ledger)).toBe(SHARE);
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });
  });

  describe("keeps the budget when Redis's machine was paused", () => {
    test("and a request from before the pause arrives after it, though its replica has continued alone", async ({
      stopClock,
      replica,
      ready,
    }) => {
      const [lender, busy] = [await replica(), await replica()];
      await ready();
      const { drain, largest } = caller();
      // Uses its own share, then what has been lent to it, and wants more for as long as it has to rest.
      expect(await drain(busy.ledger)).toBe(SHARE);
      const ownUsedAt = performance.now();
      await until(async () => (await drain(busy.ledger)) === SHARE - 1, "the use of the lent slots");
      const lentUsedAt = performance.now();
      while (performance.now() - ownUsedAt < WINDOW_MS - 100) {
        await drain(busy.ledger);
        await sleep(20);
      }
      await sleep(WINDOW_MS + 100 - (performance.now() - lentUsedAt));
      const delayed = lender.delayRequests();
      await lender.ledger.pause(0);
      lender.cutOff();
      busy.cutOff();
      const pausedAt = performance.now();
      await stopClock(PAUSE_MS);
      await sleep(PAUSE_MS - 60);
      expect(await drain(lender.ledger)).toBe(SHARE);
      await sleep(PAUSE_MS + 10 - (performance.now() - pausedAt));
      busy.heal();
      await busy.ledger.pause(0);
      await delayed.arrive();
      for (let times = 0; times < 6; times += 1) {
        await drain(busy.ledger);
        await sleep(30);
      }
      expect(largest()).toBeLessThanOrEqual(BUDGET);
    });
  });

  describe("passes the whole share of a replica on when it stops", () => {
    async function expectWholeBudget({ ledger }: { readonly ledger: Ledger }): Promise<void> {
      const { drain, calls } = caller();
      await until(async () => {
        await drain(ledger);
        return largestWindow(calls, WINDOW_MS) === BUDGET;
      }, "the use of the whole budget");
    }

    test("even if its connection is just being renewed", async ({ replica, ready }) => {
      const [stopping, staying] = [await replica(), await replica()];
      await ready();
      stopping.cutOff();
      const stopped = stopping.ledger.close();
      await sleep(100);
      stopping.heal();
      await stopped;
      await expectWholeBudget(staying);
    });

    test("even if an earlier request arrives after the one with which it leaves", async ({
      replica,
      ready,
    }) => {
      const [stopping, staying] = [await replica(), await replica()];
      await ready();
      const delayed = stopping.delayRequests();
      await stopping.ledger.pause(0);
      delayed.end();
      await stopping.ledger.close();
      await delayed.arrive();
      await expectWholeBudget(staying);
    });
  });
});
