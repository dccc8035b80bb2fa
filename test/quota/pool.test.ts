/** The slots that belong to no replica, divided by demand. */
import { expect, test } from "@jest/globals";
import { Demand, dividePool } from "../../src/quota/ledger/pool.js";
import { WINDOW_MS } from "./support/asks.js";

const SLOTS = Array.from({ length: 29 }, (_, at) => ({ id: at, at }));

test("without demand elsewhere, a replica counts on all slots that belong to none", () => {
  for (const demand of [0, 1, 100]) expect(dividePool(SLOTS, demand, 0)).toEqual({ ours: SLOTS, others: [] });
});

test.each([
  [1, 1],
  [2, 1],
  [34, 5],
  [0, 7],
])("replicas with a demand of %d and %d count on all slots together, but on none twice", (here, there) => {
  const first = dividePool(SLOTS, here, there);
  const second = dividePool(SLOTS, there, here);
  for (const { ours, others } of [first, second]) expect(ours.length + others.length).toBe(SLOTS.length);
  for (let soonest = 0; soonest <= SLOTS.length; soonest += 1) {
    const [ofFirst = 0, ofSecond = 0] = [first, second].map(
      ({ ours }) => ours.filter(({ at }) => at < soonest).length,
    );
    expect(ofFirst + ofSecond).toBeLessThanOrEqual(soonest);
    expect(ofFirst + ofSecond).toBeGreaterThanOrEqual(soonest - 1);
  }
});

test("demand that was steady for a while is counted as it is, and forgotten when it ends", () => {
  const demand = new Demand(WINDOW_MS);
  let now = 0;
  for (; now < 6 * WINDOW_MS; now += WINDOW_MS / 30) demand.wanted(now);
  expect(demand.perWindow(now)).toBeCloseTo(30, -1);
  expect(demand.perWindow(now + 5 * WINDOW_MS)).toBeLessThan(0.5);
});

test("demand that has ended is soon no more than what a quiet replica has", () => {
  const demand = new Demand(WINDOW_MS);
  let now = 0;
  for (; now < 6 * WINDOW_MS; now += WINDOW_MS / 100) demand.wanted(now);
  expect(demand.perWindow(now)).toBeCloseTo(100, -1);
  expect(demand.perWindow(now + WINDOW_MS / 6)).toBeLessThanOrEqual(12);
});
