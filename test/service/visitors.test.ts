/** The public API as visitors use it: normally, when quota is short, and when the upstream fails. */
import { afterAll, beforeAll, describe, expect, test, jest } from "@jest/globals";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { plainShapes } from "../support/plain-shapes.js";
import {
  type Answer,
  bearer,
  CHECK,
  PRICING,
  problemOf,
  type Service,
  startService,
  until,
  inTime,
} from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const NOW = "2026-03-20T00:00:00.000Z";
const AVAILABLE = { available: true, premium: false, stale: false, status: "available", asOf: NOW };
const TAKEN = {
  available: false,
  premium: false,
  stale: false,
  status: "taken",
  asOf: NOW,
  price: null,
  renewal: null,
  years: 1,
};

/** The price of the shortest renewal, by TLD. */
const RENEWALS = new Map([
  [".af", usd("27.99")],
  [".com.af", usd("13.99")],
  [".net.af", usd("11.99")],
  [".org.af", usd("11.99")],
]);

function usd(amount: string) {
  return { amount, currency: "USD" };
}

/** An available ordinary name. */
function available(domain: string) {
  const name = named(domain);
  return { ...name, ...AVAILABLE, renewal: RENEWALS.get(name.tld) ?? null };
}

function named(domain: string, unicodeName = domain) {
  return { domain, unicodeName, tld: domain.slice(domain.indexOf(".")) };
}

/** One price and one list are loaded at startup; visitors have the rest of a small budget. */
const ONE_TERM = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;

