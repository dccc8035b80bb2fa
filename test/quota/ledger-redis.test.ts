/** The shared ledger in a real Redis: what replicas may use together, without Redis, after kills, and after Redis has lost data. */
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { type FileLedgerSettings, openFileLedger } from "../../src/quota/ledger/file.js";
import type { Ledger, SlotId } from "../../src/quota/ledger/ledger.js";
import { createQuota } from "../../src/quota/scheduler/scheduler.js";
import { describeWithRedis } from "../support/redis.js";
import { until } from "../support/service.js";
import { concurrentTest } from "../support/stories.js";
import { openSharedLedger, type SharedLedger, unexpected } from "./support/shared-ledger.js";
import { TABLE } from "./support/timed-fleet.js";

const BUDGET = 12;
const WINDOW_MS = 1500;
const ALONE_AFTER_MS = 1000;

const open = (): Promise<SharedLedger> =>
  openSharedLedger({
    limit: BUDGET + 2,
    headroom: 2,
    windowMs: WINDOW_MS,
    replicasMax: 2,
    longestCallMs: 100,
  });

/** Takes slots until none is usable, and settles each one immediately unless `outcome` is "open". */
async function drain(ledger: Ledger, outcome: "answered" | "open" = "answered"): Promise<SlotId[]> {
  const slots: SlotId[] = [];
  for (;;) {
    const taken = await ledger.take();
    if ("retryInMs" in taken) return slots;
    slots.push(taken.slot);
    if (outcome !== "open") await ledger.settle(taken.slot, outcome);
  }
}

/** Waits for a usable slot and takes it. */
async function takeWhenUsable(ledger: Ledger): Promise<SlotId> {
  let slot: SlotId | undefined;
  await until(async () => {
    const taken = await ledger.take();
    if ("slot" in taken) slot = taken.slot;
    return slot !== undefined;
  }, "the grant of a slot");
  return slot ?? 0;
}

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

