/** The slot table alone: never more than its slots in any rolling window at the receiver, and never less than it could. */
import { describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { graceMsOf, occupiedMsOf, SlotTable } from "../../src/quota/ledger/slot-table.js";
import { largestWindow } from "./support/rolling.js";

const WINDOW_MS = 1000;

interface Call {
  readonly idleMs: number;
  readonly tookMs: number;
  readonly abandoned: boolean;
  /** Where between the first and the last possible moment it arrives, 0 to 1. */
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

/** Sends every call as early as the table allows; answers when each arrived. */
function play(slots: number, script: readonly Call[]): number[] {
  const table = new SlotTable(slots, WINDOW_MS);
  const flying: { slot: number; endsAt: number; abandoned: boolean }[] = [];
  const arrivals: number[] = [];
  let now = 0;
  const settleUntil = (until: number): void => {
    flying.sort((a, b) => a.endsAt - b.endsAt);
    while (flying[0] !== undefined && flying[0].endsAt <= until) {
      const { slot, endsAt, abandoned } = flying[0];
      table.settle(slot, abandoned ? endsAt + graceMsOf(WINDOW_MS) : endsAt);
      flying.shift();
    }
  };
  for (const call of script) {
    now += call.idleMs;
    settleUntil(now);
    let slot = table.take(now);
    while (slot === undefined) {
      const soonest = Math.min(table.usableInMs(0, now), ...flying.map(({ endsAt }) => endsAt - now));
      now += Math.max(soonest, 1e-6);
      settleUntil(now);
      slot = table.take(now);
    }
    const endsAt = now + call.tookMs;
    const last = call.abandoned ? endsAt + graceMsOf(WINDOW_MS) : endsAt;
    arrivals.push(now + (last - now) * call.arrives);
    flying.push({ slot, endsAt, abandoned: call.abandoned });
  }
  return arrivals;
}

describe("the slot table", () => {
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

  test("gives a slot that never left back as it was, and settles a slot once", () => {
    const table = new SlotTable(1, WINDOW_MS);
    expect(table.take(0)).toBe(0);
    expect(table.take(0)).toBeUndefined();
    table.putBack(0);
    expect(table.take(5)).toBe(0);
    table.settle(0, 10);
    table.settle(0, 500);
    expect([table.resting, table.usableInMs(0, 10)]).toEqual([1, occupiedMsOf(WINDOW_MS)]);
    expect(table.busy(10)).toEqual({ all: 1, real: 1 });
  });
});
