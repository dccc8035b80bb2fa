/** What staff see of several replicas: one audit, one request for the tier, and signed carts that outlast an owner. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { z } from "zod";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { systemClock } from "../../src/clock.js";
import { FakeClock } from "../support/fake-clock.js";
import { startFleet } from "../support/fleet.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import { bearer, callsOf, PRICING, type Service, startService, until } from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";
import { listed, registration, say, sign } from "../staff/signing-shop.js";

const TIER = "GET /api/v1/account/tier";
const SOLD = 3;

const auditShape = z.object({ acts: z.array(z.object({ subject: z.string().nullable() })) });
const acts = async ({ ask }: Service) =>
  auditShape.parse((await ask("/v1/staff/audit", { headers: bearer("read") })).body).acts;
const purge = ({ ask }: Service, what: string) =>
  ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body: { what } });

const pricesShape = z.object({ prices: z.array(z.object({ changed: z.unknown().optional() })) });
/** None while there is no owner. */
const pricesOf = async ({ ask }: Service) => {
  const { status, body } = await ask("/v1/staff/prices", { headers: bearer("read") });
  return status === 503 ? [] : pricesShape.parse(body).prices;
};
const reportsOf = ({ log }: Service): number =>
  log.filter((line) => line.includes('"event":"account.tier.changed"')).length;

describeWithRedis("of several replicas,", () => {
  let redis: RedisServer;
  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(() => redis.close());

  test("the audit is shared, and includes the acts of a Redis outage once Redis is back", async () => {
    const clock = new FakeClock();
    const env = { REDIS_URL: redis.url };
    const one = await startService({ clock, env });
    const two = await startService({ clock, at: one.sandbox, env, warm: false });
    try {
      await purge(one, "account");
      await until(async () => (await acts(two)).length === 1, "the arrival of the other replica's act");
      expect(await redis.command("LLEN", "af-storefront:audit")).toBe(":1\r\n");
      await redis.kill();
      await until(() => one.log.some((line) => line.includes("redis.lost")), "the loss of Redis");
      await purge(one, "all");
      expect((await acts(one)).map(({ subject }) => subject)).toEqual(expect.arrayContaining(["all"]));
      await redis.start();
      await until(async () => {
        await clock.advance(250);
        return (await acts(two)).some(({ subject }) => subject === "all");
      }, "the arrival of the act from the outage");
    } finally {
      await two.close();
      await one.close();
    }
  });

  test("the owner requests the tier once, and each price once more after a change", async () => {
    const sandbox = await startSandbox({ rateLimit: { limit: 1000, windowMs: 60_000 } });
    const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1, 2, 3] } }]
rules: [{ match: {}, markupPercent: "50", addFixed: "1.00" }]
`;
    const pool = `{ entries: 500, freshMs: 3600000, usableMs: 172800000, failureMs: 10000 }`;
    const times = `{ freshMs: 30000, usableMs: 60000 }`;
    const cache = `
availability: { entries: 500, available: ${times}, taken: ${times}, failureMs: 3000 }
prices: ${pool}
account: ${pool}
tier: { entries: 4, freshMs: 2000, usableMs: 3600000, failureMs: 10000 }
`;
    const env = { REDIS_URL: redis.url, ...upstreamAt(sandbox), QUOTA_COLD_START: "assume-free" };
    const start = () => startService({ clock: systemClock, at: sandbox, cache, retail, env, warm: false });
    const running = [await start(), await start()];
    const everywhere = async (what: (prices: Awaited<ReturnType<typeof pricesOf>>) => boolean) =>
      (await Promise.all(running.map(pricesOf))).every(what);
    try {
      await until(() => everywhere(({ length }) => length === SOLD), "the load of the prices");
      for (const { ask } of running) await ask("/v1/staff/tier", { headers: bearer("read") });
      expect(callsOf(sandbox, TIER)).toBe(1);
      const before = callsOf(sandbox, PRICING);
      sandbox.control.setTier("demo", "Gold");
      await until(
        () => everywhere((prices) => prices.filter(({ changed }) => changed !== undefined).length === SOLD),
        "the refresh of the prices",
      );
      expect(callsOf(sandbox, PRICING) - before).toBe(SOLD);
      await until(() => running.some((one) => reportsOf(one) > 0), "the report by the owner");
      expect(running.map(reportsOf).toSorted((a, b) => a - b)).toEqual([0, 1]);
    } finally {
      for (const one of running) await one.close();
      await sandbox.close();
    }
  });

  test("a change of the owner loses neither a cart nor what was said of it", async () => {
    const fleet = await startFleet(2);
    try {
      const first = await fleet.owner();
      const signing = sign(first.ask, fleet.clock, registration("kabul.af"), {
        domain: "khyber.af",
        action: "renewal",
        years: 1,
      });
      const id = await signing;
      const told = say(first.ask, id, { state: "ordered", reference: "7" });
      await fleet.pass(500);
      expect((await told).status).toBe(200);
      await fleet.stepDown(first);
      await fleet.owner(fleet.replicas);
      for (const [domain, action] of [
        ["kabul.af", "registration"],
        ["khyber.af", "renewal"],
      ] as const)
        fleet.sandbox.control.order("demo", { domain, action, years: 1 });
      // Otherwise the list is asked for every five minutes.
      const purging = first.ask("/v1/staff/cache/purge", {
        method: "POST",
        headers: bearer("operate"),
        body: { what: "account" },
      });
      await Promise.all([purging, fleet.pass(500)]);
      await Promise.all([first.ask("/v1/staff/domains", { headers: bearer("read") }), fleet.pass(2_000)]);
      let cart = (await listed(first.ask)).promises[0];
      await fleet.passUntil(async () => {
        [cart] = (await listed(first.ask)).promises;
        return cart?.items.every(({ state }) => state === "managed") === true;
      }, "what became of the cart");
      expect(cart).toMatchObject({ id, checkout: { state: "ordered", reference: "7" } });
    } finally {
      await fleet.close();
    }
  });
});
