/** Replicas borrow slots from each other for urgent requests, and unreachable replicas keep their shares; with a real Redis. */
import { describe, expect } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { describeWithRedis } from "../support/redis.js";
import { until } from "../support/service.js";
import { concurrentTest } from "../support/stories.js";
import { largestWindow } from "./support/rolling.js";
import { openSharedLedger, type Replica, type SharedLedger } from "./support/shared-ledger.js";
import { TABLE } from "./support/timed-fleet.js";

const BUDGET = 12;
const SHARE = 6;
const WINDOW_MS = 1500;
const ALONE_AFTER_MS = 1000;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
const SETTINGS = { limit: BUDGET, headroom: 0, windowMs: WINDOW_MS, replicasMax: 2, longestCallMs: 100 };
const open = async (): Promise<SharedLedger> => openSharedLedger(SETTINGS);

/** Takes slots until none is usable. Counts its own slots together with those of the pool, and borrowed ones. */
async function drain(ledger: Ledger): Promise<{ own: number; borrowed: number }> {
  const counts = { own: 0, borrowed: 0 };
  for (;;) {
    const taken = await ledger.take();
    if ("retryInMs" in taken) return counts;
    counts[taken.isBorrowed === true ? "borrowed" : "own"] += 1;
    await ledger.settle(taken.slot, "answered");
  }
}

/** Keeps taking slots without using them, so that the replica's share isn't lent to the pool. */
function keepBusy({ ledger }: Replica): () => void {
  function take(): void {
    // A ledger that is closed meanwhile rejects.
    void ledger.take().then(
      (taken) => ("slot" in taken ? ledger.settle(taken.slot, "unsent") : undefined),
      () => {},
    );
  }
  take();
  const timer = setInterval(take, 50);
  return () => {
    clearInterval(timer);
  };
}

describeWithRedis("a slot of another replica", () => {
  const test = concurrentTest(open);

  test("is lent to urgent requests, and a second one only after its owner has seen the first loan", async ({
    replica,
    ready,
    updated,
  }) => {
    const [busy, urgent] = [await replica(), await replica()];
    await ready();
    const stop = keepBusy(busy);
    await updated();
    expect(await drain(urgent.ledger)).toEqual({ own: SHARE, borrowed: 0 });
    urgent.ledger.urgent([systemClock.monotonic()]);
    await until(async () => (await drain(urgent.ledger)).borrowed > 0, "the loan of a slot");
    await sleep(100);
    stop();
    busy.kill();
    const counts = await drain(urgent.ledger);
    await sleep(50);
    expect(counts.borrowed + (await drain(urgent.ledger)).borrowed).toBeLessThanOrEqual(1);
  });

  test("goes to urgent requests before the requests of its owner that aren't urgent", async ({
    replica,
    ready,
    updated,
  }) => {
    const [first, second] = [await replica(), await replica()];
    await ready();
    const stop = keepBusy(first);
    await updated();
    await drain(second.ledger);
    second.ledger.urgent([systemClock.monotonic()]);
    await updated();
    stop();
    expect(await drain(first.ledger)).toEqual({ own: SHARE - 1, borrowed: 0 });
    expect(await drain(second.ledger)).toEqual({ own: 0, borrowed: 1 });
  });

  /** What two replicas get that both have urgent requests: the owner of the slots, and one that has used its own. */
  async function shared(
    { replica, ready, updated }: SharedLedger,
    waits: { ownerMs: number; otherMs: number },
  ) {
    const [owner, other] = [await replica(), await replica()];
    await ready();
    const stop = keepBusy(owner);
    await updated();
    await drain(other.ledger);
    owner.ledger.urgent([systemClock.monotonic() - waits.ownerMs]);
    other.ledger.urgent([systemClock.monotonic() - waits.otherMs]);
    await updated();
    stop();
    return { owner: await drain(owner.ledger), other: await drain(other.ledger) };
  }

  test("goes to an urgent request that has waited longer than that of its owner", async (ledger) => {
    expect(await shared(ledger, { ownerMs: 1000, otherMs: 2000 })).toEqual({
      owner: { own: SHARE - 1, borrowed: 0 },
      other: { own: 0, borrowed: 1 },
    });
  });

  test("isn't lent to an urgent request that has waited for less time than that of its owner", async (ledger) => {
    expect(await shared(ledger, { ownerMs: 2000, otherMs: 1000 })).toEqual({
      owner: { own: SHARE, borrowed: 0 },
      other: { own: 0, borrowed: 0 },
    });
  });

  test("counts as lent while its owner is cut off, if the owner had agreed to lend", async ({
    server,
    replica,
    ready,
    updated,
  }) => {
    const [lender, other] = [await replica(), await replica()];
    await ready();
    other.ledger.urgent([systemClock.monotonic()]);
    await updated();
    server.hang();
    await sleep(ALONE_AFTER_MS + 200);
    expect(await drain(lender.ledger)).toEqual({ own: SHARE - 1, borrowed: 0 });
    expect(await drain(other.ledger)).toEqual({ own: SHARE, borrowed: 0 });
    server.wake();
  });
});

