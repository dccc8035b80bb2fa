/** The figures that staff see of a running service: the upstream's recent answers per operation, and the last day minute by minute. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { perLane } from "../../src/quota/lane.js";
import { createHistory, type FiguresSource } from "../../src/staff/history.js";
import { createRecentCalls } from "../../src/upstream/recent-calls.js";
import { openApiDocument } from "../../src/wire/document.js";
import { historyShape } from "../../src/wire/overview.js";
import { overviewShape } from "../../src/wire/overview.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { bearer, type Service, startService, until } from "../support/service.js";

const MINUTE_MS = 60_000;

describe("a service", () => {
  // In the background, only the domains and the tier are requested.
  const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, addFixed: "5.00" }]
`;
  let clock: FakeClock;
  let service: Service;
  beforeEach(async () => {
    clock = new FakeClock();
    service = await startService({ clock, retail });
  });
  afterEach(() => service.close());
  const read = (path: string) => service.ask(path, { headers: bearer("read") });
  const recent = async () => overviewShape.parse((await read("/v1/staff/overview")).body).upstream.recent;

  test("counts each operation's calls and failures, without a call, and forgets them after ten minutes", async () => {
    await until(() => service.calls("GET /api/v1/domains") === 1);
    await read("/v1/staff/balance");
    await read("/v1/staff/domains/google.af");
    service.sandbox.control.setFault("check", { fault: "status-500" });
    await service.ask("/v1/availability?domain=kabul.af");
    const calls = service.calls();
    const quick = { meanMs: 0, p95Ms: 0 };
    expect(await recent()).toEqual({
      windowMs: 600_000,
      operations: [
        { operation: "check", calls: 1, failed: 1, ...quick },
        { operation: "quote", calls: 1, failed: 0, ...quick },
        { operation: "domains", calls: 1, failed: 0, ...quick },
        { operation: "domain", calls: 1, failed: 0, ...quick },
        { operation: "balance", calls: 1, failed: 0, ...quick },
      ],
    });
    expect(service.calls()).toBe(calls);
    service.sandbox.control.clearFaults();
    await clock.advance(610_000);
    const later = (await recent()).operations.map(({ operation }) => operation);
    expect(later).not.toContain("check");
    expect(later).not.toContain("balance");
  });

  test("records its figures, one row per minute", async () => {
    const history = async () => {
      const answer = await read("/v1/staff/history");
      matchesDocument(openApiDocument({ version: "0" }), "GET", "/v1/staff/history", answer);
      return historyShape.parse(answer.body);
    };
    const before = await history();
    for (let times = 0; times < 4; times += 1) await service.ask("/v1/availability?domain=herat.af");
    await clock.advance(MINUTE_MS);
    const after = await history();
    expect(after.at.length).toBe(before.at.length + 1);
    expect(Date.parse(after.at.at(-1) ?? "") - Date.parse(after.at.at(-2) ?? "")).toBe(MINUTE_MS);
    // Whether or not the price list was refreshed in that minute, only one of the four requests cost a call.
    expect(after.hitRate.at(-1)).toBeGreaterThan(0);
    expect(after.budget.at(-1)).toBe(997);
  });
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

/** The figures of a service since startup. Each request that cost a call waited for a second. */
function figures({ hit, miss, used }: Readonly<Record<"hit" | "miss" | "used", number>>): FiguresSource {
  return {
    quota: { used, budget: 57, lanes: perLane(() => ({ served: miss, waitedMsTotal: 1000 * miss })) },
    caches: { names: { counts: { hit, inflight: 0, miss, stale: 0 } } },
    upstream: { recent: { operations: [{ calls: miss, failed: 0, meanMs: 100, p95Ms: used }] } },
  };
}

test("figures are kept for a day", async () => {
  const clock = new FakeClock();
  const history = createHistory({
    source: () => figures({ hit: 0, miss: 0, used: 1 }),
    stored: null,
    clock,
  });
  const stop = history.keep();
  await clock.advance(25 * 60 * MINUTE_MS);
  stop();
  const { waitMs, everyMs: _every, ...columns } = await history.present();
  for (const column of [...Object.values(columns), ...Object.values(waitMs)])
    expect(column).toHaveLength(24 * 60);
  expect(Date.parse(columns.at.at(-1) ?? "")).toBe(clock.now());
});
