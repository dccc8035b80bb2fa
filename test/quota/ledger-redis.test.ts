/** The shared ledger in a real Redis: what replicas may use together, alone, after kills, and whatever Redis forgets. */
import { describe, expect } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import type { Ledger, SlotId } from "../../src/quota/ledger/ledger.js";
import { createQuota } from "../../src/quota/scheduler/scheduler.js";
import { describeWithRedis } from "../support/redis.js";
import { until } from "../support/service.js";
import { sideBySide } from "../support/stories.js";
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

/** Takes until there is nothing, settling each call as soon as it is taken unless told otherwise. */
async function drain(ledger: Ledger, outcome: "answered" | "open" = "answered"): Promise<SlotId[]> {
  const slots: SlotId[] = [];
  for (;;) {
    const taken = await ledger.take();
    if ("retryInMs" in taken) return slots;
    slots.push(taken.slot);
    if (outcome !== "open") await ledger.settle(taken.slot, outcome);
  }
}

/** Takes again and again until something is to be had. */
async function takeSoon(ledger: Ledger): Promise<SlotId> {
  let slot: SlotId | undefined;
  await until(async () => {
    const taken = await ledger.take();
    if ("slot" in taken) slot = taken.slot;
    return slot !== undefined;
  }, "a slot");
  return slot ?? 0;
}

const pass = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

