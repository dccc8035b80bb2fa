/** The slot table lets as many calls arrive in any rolling window as it has slots, and never more. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { graceMsOf, occupiedMsOf, type Outcome, type Rests, SlotTable } from "../../src/quota/slot-table.js";
import { FakeClock } from "../support/fake-clock.js";
import { largestWindow } from "./support/rolling.js";

const WINDOW_MS = 1000;
const OCCUPIED_MS = occupiedMsOf(WINDOW_MS);

function tableOf(slots: number, clock: FakeClock, rests?: Rests): SlotTable {
  return new SlotTable({ limit: slots, headroom: 0, windowMs: WINDOW_MS, clock, rests });
}

interface Call {
  readonly idleMs: number;
  readonly tookMs: number;
  readonly abandoned: boolean;
  /** When it arrives, from 0 for the first possible moment to 1 for the last one. */
  readonly arrives: number;
  /** Whether the table is handed to another owner before this call. */
  readonly handsOver: boolean;
}

const calls = fc.array(
  fc.record<Call>({
    idleMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 400, noNaN: true })),
    tookMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1500, noNaN: true })),
    abandoned: fc.boolean(),
    arrives: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
    handsOver: fc.boolean(),
  }),
  { minLength: 1, maxLength: 60 },
);

/** Sends every call as early as the table allows; returns when each one arrived. */
async function play(slots: number, script: readonly Call[]): Promise<number[]> {
  const clock = new FakeClock();
  const arrivals: number[] = [];
  let table = tableOf(slots, clock);
  let inFlight = 0;
  for (const { idleMs, tookMs, abandoned, arrives, handsOver } of script) {
    await clock.advance(idleMs);
    if (handsOver && inFlight === 0) table = tableOf(slots, clock, table.rests());
    let slot = table.take();
    while (slot === null) {
      const freeInMs = table.freeAt(0) - clock.monotonic();
      await clock.advance(Number.isFinite(freeInMs) ? Math.max(freeInMs, 0.1) : 10);
      slot = table.take();
    }
    const [owner, taken] = [table, slot];
    inFlight += 1;
    const lastMs = abandoned ? tookMs + graceMsOf(WINDOW_MS) : tookMs;
    arrivals.push(clock.monotonic() + lastMs * arrives);
    clock.after(tookMs, () => {
      inFlight -= 1;
      owner.settle(taken, abandoned ? "abandoned" : "answered");
    });
  }
  return arrivals;
}

