/** Three replicas, a real Redis and the sandbox over HTTP: who calls, what the others do, and how the owner changes. */
import { afterEach, expect, test } from "@jest/globals";
import { auditShape, staffPricesShape } from "../../src/wire/staff.js";
import { availabilityShape, quotesShape } from "../../src/wire/visitors.js";
import { type Fleet, type Replica, startFleet } from "../support/fleet.js";
import { claimsOf } from "../support/promise.js";
import { describeWithRedis } from "../support/redis.js";
import { type Answer, bearer, callsOf, CHECK, PRICING, problemOf } from "../support/service.js";
import { purge } from "../support/staff.js";
import { registration, renewal } from "../shop/shop.js";
import { listed, say, sign } from "../staff/signing-shop.js";

const SMALL = { UPSTREAM_RATE_LIMIT: "43", UPSTREAM_RATE_HEADROOM: "3" };
const BUDGET = 40;

describeWithRedis("a fleet", () => {
  let fleet: Fleet;
  afterEach(async () => {
    await fleet.close();
  });

  const availability = (name: string): string => `/v1/availability?domain=${name}.af`;
  const statusOf = ({ body }: Answer): string => availabilityShape.parse(body).status;
  const others = (owner: Replica): Replica[] => fleet.replicas.filter((one) => one !== owner);
  const followerOf = (owner: Replica): Replica => {
    const [follower] = others(owner);
    if (follower === undefined) throw new Error("there is no follower");
    return follower;
  };
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

  test("of three replicas answers as one: only the owner calls, once for a name, and the others hand on carts, problems and streams as they are", async () => {
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
    const follower = followerOf(owner);
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
    const { jti } = claimsOf(quotesShape.parse(cart.body).promise ?? "");
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

  test("keeps at an orderly change of the owner what was known, the table, places and promises, within seconds", async () => {
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
    const second = await fleet.owner(fleet.replicas);
    expect(second).not.toBe(first);
    // The age of the note is measured by Redis, for which no time has passed while that of the test did. So a holder may be told a second or two more.
    const obey = async (name: string): Promise<number> => {
      for (let times = 0; times < 5; times += 1) {
        const answer = await followerOf(first).ask(availability(name));
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

  test("has a former owner that answers what it knows until there is another one, and nothing else", async () => {
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

  test("signs no price that changes with the owner as the former owner knew it, and shows it as it is within seconds; no cart is lost, nor what was said of it", async () => {
    fleet = await startFleet(2);
    const first = await fleet.owner();
    const other = followerOf(first);
    const khyber = renewal("khyber.af");
    const signed = async (): Promise<string | undefined> => {
      const { body } = await asked(other, "/v1/quotes", { method: "POST", body: { items: [khyber] } });
      return quotesShape.parse(body).items[0]?.price?.amount;
    };
    const before = await signed();
    const id = await sign(first.ask, fleet.clock, registration("kabul.af"), khyber);
    const told = say(first.ask, id, { state: "ordered", reference: "7" });
    await fleet.pass(500);
    expect((await told).status).toBe(200);
    // Changed first: a follower may be the owner, and have asked for the prices, before the former one has stepped down in full.
    fleet.sandbox.control.setPrice("demo", { tld: ".af", action: "renewal", years: 1, amountCents: 7700 });
    await fleet.stepDown(first);
    expect(await fleet.owner(fleet.replicas)).toBe(other);
    const after = await signed();
    expect(Number(after)).toBeGreaterThan(77);
    expect(after).not.toBe(before);
    const shown = await asked(first, "/v1/quotes?tld=.af&action=renewal&years=1");
    expect(shown.body).toMatchObject({ price: { amount: after }, stale: false });

    for (const { domain, action } of [registration("kabul.af"), khyber])
      fleet.sandbox.control.order("demo", { domain, action, years: 1 });
    // Otherwise the list is asked for every five minutes.
    await Promise.all([purge(first, "account"), fleet.pass(500)]);
    await Promise.all([first.ask("/v1/staff/domains", { headers: bearer("read") }), fleet.pass(2_000)]);
    const cartOf = async () => (await listed(first.ask)).promises.find((cart) => cart.id === id);
    await fleet.passUntil(
      async () => (await cartOf())?.items.every(({ state }) => state === "managed") === true,
      "what became of the cart",
    );
    expect(await cartOf()).toMatchObject({ checkout: { state: "ordered", reference: "7" } });
  });

  test("answers known names after the loss of its owner, and tells new ones the wait of a window", async () => {
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

  test("tells a visitor by when there is another owner if its owner is lost", async () => {
    fleet = await startFleet(2);
    const lost = await fleet.owner();
    const follower = followerOf(lost);
    await lost.cutOff();
    lost.server.close();
    lost.server.closeAllConnections();
    const { code, retryAfter = 0 } = problemOf(await asked(follower, availability("new-at-the-loss")));
    expect(code).toBe("unavailable");
    await fleet.pass(6_000);
    await fleet.endLease();
    await fleet.pass(retryAfter * 1000 - 6_000);
    expect(problemOf(await follower.ask(availability("new-at-the-loss"))).code).toBe("quota_exhausted");
  });

  test("without Redis makes no call after four seconds, answers what is known, and goes on within seconds after its return", async () => {
    fleet = await startFleet(2, SMALL);
    const owner = await fleet.owner();
    const follower = followerOf(owner);
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
    await fleet.restartRedis();
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

  const TIER = "GET /api/v1/account/tier";
  const hasAct = async (replica: Replica, subject: string): Promise<boolean> =>
    auditShape
      .parse((await asked(replica, "/v1/staff/audit", { headers: bearer("read") })).body)
      .acts.some((act) => act.subject === subject);

  test("shares the audit of staff, which includes the acts of a Redis outage once Redis is back", async () => {
    fleet = await startFleet(2);
    const owner = await fleet.owner();
    const follower = followerOf(owner);
    await Promise.all([purge(owner, "account"), fleet.pass(500)]);
    await fleet.passUntil(() => hasAct(follower, "account"), "the arrival of the other replica's act");
    expect(await fleet.redis.command("LLEN", "af-storefront:audit")).toBe(":1\r\n");
    await fleet.redis.kill();
    await fleet.passUntil(() => owner.log.some((line) => line.includes("redis.lost")), "the loss of Redis");
    await Promise.all([purge(owner, "all"), fleet.pass(500)]);
    expect(await hasAct(owner, "all")).toBe(true);
    await fleet.restartRedis();
    await fleet.passUntil(() => hasAct(follower, "all"), "the arrival of the act from the outage");
  });

  test("requests the tier once, and each price once more after a change, which the owner reports", async () => {
    fleet = await startFleet(2);
    const SOLD = 2;
    const readAll = (path: string): Promise<Answer[]> =>
      Promise.all(fleet.replicas.map((replica) => asked(replica, path, { headers: bearer("read") })));
    await readAll("/v1/staff/tier");
    const [tiers, prices] = [callsOf(fleet.sandbox, TIER), callsOf(fleet.sandbox, PRICING)];
    fleet.sandbox.control.setTier("demo", "Gold");
    await Promise.all([purge(await fleet.owner(), "account"), fleet.pass(500)]);
    await readAll("/v1/staff/tier");
    expect(callsOf(fleet.sandbox, TIER) - tiers).toBe(1);
    await fleet.passUntil(
      async () =>
        (await readAll("/v1/staff/prices")).every(
          ({ body }) =>
            staffPricesShape.parse(body).prices.filter(({ changed }) => changed !== undefined).length ===
            SOLD,
        ),
      "the refresh of the prices",
    );
    expect(callsOf(fleet.sandbox, PRICING) - prices).toBe(SOLD);
    const reports = fleet.replicas.map(
      ({ log }) => log.filter((line) => line.includes('"event":"account.tier.changed"')).length,
    );
    expect(reports.toSorted((a, b) => a - b)).toEqual([0, 1]);
  });
});