describeWithRedis("the shared ledger", () => {
  const test = concurrentTest(open);

  describe("on startup", () => {
    test("treats an empty Redis as a spent window with a usable headroom", async ({ replica, ready }) => {
      const { ledger } = await replica({ coldStart: "assume-spent" });
      await ready();
      expect(await drain(ledger)).toHaveLength(2);
      expect(ledger.usage()).toEqual({ used: BUDGET, largestWindowToday: 2 });
    });

    test("grants the whole budget once if an empty Redis is assumed to be free", async ({
      replica,
      ready,
    }) => {
      const { ledger } = await replica();
      expect(await drain(ledger)).toHaveLength(0);
      await ready();
      expect(await drain(ledger)).toHaveLength(BUDGET);
      expect(await drain((await replica()).ledger)).toHaveLength(0);
    });

    test("counts a record in Redis whatever the cold start is assumed to be", async ({ replica, ready }) => {
      const first = await replica();
      await ready();
      await drain(first.ledger);
      await first.ledger.close();
      expect(await drain((await replica()).ledger)).toHaveLength(0);
    });
  });

  describe("with several replicas", () => {
    test("keeps one budget, and lets each slot rest for a window after its call, by Redis's clock", async ({
      replica,
      ready,
    }) => {
      const long = { longestCallMs: 10_000 };
      const [a, b] = [await replica(long), await replica(long)];
      await ready();
      const slots = await drain(a.ledger, "open");
      expect(slots.length + (await drain(b.ledger, "open")).length).toBe(BUDGET);
      await sleep(WINDOW_MS / 3);
      for (const slot of slots.slice(0, 4)) await a.ledger.settle(slot, "answered");
      await sleep(WINDOW_MS - 100);
      expect(await drain(a.ledger)).toHaveLength(0);
      await sleep(200);
      expect((await drain(a.ledger)).length).toBe(4);
    });

    test("lends a busy one nearly everything, and gives an idle one its share back when it needs it", async ({
      replica,
      ready,
    }) => {
      const [busy, idle] = [await replica(), await replica()];
      await ready();
      let got = (await drain(busy.ledger)).length;
      await until(async () => {
        got += (await drain(busy.ledger)).length;
        return got >= BUDGET - 1;
      }, "the loan");
      expect(got).toBe(BUDGET - 1);
      expect(await drain(idle.ledger)).toHaveLength(1);
      await sleep(WINDOW_MS + 100);
      expect((await drain(idle.ledger)).length).toBeGreaterThanOrEqual(BUDGET / 2);
    });

    test("lets a call be sent only while its slot can't belong to another replica", async ({
      replica,
      ready,
    }) => {
      const { ledger } = await replica({ longestCallMs: 100 });
      await ready();
      const quota = createQuota({ ledger, clock: systemClock, onFault: unexpected });
      const request = { lane: "exact", client: "a", queryKey: "", maxWaitMs: 1000 } as const;
      const { signal } = new AbortController();
      const validity = await quota.run({ ...request, signal }, async ({ isValid }) => {
        const atFirst = isValid();
        await sleep(650);
        return [atFirst, isValid()];
      });
      expect(validity).toEqual([true, false]);
    });

    test("doesn't let a call be sent for which the machine was suspended meanwhile", async ({
      replica,
      ready,
    }) => {
      let suspendedMs = 0;
      const clock = { ...systemClock, now: () => systemClock.now() + suspendedMs };
      const { ledger, delay } = await replica({ clock });
      await ready();
      const quota = createQuota({ ledger, clock, onFault: unexpected });
      const request = { lane: "exact", client: "a", queryKey: "", maxWaitMs: 1000 } as const;
      const { signal } = new AbortController();
      const validity = await quota.run({ ...request, signal }, async ({ isValid }) => {
        const atFirst = isValid();
        suspendedMs += 90_000;
        return [atFirst, isValid()];
      });
      expect(validity).toEqual([true, false]);
      delay(20);
      const taking = ledger.take();
      suspendedMs += 90_000;
      expect(await taking).toHaveProperty("retryInMs");
    });

    test("charges nothing for a call that was never sent", async ({ replica, ready }) => {
      const { ledger } = await replica();
      await ready();
      for (const slot of await drain(ledger, "open")) await ledger.settle(slot, "unsent");
      expect(await drain(ledger)).toHaveLength(BUDGET);
    });

    test("frees the share of one that has stopped, even if it was just taking a slot", async ({
      replica,
      ready,
    }) => {
      const stopped = await replica();
      await ready();
      const quota = createQuota({ ledger: stopped.ledger, clock: systemClock, onFault: unexpected });
      const request = { lane: "exact", client: "a", queryKey: "", maxWaitMs: 1000 } as const;
      const { signal } = new AbortController();
      stopped.delay(50);
      const asked = quota.run({ ...request, signal }, async () => null);
      await Promise.all([quota.close(), expect(asked).rejects.toMatchObject({ code: "shutting_down" })]);
      await sleep(100);
      const { ledger } = await replica();
      await ready();
      expect(await drain(ledger)).toHaveLength(BUDGET);
    });

    test("frees the share of one that has left, even if it ends a call after that", async ({
      replica,
      ready,
    }) => {
      const stopped = await replica();
      await ready();
      const taking = stopped.ledger.take();
      await stopped.ledger.close();
      const taken = await taking;
      if ("slot" in taken) await stopped.ledger.settle(taken.slot, "unsent");
      const { ledger } = await replica();
      await ready();
      expect(await drain(ledger)).toHaveLength(BUDGET - 1);
    });

    test("applies a pause of one to all, and doesn't end it when a shorter one is set", async ({
      replica,
      ready,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await ready();
      await a.ledger.pause(60_000);
      await b.ledger.pause(1);
      expect(await b.ledger.take()).toHaveProperty("retryInMs");
      expect(b.ledger.forecast().pausedForMs).toBeGreaterThan(50_000);
      expect(a.ledger.forecast().pausedForMs).toBeLessThanOrEqual(60_100);
    });

    test("keeps one budget even for more of them than `replicasMax`", async ({ replica, ready }) => {
      const [a, b] = [await replica({ replicasMax: 1 }), await replica({ replicasMax: 1 })];
      await ready();
      const first = await takeWhenUsable(b.ledger);
      expect(first).toBeGreaterThan(0);
      const got = (await drain(a.ledger)).length + (await drain(b.ledger)).length;
      expect(got).toBeLessThan(BUDGET);
    });
  });

  describe("after a kill", () => {
    test("lets the successor continue from Redis's record, with calls in flight counted as still arriving", async ({
      replica,
      ready,
    }) => {
      const killed = await replica({ replicasMax: 1, place: "here" });
      await ready();
      const [first] = await drain(killed.ledger, "open").then((slots) => [slots.length]);
      expect(first).toBe(BUDGET);
      killed.kill();
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await sleep(WINDOW_MS - 200);
      expect(await drain(ledger)).toHaveLength(0);
      await takeWhenUsable(ledger);
    });

    test("passes an unused budget on immediately", async ({ replica, ready }) => {
      const killed = await replica({ replicasMax: 1, place: "here" });
      await ready();
      await takeWhenUsable(killed.ledger);
      killed.kill();
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await takeWhenUsable(ledger);
      expect((await drain(ledger)).length).toBeGreaterThanOrEqual(BUDGET - 3);
    });

    test("counts what the killed replica recorded, with and without Redis, and lets it use no more", async ({
      replica,
      ready,
    }) => {
      const killed = await replica({ replicasMax: 1, place: "here", onFault: () => {} });
      await ready();
      await takeWhenUsable(killed.ledger);
      killed.kill();
      await sleep(ALONE_AFTER_MS + 100);
      for (let count = 0; count < 3; count += 1) await takeWhenUsable(killed.ledger);
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await takeWhenUsable(ledger);
      const left = 1 + (await drain(ledger)).length;
      expect(left).toBeLessThanOrEqual(BUDGET - 3);
      expect(left).toBeGreaterThanOrEqual(BUDGET - 5);
      expect(await drain(killed.ledger)).toHaveLength(0);
    });

    test("applies the handover once, and not again to an old table that is restored", async ({
      server,
      replica,
      ready,
    }) => {
      const [killed, other] = [await replica({ place: "here" }), await replica()];
      await ready();
      await takeWhenUsable(killed.ledger);
      killed.kill();
      await server.command("COPY", TABLE, "old");
      await sleep(3 * ALONE_AFTER_MS);
      const { ledger } = await replica({ place: "here" });
      await takeWhenUsable(ledger);
      let taken = 1;
      await until(async () => {
        taken += (await drain(ledger)).length + (await drain(other.ledger)).length;
        return taken === BUDGET;
      }, "the use of the whole budget");
      await server.command("COPY", "old", TABLE, "REPLACE");
      const again: number[] = [];
      for (let times = 0; times < 4; times += 1) {
        await sleep(ALONE_AFTER_MS / 6);
        again.push((await drain(ledger)).length + (await drain(other.ledger)).length);
      }
      expect(again).toEqual([0, 0, 0, 0]);
    });

    test("counts everything as used if there is no handover", async ({ replica, ready }) => {
      const place = { replicasMax: 1, place: "here", directory: "/dev/null/nowhere", onFault: () => {} };
      const killed = await replica(place);
      await ready();
      await takeWhenUsable(killed.ledger);
      killed.kill();
      await sleep(3 * ALONE_AFTER_MS);
      const { ledger } = await replica(place);
      await sleep(ALONE_AFTER_MS);
      expect(await drain(ledger)).toHaveLength(0);
    });

    test("applies a pause that the killed replica couldn't tell anyone to all", async ({
      replica,
      ready,
    }) => {
      const [killed, other] = [await replica({ place: "here" }), await replica()];
      await ready();
      killed.cutOff();
      await sleep(ALONE_AFTER_MS + 100);
      await killed.ledger.pause(60_000);
      await sleep(ALONE_AFTER_MS / 2);
      killed.kill();
      await replica({ place: "here" });
      await until(() => other.ledger.forecast().pausedForMs > 50_000, "the pause");
    });

    test("observes a pause that only the killed replica knew, even while Redis can't be reached", async ({
      server,
      replica,
      ready,
    }) => {
      const killed = await replica({ place: "here" });
      await ready();
      await server.kill();
      await sleep(ALONE_AFTER_MS + 100);
      await killed.ledger.pause(60_000);
      await sleep(ALONE_AFTER_MS / 2);
      killed.kill();
      const { ledger } = await replica({ place: "here" });
      await until(() => ledger.forecast().pausedForMs > 50_000, "the pause");
      expect(await drain(ledger)).toHaveLength(0);
    });

    test("counts everything that the killed replica used on its own", async ({ replica, ready }) => {
      const cutOff = await replica({ replicasMax: 1, place: "here" });
      await ready();
      await takeWhenUsable(cutOff.ledger);
      cutOff.kill();
      await sleep(ALONE_AFTER_MS + 100);
      expect(await drain(cutOff.ledger)).toHaveLength(BUDGET - 1);
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await sleep(ALONE_AFTER_MS);
      expect(await drain(ledger)).toHaveLength(0);
    });
  });

  describe("after a time without Redis", () => {
    /** Makes this many calls as a process without Redis does, and stops it. */
    async function callFromFile(directory: string, calls: number, windowMs = WINDOW_MS): Promise<void> {
      const ledger = await openFile({ directory, windowMs });
      for (let call = 0; call < calls; call += 1)
        await ledger.settle(await takeWhenUsable(ledger), "answered");
      await ledger.close();
    }

    function openFile(
      settings: Pick<FileLedgerSettings, "directory"> & Partial<FileLedgerSettings>,
    ): Promise<Ledger> {
      return openFileLedger({
        limit: BUDGET + 2,
        headroom: 2,
        windowMs: WINDOW_MS,
        fingerprint: "abc",
        coldStart: "assume-free",
        clock: systemClock,
        onFault: unexpected,
        ...settings,
      });
    }

    test("no replica makes a call before those made in that time have rested, whatever Redis has on record", async ({
      directory,
      replica,
      ready,
    }) => {
      const long = { windowMs: 4000 };
      const earlier = await replica(long);
      await ready();
      await earlier.ledger.close();
      await callFromFile(directory, BUDGET, long.windowMs);
      const first = await replica(long);
      const elsewhere = await replica({ ...long, directory: join(directory, "elsewhere") });
      expect(await drain(first.ledger)).toHaveLength(0);
      expect(await drain(elsewhere.ledger)).toHaveLength(0);
      await sleep(long.windowMs + 100);
      const got = (await drain(first.ledger)).length + (await drain(elsewhere.ledger)).length;
      expect(got).toBe(BUDGET);
    });

    test("replicas begin at once if no call of that time still counts", async ({
      directory,
      replica,
      ready,
    }) => {
      const earlier = await replica();
      await ready();
      await earlier.ledger.close();
      await callFromFile(directory, 0);
      expect(await drain((await replica()).ledger)).toHaveLength(BUDGET);
    });

    test("and back without it, calls count that were made through Redis", async ({
      directory,
      replica,
      ready,
    }) => {
      await callFromFile(directory, 0);
      const { ledger } = await replica();
      await ready();
      expect(await drain(ledger)).toHaveLength(BUDGET);
      await ledger.close();
      const file = await openFile({ directory, coldStart: "assume-spent" });
      expect(await drain(file)).toHaveLength(2);
      await file.close();
    });

    test("and back without it, calls count that were made while Redis couldn't be reached", async ({
      directory,
      server,
      replica,
    }) => {
      await callFromFile(directory, 0);
      await server.kill();
      const { ledger } = await replica({ replicasMax: 1 });
      await takeWhenUsable(ledger);
      await ledger.close();
      const file = await openFile({ directory, coldStart: "assume-spent" });
      expect(await drain(file)).toHaveLength(2);
      await file.close();
    });
  });

  describe("without Redis", () => {
    test("lets each replica continue with its own share, and no more", async ({ server, replica, ready }) => {
      const [a, b] = [await replica(), await replica()];
      await ready();
      await server.kill();
      expect(await a.ledger.take()).toHaveProperty("retryInMs");
      await sleep(ALONE_AFTER_MS + 100);
      expect(await drain(a.ledger)).toHaveLength(BUDGET / 2);
      expect(await drain(b.ledger)).toHaveLength(BUDGET / 2);
    });

    test("returns lent slots once their borrower must have finished", async ({ server, replica, ready }) => {
      const [busy, idle] = [await replica(), await replica()];
      await ready();
      await until(
        async () => (await drain(busy.ledger)).length === 0 && busy.ledger.usage().used >= BUDGET - 1,
      );
      await server.kill();
      await sleep(ALONE_AFTER_MS + 100);
      expect(await drain(idle.ledger)).toHaveLength(1);
      await sleep(ALONE_AFTER_MS + 350 + WINDOW_MS + 1000);
      expect(await drain(idle.ledger)).toHaveLength(BUDGET / 2);
    });

    test("grants nothing to a replica that has never reached it, because there may be no share for it", async ({
      server,
      replica,
    }) => {
      await server.kill();
      const { ledger } = await replica({ place: "a" });
      await sleep(ALONE_AFTER_MS + 350 + WINDOW_MS + 1000);
      expect(await drain(ledger)).toHaveLength(0);
      expect(ledger.forecast().resting).toBe(0);
      expect(await ledger.take()).toHaveProperty("retryInMs");
    });

    test("moves a killed replica's share to one that starts in its place, after a window", async ({
      server,
      replica,
      ready,
    }) => {
      const killed = await replica({ place: "a", onFault: () => {} });
      await replica({ place: "b" });
      await ready();
      await server.kill();
      // Its successor can't know that it wasn't just stopped.
      await sleep(ALONE_AFTER_MS + 100);
      const otherCredential = await replica({ place: "a", fingerprint: "def" });
      await sleep(ALONE_AFTER_MS / 2);
      const { ledger } = await replica({ place: "a" });
      const elsewhere = await replica({ place: "c" });
      await sleep(ALONE_AFTER_MS / 2);
      expect(await drain(ledger)).toHaveLength(0);
      const { resting, usableInMs } = ledger.forecast();
      expect(usableInMs(resting - 1)).toBeGreaterThan(WINDOW_MS);
      await sleep(ALONE_AFTER_MS + 350 + WINDOW_MS + 1000);
      expect(await drain(ledger)).toHaveLength(BUDGET / 2);
      expect(await drain(killed.ledger)).toHaveLength(0);
      expect(await drain(elsewhere.ledger)).toHaveLength(0);
      expect(await drain(otherCredential.ledger)).toHaveLength(0);
    });

    test("moves no more than the share of a killed replica, even if its successor is configured for fewer replicas", async ({
      server,
      replica,
      ready,
    }) => {
      await replica({ place: "a", replicasMax: 4, onFault: () => {} });
      await ready();
      await server.kill();
      await sleep(ALONE_AFTER_MS + 100);
      const { ledger } = await replica({ place: "a", replicasMax: 2 });
      await sleep(2 * ALONE_AFTER_MS + WINDOW_MS + 1500);
      expect(await drain(ledger)).toHaveLength(BUDGET / 4);
    });

    test("records a replica's own use when Redis is back, even if Redis was emptied", async ({
      server,
      replica,
      reconnected,
      ready,
      updated,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await ready();
      await server.kill();
      await sleep(ALONE_AFTER_MS + 100);
      expect(await drain(a.ledger)).toHaveLength(BUDGET / 2);
      await server.start();
      await reconnected();
      // Otherwise a report that is sent while a slot is being taken counts that slot as used.
      await updated();
      expect(await drain(a.ledger)).toHaveLength(0);
      // The other replica knows that its own share wasn't used.
      expect(await drain(b.ledger)).toHaveLength(BUDGET / 2);
    });

    test("records a replica's own use even if it stops as soon as Redis is back", async ({
      replica,
      ready,
    }) => {
      const { ledger, cutOff, heal } = await replica({ windowMs: 4000 });
      await ready();
      cutOff();
      await sleep(ALONE_AFTER_MS + 100);
      expect(await drain(ledger)).toHaveLength(BUDGET / 2);
      heal();
      await ledger.close();
      const next = await replica({ windowMs: 4000 });
      await ready();
      expect(await drain(next.ledger)).toHaveLength(BUDGET / 2);
    });

    test("records a replica's own use once, however many requests it makes when it is back", async ({
      server,
      replica,
      ready,
    }) => {
      const { ledger } = await replica({ replicasMax: 1 });
      await ready();
      for (let n = 0; n < BUDGET / 2; n += 1)
        await takeWhenUsable(ledger).then((slot) => ledger.settle(slot, "answered"));
      await server.command("FLUSHALL");
      const taken = await Promise.all(Array.from({ length: BUDGET / 2 }, () => ledger.take()));
      expect(taken.filter((one) => "slot" in one)).toHaveLength(BUDGET / 2);
    });

    test("records when a replica used its slots, even if the last reply before Redis was emptied arrives with the first one after it, and Redis's clock had stepped", async ({
      server,
      replica,
      ready,
    }) => {
      const { ledger, holdReplies } = await replica({ replicasMax: 1 });
      await ready();
      await server.command("SET", "test:ahead", "60000");
      // By then the table has corrected the step.
      await sleep(1500);
      for (let n = 0; n < BUDGET; n += 1)
        await takeWhenUsable(ledger).then((slot) => ledger.settle(slot, "answered"));
      const deliver = holdReplies();
      const last = ledger.pause(0);
      await server.command("DEL", TABLE);
      const first = ledger.pause(0);
      await server.command("PING");
      deliver();
      await Promise.all([last, first]);
      expect(await drain(ledger)).toHaveLength(0);
    });

    test("never treats an emptied Redis as free, not even for a replica that starts then", async ({
      server,
      replica,
      ready,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await ready();
      await drain(a.ledger);
      await drain(b.ledger);
      await server.command("FLUSHALL");
      const late = await replica();
      expect(await drain(late.ledger)).toHaveLength(0);
      await ready();
      expect(await drain(late.ledger)).toHaveLength(0);
    });

    test("applies a pause that was asked for before Redis was emptied to a replica that starts later", async ({
      server,
      replica,
      ready,
    }) => {
      const { ledger } = await replica();
      await ready();
      await ledger.pause(60_000);
      await server.command("FLUSHALL");
      const late = await replica();
      await until(() => late.ledger.forecast().pausedForMs > 50_000, "the pause");
      expect(await late.ledger.take()).toHaveProperty("retryInMs");
    });

    test("applies the longer of two pauses to all, even if it begins while the other is being reported after a silence", async ({
      replica,
      ready,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await ready();
      a.cutOff();
      await sleep(ALONE_AFTER_MS + 200);
      a.delay(200);
      a.heal();
      // The first reply tells Redis's time, the second that the shorter pause is known.
      const shorter = a.ledger.pause(5_000);
      await sleep(300);
      await Promise.all([shorter, a.ledger.pause(60_000)]);
      await until(() => b.ledger.forecast().pausedForMs > 50_000, "the longer pause");
    });

    test("counts what replicas used on their own when a hung Redis wakes up", async ({
      server,
      replica,
      reconnected,
      ready,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await ready();
      server.hang();
      await sleep(ALONE_AFTER_MS + 400);
      const alone = (await drain(a.ledger)).length + (await drain(b.ledger)).length;
      expect(alone).toBe(BUDGET);
      server.wake();
      await reconnected();
      await sleep(400);
      expect(await drain(a.ledger)).toHaveLength(0);
      expect(await drain(b.ledger)).toHaveLength(0);
    });
  });

  test("takes back a grant whose reply was lost, but not what was used without Redis in the meantime", async ({
    server,
    replica,
    reconnected,
    ready,
  }) => {
    const { ledger } = await replica({ replicasMax: 1 });
    await ready();
    server.hang();
    expect(await ledger.take()).toHaveProperty("retryInMs");
    server.wake();
    await sleep(30);
    server.hang();
    await sleep(ALONE_AFTER_MS + 200);
    const alone = (await drain(ledger)).length;
    // One less if it received the grant before Redis hung again.
    expect(alone).toBeGreaterThanOrEqual(BUDGET - 1);
    server.wake();
    await reconnected();
    await sleep(400);
    expect(alone + (await drain(ledger)).length).toBe(BUDGET);
  });

  test("takes back grants of a new table whose replies were lost, but not what was used without Redis in the meantime", async ({
    server,
    replica,
    ready,
  }) => {
    const { ledger, dropReplies } = await replica({ replicasMax: 1, longestCallMs: 3000 });
    await ready();
    await server.command("DEL", TABLE);
    const receive = dropReplies();
    for (let grants = 0; grants < 5; grants += 1) expect(await ledger.take()).toHaveProperty("retryInMs");
    await sleep(ALONE_AFTER_MS + 100);
    for (let calls = 0; calls < 6; calls += 1)
      await takeWhenUsable(ledger).then((slot) => ledger.settle(slot, "answered"));
    receive();
    // The first request reports the calls; the next one says that the grants weren't used.
    for (let requests = 0; requests < 3; requests += 1) await ledger.pause(0);
    expect(await drain(ledger)).toHaveLength(BUDGET - 6);
  });

  test("notices that a failover lost its last writes, even if another replica writes first", async ({
    server,
    replica,
    ready,
  }) => {
    const [a, b] = [await replica(), await replica()];
    await ready();
    await server.command("COPY", TABLE, "copied");
    const before = (await drain(b.ledger)).length;
    expect(before).toBeGreaterThan(0);
    await server.command("COPY", "copied", TABLE, "REPLACE");
    // As many writes as were lost, and more.
    for (let writes = 0; writes < 3 * BUDGET; writes += 1) await a.ledger.pause(0);
    const after = [...(await drain(b.ledger)), ...(await drain(a.ledger))].length;
    expect(before + after).toBeLessThanOrEqual(BUDGET);
  });

  test("counts writes that only a killed replica knew of as spent: the others keep to their own slots", async ({
    server,
    replica,
    ready,
  }) => {
    const settings = { replicasMax: 4 };
    const [a, b] = [await replica(settings), await replica(settings)];
    await ready();
    await server.command("SAVE");
    const lost = (await drain(b.ledger)).length;
    expect(lost).toBeGreaterThan(BUDGET / 2);
    b.kill();
    await server.kill();
    // A failover takes at least this long; b's calls are still in the window after it.
    await sleep(300);
    await server.start();
    const taken: SlotId[] = [];
    await until(async () => {
      taken.push(...(await drain(a.ledger)));
      return taken.length > 0;
    }, "the grant of a slot");
    await sleep(200);
    taken.push(...(await drain(a.ledger)));
    expect(taken).toHaveLength(BUDGET / 4);
    expect(lost + taken.length).toBeLessThanOrEqual(BUDGET);
  });

  test("treats a table that can't be read as spent", async ({ server, replica, ready }) => {
    const { ledger } = await replica({ replicasMax: 1 });
    await ready();
    await server.command("SET", TABLE, "nonsense");
    await sleep(300);
    // The replica knows only its own slots.
    expect((await drain(ledger)).length).toBeLessThanOrEqual(BUDGET);
    expect(await drain((await replica({ replicasMax: 1 })).ledger)).toHaveLength(0);
  });
});
