/** The upstream's recent answers in the staff overview: per operation, over ten minutes, and without a call. */
import { describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { createRecentCalls } from "../../src/upstream/recent-calls.js";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, type Service, startService, until } from "../support/service.js";

const overview = z.object({
  upstream: z.object({ recent: z.object({ windowMs: z.number(), operations: z.array(z.unknown()) }) }),
});

async function recent({ ask }: Service) {
  return overview.parse((await ask("/v1/staff/overview", { headers: bearer("read") })).body).upstream.recent;
}

test("the overview counts each operation's calls and failures, and forgets them after ten minutes", async () => {
  const clock = new FakeClock();
  // In the background, only the domains and the tier are requested.
  const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, addFixed: "5.00" }]
`;
  const service = await startService({ clock, retail });
  try {
    await until(() => service.calls("GET /api/v1/domains") === 1);
    await service.ask("/v1/staff/balance", { headers: bearer("read") });
    await service.ask("/v1/staff/domains/google.af", { headers: bearer("read") });
    service.sandbox.control.setFault("check", { fault: "status-500" });
    await service.ask("/v1/availability?domain=kabul.af");
    const calls = service.calls();
    const { windowMs, operations } = await recent(service);
    const quick = { meanMs: 0, p95Ms: 0 };
    expect(windowMs).toBe(600_000);
    expect(operations).toEqual([
      { operation: "check", calls: 1, failed: 1, ...quick },
      { operation: "quote", calls: 1, failed: 0, ...quick },
      { operation: "domains", calls: 1, failed: 0, ...quick },
      { operation: "domain", calls: 1, failed: 0, ...quick },
      { operation: "balance", calls: 1, failed: 0, ...quick },
    ]);
    expect(service.calls()).toBe(calls);
    service.sandbox.control.clearFaults();
    await clock.advance(610_000);
    const later = JSON.stringify((await recent(service)).operations);
    for (const operation of ["check", "balance"]) expect(later).not.toContain(operation);
  } finally {
    await service.close();
  }
});

describe("recent calls", () => {
  test("have a mean and a 95th percentile", () => {
    const calls = createRecentCalls(new FakeClock());
    for (let ms = 1; ms <= 100; ms += 1) calls.note("check", "200", ms);
    calls.note("tier", "upstream_timeout", 5000);
    expect(calls.figures()).toEqual([
      { operation: "check", calls: 100, failed: 0, meanMs: 51, p95Ms: 95 },
      { operation: "tier", calls: 1, failed: 1, meanMs: 5000, p95Ms: 5000 },
    ]);
  });

  test("expire one by one", async () => {
    const clock = new FakeClock();
    const calls = createRecentCalls(clock);
    calls.note("quote", "503", 10);
    await clock.advance(400_000);
    calls.note("quote", "200", 30);
    await clock.advance(199_999);
    expect(calls.figures()).toMatchObject([{ calls: 2, failed: 1, meanMs: 20 }]);
    await clock.advance(1);
    expect(calls.figures()).toMatchObject([{ calls: 1, failed: 0, meanMs: 30 }]);
  });

  test("use bounded memory, which holds the newest of each operation", () => {
    const calls = createRecentCalls(new FakeClock());
    calls.note("balance", "200", 7);
    for (let times = 0; times < 5000; times += 1) calls.note("check", times < 4000 ? "500" : "200", 1);
    expect(calls.figures()).toMatchObject([
      { operation: "check", calls: 1000, failed: 0 },
      { operation: "balance", calls: 1 },
    ]);
  });
});
