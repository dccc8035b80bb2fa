/** Slots that replicas borrow from each other for urgent requests, and shares that are kept for those who can't be heard; in a real Redis. */
import { describe, expect } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { describeWithRedis } from "../support/redis.js";
import { until } from "../support/service.js";
import { sideBySide } from "../support/stories.js";
import { largestWindow } from "./support/rolling.js";
import { openSharedLedger, type Replica, type SharedLedger } from "./support/shared-ledger.js";
import { TABLE } from "./support/timed-fleet.js";

const BUDGET = 12;
const SHARE = 6;
const WINDOW_MS = 1500;
const ALONE_AFTER_MS = 1000;

const pass = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
/** Three beats, in which everybody hears of everybody. */
const beats = (): Promise<void> => pass(ALONE_AFTER_MS / 2);

const SETTINGS = { limit: BUDGET, headroom: 0, windowMs: WINDOW_MS, replicasMax: 2, longestCallMs: 100 };
const open = async (): Promise<SharedLedger> => openSharedLedger(SETTINGS);

/** Takes until there is nothing; how many slots were its own or of the pool, and how many borrowed. */
async function drain(ledger: Ledger): Promise<{ own: number; borrowed: number }> {
  const seen = { own: 0, borrowed: 0 };
  for (;;) {
    const taken = await ledger.take();
    if ("retryInMs" in taken) return seen;
    seen[taken.isBorrowed === true ? "borrowed" : "own"] += 1;
    await ledger.settle(taken.slot, "answered");
  }
}

/** Asks for slots all the time and uses none, so that its share isn't lent to the pool. */
function keepBusy({ ledger }: Replica): () => void {
  const timer = setInterval(() => {
    void ledger.take().then((taken) => ("slot" in taken ? ledger.settle(taken.slot, "unsent") : undefined));
  }, 50);
  return () => {
    clearInterval(timer);
  };
}

describeWithRedis("a slot of another replica", () => {
  const test = sideBySide(open);

  test("is for urgent requests, and no second one is lent before its holder has seen that", async ({
    replica,
    opened,
  }) => {
    const [busy, urgent] = [await replica(), await replica()];
    await opened();
    const stop = keepBusy(busy);
    await beats();
    expect(await drain(urgent.ledger)).toEqual({ own: SHARE, borrowed: 0 });
    urgent.ledger.urgent(1);
    await until(async () => (await drain(urgent.ledger)).borrowed > 0, "a borrowed slot");
    await pass(100);
    stop();
    busy.kill();
    const seen = await drain(urgent.ledger);
    await pass(50);
    expect(seen.borrowed + (await drain(urgent.ledger)).borrowed).toBeLessThanOrEqual(1);
  });

  test("is left to urgent requests elsewhere by those that aren't urgent", async ({ replica, opened }) => {
    const [first, second] = [await replica(), await replica()];
    await opened();
    const stop = keepBusy(first);
    await beats();
    await drain(second.ledger);
    second.ledger.urgent(1);
    await beats();
    stop();
    expect(await drain(first.ledger)).toEqual({ own: SHARE - 1, borrowed: 0 });
    expect(await drain(second.ledger)).toEqual({ own: 0, borrowed: 1 });
  });

  test("is what a replica does without while it is cut off, if it had agreed to lend", async ({
    server,
    replica,
    opened,
  }) => {
    const [lender, other] = [await replica(), await replica()];
    await opened();
    other.ledger.urgent(1);
    await beats();
    server.hang();
    await pass(ALONE_AFTER_MS + 200);
    expect(await drain(lender.ledger)).toEqual({ own: SHARE - 1, borrowed: 0 });
    expect(await drain(other.ledger)).toEqual({ own: SHARE, borrowed: 0 });
    server.wake();
  });
});

describeWithRedis("a replica that hears nothing of Redis, though Redis executes what it sends", () => {
  const test = sideBySide(open);

  test("lends no slot that it may soon use alone", async ({ replica, opened }) => {
    const [deaf, other] = [await replica(), await replica()];
    await opened();
    const stop = keepBusy(deaf);
    other.ledger.urgent(1);
    await beats();
    await Promise.all([drain(deaf.ledger), drain(other.ledger)]);
    // Its slots have rested shortly after it goes on alone.
    await pass(WINDOW_MS - ALONE_AFTER_MS - 50);
    stop();
    deaf.deafen();
    await pass(ALONE_AFTER_MS + 150);
    const taken = await drain(other.ledger);
    await pass(100);
    expect(taken.own + taken.borrowed + (await drain(deaf.ledger)).own).toBeLessThanOrEqual(BUDGET);
  });
});

