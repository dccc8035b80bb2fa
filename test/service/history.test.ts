/** The figures of the last day, for the charts on the staff page. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import type { FiguresSource } from "../../src/http/figures.js";
import { createHistory } from "../../src/http/history.js";
import { perLane } from "../../src/quota/lane.js";
import { type RedisLink, redisScript } from "../../src/redis.js";
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

  /** Its counts start at zero. Each miss waits for a second. */
  function replica() {
    const redis = connectRedis({ url: fixedSecret(server.url), clock: systemClock, log: recordingLog([]) });
    links.push(redis);
    const totals = { hit: 0, miss: 0, used: 0 };
    const source = (): FiguresSource => ({
      quota: {
        used: totals.used,
        budget: 57,
        lanes: perLane(() => ({ served: totals.miss, waitedMsTotal: 1000 * totals.miss })),
      },
      caches: { names: { counts: { hit: totals.hit, inflight: 0, miss: totals.miss, stale: 0 } } },
      upstream: {
        recent: { operations: [{ calls: totals.miss, failed: 0, meanMs: 100, p95Ms: totals.used }] },
      },
    });
    return { totals, redis, history: createHistory({ source, redis, clock }) };
  }

  test("share one history, which outlives each of them; without Redis, each has its own", async () => {
    const [first, second] = [replica(), replica()];
    await until(() => links.every((link) => link.reachable()), "the connection to Redis");
    const stops = [first, second].map(({ history }) => history.keep());
    Object.assign(first.totals, { hit: 30, miss: 10, used: 12 });
    Object.assign(second.totals, { hit: 0, miss: 10, used: 11 });
    await clock.advance(MINUTE_MS);
    for (const stop of stops) stop();
    const third = replica();
    for (const { history } of [first, second, third])
      await until(async () => (await history.present()).calls.at(-1) === 20, "the sum of both counts");
    expect(await third.history.present()).toMatchObject({
      at: ["2026-03-20T00:00:00.000Z", "2026-03-20T00:01:00.000Z"],
      used: [0, 12],
      budget: [57, 57],
      hitRate: [null, 0.6],
      meanMs: [null, 100],
      p95Ms: [null, 12],
      waitMs: { exact: [0, 1000] },
    });
    // What another release or a person has written there is left out.
    const key = `af-storefront:history:${clock.now() / MINUTE_MS}`;
    const append = redisScript("return redis.call('RPUSH', KEYS[1], '{', 'null')");
    await third.redis.run(append, key, []);
    expect((await third.history.present()).used).toEqual([0, 12]);
    server.hang();
    expect(await second.history.present()).toMatchObject({ used: [0, 11], hitRate: [null, 0] });
    expect((await third.history.present()).at).toEqual([]);
  });
});
