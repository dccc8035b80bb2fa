/** The figures of the last day, for the charts on the staff page. */
import { expect, test } from "@jest/globals";
import { createHistory, type FiguresSource } from "../../src/staff/history.js";
import { perLane } from "../../src/quota/lane.js";
import { openApiDocument } from "../../src/wire/document.js";
import { historyShape } from "../../src/wire/overview.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { bearer, problemOf, startService } from "../support/service.js";

const PATH = "/v1/staff/history";
const MINUTE_MS = 60_000;

test("the service records its figures, one row per minute, for staff only", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  const history = async () => {
    const answer = await service.ask(PATH, { headers: bearer("read") });
    matchesDocument(openApiDocument({ version: "0" }), "GET", PATH, answer);
    return historyShape.parse(answer.body);
  };
  try {
    expect(problemOf(await service.ask(PATH)).code).toBe("unauthenticated");
    const before = await history();
    for (let times = 0; times < 4; times += 1) await service.ask("/v1/availability?domain=kabul.af");
    await clock.advance(MINUTE_MS);
    const after = await history();
    expect(after.at.length).toBe(before.at.length + 1);
    expect(Date.parse(after.at.at(-1) ?? "") - Date.parse(after.at.at(-2) ?? "")).toBe(MINUTE_MS);
    // Whether or not the price list was refreshed in that minute, only one of the four requests cost a call.
    expect(after.hitRate.at(-1)).toBeGreaterThan(0);
    expect(after.budget.at(-1)).toBe(997);
  } finally {
    await service.close();
  }
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
