/** The figures of the last day, for the charts of the staff page. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import type { FiguresSource } from "../../src/http/figures.js";
import { createHistory } from "../../src/http/history.js";
import { perLane } from "../../src/quota/lane.js";
import type { RedisLink } from "../../src/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { openApiDocument } from "../../src/http/openapi.js";
import { historyShape } from "../../src/wire/operators.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { bearer, problemOf, recordingLog, startService, until } from "../support/service.js";

const PATH = "/v1/staff/history";
const MINUTE_MS = 60_000;

test("the service keeps its figures, one row per minute, for staff only", async () => {
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
    // The price list was asked again in that minute or not; of the four questions one cost a call.
    expect(after.hitRate.at(-1)).toBeGreaterThan(0);
    expect(after.budget.at(-1)).toBe(997);
  } finally {
    await service.close();
  }
});

/** Of a service since its start; each question that cost a call has waited for a second. */
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
    redis: null,
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

describeWithRedis("replicas", () => {
  let server: RedisServer;
  let links: RedisLink[];
  let clock: FakeClock;
  beforeEach(async () => {
    server = await startRedis();
    links = [];
    clock = new FakeClock();
  });
  afterEach(async () => {
    for (const link of links) link.close();
    server.wake();
    await server.close();
  });

  /** Counts from its start; each question takes a second of waiting. */
  function replica() {
    const redis = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    links.push(redis);
    const asked = { hit: 0, miss: 0, used: 0 };
    const source = (): FiguresSource => ({
      quota: {
        used: asked.used,
        budget: 57,
        lanes: perLane(() => ({ served: asked.miss, waitedMsTotal: 1000 * asked.miss })),
      },
      caches: { names: { counts: { hit: asked.hit, inflight: 0, miss: asked.miss, stale: 0 } } },
      upstream: {
        recent: { operations: [{ calls: asked.miss, failed: 0, meanMs: 100, p95Ms: asked.used }] },
      },
    });
    return { asked, redis, history: createHistory({ source, redis, clock }) };
  }

  test("keep one history, which outlives each of them; without Redis each has its own", async () => {
    const [first, second] = [replica(), replica()];
    await until(() => links.every((link) => link.reachable()), "Redis");
    const stops = [first, second].map(({ history }) => history.keep());
    Object.assign(first.asked, { hit: 30, miss: 10, used: 12 });
    Object.assign(second.asked, { hit: 0, miss: 10, used: 11 });
    await clock.advance(MINUTE_MS);
    for (const stop of stops) stop();
    const third = replica();
    for (const { history } of [first, second, third])
      await until(async () => (await history.present()).calls.at(-1) === 20, "both counts");
    expect(await third.history.present()).toMatchObject({
      at: ["2026-03-20T00:00:00.000Z", "2026-03-20T00:01:00.000Z"],
      used: [0, 12],
      budget: [57, 57],
      hitRate: [null, 0.6],
      meanMs: [null, 100],
      p95Ms: [null, 12],
      waitMs: { exact: [0, 1000] },
    });
    server.hang();
    expect(await second.history.present()).toMatchObject({ used: [0, 11], hitRate: [null, 0] });
    expect((await third.history.present()).at).toEqual([]);
  });
});
