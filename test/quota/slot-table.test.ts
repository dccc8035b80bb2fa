/** The slot table lets as many calls arrive in any rolling window as it has slots, and never more. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { graceMsOf, occupiedMsOf, SlotTable } from "../../src/quota/slot-table.js";
import { largestWindow } from "./support/rolling.js";

const WINDOW_MS = 1000;

interface Call {
  readonly idleMs: number;
  readonly tookMs: number;
  readonly abandoned: boolean;
  /** When it arrives, from 0 for the first possible moment to 1 for the last one. */
  readonly arrives: number;
}

const calls = fc.array(
  fc.record<Call>({
    idleMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 400, noNaN: true })),
    tookMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1500, noNaN: true })),
    abandoned: fc.boolean(),
    arrives: fc.oneof(fc.constantFrom(0, 1), fc.double({ min: 0, max: 1, noNaN: true })),
  }),
  { minLength: 1, maxLength: 80 },
);

/** Sends every call as early as the table allows; returns when each one arrived. */
function play(slots: number, script: readonly Call[]): number[] {
  const table = new SlotTable(slots, WINDOW_MS);
  const inFlight: { slot: number; endsAt: number; abandoned: boolean }[] = [];
  const arrivals: number[] = [];
  let now = 0;
  const settleUntil = (until: number): void => {
    inFlight.sort((a, b) => a.endsAt - b.endsAt);
    while (inFlight[0] !== undefined && inFlight[0].endsAt <= until) {
      const { slot, endsAt, abandoned } = inFlight[0];
      table.settle(slot, abandoned ? endsAt + graceMsOf(WINDOW_MS) : endsAt);
      inFlight.shift();
    }
  };
  for (const call of script) {
    now += call.idleMs;
    settleUntil(now);
    let slot = table.take(now);
    while (slot === undefined) {
      const soonest = Math.min(
        inFlight.length < slots ? Math.max(0, table.freeAt(0, 0) - now) : Infinity,
        ...inFlight.map(({ endsAt }) => endsAt - now),
      );
      now += Math.max(soonest, 1e-6);
      settleUntil(now);
      slot = table.take(now);
    }
    const endsAt = now + call.tookMs;
    const last = call.abandoned ? endsAt + graceMsOf(WINDOW_MS) : endsAt;
    arrivals.push(now + (last - now) * call.arrives);
    inFlight.push({ slot, endsAt, abandoned: call.abandoned });
  }
  return arrivals;
}

/** A slot of the model, which keeps no order. */
interface ModelSlot {
  lastArrivalAt: number;
  takenAt: number | null;
  assumed: boolean;
}

interface Step {
  readonly kind: "wait" | "take" | "settle" | "put back";
  readonly waitMs: number;
  /** Which slot is settled or put back, in flight or not. */
  readonly pick: number;
  readonly graceMs: number;
}

const steps = fc.array(
  fc.record<Step>({
    kind: fc.constantFrom("wait", "take", "settle", "put back"),
    waitMs: fc.integer({ min: 0, max: 600 }),
    pick: fc.nat(),
    graceMs: fc.constantFrom(0, 100, 300),
  }),
  { minLength: 20, maxLength: 60 },
);

const records = fc.array(
  fc.record({
    lastArrivalAt: fc.oneof(fc.constant(-Infinity), fc.integer({ min: -1500, max: 200 })),
    assumed: fc.boolean(),
  }),
  { minLength: 1, maxLength: 6 },
);

const ascending = (values: number[]): number[] => values.sort((a, b) => (a === b ? 0 : a < b ? -1 : 1));

/** Expects the table to report what the slots of the model show one by one. */
function expectSame(table: SlotTable, slots: readonly ModelSlot[], now: number): void {
  const occupiedMs = occupiedMsOf(WINDOW_MS);
  const resting = slots.filter(({ takenAt }) => takenAt === null).map(({ lastArrivalAt }) => lastArrivalAt);
  const usable = ascending(resting.map((at) => Math.max(0, at + occupiedMs - now)));
  expect(resting.map((_, n) => Math.max(0, table.freeAt(n, 0) - now))).toEqual(usable);
  expect(slots.map((_, id) => table.inFlight(id))).toEqual(slots.map(({ takenAt }) => takenAt !== null));
  expect(table.lastArrivals()).toEqual(
    slots.map(({ lastArrivalAt, takenAt }) => (takenAt === null ? lastArrivalAt : Infinity)),
  );
  // Slots in flight return after all others, in the order in which they were taken.
  const times = slots.map((_, n) => table.freeAt(n, 100));
  expect(times).toEqual(ascending([...times]));
  expect(table.freeAt(slots.length, 100)).toBe(Infinity);
  const all = slots.length - usable.filter((ms) => ms === 0).length;
  expect(table.busy(now)).toEqual({ all, real: all - slots.filter(({ assumed }) => assumed).length });
}

