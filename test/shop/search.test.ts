/** A search with retries reports every name, even if others fail. */
import { expect, test } from "@jest/globals";
import { pause } from "../../src/clock.js";
import { nameOf } from "../../src/domain-name.js";
import { ServiceError } from "../../src/errors.js";
import type { AvailabilityService } from "../../src/shop/availability.js";
import type { VisitorAsk } from "../../src/shop/names.js";
import { search, type SearchedName, searchWithRetries } from "../../src/shop/search.js";
import { FakeClock } from "../support/fake-clock.js";
import { answered } from "./answers.js";

const names = ["a", "b", "c"].flatMap((label): SearchedName[] => {
  const name = nameOf(label, ".af");
  return name === null ? [] : [{ name, years: 1 }];
});

/** Searches for three names: `a` and `c` are known, and `b` answers as given. */
function searching(b: (ask: VisitorAsk) => Promise<never>) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const results: [string, string, number?][] = [];
  const asks: VisitorAsk[] = [];
  const availability: Pick<AvailabilityService, "lookUp"> = {
    async lookUp(ask, name, years) {
      asks.push(ask);
      if (name.label === "b") return b(ask);
      return answered({ name, years }, "taken");
    },
  };
  const ask: VisitorAsk = {
    lane: "search",
    client: "visitor",
    waitUntilAt: 0,
    signal: stop.signal,
    spend: () => undefined,
  };
  const finished = searchWithRetries(
    names,
    {
      availability,
      askFor: () => ({ ...ask, waitUntilAt: clock.monotonic() + 8_000 }),
      retryForMs: 30_000,
      signal: stop.signal,
      clock,
    },
    ({ name }, result) => {
      results.push(
        result.status === "unknown"
          ? [name.label, result.status, result.retryAfterMs]
          : [name.label, result.status],
      );
    },
  );
  return { clock, stop, results, asks, finished };
}

const OTHERS = [
  ["a", "taken"],
  ["c", "taken"],
];

test("an internal error leaves its name unknown, and rejects once every other name is reported", async () => {
  const fault = new TypeError("a bug");
  const { results, finished } = searching(() => Promise.reject(fault));
  await expect(finished).rejects.toBe(fault);
  expect(results).toEqual(expect.arrayContaining([...OTHERS, ["b", "unknown", expect.any(Number)]]));
  expect(results).toHaveLength(3);
});

test("a name that the upstream fails to answer is unknown immediately", async () => {
  const { results, finished } = searching(() => Promise.reject(new ServiceError("upstream_timeout", "slow")));
  await finished;
  expect(results).toContainEqual(["b", "unknown", 5_000]);
});

test("a refused name is retried at the given second, and never after the time for retries", async () => {
  const refusal = new ServiceError("quota_exhausted", "later", { retryAfterMs: 12_345 });
  const { clock, results, asks, finished } = searching(() => Promise.reject(refusal));
  const waits = () => asks.slice(3).map(({ waitUntilAt }) => waitUntilAt);
  await clock.advance(12_999);
  expect([results, waits()]).toEqual([OTHERS, []]);
  await clock.advance(1);
  expect(waits()).toEqual([21_000]);
  await clock.advance(13_000);
  await finished;
  expect(waits()).toEqual([21_000, 30_000]);
  expect(results[2]).toEqual(["b", "unknown", 12_345]);
});

test("a name still waiting when the search is aborted is reported with the rest of its wait", async () => {
  const refusal = new ServiceError("quota_exhausted", "later", { retryAfterMs: 20_000 });
  const { clock, stop, results, finished } = searching(() => Promise.reject(refusal));
  await clock.advance(5_000);
  stop.abort();
  await finished;
  expect([results[2], clock.pending]).toEqual([["b", "unknown", 15_000], 0]);
});

test("a reserved call that wasn't claimed while another name was waited for isn't promised any more", async () => {
  const clock = new FakeClock();
  const refused = new ServiceError("quota_exhausted", "later", { retryAfterMs: 9_000, kept: true });
  const [a, b] = names;
  if (a === undefined || b === undefined) throw new Error("a name is missing");
  const finished = search(
    [a, b],
    {
      lookUp: async (_, { label }) => {
        if (label === "b") await pause(clock, 11_000, new AbortController().signal);
        throw refused;
      },
      asOfNow: (answer) => answer,
    },
    () => ({
      lane: "exact",
      client: "a",
      waitUntilAt: 0,
      signal: new AbortController().signal,
      spend: () => {},
    }),
    clock,
  );
  await clock.advance(11_000);
  expect((await finished).results).toMatchObject([
    { retryAfterMs: 1, kept: false },
    { retryAfterMs: 9_000, kept: true },
  ]);
});