describe("the slot table", () => {
  test("never lets more calls arrive in any rolling window than it has slots, whenever they arrive, also when it is handed over", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 8 }), calls, async (slots, script) => {
        expect(largestWindow(await play(slots, script), WINDOW_MS)).toBeLessThanOrEqual(slots);
      }),
      { numRuns: 100 },
    );
  });

  test("uses every slot in every window when calls take no time", async () => {
    for (const [slots, windows] of [
      [1, 3],
      [7, 5],
      [60, 2],
    ] as const) {
      const instant = { idleMs: 0, tookMs: 0, abandoned: false, arrives: 0, handsOver: false };
      const arrivals = await play(
        slots,
        Array.from({ length: slots * windows }, () => instant),
      );
      expect(arrivals.at(-1)).toBeLessThan((windows - 1) * OCCUPIED_MS + slots);
    }
  });

  test("occupies a slot a thousandth longer than the window, and a sixth longer for an abandoned call", () => {
    expect([occupiedMsOf(60_000), occupiedMsOf(1_500), graceMsOf(60_000)]).toEqual([60_060, 1_502, 10_000]);
  });

  test("leaves an unsent slot as it was, and settles a slot only once", async () => {
    const clock = new FakeClock();
    const table = tableOf(1, clock);
    expect([table.take(), table.take()]).toEqual([0, null]);
    table.settle(0, "unsent");
    expect(table.take()).toBe(0);
    table.settle(0, "answered");
    await clock.advance(500);
    table.settle(0, "answered");
    expect([table.freeAt(0), table.usage()]).toEqual([OCCUPIED_MS, { used: 1, largestWindowToday: 1 }]);
  });

  test("says when each slot can be used, resting or in flight, and the largest window of a day", async () => {
    const clock = new FakeClock();
    const rests = { windowMs: WINDOW_MS, slots: [300, 0, null], pausedForMs: 0 };
    const table = tableOf(3, clock, rests);
    const unknownMs = OCCUPIED_MS + graceMsOf(WINDOW_MS);
    expect([0, 1, 2].map((n) => Math.max(0, table.freeAt(n)))).toEqual([0, 300, unknownMs]);
    // What is only assumed isn't counted.
    expect(table.usage()).toEqual({ used: 2, largestWindowToday: 1 });
    expect(table.take()).not.toBeNull();
    expect(new Set(table.rests().slots)).toEqual(new Set([300, null, Math.ceil(unknownMs)]));
    expect(table.freeAt(2)).toBe(unknownMs);
    expect(table.freeAt(3)).toBe(Infinity);
    await clock.advance(24 * 3_600_000);
    expect(table.usage().largestWindowToday).toBe(1);
  });

  test("gives fewer slots those that rest longest, and counts as spent what it doesn't know", () => {
    const clock = new FakeClock();
    const rests = { windowMs: WINDOW_MS, slots: [0, 900, 0, 300], pausedForMs: 0 };
    const usable = (slots: number, more: Partial<Rests> = {}): number => {
      const table = tableOf(slots, clock, { ...rests, ...more });
      return Array.from({ length: slots }, () => table.take()).filter((slot) => slot !== null).length;
    };
    expect([usable(4), usable(3), usable(2), usable(6)]).toEqual([2, 1, 0, 2]);
    expect([usable(4, { windowMs: 500 }), usable(4, { pausedForMs: 10 })]).toEqual([0, 0]);
  });

  test("takes the slot first that has rested longest, and keeps the order in which the others become usable", async () => {
    const clock = new FakeClock();
    const table = tableOf(3, clock, { windowMs: WINDOW_MS, slots: [700, 0, 400], pausedForMs: 0 });
    // A new owner numbers them by how long they rest.
    expect([table.take(), table.take()]).toEqual([2, null]);
    table.settle(2, "unsent");
    expect([0, 1].map((n) => Math.max(0, table.freeAt(n)))).toEqual([0, 400]);
    expect(table.take()).toBe(2);
    table.settle(2, "answered");
    expect([0, 1, 2].map((n) => table.freeAt(n))).toEqual([400, 700, OCCUPIED_MS]);
    await clock.advance(600);
    expect(table.rests().slots).toEqual([100, 0, OCCUPIED_MS - 600]);
    await clock.advance(100);
    expect([table.take(), table.take(), table.take()]).toEqual([1, 0, null]);
    expect([0, 1].map((n) => table.freeAt(n))).toEqual([OCCUPIED_MS, 700 + OCCUPIED_MS]);
    expect(() => {
      table.settle(3, "answered");
    }).toThrow("there is no slot 3");
  });

  test("expects a call in flight to take twice as long as calls usually do, which those that were never sent don't change", async () => {
    const clock = new FakeClock();
    const table = tableOf(1, clock);
    const call = async (outcome: Outcome): Promise<void> => {
      const slot = table.take() ?? NaN;
      await clock.advance(160);
      table.settle(slot, outcome);
    };
    expect(table.awayMs).toBe(OCCUPIED_MS);
    await call("unsent");
    expect(table.awayMs).toBe(OCCUPIED_MS);
    await call("answered");
    expect(table.awayMs).toBe(OCCUPIED_MS + 2 * 10);
    await clock.advance(OCCUPIED_MS);
    const sentAt = clock.monotonic();
    await call("abandoned");
    expect(table.awayMs).toBe(OCCUPIED_MS + 2 * (10 + 150 / 16));
    expect(table.freeAt(0)).toBeCloseTo(sentAt + 160 + OCCUPIED_MS + graceMsOf(WINDOW_MS));
  });

  test("pauses one operation by itself, and every call as soon as two are paused; a longer pause stands, and none is longer than five minutes", async () => {
    const clock = new FakeClock();
    const table = tableOf(3, clock);
    const pausedForMs = (operation?: string) => table.pausedUntilAt(operation) - clock.monotonic();
    expect(table.pausedUntilAt()).toBe(-Infinity);
    table.pause("check", 500);
    table.pause("check", 200);
    expect([pausedForMs("check"), pausedForMs("tier"), pausedForMs()]).toEqual([500, -Infinity, 500]);
    expect(table.take()).toBe(0);
    await clock.advance(500);
    table.pause("tier", -1);
    expect([pausedForMs("tier"), table.take()]).toEqual([0, 1]);

    table.pause("check", 300);
    table.pause("tier", 100);
    expect([pausedForMs("tier"), pausedForMs("balance"), table.rests().pausedForMs]).toEqual([300, 300, 300]);
    expect([table.take(), table.freeAt(0) - clock.monotonic()]).toEqual([null, 300]);
    await clock.advance(300);
    expect(table.take()).toBe(2);
    table.pause("check", 1e9);
    expect(pausedForMs("check")).toBe(300_000);
    const next = tableOf(1, clock, { windowMs: WINDOW_MS, slots: [0], pausedForMs: 1e9 });
    expect(next.pausedUntilAt() - clock.monotonic()).toBe(300_000);
  });

  test("sends nothing that it could not record, and goes on if the end of a call, or a pause, could not be recorded", () => {
    const clock = new FakeClock();
    const faults: string[] = [];
    const recorded: Rests[] = [];
    let isFull = false;
    const table = new SlotTable({
      limit: 3,
      headroom: 1,
      windowMs: WINDOW_MS,
      clock,
      record(rests) {
        if (isFull) throw new Error("full");
        recorded.push(rests);
      },
      onFault: (what) => faults.push(what),
    });
    expect([table.limit, table.budget, recorded.length]).toEqual([3, 2, 1]);
    expect(table.take()).toBe(0);
    expect(recorded.at(-1)).toEqual({ windowMs: WINDOW_MS, slots: [null, 0], pausedForMs: 0 });
    isFull = true;
    expect(() => table.take()).toThrow("full");
    table.settle(0, "answered");
    table.pause("check", 10);
    table.pause("tier", 20);
    expect(faults).toEqual([
      "a settled call could not be written to the quota ledger",
      "a pause could not be written to the quota ledger",
    ]);
    expect(table.usage()).toEqual({ used: 1, largestWindowToday: 1 });
    expect(table.rests()).toEqual({ windowMs: WINDOW_MS, slots: [OCCUPIED_MS, 0], pausedForMs: 20 });
  });
});
