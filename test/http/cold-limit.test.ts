/** What a client may spend while others want quota too: nothing is refused where nobody is served instead. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { type ColdLimit, createColdLimit } from "../../src/http/edge/cold-limit.js";
import { FakeClock } from "../support/fake-clock.js";

let clock = new FakeClock();
let isContested = true;
let limit: ColdLimit;
beforeEach(() => {
  clock = new FakeClock();
  isContested = true;
  limit = createColdLimit({ perMinute: 20, isContested: () => isContested, clock });
});

function spend(times: number): number {
  for (let spent = 0; spent < times; spent += 1) {
    if (limit.refusal("a", "a") !== null) return spent;
    limit.count("a");
  }
  return times;
}

describe("the limit of new names", () => {
  test("gives a minute's worth at once and then one after the other", async () => {
    expect(spend(100)).toBe(20);
    await clock.advance(2999);
    expect(spend(1)).toBe(0);
    await clock.advance(1);
    expect(spend(2)).toBe(1);
  });

  test("binds nobody while nobody else wants quota, and nothing of it is held against them for long", async () => {
    isContested = false;
    expect(spend(500)).toBe(500);
    isContested = true;
    expect(spend(1)).toBe(0);
    await clock.advance(3000);
    expect(spend(2)).toBe(1);
  });

  test("tells those behind one address different times, each true and within a minute", async () => {
    spend(20);
    const told = Array.from({ length: 40 }, () => limit.refusal("a", "a")?.retryAfterMs ?? 0);
    expect(told.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, n) => 3000 * (n + 1)));
    expect(told.slice(20)).toEqual(told.slice(0, 20));
    expect(limit.refused()).toBe(40);
    await clock.advance(told[0] ?? 0);
    expect(limit.refusal("a", "a")).toBeNull();
  });

  test("is each client's own", () => {
    spend(20);
    expect(limit.refusal("b", "b")).toBeNull();
    expect(limit.refusal("a", "a")?.code).toBe("rate_limited");
  });
});
