/** Signed carts, followed: what became of each line, from evidence alone, through orders in the sandbox's portal and restarts. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { openApiDocument } from "../../src/wire/document.js";
import { auditShape, followedCartShape } from "../../src/wire/staff.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { SMALL_SHOP } from "../support/retail.js";
import { bearer, problemOf, type Service, startService } from "../support/service.js";
import { overviewOf } from "../support/staff.js";
import { type CartLine, registration, renewal, transfer } from "../shop/shop.js";
import { DAY_MS, HOUR_MS, listed, MINUTE_MS, say, Shop, sign, statesOf } from "./signing-shop.js";

type Action = CartLine["action"];

const document = openApiDocument({ version: "1.2.3" });

describe("a list of signed carts", () => {
  const clock = new FakeClock(Date.UTC(2026, 2, 20, 9));
  let service: Service;
  const ids: string[] = [];
  beforeAll(async () => {
    service = await startService({ clock, retail: SMALL_SHOP });
    for (const domain of ["first.af", "second.af", "third.af"]) {
      ids.push(await sign(service.ask, clock, registration(domain)));
      await clock.advance(MINUTE_MS);
    }
  });
  afterAll(() => service.close());

  test("has the newest first, each line with what it cost then and costs now, and its state", async () => {
    const { promises } = await listed(service.ask);
    expect(promises.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(promises[2]).toEqual({
      id: ids[0],
      issuedAt: expect.stringMatching(/^2026-03-20T09:00:00/),
      validUntil: "2026-03-20T09:15:00.000Z",
      checkout: null,
      items: [
        expect.objectContaining({
          domain: "first.af",
          action: "registration",
          years: 1,
          price: { amount: "25.27", currency: "USD" },
          wholesale: { amount: "20.21", currency: "USD" },
          wholesaleToday: { amount: "20.21", currency: "USD" },
          state: "open",
          stateAt: expect.stringMatching(/^2026-03-20T09:00:00/),
        }),
      ],
    });
  });

  test("can be narrowed by state, time and number, and rejects anything else", async () => {
    const idsOf = async (query: string) => (await listed(service.ask, query)).promises.map(({ id }) => id);
    expect(await idsOf("?limit=1")).toEqual([ids[2]]);
    expect(await idsOf("?since=2026-03-20T09:01:00Z")).toEqual([ids[2], ids[1]]);
    expect(await idsOf("?state=open&limit=2")).toEqual([ids[2], ids[1]]);
    expect(await idsOf("?state=lost")).toEqual([]);
    for (const query of ["?limit=0", "?limit=1001", "?since=today", "?state=paid", "?page=2"])
      expect(
        problemOf(await service.ask(`/v1/staff/promises${query}`, { headers: bearer("read") })).code,
      ).toBe("invalid_request");
  });

  test("is CSV for who prefers that, one row a line", async () => {
    const answer = await service.ask("/v1/staff/promises", {
      headers: { ...bearer("read"), Accept: "text/csv" },
    });
    const [head, ...rows] = answer.text.trim().split("\r\n");
    expect(head).toMatch(/^id,issuedAt,validUntil,domain,action,years,state,/);
    expect(rows).toHaveLength(3);
    expect(rows[2]).toContain(",2026-03-20T09:15:00.000Z,first.af,registration,1,open,");
  });

  test("tells what the checkout said, which can be said again, changed, and is in the audit", async () => {
    const [, id = ""] = ids;
    const once = await say(service.ask, id, { state: "ordered", reference: "2026-0042" });
    matchesDocument(document, "post", `/v1/staff/promises/${id}`, once);
    expect(followedCartShape.parse(once.body).checkout).toMatchObject({
      state: "ordered",
      reference: "2026-0042",
    });
    await clock.advance(MINUTE_MS);
    expect((await say(service.ask, id, { state: "ordered", reference: "2026-0042" })).body).toEqual(
      once.body,
    );
    expect((await listed(service.ask, "?state=ordered")).promises.map((cart) => cart.id)).toEqual([id]);
    expect((await listed(service.ask)).sums.days7).toEqual({
      signed: { names: 3, amounts: [{ amount: "75.81", currency: "USD" }] },
      ordered: { names: 1, amounts: [{ amount: "25.27", currency: "USD" }] },
      managed: { names: 0, amounts: [] },
    });
    await say(service.ask, id, { state: "cancelled" });
    expect((await listed(service.ask, "?state=ordered")).promises).toEqual([]);
    const { body } = await service.ask("/v1/staff/audit", { headers: bearer("read") });
    expect(auditShape.parse(body).acts.slice(0, 2)).toEqual([
      expect.objectContaining({ who: "order", what: "order", subject: `${id} cancelled`, outcome: "done" }),
      expect.objectContaining({ what: "order", subject: `${id} ordered 2026-0042`, outcome: "done" }),
    ]);
  });

  test("takes no word without the scope, about an unknown cart, or about a person", async () => {
    const [id = ""] = ids;
    const path = `/v1/staff/promises/${id}`;
    const body = { state: "ordered" };
    expect(problemOf(await service.ask(path, { method: "POST", headers: bearer("read"), body })).code).toBe(
      "forbidden",
    );
    expect(problemOf(await service.ask(path, { headers: bearer("order") })).code).toBe("forbidden");
    expect(problemOf(await say(service.ask, "nobody", body)).code).toBe("not_found");
    for (const wrong of [
      {},
      { state: "managed" },
      { ...body, reference: "anna@example.af" },
      { ...body, name: "x" },
    ])
      expect(problemOf(await say(service.ask, id, wrong)).code).toBe("invalid_request");
  });
});

describe("a line", () => {
  let shop: Shop;
  beforeAll(async () => {
    shop = await Shop.open();
  });
  afterAll(() => shop.close());
  const order = (domain: string, action: Action, years = 1): void =>
    shop.sandbox.control.order("demo", { domain, action, years });

  test("is managed once the name is in the account, also if it was ordered days after the promise ended", async () => {
    await shop.sign(registration("soon.af"), registration("late.af"), registration("never.af"));
    await shop.pass(10 * MINUTE_MS);
    order("soon.af", "registration");
    await shop.pass(10 * MINUTE_MS);
    expect(await shop.stateOf("soon.af")).toBe("managed");
    expect(await shop.stateOf("late.af")).toBe("expired");
    await shop.pass(2 * DAY_MS, 6 * HOUR_MS);
    order("late.af", "registration");
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("late.af")).toBe("managed");
    expect(await shop.stateOf("never.af")).toBe("expired");
  });

  test("is lost when somebody else took the name, never while the own order is on its way", async () => {
    await shop.sign(registration("gone.af"), registration("queued.af"));
    await shop.pass(HOUR_MS);
    shop.sandbox.control.setTaken("gone.af", true);
    shop.sandbox.control.setTaken("queued.af", true);
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("queued.af")).toBe("expired");
    shop.sandbox.control.setTaken("queued.af", false);
    order("queued.af", "registration");
    await shop.pass(6 * HOUR_MS);
    expect(await shop.stateOf("queued.af")).toBe("managed");
    expect(await shop.stateOf("gone.af")).toBe("lost");
  });

  test("of a renewal is managed when the expiry moves by its term, and not by another", async () => {
    await shop.sign({ domain: "khyber.af", action: "renewal", years: 2 });
    await shop.sign(renewal("saffron.af"));
    await shop.pass(HOUR_MS);
    // The registry renews it by a year by itself, which isn't this order.
    order("khyber.af", "renewal", 1);
    order("saffron.af", "renewal", 1);
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("khyber.af")).toBe("expired");
    expect(await shop.stateOf("saffron.af")).toBe("managed");
    order("khyber.af", "renewal", 2);
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("khyber.af")).toBe("managed");
  });

  test("of two for the same renewal, one move of the expiry is the ordered one's", async () => {
    const first = await shop.sign(renewal("lapis.af"));
    await shop.pass(MINUTE_MS, MINUTE_MS);
    const second = await shop.sign(renewal("lapis.af"));
    await say(shop.service.ask, first, { state: "ordered" });
    order("lapis.af", "renewal");
    await shop.pass(HOUR_MS);
    expect(await statesOf(shop.service.ask)).toMatchObject({
      [`${first} renewal lapis.af`]: "managed",
      [`${second} renewal lapis.af`]: "expired",
    });
  });

  test("of a transfer is managed when the name appears, and not when it was there before", async () => {
    await shop.sign(transfer("google.af"));
    await shop.sign(transfer("bamyan.af"));
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("google.af")).toBe("expired");
    order("google.af", "transfer");
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("google.af")).toBe("managed");
    expect(await shop.stateOf("bamyan.af")).toBe("unknown");
  });

  test("keeps its state and what was said of it over a restart", async () => {
    const id = await shop.sign(registration("kept.af"), registration("later.af"));
    await say(shop.service.ask, id, { state: "ordered", reference: "7" });
    order("kept.af", "registration");
    await shop.pass(HOUR_MS);
    await shop.restart();
    const [cart] = (await listed(shop.service.ask)).promises;
    expect(cart?.checkout).toMatchObject({ state: "ordered", reference: "7" });
    expect(cart?.items.map(({ state }) => state)).toEqual(["managed", "expired"]);
    order("later.af", "registration");
    await shop.pass(HOUR_MS);
    expect(await shop.stateOf("later.af")).toBe("managed");
  });
});

describe("with more domains than the upstream lists", () => {
  test("lines are found by their own records, or are unknown while no call can be spared", async () => {
    const shop = await Shop.open("big");
    try {
      await shop.sign(registration("beyond.af"), renewal("client-130.af"));
      await shop.pass(HOUR_MS);
      shop.sandbox.control.order("big", { domain: "beyond.af", action: "registration", years: 1 });
      shop.sandbox.control.order("big", renewal("client-130.af"));
      await shop.pass(HOUR_MS);
      expect(await shop.stateOf("beyond.af")).toBe("managed");
      expect(await shop.stateOf("client-130.af")).toBe("managed");
      expect((await listed(shop.service.ask)).sums.days30.managed.names).toBe(2);
      await shop.sign(registration("unseen.af"));
      shop.sandbox.control.setFault("domain", { fault: "status-503" });
      await shop.pass(27 * HOUR_MS, 3 * HOUR_MS);
      expect(await shop.stateOf("unseen.af")).toBe("unknown");
    } finally {
      await shop.close();
    }
  });
});

test("visitors wait no longer beside carts that are looked for", async () => {
  const shop = await Shop.open();
  try {
    const { service, clock, sandbox } = shop;
    for (let n = 0; n < 2; n += 1) {
      await shop.sign(...Array.from({ length: 10 }, (_, line) => registration(`due-${n}-${line}.af`)));
      await shop.pass(MINUTE_MS, MINUTE_MS);
    }
    await clock.leap(31 * MINUTE_MS);
    const { served, waitedMsTotal } = (await overviewOf(service)).quota.lanes.exact;
    const asking: Promise<unknown>[] = [];
    // As many visitors as fit into half a minute, each with a new name.
    for (let n = 0; n < 25; n += 1) {
      asking.push(service.ask(`/v1/availability?domain=visitor-${n}.af`));
      await shop.pass(1_200, 600);
    }
    await Promise.all([Promise.all(asking), shop.pass(15_000, 600)]);
    const after = (await overviewOf(service)).quota.lanes.exact;
    // Who comes at the end may be served or not.
    expect(after.served - served).toBeGreaterThanOrEqual(22);
    expect((after.waitedMsTotal - waitedMsTotal) / (after.served - served)).toBeLessThanOrEqual(100);
    const [used] = sandbox.stats().credentials;
    expect([used?.rejected429, (used?.largestWindow ?? 99) <= 57]).toEqual([0, true]);
  } finally {
    await shop.close();
  }
});