describeWithRedis("a slot that two other replicas want for urgent requests", () => {
  const test = concurrentTest(async () => openSharedLedger({ ...SETTINGS, replicasMax: 3 }));

  test("is lent to the one that has waited longest", async ({ replica, ready, updated }) => {
    const [owner, later, earlier] = [await replica(), await replica(), await replica()];
    await ready();
    const stop = keepBusy(owner);
    await updated();
    await Promise.all([drain(later.ledger), drain(earlier.ledger)]);
    later.ledger.urgent([systemClock.monotonic() - 1000]);
    earlier.ledger.urgent([systemClock.monotonic() - 2000]);
    await updated();
    expect((await drain(later.ledger)).borrowed).toBe(0);
    // One each time the owner looks; on a busy machine that may be twice.
    expect((await drain(earlier.ledger)).borrowed).toBeGreaterThan(0);
    stop();
  });

  test("is lent even while slots of the pool are kept for a replica that is silent", async ({
    replica,
    ready,
    updated,
  }) => {
    const [owner, other, silent] = [await replica(), await replica(), await replica()];
    await ready();
    const stop = keepBusy(owner);
    await drain(other.ledger);
    await updated();
    // The slots that the idle one has left to the pool, which now have to rest.
    expect((await drain(other.ledger)).own).toBeGreaterThan(0);
    other.ledger.urgent([systemClock.monotonic()]);
    silent.cutOff();
    await sleep(ALONE_AFTER_MS + 200);
    await until(async () => (await drain(other.ledger)).borrowed > 0, "the loan of a slot");
    stop();
  });
});

describeWithRedis("a replica that gets no replies, although Redis executes its commands,", () => {
  const test = concurrentTest(open);

  test("lends no slot that it may soon use alone", async ({ replica, ready, updated }) => {
    const [unanswered, other] = [await replica(), await replica()];
    await ready();
    const stop = keepBusy(unanswered);
    other.ledger.urgent([systemClock.monotonic()]);
    await updated();
    await Promise.all([drain(unanswered.ledger), drain(other.ledger)]);
    // Its slots have rested shortly after it continues alone.
    await sleep(WINDOW_MS - ALONE_AFTER_MS - 50);
    stop();
    unanswered.dropReplies();
    await sleep(ALONE_AFTER_MS + 150);
    const taken = await drain(other.ledger);
    await sleep(100);
    expect(taken.own + taken.borrowed + (await drain(unanswered.ledger)).own).toBeLessThanOrEqual(BUDGET);
  });
});