describeWithRedis("a replica that was told of more replicas than the others", () => {
  const test = sideBySide(open);

  /** What each gets once the last of them may use alone whatever it has. */
  async function sharesOf(replicas: readonly Replica[]): Promise<number[]> {
    replicas.at(-1)?.cutOff();
    await pass(4600);
    const shares: number[] = [];
    for (const { ledger } of replicas) shares.push((await drain(ledger)).own);
    return shares;
  }

  test("has no share while theirs are the whole budget", async ({ replica, opened }) => {
    const both = [await replica(), await replica()];
    await opened();
    const third = await replica({ replicasMax: 4 });
    await opened();
    await beats();
    expect(await sharesOf([...both, third])).toEqual([SHARE, SHARE, 0]);
  });

  test("leaves one of them without a share if it was there before that one", async ({ replica, opened }) => {
    const [first, early] = [await replica(), await replica({ replicasMax: 4 })];
    await opened();
    const last = await replica();
    await opened();
    await beats();
    // What is nobody's share is used by the first that asks.
    expect(await sharesOf([first, last, early])).toEqual([BUDGET - SHARE / 2, 0, SHARE / 2]);
  });
});

describeWithRedis("a replica whose last answer came late", () => {
  const test = sideBySide(open);

  test("counts a slot as lent though it seems not to have rested by then", async ({ replica, opened }) => {
    const [late, other] = [await replica(), await replica()];
    await opened();
    const stop = keepBusy(late);
    other.ledger.urgent(1);
    await beats();
    await Promise.all([drain(late.ledger), drain(other.ledger)]);
    const [askedAfterMs, lateMs] = [1400, 900];
    await pass(askedAfterMs);
    stop();
    late.delay(lateMs);
    void late.ledger.pause(0);
    await pass(20);
    late.cutOff();
    // The slots have rested now.
    await pass(WINDOW_MS - askedAfterMs + 50);
    const taken = await drain(other.ledger);
    expect(taken.borrowed).toBe(1);
    await pass(ALONE_AFTER_MS);
    expect(taken.own + taken.borrowed + (await drain(late.ledger)).own).toBeLessThanOrEqual(BUDGET);
  });
});

describeWithRedis("what a replica that is cut off has lent", () => {
  const windowMs = 2 * WINDOW_MS;
  const test = sideBySide(() => openSharedLedger({ ...SETTINGS, windowMs, replicasMax: 3 }));
  /** From when on it may use that again, after it was cut off. */
  const USABLE_MS = 6300;

  /** Takes all that replicas get, and when it did. */
  function taker() {
    const calls: number[] = [];
    async function take({ ledger }: Replica): Promise<void> {
      const { own } = await drain(ledger);
      for (let call = 0; call < own; call += 1) calls.push(performance.now());
    }
    async function takeFor(ms: number, replica: Replica): Promise<void> {
      for (const end = performance.now() + ms; performance.now() < end; await pass(20)) await take(replica);
    }
    return { calls, take, takeFor };
  }

  test("is kept for it, and given to no other as a share", async ({ replica, opened }) => {
    const [lender, idle, busy] = [await replica(), await replica(), await replica()];
    await opened();
    const { calls, take, takeFor } = taker();
    await takeFor(ALONE_AFTER_MS, busy);
    lender.cutOff();
    await takeFor(USABLE_MS, busy);
    await take(idle);
    await take(lender);
    expect(largestWindow(calls, windowMs)).toBe(BUDGET);
  });

  test("is kept for it by its own time, though Redis's clock has stood still", async ({
    replica,
    opened,
    stopClock,
  }) => {
    const [lender, busy] = [await replica(), await replica()];
    await opened();
    const { calls, take, takeFor } = taker();
    // Its first calls have rested before the others can know that the lender is cut off.
    await takeFor(windowMs - 100, busy);
    lender.cutOff();
    await stopClock(USABLE_MS + 100);
    await pass(USABLE_MS);
    await take(lender);
    await takeFor(ALONE_AFTER_MS, busy);
    expect(largestWindow(calls, windowMs)).toBeLessThanOrEqual(BUDGET);
  });

  test("counts as used once for each call that it has made, also for one in flight", async ({
    replica,
    opened,
  }) => {
    const [lender, busy] = [await replica(), await replica()];
    await opened();
    const { calls, take, takeFor } = taker();
    await takeFor(ALONE_AFTER_MS, busy);
    lender.cutOff();
    await pass(USABLE_MS - (2 / 3) * windowMs);
    await take(lender);
    expect(calls.length).toBeGreaterThan(1);
    await pass((2 / 3) * windowMs);
    const inFlight = await lender.ledger.take();
    calls.push(performance.now());
    await take(lender);
    lender.mend();
    await beats();
    await take(busy);
    await take(lender);
    expect(largestWindow(calls, windowMs)).toBe(BUDGET);
    if ("slot" in inFlight) await lender.ledger.settle(inFlight.slot, "answered");
  });
});