describeWithRedis("the shared ledger", () => {
  const test = sideBySide(open);

  describe("at the start", () => {
    test("an empty Redis is a spent window: only the headroom can be used", async ({ replica, opened }) => {
      const { ledger } = await replica({ coldStart: "assume-spent" });
      await opened();
      expect(await drain(ledger)).toHaveLength(2);
      expect(ledger.usage()).toEqual({ used: BUDGET, largestWindowToday: 2 });
    });

    test("an empty Redis that is said to be free gives the whole budget, once", async ({
      replica,
      opened,
    }) => {
      const { ledger } = await replica();
      expect(await drain(ledger)).toHaveLength(0);
      await opened();
      expect(await drain(ledger)).toHaveLength(BUDGET);
      expect(await drain((await replica()).ledger)).toHaveLength(0);
    });

    test("a record in Redis counts whatever the cold start is said to be", async ({ replica, opened }) => {
      const first = await replica();
      await opened();
      await drain(first.ledger);
      await first.ledger.close();
      expect(await drain((await replica()).ledger)).toHaveLength(0);
    });
  });

  describe("together", () => {
    test("replicas share one budget, and every slot rests a window from its end by Redis's clock", async ({
      replica,
      opened,
    }) => {
      const long = { longestCallMs: 10_000 };
      const [a, b] = [await replica(long), await replica(long)];
      await opened();
      const slots = await drain(a.ledger, "open");
      expect(slots.length + (await drain(b.ledger, "open")).length).toBe(BUDGET);
      await pass(WINDOW_MS / 3);
      for (const slot of slots.slice(0, 4)) await a.ledger.settle(slot, "answered");
      await pass(WINDOW_MS - 100);
      expect(await drain(a.ledger)).toHaveLength(0);
      await pass(200);
      expect((await drain(a.ledger)).length).toBe(4);
    });

    test("one replica alone at work gets nearly all, and the idle one has its share back when it wants it", async ({
      replica,
      opened,
    }) => {
      const [busy, idle] = [await replica(), await replica()];
      await opened();
      let got = (await drain(busy.ledger)).length;
      await until(async () => {
        got += (await drain(busy.ledger)).length;
        return got >= BUDGET - 1;
      }, "the loan");
      expect(got).toBe(BUDGET - 1);
      expect(await drain(idle.ledger)).toHaveLength(1);
      await pass(WINDOW_MS + 100);
      expect((await drain(idle.ledger)).length).toBeGreaterThanOrEqual(BUDGET / 2);
    });

    test("a call may leave only while its slot can't be another replica's", async ({ replica, opened }) => {
      const { ledger } = await replica({ longestCallMs: 100 });
      await opened();
      const quota = createQuota({ ledger, clock: systemClock, onFault: unexpected });
      const asked = { lane: "exact", client: "a", queryKey: "", maxWaitMs: 1000 } as const;
      const { signal } = new AbortController();
      const validity = await quota.run({ ...asked, signal }, async ({ isValid }) => {
        const atOnce = isValid();
        await pass(650);
        return [atOnce, isValid()];
      });
      expect(validity).toEqual([true, false]);
    });

    test("a call that was never sent costs nothing", async ({ replica, opened }) => {
      const { ledger } = await replica();
      await opened();
      for (const slot of await drain(ledger, "open")) await ledger.settle(slot, "unsent");
      expect(await drain(ledger)).toHaveLength(BUDGET);
    });

    test("a pause on one is a pause on all, and a shorter one does not end it", async ({
      replica,
      opened,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await opened();
      await a.ledger.pause(60_000);
      await b.ledger.pause(1);
      expect(await b.ledger.take()).toHaveProperty("retryInMs");
      expect(b.ledger.forecast().pausedForMs).toBeGreaterThan(50_000);
      expect(a.ledger.forecast().pausedForMs).toBeLessThanOrEqual(60_100);
    });

    test("more replicas than were announced still share one budget", async ({ replica, opened }) => {
      const [a, b] = [await replica({ replicasMax: 1 }), await replica({ replicasMax: 1 })];
      await opened();
      const first = await takeSoon(b.ledger);
      expect(first).toBeGreaterThan(0);
      const got = (await drain(a.ledger)).length + (await drain(b.ledger)).length;
      expect(got).toBeLessThan(BUDGET);
    });
  });

  describe("after a kill", () => {
    test("who takes the place goes on with what Redis recorded, calls in flight counted as still arriving", async ({
      replica,
      opened,
    }) => {
      const killed = await replica({ replicasMax: 1, place: "here" });
      await opened();
      const [first] = await drain(killed.ledger, "open").then((slots) => [slots.length]);
      expect(first).toBe(BUDGET);
      killed.kill();
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await pass(WINDOW_MS - 200);
      expect(await drain(ledger)).toHaveLength(0);
      await takeSoon(ledger);
    });

    test("an unused budget is passed on at once", async ({ replica, opened }) => {
      const killed = await replica({ replicasMax: 1, place: "here" });
      await opened();
      await takeSoon(killed.ledger);
      killed.kill();
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await takeSoon(ledger);
      expect((await drain(ledger)).length).toBeGreaterThanOrEqual(BUDGET - 3);
    });

    test("what it wrote down is all it used, with Redis and without, and it can't use any more", async ({
      replica,
      opened,
    }) => {
      const killed = await replica({ replicasMax: 1, place: "here", onFault: () => {} });
      await opened();
      await takeSoon(killed.ledger);
      killed.kill();
      await pass(ALONE_AFTER_MS + 100);
      for (let count = 0; count < 3; count += 1) await takeSoon(killed.ledger);
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await takeSoon(ledger);
      const left = 1 + (await drain(ledger)).length;
      expect(left).toBeLessThanOrEqual(BUDGET - 3);
      expect(left).toBeGreaterThanOrEqual(BUDGET - 5);
      expect(await drain(killed.ledger)).toHaveLength(0);
    });

    test("its handover is delivered once, and not again to an old table that comes back", async ({
      server,
      replica,
      opened,
    }) => {
      const [killed, other] = [await replica({ place: "here" }), await replica()];
      await opened();
      await takeSoon(killed.ledger);
      killed.kill();
      await server.command("COPY", TABLE, "old");
      await pass(3 * ALONE_AFTER_MS);
      const { ledger } = await replica({ place: "here" });
      await takeSoon(ledger);
      let taken = 1;
      await until(async () => {
        taken += (await drain(ledger)).length + (await drain(other.ledger)).length;
        return taken === BUDGET;
      }, "the whole budget");
      await server.command("COPY", "old", TABLE, "REPLACE");
      const again: number[] = [];
      for (let beats = 0; beats < 4; beats += 1) {
        await pass(ALONE_AFTER_MS / 6);
        again.push((await drain(ledger)).length + (await drain(other.ledger)).length);
      }
      expect(again).toEqual([0, 0, 0, 0]);
    });

    test("nobody knows what it used if it left no handover", async ({ replica, opened }) => {
      const place = { replicasMax: 1, place: "here", directory: "/dev/null/nowhere", onFault: () => {} };
      const killed = await replica(place);
      await opened();
      await takeSoon(killed.ledger);
      killed.kill();
      await pass(3 * ALONE_AFTER_MS);
      const { ledger } = await replica(place);
      await pass(ALONE_AFTER_MS);
      expect(await drain(ledger)).toHaveLength(0);
    });

    test("all that it used on its own counts as used", async ({ replica, opened }) => {
      const cutOff = await replica({ replicasMax: 1, place: "here" });
      await opened();
      await takeSoon(cutOff.ledger);
      cutOff.kill();
      await pass(ALONE_AFTER_MS + 100);
      expect(await drain(cutOff.ledger)).toHaveLength(BUDGET - 1);
      const { ledger } = await replica({ replicasMax: 1, place: "here" });
      await pass(ALONE_AFTER_MS);
      expect(await drain(ledger)).toHaveLength(0);
    });
  });

  describe("without Redis", () => {
    test("each replica goes on with its own share, and with no more", async ({ server, replica, opened }) => {
      const [a, b] = [await replica(), await replica()];
      await opened();
      await server.kill();
      expect(await a.ledger.take()).toHaveProperty("retryInMs");
      await pass(ALONE_AFTER_MS + 100);
      expect(await drain(a.ledger)).toHaveLength(BUDGET / 2);
      expect(await drain(b.ledger)).toHaveLength(BUDGET / 2);
    });

    test("what was lent comes back when its borrower must have finished", async ({
      server,
      replica,
      opened,
    }) => {
      const [busy, idle] = [await replica(), await replica()];
      await opened();
      await until(
        async () => (await drain(busy.ledger)).length === 0 && busy.ledger.usage().used >= BUDGET - 1,
      );
      await server.kill();
      await pass(ALONE_AFTER_MS + 100);
      expect(await drain(idle.ledger)).toHaveLength(1);
      await pass(ALONE_AFTER_MS + 350 + WINDOW_MS + 1000);
      expect(await drain(idle.ledger)).toHaveLength(BUDGET / 2);
    });

    test("a replica that has never reached it makes no calls, because there may be no share for it", async ({
      server,
      replica,
    }) => {
      await server.kill();
      const { ledger } = await replica({ place: "a" });
      await pass(ALONE_AFTER_MS + 350 + WINDOW_MS + 1000);
      expect(await drain(ledger)).toHaveLength(0);
      expect(ledger.forecast().resting).toBe(0);
      expect(await ledger.take()).toHaveProperty("retryInMs");
    });

    test("one that starts in the place of a killed one has its share when a window is over, and the killed one has none any more", async ({
      server,
      replica,
      opened,
    }) => {
      const killed = await replica({ place: "a", onFault: () => {} });
      await replica({ place: "b" });
      await opened();
      await server.kill();
      // Only stopped, for all that its successor knows.
      await pass(ALONE_AFTER_MS + 100);
      const otherCredential = await replica({ place: "a", fingerprint: "def" });
      await pass(ALONE_AFTER_MS / 2);
      const { ledger } = await replica({ place: "a" });
      const elsewhere = await replica({ place: "c" });
      await pass(ALONE_AFTER_MS / 2);
      expect(await drain(ledger)).toHaveLength(0);
      const { resting, usableInMs } = ledger.forecast();
      expect(usableInMs(resting - 1)).toBeGreaterThan(WINDOW_MS);
      await pass(ALONE_AFTER_MS + 350 + WINDOW_MS + 1000);
      expect(await drain(ledger)).toHaveLength(BUDGET / 2);
      expect(await drain(killed.ledger)).toHaveLength(0);
      expect(await drain(elsewhere.ledger)).toHaveLength(0);
      expect(await drain(otherCredential.ledger)).toHaveLength(0);
    });

    test("its own use is reported when Redis is back, even if Redis was emptied", async ({
      server,
      replica,
      untilBack,
      opened,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await opened();
      await server.kill();
      await pass(ALONE_AFTER_MS + 100);
      expect(await drain(a.ledger)).toHaveLength(BUDGET / 2);
      await server.start();
      await untilBack();
      expect(await drain(a.ledger)).toHaveLength(0);
      // The other's own share was not used, and it knows.
      expect(await drain(b.ledger)).toHaveLength(BUDGET / 2);
    });

    test("its own use is reported once, however many requests it makes on its return", async ({
      server,
      replica,
      opened,
    }) => {
      const { ledger } = await replica({ replicasMax: 1 });
      await opened();
      for (let n = 0; n < BUDGET / 2; n += 1)
        await takeSoon(ledger).then((slot) => ledger.settle(slot, "answered"));
      await server.command("FLUSHALL");
      const taken = await Promise.all(Array.from({ length: BUDGET / 2 }, () => ledger.take()));
      expect(taken.filter((one) => "slot" in one)).toHaveLength(BUDGET / 2);
    });

    test("an emptied Redis is never taken as free, not even by a replica that starts then", async ({
      server,
      replica,
      opened,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await opened();
      await drain(a.ledger);
      await drain(b.ledger);
      await server.command("FLUSHALL");
      const late = await replica();
      expect(await drain(late.ledger)).toHaveLength(0);
      await opened();
      expect(await drain(late.ledger)).toHaveLength(0);
    });

    test("a hung Redis that wakes up does not speak for who has gone on without it", async ({
      server,
      replica,
      untilBack,
      opened,
    }) => {
      const [a, b] = [await replica(), await replica()];
      await opened();
      server.hang();
      await pass(ALONE_AFTER_MS + 400);
      const alone = (await drain(a.ledger)).length + (await drain(b.ledger)).length;
      expect(alone).toBe(BUDGET);
      server.wake();
      await untilBack();
      await pass(400);
      expect(await drain(a.ledger)).toHaveLength(0);
      expect(await drain(b.ledger)).toHaveLength(0);
    });
  });

  test("a grant whose answer was lost is taken back, but not with it what was used alone meanwhile", async ({
    server,
    replica,
    untilBack,
    opened,
  }) => {
    const { ledger } = await replica({ replicasMax: 1 });
    await opened();
    server.hang();
    expect(await ledger.take()).toHaveProperty("retryInMs");
    server.wake();
    await pass(30);
    server.hang();
    await pass(ALONE_AFTER_MS + 200);
    const alone = (await drain(ledger)).length;
    // One less if it has heard of the grant before Redis hung again.
    expect(alone).toBeGreaterThanOrEqual(BUDGET - 1);
    server.wake();
    await untilBack();
    await pass(400);
    expect(alone + (await drain(ledger)).length).toBe(BUDGET);
  });

  test("a table that lost its last writes in a failover is noticed, though another replica writes first", async ({
    server,
    replica,
    opened,
  }) => {
    const [a, b] = [await replica(), await replica()];
    await opened();
    await server.command("COPY", TABLE, "copied");
    const before = (await drain(b.ledger)).length;
    expect(before).toBeGreaterThan(0);
    await server.command("COPY", "copied", TABLE, "REPLACE");
    // As many writes as were lost, and more.
    for (let writes = 0; writes < 3 * BUDGET; writes += 1) await a.ledger.pause(0);
    const after = [...(await drain(b.ledger)), ...(await drain(a.ledger))].length;
    expect(before + after).toBeLessThanOrEqual(BUDGET);
  });

  test("what was lost with the only replica that knew of it counts as spent: the others keep to their own slots", async ({
    server,
    replica,
    opened,
  }) => {
    const settings = { replicasMax: 4 };
    const [a, b] = [await replica(settings), await replica(settings)];
    await opened();
    await server.command("SAVE");
    const lost = (await drain(b.ledger)).length;
    expect(lost).toBeGreaterThan(BUDGET / 2);
    b.kill();
    await server.kill();
    // A failover takes at least as long; b's calls are still in the window after it.
    await pass(300);
    await server.start();
    const kept: SlotId[] = [];
    await until(async () => {
      kept.push(...(await drain(a.ledger)));
      return kept.length > 0;
    }, "a slot");
    await pass(200);
    kept.push(...(await drain(a.ledger)));
    expect(kept).toHaveLength(BUDGET / 4);
    expect(lost + kept.length).toBeLessThanOrEqual(BUDGET);
  });

  test("a state that cannot be read, or is older than one seen before, counts as spent", async ({
    server,
    replica,
    opened,
  }) => {
    const { ledger } = await replica({ replicasMax: 1 });
    await opened();
    await server.command("SET", TABLE, "nonsense");
    await pass(300);
    // Its own slots it knows of; everything else it does not.
    expect((await drain(ledger)).length).toBeLessThanOrEqual(BUDGET);
    expect(await drain((await replica({ replicasMax: 1 })).ledger)).toHaveLength(0);
  });
});