const FOUR_TLDS = `
currency: USD
catalog:
  - { tld: .af, years: { registration: [1] } }
  - { tld: .com.af, years: { registration: [1] } }
  - { tld: .net.af, years: { registration: [1] } }
  - { tld: .org.af, years: { registration: [1] } }
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;

const searchShape = z.object({
  results: z.array(z.object({ domain: z.string(), status: z.string(), retryAfter: z.int().optional() })),
  complete: z.boolean(),
});

const priceList = z.strictObject({
  asOf: z.string(),
  prices: z.array(
    z.strictObject({
      tld: z.string(),
      action: z.string(),
      years: z.int(),
      price: z.strictObject({ amount: z.string().regex(/^\d+\.\d\d$/), currency: z.literal("USD") }),
    }),
  ),
});

describe("a visitor", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
  });
  afterAll(() => service.close());

  /** The number of checks that `act` makes at the upstream. */
  async function checksOf(act: () => Promise<unknown>): Promise<number> {
    const before = service.calls(CHECK);
    await act();
    return service.calls(CHECK) - before;
  }

  async function expectInvalid(path: string, field: string): Promise<void> {
    const checks = await checksOf(async () => {
      const problem = problemOf(await service.ask(path));
      expect(problem.code).toBe("invalid_request");
      expect(problem.errors?.map((error) => error.field)).toContain(field);
    });
    expect(checks).toBe(0);
  }

  describe("asking for a name", () => {
    test("that is available gets the retail price of the shortest term", async () => {
      const answer = await service.ask("/v1/availability?domain=kabul.af");
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ ...available("kabul.af"), years: 1, price: usd("26.99") });
      expect(answer.headers).toMatchObject({
        "content-type": "application/json; charset=utf-8",
        "cache-control": "private, max-age=5",
      });
    });

    test("for two years gets the price of two years, which isn't twice that of one", async () => {
      const { body } = await service.ask("/v1/availability?domain=kabul.af&years=2");
      expect(body).toEqual({ ...available("kabul.af"), years: 2, price: usd("48.99") });
    });

    test("that is taken gets a 200 without a price", async () => {
      const answer = await service.ask("/v1/availability?domain=google.af");
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({ ...named("google.af"), ...TAKEN });
    });

    test("that is taken for one term makes no call for another", async () => {
      await service.ask("/v1/availability?domain=bank.af");
      const checks = await checksOf(async () => {
        const { body } = await service.ask("/v1/availability?domain=bank.af&years=3");
        expect(body).toEqual({ ...named("bank.af"), ...TAKEN, years: 3 });
      });
      expect(checks).toBe(0);
    });

    test("that is premium gets its own price", async () => {
      const one = await service.ask("/v1/availability?domain=gold.af");
      expect(one.body).toEqual({
        ...named("gold.af"),
        ...AVAILABLE,
        renewal: null,
        premium: true,
        years: 1,
        price: usd("1667.50"),
      });
      const two = await service.ask("/v1/availability?domain=gold.af&years=2");
      expect(two.body).toMatchObject({ premium: true, years: 2, price: usd("1689.56") });
    });

    test("that the reseller owns finds it taken, without a call", async () => {
      const checks = await checksOf(async () => {
        const { body } = await service.ask("/v1/availability?domain=khyber.af");
        expect(body).toEqual({ ...named("khyber.af"), ...TAKEN });
      });
      expect(checks).toBe(0);
    });

    test("in Unicode gets both spellings", async () => {
      const { body } = await service.ask(`/v1/availability?domain=${encodeURIComponent("München.af")}`);
      expect(body).toMatchObject({ domain: "xn--mnchen-3ya.af", unicodeName: "münchen.af", tld: ".af" });
    });

    test.each([
      "KABUL.AF",
      "%20kabul.af%0A",
      "kabul.af.",
      "www.kabul.af",
      "https%3A%2F%2Fwww.kabul.af%2Fbuy%3Fx%3D1%23top",
      "http%3A%2F%2Fuser%3Apw%40kabul.af%3A8080",
      "kabul%E3%80%82af",
    ])("as people paste it, %s, is understood, and makes no call once it is known", async (domain) => {
      await service.ask("/v1/availability?domain=kabul.af");
      const checks = await checksOf(async () => {
        const { status, body } = await service.ask(`/v1/availability?domain=${domain}`);
        expect([status, body]).toEqual([200, expect.objectContaining({ domain: "kabul.af" })]);
      });
      expect(checks).toBe(0);
    });

    test("can't tell from the headers whether somebody searched for it before", async () => {
      const headersOnce = async () => {
        const { headers } = await service.ask("/v1/availability?domain=confidential-idea.af");
        const { "x-request-id": _id, date: _date, ratelimit: _limit, ...rest } = headers;
        return rest;
      };
      expect(await headersOnce()).toEqual(await headersOnce());
    });

    test("with Cache-Control: no-cache makes no further upstream call", async () => {
      await service.ask("/v1/availability?domain=kabul.af");
      const headers = { "Cache-Control": "no-cache", Pragma: "no-cache" };
      expect(await checksOf(() => service.ask("/v1/availability?domain=kabul.af", { headers }))).toBe(0);
    });

    test.each([
      ["", "domain"],
      ["?domain=", "domain"],
      ["?domain=kabul", "domain"],
      ["?domain=kabul.com", "domain"],
      ["?domain=af", "domain"],
      ["?domain=com.af", "domain"],
      ["?domain=kabul.gov.af", "domain"],
      ["?domain=a.b.af", "domain"],
      ["?domain=-kabul.af", "domain"],
      ["?domain=ka_bul.af", "domain"],
      ["?domain=%E2%84%AAabul.af.evil", "domain"],
      ["?domain=kabul..af", "domain"],
      [`?domain=${"a".repeat(64)}.af`, "domain"],
      ["?domain=me%40kabul.af", "domain"],
      ["?domain=kabul.af&years=0", "years"],
      ["?domain=kabul.af&years=4", "years"],
      ["?domain=kabul.af&years=1.0", "years"],
      ["?domain=kabul.af&years=1e0", "years"],
      ["?domain=kabul.af&years=", "years"],
      ["?domain=kabul.net.af&years=3", "years"],
      ["?domain=kabul.af&domain=herat.af", "domain"],
      ["?domain=kabul.af&years=1&years=1", "years"],
      ["?domain=kabul.af&year=1", "year"],
      ["?domain[]=kabul.af", "query"],
    ])("with the invalid query %s gets the name of the invalid field, without a call", (query, field) =>
      expectInvalid(`/v1/availability${query}`, field),
    );
  });

  describe("searching", () => {
    test("for a label gets every TLD sold, in the order of the catalogue", async () => {
      const { status, headers, body } = await service.ask("/v1/search?q=Kabul");
      expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
      expect(body).toEqual({
        query: "Kabul",
        label: "kabul",
        results: [
          { ...available("kabul.af"), years: 1, price: usd("26.99") },
          { ...available("kabul.com.af"), years: 1, price: usd("11.99") },
          { ...available("kabul.net.af"), years: 1, price: usd("10.99") },
          { ...available("kabul.org.af"), years: 1, price: usd("10.99") },
        ],
        complete: true,
      });
    });

    test("for a full name gets it first", async () => {
      const { body } = await service.ask("/v1/search?q=https%3A%2F%2Fwww.kabul.net.af%2F");
      const { results } = searchShape.parse(body);
      expect(results.map(({ domain }) => domain)).toEqual([
        "kabul.net.af",
        "kabul.af",
        "kabul.com.af",
        "kabul.org.af",
      ]);
    });

    test("under chosen TLDs gets only these, each once, in the requested order", async () => {
      const { body } = await service.ask("/v1/search?q=kabul&tlds=.org.af,.AF,.org.af");
      expect(searchShape.parse(body).results.map(({ domain }) => domain)).toEqual([
        "kabul.org.af",
        "kabul.af",
      ]);
    });

    test("for three years gets only the TLDs that are sold for three", async () => {
      const { body } = await service.ask("/v1/search?q=kabul&years=3");
      expect(searchShape.parse(body).results.map(({ domain }) => domain)).toEqual([
        "kabul.af",
        "kabul.com.af",
      ]);
    });

    test("by its whole name for a term that isn't sold for it is rejected as for availability, and never left out", async () => {
      for (const accept of ["application/json", "text/event-stream"]) {
        const answer = await service.ask("/v1/search?q=kabul.net.af&years=3", { headers: { accept } });
        expect(problemOf(answer).errors).toEqual([
          {
            field: "years",
            reason: "not_sold",
            message: "must be one of 1, 2 for registration under .net.af",
          },
        ]);
      }
      const { body } = await service.ask("/v1/search?q=kabul.net.af&years=2");
      expect(searchShape.parse(body).results[0]?.domain).toBe("kabul.net.af");
    });

    test.each([
      ["", "q"],
      ["?q=", "q"],
      ["?q=kabul.com", "q"],
      ["?q=-", "q"],
      ["?q=a%20b", "q"],
      ["?q=kabul&tlds=", "tlds"],
      ["?q=kabul&tlds=.com", "tlds"],
      ["?q=kabul&tlds=.af,,.com.af", "tlds"],
      ["?q=kabul&years=9", "years"],
      ["?q=kabul&years=x", "years"],
      ["?q=kabul&q=herat", "q"],
      ["?q=kabul&limit=1", "limit"],
    ])("with the invalid query %s gets the name of the invalid field, without a call", (query, field) =>
      expectInvalid(`/v1/search${query}`, field),
    );
  });

  describe("reading prices", () => {
    test("gets every combination of the catalogue, from memory", async () => {
      const before = service.calls();
      const answer = await service.ask("/v1/prices");
      expect(answer.status).toBe(200);
      expect(answer.headers["cache-control"]).toBe("public, max-age=300, stale-while-revalidate=3600");
      const { asOf, prices } = priceList.parse(answer.body);
      expect(asOf).toBe(NOW);
      expect(prices).toHaveLength(28);
      expect(prices).toContainEqual({ tld: ".af", action: "renewal", years: 2, price: usd("53.99") });
      expect(service.calls()).toBe(before);
    });

    test("can filter them by TLD, action and term", async () => {
      const { body } = await service.ask("/v1/prices?tld=.AF&action=registration&years=1");
      expect(body).toEqual({
        asOf: NOW,
        prices: [{ tld: ".af", action: "registration", years: 1, price: usd("26.99") }],
      });
    });

    test("again with the ETag gets a 304 without a body", async () => {
      const first = await service.ask("/v1/prices");
      const etag = first.headers["etag"] ?? "";
      expect(etag).toMatch(/^"[\w-]+"$/);
      const again = await service.ask("/v1/prices", { headers: { "If-None-Match": etag } });
      expect([again.status, again.text, again.headers["etag"]]).toEqual([304, "", etag]);
      expect(again.headers["cache-control"]).toBe("public, max-age=300, stale-while-revalidate=3600");
      const several = await service.ask("/v1/prices", { headers: { "If-None-Match": `"old", ${etag}` } });
      expect(several.status).toBe(304);
      const other = await service.ask("/v1/prices?tld=.af", { headers: { "If-None-Match": etag } });
      expect(other.status).toBe(200);
      expect(other.headers["etag"]).not.toBe(etag);
    });

    test.each([
      ["?tld=.com", "tld"],
      ["?tld=af", "tld"],
      ["?action=Registration", "action"],
      ["?action=delete", "action"],
      ["?years=0", "years"],
      ["?years=9", "years"],
      ["?currency=EUR", "currency"],
      ["?tld=.af&tld=.af", "tld"],
    ])("with the invalid query %s gets a problem that isn't cached", async (query, field) => {
      const problem = problemOf(await service.ask(`/v1/prices${query}`));
      expect(problem.errors?.map((error) => error.field)).toEqual([field]);
    });
  });

  describe("asking for the quote of a term", () => {
    test("gets its price and age", async () => {
      const before = service.calls();
      const answer = await service.ask("/v1/quotes?tld=.af&action=renewal&years=2");
      expect(answer.body).toEqual({
        tld: ".af",
        action: "renewal",
        years: 2,
        price: usd("53.99"),
        asOf: NOW,
        stale: false,
      });
      expect(answer.headers["cache-control"]).toBe("no-store");
      expect(service.calls()).toBe(before);
    });

    test("without years gets the shortest term", async () => {
      const { body } = await service.ask("/v1/quotes?tld=.af&action=transfer");
      expect(body).toMatchObject({ years: 1 });
    });

    test.each([
      ["", "tld"],
      ["?tld=.af", "action"],
      ["?tld=.af&action=burn", "action"],
      ["?tld=.af&action=transfer&years=2", "years"],
      ["?tld=.xx&action=transfer", "tld"],
      ["?tld=.af&action=renewal&domain=kabul.af", "domain"],
    ])("with the invalid query %s gets the name of the invalid field", async (query, field) => {
      const problem = problemOf(await service.ask(`/v1/quotes${query}`));
      expect([problem.code, problem.errors?.map((error) => error.field)]).toEqual([
        "invalid_request",
        [field],
      ]);
    });
  });

  describe("sending a cart", () => {
    const post = (body: unknown) => service.ask("/v1/quotes", { method: "POST", body });

    test("gets each price and status, and the total", async () => {
      const answer = await post({
        items: [
          { domain: "KABUL.af", action: "registration", years: 1 },
          { domain: "google.af", action: "registration", years: 2 },
          { domain: "khyber.af", action: "renewal", years: 2 },
          { domain: "gold.af", action: "registration" },
        ],
      });
      expect([answer.status, answer.headers["cache-control"]]).toEqual([200, "no-store"]);
      const item = (domain: string, action: string, years: number) => ({
        domain,
        tld: ".af",
        action,
        years,
        premium: domain === "gold.af",
        asOf: NOW,
      });
      expect(answer.body).toEqual({
        items: [
          { ...item("kabul.af", "registration", 1), price: usd("26.99"), status: "available" },
          { ...item("google.af", "registration", 2), price: null, status: "taken" },
          { ...item("khyber.af", "renewal", 2), price: usd("53.99"), status: "not_checked" },
          { ...item("gold.af", "registration", 1), price: usd("1667.50"), status: "available" },
        ],
        total: [usd("1748.48")],
        promise: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
        validUntil: "2026-03-20T00:15:00.000Z",
      });
    });

    test("with nothing that can be bought gets no total and no promise", async () => {
      const { body } = await post({ items: [{ domain: "google.af", action: "registration", years: 1 }] });
      expect(body).toMatchObject({ total: [], promise: null, validUntil: null });
    });

    test("with 20 lines is served, with none or 21 isn't", async () => {
      const items = (count: number) => ({
        items: Array.from({ length: count }, (_, n) => ({
          domain: `cart-${n}.af`,
          action: "renewal",
          years: 1,
        })),
      });
      expect((await post(items(20))).status).toBe(200);
      expect(problemOf(await post(items(0))).errors?.[0]?.field).toBe("items");
      expect(problemOf(await post(items(21))).errors?.[0]?.field).toBe("items");
    });

    test("with thousands of faults gets a short answer", async () => {
      const lines = await post({ items: Array.from({ length: 10_000 }, () => ({})) });
      expect(problemOf(lines).errors).toMatchObject([{ field: "items", message: "must have 1 to 20 items" }]);
      const parameters = Array.from({ length: 2_000 }, (_, n) => `p${n}`).join("&");
      const query = await service.ask(`/v1/availability?domain=kabul.af&${parameters}`);
      expect([query.status, problemOf(query).errors?.length]).toEqual([400, 20]);
    });

    test("with the same name twice, in any spelling, is rejected", async () => {
      const problem = problemOf(
        await post({
          items: [
            { domain: "kabul.af", action: "registration", years: 1 },
            { domain: "WWW.KABUL.AF.", action: "registration", years: 1 },
          ],
        }),
      );
      expect(problem.errors?.map(({ field }) => field)).toEqual(["items[1].domain"]);
    });

    test("with several faults gets all of them reported, without a call", async () => {
      const checks = await checksOf(async () => {
        const problem = problemOf(
          await post({
            items: [
              { domain: "cart-fault.af", action: "registration", years: 1 },
              { domain: "kabul.com", action: "registration", years: 1 },
              { domain: "kabul.af", action: "registration", years: 7 },
              { domain: "herat.af", action: "transfer", years: 2 },
            ],
          }),
        );
        expect(problem.errors?.map(({ field }) => field)).toEqual([
          "items[1].domain",
          "items[2].years",
          "items[3].years",
        ]);
      });
      expect(checks).toBe(0);
    });

    test.each([
      [{ items: [{ domain: "kabul.af", action: "burn", years: 1 }] }, "items[0].action"],
      [{ items: [{ domain: 7, action: "renewal", years: 1 }] }, "items[0].domain"],
      [{ items: [{ domain: "kabul.af", action: "renewal", years: "1" }] }, "items[0].years"],
      [{ items: [{ domain: "kabul.af", action: "renewal", years: 1.5 }] }, "items[0].years"],
      [{ items: [{ domain: "kabul.af", action: "renewal", years: 1, price: "0.01" }] }, "items[0]"],
      [{ items: [null] }, "items[0]"],
      [{ items: {} }, "items"],
      [{ items: [], coupon: "x" }, "body"],
      [{}, "items"],
      [[], "body"],
    ])("of the wrong shape, %j, gets the name of the invalid field", async (body, field) => {
      const problem = problemOf(await post(body));
      expect(problem.code).toBe("invalid_request");
      expect(problem.errors?.map((error) => error.field)).toContain(field);
    });

    test.each([
      ["a list", [], { field: "body", message: "must be an object" }],
      ["a text as a line", { items: ["kabul.af"] }, { field: "items[0]", message: "must be an object" }],
    ])("with %s instead of an object gets a sentence that says so", async (_what, body, error) => {
      expect(problemOf(await post(body)).errors).toMatchObject([error]);
    });

    test("with many unknown fields gets at most twenty errors, which repeat no unusual name", async () => {
      const unusual = "<img onerror=alert(1)>";
      const unknown = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`coupon${n}`, n]));
      const { errors = [] } = problemOf(await post({ items: [], [unusual]: 1, ...unknown }));
      expect(errors).toHaveLength(20);
      expect(errors).toContainEqual({
        field: "body",
        reason: "unknown",
        message: "has an unknown field: coupon0",
      });
      expect(JSON.stringify(errors)).not.toContain("onerror");
    });

    test.each(["", "{", '{"items":', "null", '"kabul.af"', "[1,]", "\u0000"])(
      "that isn't a JSON object, %j, is rejected",
      async (body) => {
        const headers = { "Content-Type": "application/json", "Content-Length": String(body.length) };
        const problem = problemOf(await service.ask("/v1/quotes", { method: "POST", headers, body }));
        expect(problem.code).toBe("invalid_request");
      },
    );

    test("with a query parameter gets its name as the invalid field", async () => {
      const body = { items: [{ domain: "kabul.af", action: "renewal", years: 1 }] };
      const answer = await service.ask("/v1/quotes?tld=.af", { method: "POST", body });
      expect(problemOf(answer).errors?.map(({ field }) => field)).toEqual(["tld"]);
    });
  });
});

describe("a name to be registered", () => {
  test("is checked again for a cart, however fresh the search result is, but not for a double click", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock });
    try {
      const body = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
      await service.ask("/v1/availability?domain=kabul.af");
      expect(service.calls(CHECK)).toBe(1);
      await clock.advance(6000);
      await service.ask("/v1/availability?domain=kabul.af");
      expect(service.calls(CHECK)).toBe(1);
      service.sandbox.control.setTaken("kabul.af", true);
      const cart = await service.ask("/v1/quotes", { method: "POST", body });
      expect(cart.body).toMatchObject({ items: [{ status: "taken", price: null }], total: [] });
      expect(service.calls(CHECK)).toBe(2);
      await service.ask("/v1/quotes", { method: "POST", body });
      expect(service.calls(CHECK)).toBe(2);
      const seen = await service.ask("/v1/availability?domain=kabul.af");
      expect(seen.body).toMatchObject({ status: "taken" });
    } finally {
      await service.close();
    }
  });

  test("isn't mistaken for premium because the tier changed after the price list was loaded", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock, retail: ONE_TERM });
    try {
      await clock.advance(400_000);
      service.sandbox.control.setTier("demo", "Gold");
      const { body } = await service.ask("/v1/availability?domain=kabul.af");
      // 21.50 less 12 % is 18.92, plus 25 %.
      expect(body).toMatchObject({ status: "available", premium: false, price: usd("23.65") });
      expect(service.calls(PRICING)).toBe(2);
    } finally {
      await service.close();
    }
  });
});

describe("under a TLD without registrations", () => {
  const RENEWALS_ONLY = `