describeWithRedis("when Redis has lost the table", () => {
  const test = sideBySide(open);

  describe("the budget is kept", () => {
    test("though a copy of an earlier table comes back", async ({ server, replica, opened }) => {
      const settings = { replicasMax: 4 };
      const [a, b] = [await replica(settings), await replica(settings)];
      await opened();
      const drained = async (): Promise<number> => (await drain(a.ledger)).own + (await drain(b.ledger)).own;
      await drained();
      await pass(WINDOW_MS + 200);
      await server.command("COPY", TABLE, "copied");
      const before = await drained();
      expect(before).toBeGreaterThan(BUDGET / 2);
      await server.command("DEL", TABLE);
      await beats();
      await server.command("COPY", "copied", TABLE, "REPLACE");
      expect(before + (await drained())).toBeLessThanOrEqual(BUDGET);
    });

    test("though a replica has lent a slot and hears neither of that nor of the new table", async ({
      server,
      replica,
      opened,
    }) => {
      const [deaf, other] = [await replica(), await replica()];
      await opened();
      const stop = keepBusy(deaf);
      other.ledger.urgent(1);
      await beats();
      stop();
      deaf.deafen();
      const before = await drain(other.ledger);
      expect(before.borrowed).toBe(1);
      await server.command("DEL", TABLE);
      await pass(ALONE_AFTER_MS / 3);
      const after = await drain(other.ledger);
      await pass(ALONE_AFTER_MS);
      const alone = await drain(deaf.ledger);
      expect(alone.own).toBeGreaterThan(0);
      expect(before.own + before.borrowed + after.own + after.borrowed + alone.own).toBeLessThanOrEqual(
        BUDGET,
      );
    });

    test("though replies of the lost table are still to come", async ({ server, replica, opened }) => {
      const [late, other] = [await replica(), await replica()];
      await opened();
      late.delay(ALONE_AFTER_MS / 4);
      const asked = Array.from({ length: SHARE }, () => late.ledger.take());
      await pass(20);
      await server.command("DEL", TABLE);
      const taken = (await Promise.all(asked)).filter((one) => "slot" in one);
      expect(taken).toHaveLength(SHARE);
      late.delay(0);
      await beats();
      const more = [await drain(late.ledger), await drain(other.ledger)];
      expect(taken.length + more.reduce((sum, { own }) => sum + own, 0)).toBeLessThanOrEqual(BUDGET);
    });

    test("though a replica is cut off then, and goes on with its share", async ({
      server,
      replica,
      opened,
    }) => {
      const [a, cutOff] = [await replica(), await replica()];
      await opened();
      cutOff.kill();
      await server.command("DEL", TABLE);
      await beats();
      const started = await replica();
      // What nobody knows has come to rest.
      await pass(WINDOW_MS + 1500);
      const together = (await drain(a.ledger)).own + (await drain(started.ledger)).own;
      expect(together).toBeGreaterThan(0);
      expect(together + (await drain(cutOff.ledger)).own).toBeLessThanOrEqual(BUDGET);
    });
  });
});
