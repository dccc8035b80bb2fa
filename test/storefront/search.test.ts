/** A patient search tells every name, whatever becomes of the others. */
import { expect, test } from "@jest/globals";
import { nameOf } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import type { AvailabilityService, VisitorAsk } from "../../src/storefront/availability.js";
import { type SearchedName, searchPatiently } from "../../src/storefront/search.js";
import { FakeClock } from "../support/fake-clock.js";

const names = ["a", "b", "c"].flatMap((label): SearchedName[] => {
  const name = nameOf(label, ".af");
  return name === null ? [] : [{ name, years: 1 }];
});

/** Searches at a desk that knows every name but `b`, for which it does as told. */
function searching(b: (ask: VisitorAsk) => Promise<never>) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const told: [string, string, number?][] = [];
  const asks: VisitorAsk[] = [];
  const desk: Pick<AvailabilityService, "lookUp"> = {
    async lookUp(ask, name, years) {
      asks.push(ask);
      if (name.label === "b") return b(ask);
      return {
        name,
        years,
        status: "taken",
        premium: false,
        price: null,
        renewal: null,
        asOfMs: 0,
        stale: false,
      };
    },
  };
  const ask: VisitorAsk = {
    lane: "search",
    client: "visitor",
    maxWaitMs: 8_000,
    signal: stop.signal,
    spend: () => undefined,
  };
  const over = searchPatiently(
    names,
    { desk, askFor: () => ask, patienceMs: 30_000, signal: stop.signal, clock },
    ({ name }, result) => {
      told.push(
        result.status === "unknown"
          ? [name.label, result.status, result.retryAfterMs]
          : [name.label, result.status],
      );
    },
  );
  return { clock, stop, told, asks, over };
}

const OTHERS = [
  ["a", "taken"],
  ["c", "taken"],
];

test("our own fault at one name leaves it unknown, and is told when all the others are", async () => {
  const fault = new TypeError("a slip of ours");
  const { told, over } = searching(() => Promise.reject(fault));
  await expect(over).rejects.toBe(fault);
  expect(told).toEqual(expect.arrayContaining([...OTHERS, ["b", "unknown", expect.any(Number)]]));
  expect(told).toHaveLength(3);
});

test("what the upstream fails to tell is unknown at once", async () => {
  const { told, over } = searching(() => Promise.reject(new ServiceError("upstream_timeout", "slow")));
  await over;
  expect(told).toContainEqual(["b", "unknown", 5_000]);
});

test("who is refused asks again at the told second, and never waits past the patience", async () => {
  const refusal = new ServiceError("quota_exhausted", "later", { retryAfterMs: 12_345 });
  const { clock, told, asks, over } = searching(() => Promise.reject(refusal));
  const waits = () => asks.slice(3).map(({ maxWaitMs }) => maxWaitMs);
  await clock.advance(12_999);
  expect([told, waits()]).toEqual([OTHERS, []]);
  await clock.advance(1);
  expect(waits()).toEqual([8_000]);
  await clock.advance(13_000);
  await over;
  expect(waits()).toEqual([8_000, 4_000]);
  expect(told[2]).toEqual(["b", "unknown", 12_345]);
});

test("what waits when it has to end is told with what is left of the wait", async () => {
  const refusal = new ServiceError("quota_exhausted", "later", { retryAfterMs: 20_000 });
  const { clock, stop, told, over } = searching(() => Promise.reject(refusal));
  await clock.advance(5_000);
  stop.abort();
  await over;
  expect([told[2], clock.pending]).toEqual([["b", "unknown", 15_000], 0]);
});