describeWithRedis("a replica with a larger `replicasMax` than the others", () => {
  const test = concurrentTest(open);

  /** The number of slots that each of them gets once the last one, which is cut off, may use its share alone. */
  async function sharesOf(replicas: readonly Replica[]): Promise<number[]> {
    replicas.at(-1)?.cutOff();
    await sleep(4600);
    const shares: number[] = [];
    for (const { ledger } of replicas) shares.push((await drain(ledger)).own);
    return shares;
  }

  test("has no share while theirs make up the whole budget", async ({ replica, ready, updated }) => {
    const both = [await replica(), await replica()];
    await ready();
    const third = await replica({ replicasMax: 4 });
    await ready();
    await updated();
    expect(await sharesOf([...both, third])).toEqual([SHARE, SHARE, 0]);
  });

  test("leaves one of them without a share if it started before that one", async ({
    replica,
    ready,
    updated,
  }) => {
    const [first, early] = [await replica(), await replica({ replicasMax: 4 })];
    await ready();
    const last = await replica();
    await ready();
    await updated();
    // The first replica that asks uses the slots in nobody's share.
    expect(await sharesOf([first, last, early])).toEqual([BUDGET - SHARE / 2, 0, SHARE / 2]);
  });
});

describeWithRedis("a replica whose last reply came late", () => {
  const test = concurrentTest(open);

  test("counts a slot as lent even if it seems not to have rested by then", async ({
    replica,
    ready,
    updated,
  }) => {
    const [late, other] = [await replica(), await replica()];
    await ready();
    const stop = keepBusy(late);
    other.ledger.urgent([systemClock.monotonic()]);
    await updated();
    await Promise.all([drain(late.ledger), drain(other.ledger)]);
    const [askedAfterMs, lateMs] = [1400, 900];
    await sleep(askedAfterMs);
    stop();
    late.delay(lateMs);
    void late.ledger.pause(0);
    await sleep(20);
    late.cutOff();
    // The slots have rested now.
    await sleep(WINDOW_MS - askedAfterMs + 50);
    const taken = await drain(other.ledger);
    expect(taken.borrowed).toBe(1);
    await sleep(ALONE_AFTER_MS);
    expect(taken.own + taken.borrowed + (await drain(late.ledger)).own).toBeLessThanOrEqual(BUDGET);
  });
});

describeWithRedis("the share that a replica has lent before it is cut off", () => {
  const windowMs = 2 * WINDOW_MS;
  const test = concurrentTest(() => openSharedLedger({ ...SETTINGS, windowMs, replicasMax: 3 }));
  /** How long after the cut it may use its share again. */
  const USABLE_MS = 6300;

  /** Takes every usable slot, and records when. */
  function taker() {
    const calls: number[] = [];
    async function take({ ledger }: Replica): Promise<void> {
      const { own } = await drain(ledger);
      for (let call = 0; call < own; call += 1) calls.push(performance.now());
    }
    async function takeFor(ms: number, replica: Replica): Promise<void> {
      for (const end = performance.now() + ms; performance.now() < end; await sleep(20)) await take(replica);
    }
    return { calls, take, takeFor };
  }

  test("is kept for it, and not given to another replica as a share", async ({ replica, ready }) => {
    const [lender, idle, busy] = [await replica(), await replica(), await replica()];
    await ready();
    const { calls, take, takeFor } = taker();
    await takeFor(ALONE_AFTER_MS, busy);
    lender.cutOff();
    await takeFor(USABLE_MS, busy);
    await take(idle);
    await take(lender);
    expect(largestWindow(calls, windowMs)).toBe(BUDGET);
  });

  test("is kept for it by its own clock, even if Redis's clock has stopped", async ({
    replica,
    ready,
    stopClock,
  }) => {
    const [lender, busy] = [await replica(), await replica()];
    await ready();
    const { calls, take, takeFor } = taker();
    // Its first slots have rested before the others can know that the lender is cut off.
    await takeFor(windowMs - 100, busy);
    lender.cutOff();
    await stopClock(USABLE_MS + 100);
    await sleep(USABLE_MS);
    await take(lender);
    await takeFor(ALONE_AFTER_MS, busy);
    expect(largestWindow(calls, windowMs)).toBeLessThanOrEqual(BUDGET);
  });

  test("counts as used once for each call that the replica has made, including one in flight", async ({
    replica,
    ready,
    updated,
  }) => {
    const [lender, busy] = [await replica(), await replica()];
    await ready();
    const { calls, take, takeFor } = taker();
    await takeFor(ALONE_AFTER_MS, busy);
    lender.cutOff();
    await sleep(USABLE_MS - (2 / 3) * windowMs);
    await take(lender);
    expect(calls.length).toBeGreaterThan(1);
    await sleep((2 / 3) * windowMs);
    const inFlight = await lender.ledger.take();
    calls.push(performance.now());
    await take(lender);
    lender.heal();
    await updated();
    await take(busy);
    await take(lender);
    expect(largestWindow(calls, windowMs)).toBe(BUDGET);
    if ("slot" in inFlight) await lender.ledger.settle(inFlight.slot, "answered");
  });
});