currency: USD
catalog:
  - { tld: .com.af, years: { renewal: [1] } }
  - { tld: .af, years: { registration: [1], renewal: [1] } }
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
`;
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock(), retail: RENEWALS_ONLY });
  });
  afterAll(() => service.close());

  test("a name has an ending that isn't sold, and the error lists those under which names can be registered", async () => {
    const message = "has an ending that isn't sold here; names are sold under .af";
    for (const [path, field] of [
      ["/v1/availability?domain=kabul.com.af", "domain"],
      ["/v1/search?q=kabul.com.af", "q"],
      ["/v1/search?q=kabul.net.af", "q"],
    ] as const)
      expect(problemOf(await service.ask(path)).errors).toEqual([{ field, reason: "not_sold", message }]);
  });

  test("a cart has renewals, and the price list their prices", async () => {
    const line = { domain: "kabul.com.af", action: "renewal", years: 1 };
    const cart = await service.ask("/v1/quotes", { method: "POST", body: { items: [line] } });
    expect(cart.body).toMatchObject({ items: [{ ...line, price: { currency: "USD" } }] });
    const prices = await service.ask("/v1/prices?tld=.com.af");
    expect(prices.body).toMatchObject({ prices: [{ tld: ".com.af", action: "renewal" }] });
  });

  test("the storefront has no names", async () => {
    const { text } = await service.ask("/");
    expect(/ tlds="([^"]*)"/.exec(text)?.[1]).toBe(".af");
  });
});

test("without any registrations, no name has a price, and the error names no endings", async () => {
  const retail = `