function playBesideModel(
  record: readonly { lastArrivalAt: number; assumed: boolean }[],
  script: readonly Step[],
): void {
  const table = new SlotTable(record.length, WINDOW_MS);
  table.restore(record);
  const slots = record.map((slot): ModelSlot => ({ ...slot, takenAt: null }));
  const rested = ({ lastArrivalAt }: ModelSlot): boolean => lastArrivalAt + occupiedMsOf(WINDOW_MS) <= now;
  let now = 0;
  for (const step of script) {
    if (step.kind === "wait") now += step.waitMs;
    // A call that was only assumed counts as such until its slot has rested.
    for (const slot of slots) slot.assumed &&= !rested(slot);
    if (step.kind === "take") {
      const free = slots.filter((slot) => slot.takenAt === null && rested(slot));
      const id = table.take(now);
      const taken = id === undefined ? undefined : slots[id];
      expect(taken?.lastArrivalAt).toBe(ascending(free.map(({ lastArrivalAt }) => lastArrivalAt))[0]);
      if (taken !== undefined) taken.takenAt = now;
    } else if (step.kind !== "wait") {
      const id = step.pick % slots.length;
      const slot = slots[id];
      if (slot === undefined) continue;
      const lastArrivalAt =
        step.kind === "settle" && slot.takenAt !== null ? now + step.graceMs : slot.lastArrivalAt;
      expect(step.kind === "settle" ? table.settle(id, now + step.graceMs) : table.putBack(id)).toBe(
        lastArrivalAt,
      );
      Object.assign(slot, { lastArrivalAt, takenAt: null });
    }
    expectSame(table, slots, now);
  }
}

describe("the slot table", () => {
  test("agrees with a simple model, after any record and any order of calls", () => {
    fc.assert(fc.property(records, steps, playBesideModel), { numRuns: 200 });
  });

  test("keeps its order over thousands of calls, from the first one on", () => {
    const table = new SlotTable(3, WINDOW_MS);
    const turnMs = occupiedMsOf(WINDOW_MS);
    const taken = Array.from({ length: 1_500 }, (_, turn) =>
      [0, 1, 2].map((order) => {
        const id = table.take(turn * turnMs + order);
        table.settle(id ?? NaN, turn * turnMs + order);
        return id;
      }),
    );
    expect(new Set(taken.map((ids) => ids.join(" ")))).toEqual(new Set(["0 1 2"]));
  });

  test("occupies a slot a thousandth longer than the window, and a sixth longer for an abandoned call", () => {
    expect([occupiedMsOf(60_000), occupiedMsOf(1_500), graceMsOf(60_000)]).toEqual([60_060, 1_502, 10_000]);
  });

  test("throws for a slot that it doesn't have, and names its number", () => {
    expect(() => new SlotTable(1, WINDOW_MS).inFlight(1)).toThrow(new RangeError("there is no slot 1"));
  });

  test("never lets more calls arrive in any rolling window than it has slots, whenever they arrive", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), calls, (slots, script) => {
        expect(largestWindow(play(slots, script), WINDOW_MS)).toBeLessThanOrEqual(slots);
      }),
      { numRuns: 500 },
    );
  });

  test("uses every slot in every window when calls take no time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 10 }), (slots, windows) => {
        const instant = { idleMs: 0, tookMs: 0, abandoned: false, arrives: 0 };
        const arrivals = play(
          slots,
          Array.from({ length: slots * windows }, () => instant),
        );
        expect(arrivals.at(-1)).toBeCloseTo((windows - 1) * occupiedMsOf(WINDOW_MS), 3);
      }),
    );
  });

  test("leaves an unsent slot as it was, and settles a slot only once", () => {
    const table = new SlotTable(1, WINDOW_MS);
    expect(table.take(0)).toBe(0);
    expect(table.take(0)).toBeUndefined();
    table.putBack(0);
    expect(table.take(5)).toBe(0);
    table.settle(0, 10);
    table.settle(0, 500);
    expect(table.freeAt(0, 0)).toBe(10 + occupiedMsOf(WINDOW_MS));
    expect(table.busy(10)).toEqual({ all: 1, real: 1 });
  });
});