describeWithRedis("when Redis has lost the table,", () => {
  const test = concurrentTest(open);

  describe("the budget is kept", () => {
    test("even if a copy of an earlier table is restored", async ({ server, replica, ready, updated }) => {
      const settings = { replicasMax: 4 };
      const [a, b] = [await replica(settings), await replica(settings)];
      await ready();
      const drained = async (): Promise<number> => (await drain(a.ledger)).own + (await drain(b.ledger)).own;
      await drained();
      await sleep(WINDOW_MS + 200);
      await server.command("COPY", TABLE, "copied");
      const before = await drained();
      expect(before).toBeGreaterThan(BUDGET / 2);
      await server.command("DEL", TABLE);
      await updated();
      await server.command("COPY", "copied", TABLE, "REPLACE");
      expect(before + (await drained())).toBeLessThanOrEqual(BUDGET);
    });

    test("even if a replica has lent a slot and learns neither of that nor of the new table", async ({
      server,
      replica,
      ready,
      updated,
    }) => {
      const [unanswered, other] = [await replica(), await replica()];
      await ready();
      const stop = keepBusy(unanswered);
      other.ledger.urgent([systemClock.monotonic()]);
      await updated();
      stop();
      unanswered.dropReplies();
      const before = await drain(other.ledger);
      expect(before.borrowed).toBe(1);
      await server.command("DEL", TABLE);
      await sleep(ALONE_AFTER_MS / 3);
      const after = await drain(other.ledger);
      await sleep(ALONE_AFTER_MS);
      const alone = await drain(unanswered.ledger);
      expect(alone.own).toBeGreaterThan(0);
      expect(before.own + before.borrowed + after.own + after.borrowed + alone.own).toBeLessThanOrEqual(
        BUDGET,
      );
    });

    test("even if replies about the lost table are still to come", async ({
      server,
      replica,
      ready,
      updated,
    }) => {
      const [late, other] = [await replica(), await replica()];
      await ready();
      late.delay(ALONE_AFTER_MS / 4);
      const asked = Array.from({ length: SHARE }, () => late.ledger.take());
      await sleep(20);
      await server.command("DEL", TABLE);
      const taken = (await Promise.all(asked)).filter((one) => "slot" in one);
      expect(taken).toHaveLength(SHARE);
      late.delay(0);
      await updated();
      const more = [await drain(late.ledger), await drain(other.ledger)];
      expect(taken.length + more.reduce((sum, { own }) => sum + own, 0)).toBeLessThanOrEqual(BUDGET);
    });

    test("even if a replica is cut off then and continues with its share", async ({
      server,
      replica,
      ready,
      updated,
    }) => {
      const [a, cutOff] = [await replica(), await replica()];
      await ready();
      cutOff.kill();
      await server.command("DEL", TABLE);
      await updated();
      const started = await replica();
      // Slots of unknown use have rested.
      await sleep(WINDOW_MS + 1500);
      const together = (await drain(a.ledger)).own + (await drain(started.ledger)).own;
      expect(together).toBeGreaterThan(0);
      expect(together + (await drain(cutOff.ledger)).own).toBeLessThanOrEqual(BUDGET);
    });
  });
});
