/**
 * Which addresses the quota counts as one client, and the limit on new names: it applies to a client only while others want quota too, so
 * nothing is refused unless somebody else is served instead.
 */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { askerOf } from "../../src/http/edge/client.js";
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

describe("the limit on new names", () => {
  test("admits the allowance of a minute at once, and then one name at a time", async () => {
    expect(spend(100)).toBe(20);
    await clock.advance(2999);
    expect(spend(1)).toBe(0);
    await clock.advance(1);
    expect(spend(2)).toBe(1);
  });

  test("doesn't apply while nobody else wants quota, and those names hardly count against a client later", async () => {
    isContested = false;
    expect(spend(500)).toBe(500);
    isContested = true;
    expect(spend(1)).toBe(0);
    await clock.advance(3000);
    expect(spend(2)).toBe(1);
  });

  test("gives clients behind one address different retry times, each accurate and within a minute", async () => {
    spend(20);
    const retryTimesMs = Array.from({ length: 40 }, () => limit.refusal("a", "a")?.retryAfterMs ?? 0);
    expect(retryTimesMs.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, n) => 3000 * (n + 1)));
    expect(retryTimesMs.slice(20)).toEqual(retryTimesMs.slice(0, 20));
    expect(limit.refused()).toBe(40);
    await clock.advance(retryTimesMs[0] ?? 0);
    expect(limit.refusal("a", "a")).toBeNull();
  });
});

test("an IPv4 address is one client, however it is written", () => {
  expect(askerOf("203.0.113.7")).toEqual({ client: "203.0.113.7" });
  expect(askerOf("::ffff:203.0.113.7")).toEqual({ client: "203.0.113.7" });
});

test("addresses of one IPv6 /64 are one client, and those of one /48 one network", () => {
  const host = askerOf("2001:db8:aa:1::1");
  expect(askerOf("2001:db8:aa:1:ffff::2")).toEqual(host);
  const neighbour = askerOf("2001:db8:aa:2::1");
  expect(neighbour.client).not.toBe(host.client);
  expect(neighbour.network).toBe(host.network);
  expect(askerOf("2001:db8:ab:1::1").network).not.toBe(host.network);
});
