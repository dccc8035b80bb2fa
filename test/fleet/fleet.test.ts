/** Three replicas, a real Redis and the sandbox over HTTP: who calls, what the others do, and how the owner changes. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { type Fleet, type Replica, startFleet } from "../support/fleet.js";
import { claimsOf } from "../support/promise.js";
import { describeWithRedis, type RedisServer, startRedis } from "../support/redis.js";
import {
  type Answer,
  bearer,
  callsOf,
  CHECK,
  PRICING,
  problemOf,
  type Service,
  startService,
  until,
} from "../support/service.js";
import { purge } from "../support/staff.js";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { systemClock } from "../../src/clock.js";
import { FakeClock } from "../support/fake-clock.js";
import { upstreamAt } from "../support/upstream.js";
import { listed, registration, say, sign } from "../staff/signing-shop.js";

const SMALL = { UPSTREAM_RATE_LIMIT: "43", UPSTREAM_RATE_HEADROOM: "3" };
const BUDGET = 40;

describe("a fleet", () => {
  let fleet: Fleet;
  afterEach(async () => {
    await fleet.close();
  });

  const availability = (name: string): string => `/v1/availability?domain=${name}.af`;
  const statusOf = ({ body }: Answer): string => z.object({ status: z.string() }).parse(body).status;
  const others = (owner: Replica): Replica[] => fleet.replicas.filter((one) => one !== owner);
  const largestWindow = (): number =>
    Math.max(...fleet.sandbox.stats().credentials.map((one) => one.largestWindow));
  const rejected = (): number =>
    fleet.sandbox.stats().credentials.reduce((sum, one) => sum + one.rejected429, 0);

  /** Asks while time passes. */
  async function asked(
    replica: Replica,
    path: string,
    more: Parameters<Replica["ask"]>[1] = {},
  ): Promise<Answer> {
    let answer: Answer | undefined;
    replica.ask(path, more).then(
      (got) => (answer = got),
      () => undefined,
    );
    await fleet.passUntil(() => answer !== undefined, path);
    if (answer === undefined) throw new Error("no answer");
    return answer;
  }

  describeWithRedis("three replicas", () => {
    test("answer as one: only the owner calls, once for a name, and the others hand on carts, problems and streams as they are", async () => {
      fleet = await startFleet(3);
      const before = callsOf(fleet.sandbox, CHECK);
      const answers: Answer[] = [];
      for (const replica of fleet.replicas) answers.push(await asked(replica, availability("one-fleet")));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(callsOf(fleet.sandbox, CHECK) - before).toBe(1);
      const internal = answers.flatMap(({ headers }) =>
        Object.keys(headers).filter((name) => name.startsWith("x-storefront")),
      );
      expect(internal).toEqual([]);
      const owner = await fleet.owner();
      const [follower] = others(owner);
      if (follower === undefined) throw new Error("there is no follower");
      const prices = await follower.ask("/v1/prices");
      expect(prices.text).toBe((await owner.ask("/v1/prices")).text);
      const again = await follower.ask("/v1/prices", {
        headers: { "If-None-Match": prices.headers["etag"] ?? "" },
      });
      expect(again.status).toBe(304);
      expect(await follower.ask("/readyz")).toMatchObject({ status: 200 });
      const metrics = (await follower.ask("/metrics", { headers: bearer("metrics") })).text;
      expect(metrics).toContain('storefront_role{role="follower"} 1');
      // What only the owner has isn't missing here.
      expect(metrics).not.toContain("price_list_prices{");
      expect((await follower.ask("/health")).body).toMatchObject({
        status: "pass",
        checks: { prices: [{ status: "pass" }] },
      });

      const cart = await asked(follower, "/v1/quotes", {
        method: "POST",
        body: { items: [{ domain: "handed-on.af", action: "registration", years: 1 }] },
      });
      expect(cart.status).toBe(200);
      const { jti } = claimsOf(z.object({ promise: z.string() }).parse(cart.body).promise);
      for (const replica of fleet.replicas)
        expect((await asked(replica, `/v1/staff/promises/${jti}`, { headers: bearer("read") })).status).toBe(
          200,
        );

      const bad = await follower.ask("/v1/availability?domain=%20", {
        headers: { "x-request-id": "mine-1" },
      });
      expect(problemOf(bad)).toMatchObject({ code: "invalid_request", requestId: "mine-1" });

      const stream = await asked(follower, "/v1/search?q=streamed", {
        headers: { Accept: "text/event-stream" },
      });
      expect(stream.text).toContain("event: done");

      // A stranger's internal fields change nothing.
      const stranger = { "x-storefront-handed-on": "guess", "x-storefront-client": "192.0.2.7" };
      expect((await asked(follower, availability("stranger"), { headers: stranger })).status).toBe(200);
      expect((await asked(owner, availability("stranger"), { headers: stranger })).status).toBe(200);
    });
  });

  describeWithRedis("an orderly change of the owner", () => {
    test("keeps what was known, the table, places and promises, and takes seconds", async () => {
      fleet = await startFleet(3, SMALL);
      const first = await fleet.owner();
      // Uses the window up, so that the last ones get places.
      const names = Array.from({ length: 60 }, (_, n) => `orderly-${n}`);
      const told: { readonly name: string; readonly inMs: number }[] = [];
      const answering = names.map(async (name, n) => {
        const answer = await (fleet.replicas[n % 3] ?? first).ask(availability(name));
        if (answer.status === 200) return;
        const { kept, retryAfter = 0 } = problemOf(answer);
        if (kept === true) told.push({ name, inMs: fleet.clock.monotonic() + retryAfter * 1000 });
      });
      await Promise.all([...answering, fleet.pass(10_000)]);
      told.sort((a, b) => a.inMs - b.inMs);
      expect(told.length).toBeGreaterThan(5);
      await fleet.stepDown(first);
      const rest = others(first);
      const second = await fleet.owner(fleet.replicas);
      expect(second).not.toBe(first);
      // The age of the note is measured by Redis, for which no time has passed while that of the test did. So a holder may be told a second or two more.
      const obey = async (name: string): Promise<number> => {
        for (let times = 0; times < 5; times += 1) {
          const answer = await (rest[0] ?? second).ask(availability(name));
          if (answer.status === 200) return 200;
          const { kept, retryAfter = 0 } = problemOf(answer);
          if (kept !== true || retryAfter > 3) break;
          await new Promise<void>((back) => void fleet.clock.after(retryAfter * 1000, back));
        }
        return 503;
      };
      const returning: Promise<number>[] = [];
      for (const { name, inMs } of told.slice(0, 6)) {
        await fleet.pass(Math.max(0, inMs - fleet.clock.monotonic()));
        returning.push(obey(name));
      }
      const [statuses] = await Promise.all([Promise.all(returning), fleet.pass(20_000)]);
      const served = statuses.filter((status) => status === 200).length;
      // A new owner asks for doubtful prices first, which may take the slot of one of them.
      expect(served).toBeGreaterThanOrEqual(5);
      // The one that stepped down hands on, too.
      expect((await first.ask("/v1/prices")).status).toBe(200);
      expect(largestWindow()).toBeLessThanOrEqual(BUDGET);
      expect(rejected()).toBe(0);
    });
  });

  describeWithRedis("a former owner", () => {
    test("answers what it knows until there is another one, and nothing else", async () => {
      fleet = await startFleet(1);
      const first = await fleet.owner();
      expect((await asked(first, availability("known-before"))).status).toBe(200);
      // Nobody else is there to become the owner.
      await fleet.stepDown(first);
      const calls = callsOf(fleet.sandbox);
      expect((await asked(first, availability("known-before"))).status).toBe(200);
      expect((await asked(first, "/v1/prices")).status).toBe(200);
      const refused = problemOf(await asked(first, availability("new-since")));
      expect(refused).toMatchObject({ status: 503, code: "shutting_down" });
      expect(refused.retryAfter).toBeLessThanOrEqual(3);
      const cart = { items: [{ domain: "known-before.af", action: "registration", years: 1 }] };
      const unsigned = await asked(first, "/v1/quotes", { method: "POST", body: cart });
      expect(problemOf(unsigned).code).toBe("unavailable");
      expect(callsOf(fleet.sandbox)).toBe(calls);
    });
  });

  describeWithRedis("a price that changes while the owner does", () => {
    test("isn't signed as the former owner knew it, and is shown as it is within seconds", async () => {
      fleet = await startFleet(2);
      const first = await fleet.owner();
      const renewal = {
        method: "POST",
        body: { items: [{ domain: "khyber.af", action: "renewal", years: 1 }] },
      };
      const signed = async ({ body }: Answer): Promise<unknown> =>
        z
          .object({ items: z.tuple([z.object({ price: z.object({ amount: z.string() }).nullable() })]) })
          .parse(body).items[0].price?.amount;
      const before = await signed(await asked(first, "/v1/quotes", renewal));
      const [other] = others(first);
      if (other === undefined) throw new Error("there is no follower");
      // Changed first: a follower may be the owner, and have asked for the prices, before the former one has stepped down in full.
      fleet.sandbox.control.setPrice("demo", { tld: ".af", action: "renewal", years: 1, amountCents: 7700 });
      await fleet.stepDown(first);
      expect(await fleet.owner(fleet.replicas)).toBe(other);
      const after = await signed(await asked(other, "/v1/quotes", renewal));
      expect(Number(after)).toBeGreaterThan(77);
      expect(after).not.toBe(before);
      const shown = await asked(first, "/v1/quotes?tld=.af&action=renewal&years=1");
      expect(shown.body).toMatchObject({ price: { amount: after }, stale: false });
    });
  });

  describeWithRedis("an owner that is lost", () => {
    test("leaves known names answered, and new ones told the wait of a window", async () => {
      fleet = await startFleet(3, SMALL);
      const first = await fleet.owner();
      const rest = others(first);
      const known = availability("known-before");
      await Promise.all(Array.from({ length: 25 }, (_, n) => asked(first, availability(`lost-${n}`))));
      for (const replica of fleet.replicas) expect((await asked(replica, known)).status).toBe(200);

      await first.cutOff();
      await fleet.pass(4_500);
      // It can't prove to be the owner, so it calls no more; what it knows, it says.
      expect(problemOf(await asked(first, availability("new-at-the-lost"))).code).toBe("unavailable");
      expect(statusOf(await first.ask(known))).toBe("available");
      await fleet.endLease();
      for (const replica of rest) expect((await asked(replica, known)).status).toBe(200);
      const second = await fleet.owner(rest);
      for (const replica of rest) expect((await asked(replica, known)).status).toBe(200);
      expect((await asked(rest[1] ?? second, "/v1/prices")).status).toBe(200);
      const refused = problemOf(await asked(rest[0] ?? second, availability("new-after-the-loss")));
      expect(refused.code).toBe("quota_exhausted");
      expect(refused.retryAfter).toBeLessThanOrEqual(74);
      await fleet.pass((refused.retryAfter ?? 0) * 1000);
      expect((await asked(rest[0] ?? second, availability("new-after-the-loss"))).status).toBe(200);

      // Back with Redis, the first one follows.
      await first.reconnect();
      await fleet.owner();
      expect((await asked(first, availability("new-through-the-first"))).status).toBe(200);
      expect(largestWindow()).toBeLessThanOrEqual(BUDGET);
      expect(rejected()).toBe(0);
    });
  });

  describeWithRedis("without Redis", () => {
    test("no call is made after four seconds, what is known is answered, and it goes on within seconds", async () => {
      fleet = await startFleet(2, SMALL);
      const owner = await fleet.owner();
      const [follower] = others(owner);
      if (follower === undefined) throw new Error("there is no follower");
      for (const replica of fleet.replicas)
        expect((await asked(replica, availability("kept"))).status).toBe(200);

      // One that hangs and comes back with its data changes neither the owner nor its table.
      fleet.redis.hang();
      await fleet.pass(5_000);
      expect(problemOf(await asked(owner, availability("hung"))).code).toBe("unavailable");
      fleet.redis.wake();
      await fleet.passUntil(
        async () => (await owner.ask(availability("hung"))).status === 200,
        "the owner again",
      );
      expect(await fleet.owner()).toBe(owner);

      await fleet.redis.kill();
      await fleet.pass(5_000);
      const before = callsOf(fleet.sandbox);
      for (const replica of fleet.replicas) {
        const refused = problemOf(await asked(replica, availability("not-kept")));
        expect(refused).toMatchObject({ code: "unavailable" });
        expect(refused.retryAfter).toBeLessThanOrEqual(3);
        expect((await asked(replica, availability("kept"))).status).toBe(200);
        expect(JSON.stringify((await replica.ask("/health")).body)).toContain(
          "Unreachable, so no calls are made.",
        );
      }
      expect(callsOf(fleet.sandbox)).toBe(before);

      // It comes back empty: nobody knows who has called, so the window counts as spent. What is known is still answered.
      await fleet.redis.start();
      for (const user of ["replica-0", "replica-1"])
        await fleet.redis.command("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all");
      let later = problemOf(await asked(follower, availability("not-kept")));
      await fleet.passUntil(async () => {
        later = problemOf(await asked(follower, availability("not-kept")));
        return later.code !== "unavailable";
      }, "the next owner");
      expect(later.code).toBe("quota_exhausted");
      for (const replica of fleet.replicas)
        expect((await asked(replica, availability("kept"))).status).toBe(200);
      await fleet.pass((later.retryAfter ?? 0) * 1000);
      expect((await asked(follower, availability("not-kept"))).status).toBe(200);
      expect(largestWindow()).toBeLessThanOrEqual(BUDGET);
    });
  });
});

describe("what staff see", () => {
  const TIER = "GET /api/v1/account/tier";
  const SOLD = 3;

  const auditShape = z.object({ acts: z.array(z.object({ subject: z.string().nullable() })) });
  const acts = async ({ ask }: Service) =>
    auditShape.parse((await ask("/v1/staff/audit", { headers: bearer("read") })).body).acts;
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
        const purging = purge(first, "account");
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
});