currency: USD
catalog: [{ tld: .af, years: { renewal: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
`;
  const service = await startService({ clock: new FakeClock(), retail });
  try {
    const message = "can't be registered: no names are sold here";
    for (const name of ["kabul.af", "kabul.com", "kabul"])
      expect(problemOf(await service.ask(`/v1/availability?domain=${name}`)).errors).toEqual([
        { field: "domain", reason: "not_sold", message },
      ]);
    expect(problemOf(await service.ask("/v1/search?q=kabul.af")).errors).toEqual([
      { field: "q", reason: "not_sold", message },
    ]);
  } finally {
    await service.close();
  }
});

describe("when quota is short", () => {
  const small = { UPSTREAM_RATE_LIMIT: "7", UPSTREAM_RATE_HEADROOM: "3" };

  test("a price list that isn't loaded yet gets a Retry-After of a window, or a sixth more after a cold start", async () => {
    const clock = new FakeClock();
    const service = await startService({
      clock,
      retail: ONE_TERM,
      warm: false,
      env: (sandbox) => ({
        ...upstreamAt(sandbox),
        UPSTREAM_RATE_HEADROOM: "0",
      }),
    });
    const retryAfter = async (): Promise<number> => {
      const answer = await service.ask("/v1/prices");
      return answer.status === 200 ? 0 : (problemOf(answer).retryAfter ?? NaN);
    };
    try {
      // The window before the start may have been used up, and abandoned slots stay unused for a sixth longer.
      expect(await retryAfter()).toBe(70);
      await clock.advance(11_000);
      expect(await retryAfter()).toBe(60);
      await clock.advance(9_000);
      const last = await retryAfter();
      expect(last).toBe(56);
      await clock.advance(last * 1000);
      await until(async () => (await retryAfter()) === 0, "the load of the price list");
    } finally {
      await service.close();
    }
  });

  test("a new name is refused with an accurate Retry-After, and known names are still shown", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock, retail: ONE_TERM, env: small });
    try {
      await service.ask("/v1/availability?domain=kabul.af");
      await service.ask("/v1/availability?domain=google.af");
      expect(service.calls()).toBe(4);
      const problem = problemOf(await service.ask("/v1/availability?domain=herat.af"));
      expect(problem.code).toBe("quota_exhausted");
      expect([problem.retryAfter, problem.kept]).toEqual([60, true]);
      expect((await service.ask("/v1/availability?domain=google.af")).status).toBe(200);
      expect((await service.ask("/v1/prices")).status).toBe(200);
      const head = await service.ask("/v1/availability?domain=herat.af", { method: "HEAD" });
      expect(head.status).toBe(200);

      await clock.advance((problem.retryAfter ?? 0) * 1000);
      const again = await inTime(clock, service.ask("/v1/availability?domain=herat.af"));
      expect(again.status).toBe(200);
      const [credential] = service.sandbox.stats().credentials;
      expect([credential?.rejected429, (credential?.largestWindow ?? 0) <= 4]).toEqual([0, true]);
    } finally {
      await service.close();
    }
  });

  test("a cart is refused as a whole, with an accurate Retry-After", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock, retail: ONE_TERM, env: small });
    try {
      const items = (domains: string[]) => ({
        items: domains.map((domain) => ({ domain, action: "registration", years: 1 })),
      });
      await service.ask("/v1/quotes", { method: "POST", body: items(["kabul.af"]) });
      await service.ask("/v1/quotes", { method: "POST", body: items(["google.af"]) });
      const body = items(["herat.af"]);
      const problem = problemOf(await service.ask("/v1/quotes", { method: "POST", body }));
      expect(problem.code).toBe("quota_exhausted");
      await clock.advance((problem.retryAfter ?? 0) * 1000);
      const again = await inTime(clock, service.ask("/v1/quotes", { method: "POST", body }));
      expect(again.status).toBe(200);
    } finally {
      await service.close();
    }
  });

  test("the last two calls of the budget serve a cart of two", async () => {
    const service = await startService({ clock: new FakeClock(), retail: ONE_TERM, env: small });
    try {
      await until(() => service.calls() === 2);
      const items = ["kabul.af", "google.af"].map((domain) => ({ domain, action: "registration", years: 1 }));
      const { status } = await service.ask("/v1/quotes", { method: "POST", body: { items } });
      expect([status, service.calls()]).toEqual([200, 4]);
    } finally {
      await service.close();
    }
  });

  test("a search returns what it could get, the exact name first, and when to retry the rest", async () => {
    const clock = new FakeClock();
    const env = { UPSTREAM_RATE_LIMIT: "13", UPSTREAM_RATE_HEADROOM: "3" };
    const service = await startService({ clock, retail: FOUR_TLDS, env });
    try {
      await service.ask("/v1/search?q=kabul");
      expect(service.calls()).toBe(9);
      const answer = await service.ask("/v1/search?q=bank.com.af");
      expect(answer.status).toBe(200);
      const { results, complete } = searchShape.parse(answer.body);
      expect(complete).toBe(false);
      expect(results.map(({ domain, status }) => [domain, status])).toEqual([
        ["bank.com.af", "taken"],
        ["bank.af", "unknown"],
        ["bank.net.af", "unknown"],
        ["bank.org.af", "unknown"],
      ]);
      const [, unknown] = z.object({ results: z.array(z.unknown()) }).parse(answer.body).results;
      const retryAfter = results[1]?.retryAfter ?? 0;
      expect(unknown).toEqual({
        ...named("bank.af"),
        status: "unknown",
        available: false,
        premium: false,
        years: 1,
        price: null,
        renewal: null,
        asOf: null,
        stale: false,
        retryAfter: expect.any(Number),
        kept: true,
      });
      await clock.advance(Math.max(...results.map((result) => result.retryAfter ?? 0), retryAfter) * 1000);
      const again = await inTime(clock, service.ask("/v1/search?q=bank.com.af"));
      expect(searchShape.parse(again.body).complete).toBe(true);
      const headers = { "If-None-Match": again.headers["etag"] ?? "" };
      const known = await service.ask("/v1/search?q=bank.com.af", { headers });
      expect([known.status, known.text]).toEqual([304, ""]);
    } finally {
      await service.close();
    }
  });

  test.each([
    ["search", (service: Service) => service.ask("/v1/search?q=bank.com.af")],
    [
      "cart",
      (service: Service) => {
        const items = ["bank.com.af", "bank.af"].map((domain) => ({
          domain,
          action: "registration",
          years: 1,
        }));
        return service.ask("/v1/quotes", { method: "POST", body: { items } });
      },
    ],
  ] as const)(
    "a %s returns the wait that is left when it is answered, not when one of its names was refused",
    async (_, ask) => {
      const env = { UPSTREAM_RATE_LIMIT: "13", UPSTREAM_RATE_HEADROOM: "3" };
      async function retryAfterOf(heldMs: number): Promise<number> {
        const clock = new FakeClock();
        const service = await startService({ clock, retail: FOUR_TLDS, env });
        try {
          await service.ask("/v1/search?q=kabul");
          const { control } = service.sandbox;
          control.hold({ operation: "check", calls: 1, decided: "on-arrival" });
          const asking = ask(service);
          const held = () => control.holds().flatMap((hold) => hold.answers());
          await until(() => held().length === 1, "the first name's call");
          await clock.advance(heldMs);
          for (const hold of control.holds()) hold.release();
          return z.coerce.number().parse(/"retryAfter":(\d+)/.exec((await asking).text)?.[1]);
        } finally {
          await service.close();
        }
      }
      expect(await retryAfterOf(4_000)).toBe((await retryAfterOf(0)) - 4);
    },
  );

  test("a name whose last check expires while the search waits for others isn't shown as available", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock, retail: FOUR_TLDS });
    try {
      await service.ask("/v1/availability?domain=kabul.af");
      await clock.advance(59_000);
      const { control } = service.sandbox;
      control.setFault("check", { fault: "status-500" });
      const first = await service.ask("/v1/availability?domain=kabul.af");
      expect(first.body).toMatchObject({ status: "available", stale: true });
      control.clearFaults();
      control.hold({ operation: "check", calls: 1, decided: "on-arrival" });
      const asking = service.ask("/v1/search?q=kabul&tlds=.af,.com.af");
      const held = () => control.holds().flatMap((hold) => hold.answers());
      await until(() => held().length === 1, "the other name's call");
      await clock.advance(2_000);
      for (const hold of control.holds()) hold.release();
      const { results } = searchShape.parse((await asking).body);
      expect(results.map(({ domain, status }) => [domain, status])).toEqual([
        ["kabul.af", "unknown"],
        ["kabul.com.af", "available"],
      ]);
    } finally {
      await service.close();
    }
  });

  test("a search without any answer is still a 200", async () => {
    const clock = new FakeClock();
    const service = await startService({ clock, retail: ONE_TERM, env: small });
    try {
      await service.ask("/v1/availability?domain=kabul.af");
      await service.ask("/v1/availability?domain=google.af");
      const answer = await service.ask("/v1/search?q=herat");
      const { results, complete } = searchShape.parse(answer.body);
      expect([answer.status, complete, results.map(({ status }) => status)]).toEqual([
        200,
        false,
        ["unknown"],
      ]);
    } finally {
      await service.close();
    }
  });

  test("a request that can be served within QUOTA_MAX_WAIT_MS waits and is answered", async () => {
    const clock = new FakeClock();
    const env = { ...small, QUOTA_MAX_WAIT_MS: "120000" };
    const service = await startService({ clock, retail: ONE_TERM, env });
    try {
      await service.ask("/v1/availability?domain=kabul.af");
      await service.ask("/v1/availability?domain=google.af");
      const answers: Answer[] = [];
      void service.ask("/v1/availability?domain=bank.af").then((answer) => answers.push(answer));
      await service.ask("/livez");
      expect(answers).toEqual([]);
      await until(async () => {
        await clock.advance(1000);
        return answers.length > 0;
      }, "the answer");
      expect(answers[0]?.body).toMatchObject({ domain: "bank.af", status: "taken" });
    } finally {
      await service.close();
    }
  });

  test("a pause requested by the upstream is respected, and visitors get an accurate Retry-After", async () => {
    const clock = new FakeClock();
    let limited = false;
    const service = await startService({
      clock,
      retail: ONE_TERM,
      sandbox: {
        shapes: {
          ...plainShapes,
          check: (result) =>
            limited
              ? { status: 429, headers: { "Retry-After": "17" }, body: { success: false } }
              : plainShapes.check(result),
        },
      },
    });
    try {
      limited = true;
      const first = problemOf(await service.ask("/v1/availability?domain=kabul.af"));
      expect([first.code, first.retryAfter]).toEqual(["quota_exhausted", 17]);
      limited = false;
      const calls = service.calls();
      const second = problemOf(await service.ask("/v1/availability?domain=herat.af"));
      expect([second.code, second.retryAfter]).toEqual(["quota_exhausted", 17]);
      expect(service.calls()).toBe(calls);
      await clock.advance(17_000);
      expect((await service.ask("/v1/availability?domain=herat.af")).status).toBe(200);
    } finally {
      await service.close();
    }
  });
});

const queuedShape = z.object({
  quota: z.object({ lanes: z.object({ exact: z.object({ queued: z.int() }) }) }),
});

describe("when a client sends too many requests", () => {
  test("it is refused with a Retry-After after which it is served, and other clients aren't refused", async () => {
    const clock = new FakeClock(Date.now());
    // express-rate-limit reads the machine's clock.
    const machine = jest.spyOn(Date, "now").mockImplementation(() => clock.now());
    const env = { CLIENT_RATE_PER_MINUTE: "3", TRUST_PROXY_HOPS: "1" };
    const service = await startService({ clock, retail: ONE_TERM, env });
    try {
      const from = (address: string) =>
        service.ask("/v1/quotes?tld=.af&action=registration", { headers: { "X-Forwarded-For": address } });
      for (let asked = 0; asked < 3; asked += 1) {
        const { status, headers } = await from("203.0.113.5");
        expect(status).toBe(200);
        expect(headers["ratelimit"]).toMatch(new RegExp(`;\\s*r=${2 - asked};\\s*t=(?:60|59)$`));
        expect(headers["ratelimit-policy"]).toMatch(/q=3;\s*w=60/);
      }
      await clock.advance(12_500);
      const problem = problemOf(await from("203.0.113.5"));
      expect([problem.code, problem.retryAfter]).toEqual(["rate_limited", 48]);
      expect((await from("203.0.113.6")).status).toBe(200);
      await clock.advance(48_000);
      expect((await from("203.0.113.5")).status).toBe(200);

      for (let host = 1; host <= 3; host += 1)
        expect((await from(`2001:db8:0:aa00::${host}`)).status).toBe(200);
      expect((await from("2001:db8:0:aaff::9")).status).toBe(429);
      expect((await from("2001:db8:0:ab00::1")).status).toBe(200);
    } finally {
      machine.mockRestore();
      await service.close();
    }
  });

  test("for new names, only these are refused while others want calls, with an accurate Retry-After", async () => {
    const clock = new FakeClock();
    const service = await startService({
      clock,
      retail: FOUR_TLDS,
      env: { CLIENT_COLD_PER_MINUTE: "2", TRUST_PROXY_HOPS: "1", UPSTREAM_RATE_LIMIT: "12" },
    });
    const from = (address: string, path: string) =>
      service.ask(path, { headers: { "X-Forwarded-For": address } });
    const cold = (address: string, name: string) => from(address, `/v1/availability?domain=${name}.af`);
    const waiting = async (): Promise<number> => {
      const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
      return queuedShape.parse(body).quota.lanes.exact.queued;
    };
    try {
      for (const name of ["google", "new-2", "new-3", "new-4"])
        expect((await cold("203.0.113.5", name)).status).toBe(200);
      // The budget is used up, and two requests wait for the calls that become available first.
      await clock.advance(55_000);
      const other = cold("203.0.113.6", "new-5");
      const own = cold("203.0.113.5", "new-6");
      await until(async () => (await waiting()) === 2, "the wait of both");
      const calls = service.calls();
      const problem = problemOf(await cold("203.0.113.5", "new-7"));
      expect([problem.code, problem.retryAfter]).toEqual(["rate_limited", 5]);
      // Requests from one address get different times, one for each request, however many names it is for.
      const next = problemOf(await from("203.0.113.5", "/v1/search?q=balkhi"));
      expect([next.code, next.retryAfter]).toEqual(["rate_limited", 35]);
      expect(service.calls()).toBe(calls);
      expect((await cold("203.0.113.5", "google")).status).toBe(200);
      for (const answer of [other, own]) expect((await inTime(clock, answer)).status).toBe(200);
      await clock.advance((problem.retryAfter ?? 0) * 1000);
      expect((await inTime(clock, cold("203.0.113.5", "new-7"))).status).toBe(200);
    } finally {
      await service.close();
    }
  });

  test("it gets the whole budget while it is alone, however low its limit for new names", async () => {
    const service = await startService({
      clock: new FakeClock(),
      retail: ONE_TERM,
      env: { CLIENT_COLD_PER_MINUTE: "1" },
    });
    try {
      for (let n = 0; n < 30; n += 1)
        expect((await service.ask(`/v1/availability?domain=name-${n}.af`)).status).toBe(200);
    } finally {
      await service.close();
    }
  });
});

describe("when the upstream fails", () => {
  async function failingService() {
    const clock = new FakeClock();
    const cache = `
availability:
  entries: 100
  available: { freshMs: 30000, usableMs: 60000 }
  taken: { freshMs: 100000, usableMs: 600000 }
  failureMs: 3000
prices: { entries: 100, freshMs: 3600000, usableMs: 172800000, failureMs: 10000 }
tier: { entries: 4, freshMs: 300000, usableMs: 3600000, failureMs: 10000 }
account: { entries: 100, freshMs: 300000, usableMs: 3600000, failureMs: 10000 }
`;
    const upstream: { answer: { status: number; body: unknown } | null } = { answer: null };
    const service = await startService({
      clock,
      retail: ONE_TERM,
      cache,
      sandbox: {
        shapes: {
          ...plainShapes,
          check: (result) =>
            upstream.answer === null ? plainShapes.check(result) : { headers: {}, ...upstream.answer },
        },
      },
    });
    return { clock, upstream, service };
  }
  const DOWN = { status: 500, body: { success: false, error: { message: "SQL state 42" } } };

  test("an available name is shown, marked stale, for 60 s at most", async () => {
    const { clock, upstream, service } = await failingService();
    try {
      await service.ask("/v1/availability?domain=kabul.af");
      upstream.answer = DOWN;
      await clock.advance(31_000);
      const stale = await service.ask("/v1/availability?domain=kabul.af");
      expect(stale.status).toBe(200);
      expect(stale.body).toEqual({
        ...available("kabul.af"),
        renewal: null,
        years: 1,
        price: usd("25.27"),
        stale: true,
      });
      await clock.advance(29_000);
      expect((await service.ask("/v1/availability?domain=kabul.af")).body).toMatchObject({ stale: true });
      await clock.advance(1);
      const problem = problemOf(await service.ask("/v1/availability?domain=kabul.af"));
      expect(problem.code).toBe("upstream_failed");
    } finally {
      await service.close();
    }
  });

  test("a taken name is shown, marked stale, past its freshness for as long as the configuration allows", async () => {
    const { clock, upstream, service } = await failingService();
    try {
      await service.ask("/v1/availability?domain=google.af");
      upstream.answer = DOWN;
      await clock.advance(80_000);
      expect((await service.ask("/v1/availability?domain=google.af")).body).toMatchObject({ stale: false });
      await clock.advance(520_000);
      expect((await service.ask("/v1/availability?domain=google.af")).body).toEqual({
        ...named("google.af"),
        ...TAKEN,
        stale: true,
      });
      await clock.advance(1);
      expect((await service.ask("/v1/availability?domain=google.af")).status).toBe(502);
    } finally {
      await service.close();
    }
  });

  test("a cart is never based on stale answers", async () => {
    const { clock, upstream, service } = await failingService();
    try {
      await service.ask("/v1/availability?domain=kabul.af");
      upstream.answer = DOWN;
      await clock.advance(10_000);
      const body = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
      expect(problemOf(await service.ask("/v1/quotes", { method: "POST", body })).code).toBe(
        "upstream_failed",
      );
    } finally {
      await service.close();
    }
  });

  test("repeated requests make one call, and another follows only when the failure is forgotten", async () => {
    const { clock, upstream, service } = await failingService();
    try {
      upstream.answer = DOWN;
      for (let asked = 0; asked < 10; asked += 1)
        expect((await service.ask("/v1/availability?domain=kabul.af")).status).toBe(502);
      expect(service.calls(CHECK)).toBe(1);
      upstream.answer = null;
      await clock.advance(3000);
      expect((await service.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
    } finally {
      await service.close();
    }
  });

  const answerOf = (data: object) => ({ status: 200, body: { success: true, data } });
  const price = { amount: "20.21", currency: "USD" };
  test.each([
    ["another name", answerOf({ domain: "herat.af", status: "available", available: true, pricing: price })],
    ["a contradiction", answerOf({ domain: "kabul.af", status: "taken", available: true, pricing: price })],
    [
      "a price of zero",
      answerOf({
        domain: "kabul.af",
        status: "available",
        available: true,
        pricing: { ...price, amount: "0.00" },
      }),
    ],
    [
      "three decimals",
      answerOf({
        domain: "kabul.af",
        status: "available",
        available: true,
        pricing: { ...price, amount: "20.211" },
      }),
    ],
    ["no price", answerOf({ domain: "kabul.af", status: "available", available: true, pricing: null })],
    ["success: false", { status: 200, body: { success: false, data: {} } }],
    ["a list", { status: 200, body: [] }],
    ["text", { status: 200, body: "<html>" }],
  ])("with %s, nothing is shown", async (_what, answer) => {
    const { upstream, service } = await failingService();
    try {
      upstream.answer = answer;
      const problem = problemOf(await service.ask("/v1/availability?domain=kabul.af"));
      expect(["upstream_contract", "upstream_failed"]).toContain(problem.code);
      upstream.answer = null;
      expect(service.calls(CHECK)).toBe(1);
    } finally {
      await service.close();
    }
  });

  test("by being too slow, the answer is a 504 after the deadline", async () => {
    const { clock, service } = await failingService();
    try {
      service.sandbox.control.setBehaviour({ afterMs: 600_000 });
      const calls = service.calls(CHECK);
      let ended = false;
      const waiting = service.ask("/v1/availability?domain=kabul.af").then((answer) => {
        ended = true;
        return answer;
      });
      while (service.calls(CHECK) === calls) await service.ask("/livez");
      await clock.advance(4999);
      await service.ask("/livez");
      expect(ended).toBe(false);
      await clock.advance(1);
      expect(problemOf(await waiting).code).toBe("upstream_timeout");
    } finally {
      await service.close();
    }
  });

  test("by being unreachable, a search returns unknown, prices stay, and health warns", async () => {
    const { clock, service } = await failingService();
    try {
      await service.sandbox.close();
      await clock.advance(1);
      const { status, body } = await service.ask("/v1/search?q=kabul&tlds=.af");
      expect(status).toBe(200);
      expect(body).toMatchObject({ complete: false, results: [{ status: "unknown", retryAfter: 5 }] });
      expect((await service.ask("/v1/prices")).status).toBe(200);
      expect((await service.ask("/health")).body).toMatchObject({
        status: "warn",
        checks: { upstream: [{ status: "warn" }] },
      });
    } finally {
      await service.close();
    }
  });
});

test("an incomplete price list isn't cacheable", async () => {
  const clock = new FakeClock();
  const env = { UPSTREAM_RATE_LIMIT: "13", UPSTREAM_RATE_HEADROOM: "3" };
  const service = await startService({ clock, env, warm: false });
  try {
    const list = async () => {
      const { body, headers } = await service.ask("/v1/prices");
      return { prices: priceList.parse(body).prices.length, cacheControl: headers["cache-control"] };
    };
    await clock.advance(5_000);
    const first = await list();
    expect(first.prices).toBeGreaterThan(0);
    expect(first.prices).toBeLessThan(28);
    expect(first.cacheControl).toBe("no-store");
    await clock.advance(600_000);
    expect(await list()).toEqual({
      prices: 28,
      cacheControl: "public, max-age=300, stale-while-revalidate=3600",
    });
  } finally {
    await service.close();
  }
});

test("a promotion that ends while a search waits for another name no longer counts for a premium name", async () => {
  const clock = new FakeClock();
  const to = new Date(clock.now() + 2_000).toISOString();
  const promotion = `{ id: spring, match: {}, percentOff: "5", from: 2026-03-01T00:00:00Z, to: ${to} }`;
  const retail = `${FOUR_TLDS.replaceAll("[1]", "[1, 2]")}promotions: [${promotion}]\n`;
  const shown = z.object({
    domain: z.string(),
    price: z.object({ amount: z.string() }).nullable(),
    stale: z.boolean(),
  });
  const service = await startService({ clock, retail });
  try {
    const { control } = service.sandbox;
    const priceOf = async (domain: string) =>
      shown.parse((await service.ask(`/v1/availability?domain=${domain}&years=2`)).body).price;
    control.setTaken("gold.com.af", false);
    const during = await priceOf("gold.af");
    const hold = control.hold({ operation: "check", asked: { domain: "gold.com.af" }, calls: 1 });
    const asking = service.ask("/v1/search?q=gold&tlds=.af,.com.af&years=2");
    const late = await hold.caught();
    await clock.advance(2_000);
    late.release();
    const { results } = z.object({ results: z.array(shown) }).parse((await asking).body);
    const after = await priceOf("gold.af");
    expect(after).not.toEqual(during);
    expect(results[0]).toMatchObject({ domain: "gold.af", price: after, stale: false });
  } finally {
    await service.close();
  }
});

test("a search that discovers a price change shows no older price as certain", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  const shown = z.object({ domain: z.string(), price: z.object({ amount: z.string() }), stale: z.boolean() });
  try {
    const before = shown.parse((await service.ask("/v1/availability?domain=kabul.af")).body);
    expect(before).toMatchObject({ price: { amount: "26.99" }, stale: false });
    await clock.advance(2_000);
    service.sandbox.control.setTier("demo", "Platinum");
    const { body } = await inTime(clock, service.ask("/v1/search?q=kabul&tlds=.af,.com.af"));
    const [known, fresh] = z.object({ results: z.array(shown) }).parse(body).results;
    expect([known?.domain, fresh?.domain, fresh?.stale]).toEqual(["kabul.af", "kabul.com.af", false]);
    expect(known?.stale === true || known?.price.amount !== "26.99").toBe(true);
  } finally {
    await service.close();
  }
});
