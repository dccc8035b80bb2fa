/** Which addresses the quota counts as one client, and how many new names one may ask for. `test/service/shortages.test.ts` tests when that limit applies. */
import { expect, test } from "@jest/globals";
import { askerOf } from "../../src/http/edge/client.js";
import { createColdLimit } from "../../src/http/edge/cold-limit.js";
import { FakeClock } from "../support/fake-clock.js";

test("while others want quota, a client may ask for a minute's new names at once, then for one at a time, and gets different retry times within a minute", async () => {
  const clock = new FakeClock();
  let isContested = false;
  const limit = createColdLimit({ perMinute: 20, isContested: () => isContested, clock });
  const spend = (client: string, times: number): void => {
    for (let spent = 0; spent < times; spent += 1) {
      expect(limit.refusal(client, client)).toBeNull();
      limit.count(client);
    }
  };
  // What is spent while nobody else wants it counts for a minute at most.
  spend("a", 500);
  isContested = true;
  spend("b", 20);
  for (const client of ["a", "b"]) {
    const retryTimesMs = Array.from({ length: 40 }, () => limit.refusal(client, client)?.retryAfterMs);
    const withinMinute = Array.from({ length: 20 }, (_, n) => 3000 * (n + 1));
    expect(retryTimesMs).toEqual([...withinMinute, ...withinMinute]);
  }
  expect(limit.refused()).toBe(80);
  await clock.advance(2999);
  expect(limit.refusal("a", "a")?.code).toBe("rate_limited");
  await clock.advance(1);
  spend("a", 1);
  expect(limit.refusal("a", "a")?.code).toBe("rate_limited");
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
