/** The public API as visitors use it while nothing is short and nothing fails: names, searches, prices, quotes and carts. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { searchShape } from "../../src/wire/visitors.js";
import { openStream } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { claimsOf, promiseFault } from "../support/promise.js";
import { SMALL_SHOP } from "../support/retail.js";
import {
  CHECK,
  inTime,
  PRICING,
  problemOf,
  type Service,
  startService,
  until,
  withService,
} from "../support/service.js";

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
const UNKNOWN = {
  available: false,
  premium: false,
  stale: false,
  status: "unknown",
  asOf: null,
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

let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock() });
  await until(() => service.calls() === 29, "the last startup call");
});
afterAll(() => service.close());

/** The number of upstream calls that `act` makes. */
async function callsOf(act: () => Promise<unknown>): Promise<number> {
  const before = service.calls();
  await act();
  return service.calls() - before;
}

const bodyOf = async (path: string): Promise<unknown> => (await service.ask(path)).body;
const domainsOf = async (path: string): Promise<readonly string[]> =>
  searchShape.parse(await bodyOf(path)).results.map(({ domain }) => domain);
/** Like a browser, also the apostrophe. */
const encoded = (text: string): string => encodeURIComponent(text).replaceAll("'", "%27");
const availabilityPath = (domain: string): string => `/v1/availability?domain=${encoded(domain)}`;

describe("asking for a name", () => {
  test("that is available gets the retail price of the shortest term, or of the term that was asked for", async () => {
    const { status, headers, body } = await service.ask("/v1/availability?domain=kabul.af");
    expect(status).toBe(200);
    expect(body).toEqual({ ...available("kabul.af"), years: 1, price: usd("26.99") });
    expect(headers).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "cache-control": "private, max-age=5",
    });
    // Not twice the price of one year.
    const two = await bodyOf("/v1/availability?domain=kabul.af&years=2");
    expect(two).toEqual({ ...available("kabul.af"), years: 2, price: usd("48.99") });
  });

  test("that is taken gets a 200 without a price, and makes no call for another term", async () => {
    const answer = await service.ask("/v1/availability?domain=google.af");
    expect([answer.status, answer.body]).toEqual([200, { ...named("google.af"), ...TAKEN }]);
    const calls = await callsOf(async () => {
      const body = await bodyOf("/v1/availability?domain=google.af&years=3");
      expect(body).toEqual({ ...named("google.af"), ...TAKEN, years: 3 });
    });
    expect(calls).toBe(0);
  });

  test("that the reseller owns finds it taken, without a call", async () => {
    const calls = await callsOf(async () => {
      const body = await bodyOf("/v1/availability?domain=khyber.af");
      expect(body).toEqual({ ...named("khyber.af"), ...TAKEN });
    });
    expect(calls).toBe(0);
  });

  test("that is premium gets its own price", async () => {
    const one = await bodyOf("/v1/availability?domain=gold.af");
    const premium = { ...named("gold.af"), ...AVAILABLE, renewal: null, premium: true };
    expect(one).toEqual({ ...premium, years: 1, price: usd("1667.50") });
    const two = await bodyOf("/v1/availability?domain=gold.af&years=2");
    expect(two).toMatchObject({ premium: true, years: 2, price: usd("1689.56") });
  });

  test("again makes no further call, also with Cache-Control: no-cache", async () => {
    await service.ask("/v1/availability?domain=kabul.af");
    const headers = { "Cache-Control": "no-cache", Pragma: "no-cache" };
    expect(await callsOf(() => service.ask("/v1/availability?domain=kabul.af", { headers }))).toBe(0);
  });

  test("can't tell from the headers whether somebody searched for it before", async () => {
    const headersOnce = async () => {
      const { headers } = await service.ask("/v1/availability?domain=confidential-idea.af");
      // The hundredth request of a connection ends it.
      const {
        "x-request-id": _id,
        date: _date,
        ratelimit: _limit,
        connection: _connection,
        "keep-alive": _keepAlive,
        ...rest
      } = headers;
      return rest;
    };
    expect(await headersOnce()).toEqual(await headersOnce());
  });
});

describe("a name", () => {
  test.each<[string, readonly string[]]>([
    [
      "kabul.af",
      [
        "KABUL.AF",
        " kabul.af\n",
        "kabul.af.",
        "www.kabul.af",
        "kabul. af",
        "kabul .af",
        "https://www.kabul.af/buy?x=1#top",
        "http://user:pw@kabul.af:8080",
        "<https://kabul.af/>",
        "view-source:https://www.kabul.af/x",
        "https:kabul.af",
        "https:/kabul.af",
        "https:\\\\kabul.af",
        "http:// kabul.af",
        "kabul。af",
        "kabul．af．",
        "kabul․af",
        "www۔kabul۔af۔",
        "“kabul.af”",
        "«kabul.af»،",
        "(kabul.af).",
        "'kabul.af',",
        "`kabul.af`",
        "**kabul.af**",
        "_kabul.af_",
        "kabul.af!",
        "kabul.af؟",
        "kabul.af…",
        "• kabul.af",
        "– kabul.af",
        "👉 kabul.af 😀",
        "\u200B\uFEFFkabul.af\u200C",
        "\u2068kabul.af\u2069",
      ],
    ],
    ["kabul.com.af", ["kabul۔com۔af"]],
    [
      "xn--mgbc8fxs.af",
      ["کابل۔af", "کابل٫af", "کابل\u200E.af", "کابل.\u200Faf", "کابل\u202C.\u2066af", "#کابل.af"],
    ],
  ])("that is typed or pasted as people do is understood as %s", async (domain, forms) => {
    await service.ask(availabilityPath(domain));
    const calls = await callsOf(async () => {
      for (const form of forms)
        expect([form, await bodyOf(availabilityPath(form))]).toMatchObject([form, { domain }]);
      const [form = ""] = forms;
      expect((await domainsOf(`/v1/search?q=${encoded(form)}&only=known`))[0]).toBe(domain);
    });
    expect(calls).toBe(0);
  });

  test("in another script gets both spellings", async () => {
    expect(await bodyOf(availabilityPath("München.af"))).toMatchObject({
      domain: "xn--mnchen-3ya.af",
      unicodeName: "münchen.af",
      tld: ".af",
    });
    for (const name of ["kabul-2026.af", "2026.af", "کابل۲.af", "کابل-1.af", "ښار.af", "café.af"])
      expect([name, await bodyOf(availabilityPath(name))]).toMatchObject([name, { unicodeName: name }]);
  });

  test("of a script that isn't sold, or of several, is refused wherever it is, without a call", async () => {
    const calls = await callsOf(async () => {
      for (const name of [
        "pаypal.af", // A Cyrillic letter among Latin ones.
        "раураӏ.af",
        "中国.af",
        "kabulא.af",
        "ｐаypal.af", // Full-width Latin and Cyrillic.
        "xn--pypal-4ve.af", // An A-label of Latin and Cyrillic.
        "kabul۱.af", // A Persian digit among Latin letters.
        "12۱.af",
        "کابل۱2.af", // Digits of two writings after Arabic letters.
      ])
        for (const path of [availabilityPath(name), `/v1/search?q=${encoded(name.replace(/\.af$/, ""))}`]) {
          const { errors } = problemOf(await service.ask(path));
          expect([path, errors]).toMatchObject([path, [{ reason: "script" }]]);
        }
      const items = [{ domain: "中国.af", action: "registration", years: 1 }];
      const { errors } = problemOf(await service.ask("/v1/quotes", { method: "POST", body: { items } }));
      expect(errors).toMatchObject([{ field: "items[0].domain", reason: "script" }]);
    });
    expect(calls).toBe(0);
  });
});

test.each([
  ["/v1/availability", "domain: required"],
  ["/v1/availability?domain=", "domain: required"],
  ["/v1/availability?domain=kabul.af&domain=x.af", "domain: duplicate"],
  ["/v1/availability?domain=kabul.af&color=red", "color: unknown"],
  ["/v1/availability?domain[]=kabul.af", "query: unknown"],
  ["/v1/availability?domain=kabul.af&years=x", "years: malformed"],
  ["/v1/availability?domain=kabul.af&years=1e0", "years: malformed"],
  ["/v1/availability?domain=kabul.af&years=", "years: malformed"],
  ["/v1/availability?domain=kabul.af&years=0", "years: malformed"],
  ["/v1/availability?domain=kabul.af&years=9", "years: not_sold"],
  ["/v1/availability?domain=kabul.net.af&years=3", "years: not_sold"],
  ["/v1/availability?domain=kabul.af&years=1&years=1", "years: duplicate"],
  ["/v1/availability?domain=kabul.af&only=some", "only: malformed"],
  ["/v1/availability?domain=kabul.af&only=known&only=known", "only: duplicate"],
  ["/v1/availability?domain=-.af&only=known", "domain: not_a_name"],
  ["/v1/availability?domain=kabul.uk", "domain: not_sold"],
  ["/v1/availability?domain=kabul.gov.af", "domain: not_sold"],
  ["/v1/availability?domain=shop.kabul.af", "domain: not_a_name"],
  ["/v1/availability?domain=kabul", "domain: not_a_name"],
  ["/v1/availability?domain=a@kabul.af", "domain: not_a_name"],
  ["/v1/availability?domain=ka--bul.af", "domain: not_a_name"],
  ["/v1/availability?domain=-kabul.af", "domain: not_a_name"],
  ["/v1/availability?domain=ka..bul.af", "domain: not_a_name"],
  ["/v1/availability?domain=com.af", "domain: not_a_name"],
  ["/v1/availability?domain=ka_bul.af", "domain: character"],
  ["/v1/availability?domain=ka%20bul.af", "domain: character"],
  [availabilityPath("😀.af"), "domain: character"],
  [availabilityPath("ka\u200Ebul.af"), "domain: character"],
  [availabilityPath("123کابل.af"), "domain: script"],
  [availabilityPath("کار\u200Cها.af"), "domain: script"],
  [`/v1/availability?domain=${"k".repeat(64)}.af`, "domain: too_long"],
  ["/v1/search", "q: required"],
  ["/v1/search?q=kabul.com", "q: not_sold"],
  ["/v1/search?q=-", "q: not_a_name"],
  ["/v1/search?q=kabul&q=herat", "q: duplicate"],
  ["/v1/search?q=kabul&limit=1", "limit: unknown"],
  ["/v1/search?q=kabul&tlds=", "tlds: not_sold"],
  ["/v1/search?q=kabul&tlds=.uk", "tlds: not_sold"],
  ["/v1/search?q=kabul&tlds=.af,,.com.af", "tlds: not_sold"],
  ["/v1/search?q=kabul&years=9", "years: not_sold"],
  ["/v1/search?q=kabul.net.af&years=3", "years: not_sold"],
  ["/v1/prices?tld=.com", "tld: not_sold"],
  ["/v1/prices?action=Registration", "action: not_sold"],
  ["/v1/prices?years=9", "years: not_sold"],
  ["/v1/prices?currency=EUR", "currency: unknown"],
  ["/v1/prices?only=known", "only: unknown"],
  ["/v1/quotes?action=renewal", "tld: required"],
  ["/v1/quotes?tld=.af", "action: not_sold"],
  ["/v1/quotes?tld=.af&action=transfer&years=2", "years: not_sold"],
  ["/v1/quotes?tld=.af&action=renewal&domain=kabul.af", "domain: unknown"],
])("%s is refused without a call, because of %s", async (path, faults) => {
  const calls = await callsOf(async () => {
    const { code, errors = [] } = problemOf(await service.ask(path));
    expect(code).toBe("invalid_request");
    expect(errors.map(({ field, reason }) => `${field}: ${reason}`).join(", ")).toBe(faults);
  });
  expect(calls).toBe(0);
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
    expect(await domainsOf("/v1/search?q=https%3A%2F%2Fwww.kabul.net.af%2F")).toEqual([
      "kabul.net.af",
      "kabul.af",
      "kabul.com.af",
      "kabul.org.af",
    ]);
  });

  test("under chosen TLDs gets only these, each once, in the requested order", async () => {
    expect(await domainsOf("/v1/search?q=kabul&tlds=.org.af,.AF,.org.af")).toEqual([
      "kabul.org.af",
      "kabul.af",
    ]);
  });

  test("for three years gets only the TLDs that are sold for three, unless its whole name isn't", async () => {
    expect(await domainsOf("/v1/search?q=kabul&years=3")).toEqual(["kabul.af", "kabul.com.af"]);
    expect((await domainsOf("/v1/search?q=kabul.net.af&years=2"))[0]).toBe("kabul.net.af");
    const headers = { Accept: "text/event-stream" };
    const answer = await service.ask("/v1/search?q=kabul.net.af&years=3", { headers });
    const message = "must be one of 1, 2 for registration under .net.af";
    expect(problemOf(answer).errors).toEqual([{ field: "years", reason: "not_sold", message }]);
  });
});

describe("only=known, for people who are still typing,", () => {
  beforeAll(async () => {
    await service.ask("/v1/availability?domain=typed.af");
    await service.ask("/v1/search?q=herat");
  });

  test("gets what is in memory as in any answer, and the rest as unknown, without retryAfter, kept or a call", async () => {
    const calls = await callsOf(async () => {
      for (const path of ["/v1/availability?domain=typed.af", "/v1/search?q=herat"]) {
        const plain = await service.ask(path);
        const known = await service.ask(`${path}&only=known`);
        expect([known.status, known.text]).toEqual([200, plain.text]);
      }
      const other = await service.ask("/v1/availability?domain=nobody-asked.af&only=known");
      expect([other.status, other.body]).toEqual([200, { ...named("nobody-asked.af"), ...UNKNOWN }]);
    });
    expect(calls).toBe(0);
  });

  test("includes what has been learned since the last request, and says whether that is complete", async () => {
    const path = "/v1/search?q=typed&tlds=.af,.com.af&only=known";
    expect(await bodyOf(path)).toMatchObject({
      label: "typed",
      results: [
        { domain: "typed.af", status: "available" },
        { ...named("typed.com.af"), ...UNKNOWN },
      ],
      complete: false,
    });
    await service.ask("/v1/availability?domain=typed.com.af");
    expect(await bodyOf(path)).toMatchObject({ results: [{}, { status: "available" }], complete: true });
  });

  test("gets the same headers whether or not a name is in memory", async () => {
    for (const [known, other] of [
      ["/v1/availability?domain=typed.af", "/v1/availability?domain=nobody-asked.af"],
      ["/v1/search?q=herat", "/v1/search?q=nobody-asked"],
    ] as const) {
      for (const method of ["GET", "HEAD"]) {
        const [one, two, plain] = await Promise.all(
          [`${known}&only=known`, `${other}&only=known`, known].map((path) =>
            service.ask(path, { method, headers: { Accept: "application/json" } }),
          ),
        );
        expect(one?.headers["cache-control"]).toBe(plain?.headers["cache-control"]);
        expect(two?.headers["cache-control"]).toBe(plain?.headers["cache-control"]);
        const fields = (answer: typeof one): readonly string[] =>
          Object.keys(answer?.headers ?? {}).filter((name) => name !== "keep-alive");
        expect(fields(two)).toEqual(fields(one));
        if (method === "HEAD") expect(two?.headers).not.toHaveProperty("content-length");
      }
    }
  });

  test("gets a stream of the results in memory, which ends then", async () => {
    const path = "/v1/search?q=herat-x&tlds=.af,.com.af&only=known";
    await service.ask("/v1/availability?domain=herat-x.af");
    const events = await (await openStream(service, path)).whole();
    const done = { event: "done", data: { complete: false } };
    expect(events).toMatchObject([
      { event: "result", id: expect.any(String), data: { domain: "herat-x.af", status: "available" } },
      done,
    ]);
    const resumed = await openStream(service, path, { "Last-Event-ID": events[0]?.id ?? "" });
    expect(await resumed.whole()).toMatchObject([done]);
  });
});

describe("reading prices", () => {
  test("gets every combination of the catalogue, from memory", async () => {
    const calls = await callsOf(async () => {
      const answer = await service.ask("/v1/prices");
      expect(answer.status).toBe(200);
      expect(answer.headers["cache-control"]).toBe("public, max-age=300, stale-while-revalidate=3600");
      const { asOf, prices } = priceList.parse(answer.body);
      expect([asOf, prices.length]).toEqual([NOW, 28]);
      expect(prices).toContainEqual({ tld: ".af", action: "renewal", years: 2, price: usd("53.99") });
    });
    expect(calls).toBe(0);
  });

  test("can filter them by TLD, action and term", async () => {
    expect(await bodyOf("/v1/prices?tld=.AF&action=registration&years=1")).toEqual({
      asOf: NOW,
      prices: [{ tld: ".af", action: "registration", years: 1, price: usd("26.99") }],
    });
  });

  test("of one term as a quote gets its price and age, for the shortest term unless another is asked for", async () => {
    const calls = await callsOf(async () => {
      const { headers, body } = await service.ask("/v1/quotes?tld=.af&action=renewal&years=2");
      const renewal = { tld: ".af", action: "renewal", years: 2, price: usd("53.99") };
      expect(body).toEqual({ ...renewal, asOf: NOW, stale: false });
      expect(headers["cache-control"]).toBe("no-store");
      expect(await bodyOf("/v1/quotes?tld=.af&action=transfer")).toMatchObject({ years: 1 });
    });
    expect(calls).toBe(0);
  });
});

describe("a cart", () => {
  const post = (body: unknown) => service.ask("/v1/quotes", { method: "POST", body });
  const ITEM = { domain: "kabul.af", action: "registration", years: 1 };

  test("gets each price and status, and the total; every line that has a price is promised exactly as shown", async () => {
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
    expect(promiseFault(answer.body)).toBeUndefined();
    const { promise } = z.object({ promise: z.string() }).parse(answer.body);
    expect(claimsOf(promise).iat).toBe(Date.parse(NOW) / 1000);
  });

  test("with nothing that can be bought gets no total and no promise", async () => {
    const { body } = await post({ items: [{ ...ITEM, domain: "google.af" }] });
    expect(body).toMatchObject({ total: [], promise: null, validUntil: null });
  });

  test("with 20 lines is served", async () => {
    const items = Array.from({ length: 20 }, (_, n) => ({ domain: `cart-${n}.af`, action: "renewal" }));
    expect((await post({ items })).status).toBe(200);
  });

  test.each<[unknown, Readonly<Record<string, string>>]>([
    [{}, { items: "required" }],
    [[], { body: "malformed" }],
    [{ items: {} }, { items: "malformed" }],
    [{ items: [] }, { items: "too_short" }],
    [{ items: Array.from({ length: 10_000 }, () => ({})) }, { items: "too_many" }],
    [{ items: [null] }, { "items[0]": "malformed" }],
    [{ items: [{ ...ITEM, price: "0.01" }] }, { "items[0]": "unknown" }],
    [{ items: [ITEM], coupon: "x" }, { body: "unknown" }],
    [{ items: [ITEM, { ...ITEM, domain: "WWW.KABUL.AF." }] }, { "items[1].domain": "duplicate" }],
    [
      {
        items: [
          { ...ITEM, domain: "" },
          { ...ITEM, domain: 7 },
          { ...ITEM, action: "sale" },
          { ...ITEM, years: 0 },
          { ...ITEM, years: "1" },
        ],
      },
      {
        "items[0].domain": "required",
        "items[1].domain": "malformed",
        "items[2].action": "not_sold",
        "items[3].years": "out_of_range",
        "items[4].years": "malformed",
      },
    ],
    [
      {
        items: [
          { ...ITEM, domain: "cart-fault.af" },
          { ...ITEM, domain: "kabul.com" },
          { ...ITEM, years: 7 },
          { ...ITEM, domain: "herat.af", action: "transfer", years: 2 },
        ],
      },
      { "items[1].domain": "not_sold", "items[2].years": "not_sold", "items[3].years": "not_sold" },
    ],
  ])("with faults gets the reason of each at its field, without a call: %#", async (body, faults) => {
    const calls = await callsOf(async () => {
      const { code, errors = [] } = problemOf(await post(body));
      expect(code).toBe("invalid_request");
      expect(Object.fromEntries(errors.map(({ field, reason }) => [field, reason]))).toEqual(faults);
    });
    expect(calls).toBe(0);
  });

  test("with many faults gets at most twenty errors, which repeat no unusual name", async () => {
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
    const parameters = Array.from({ length: 2_000 }, (_, n) => `p${n}`).join("&");
    const query = await service.ask(`/v1/availability?domain=kabul.af&${parameters}`);
    expect(problemOf(query).errors).toHaveLength(20);
  });

  test("that isn't a JSON object, or has a query parameter, is rejected", async () => {
    for (const body of ["", "{", "null", '"kabul.af"', "[1,]", "\u0000"]) {
      const headers = { "Content-Type": "application/json", "Content-Length": String(body.length) };
      const answer = await service.ask("/v1/quotes", { method: "POST", headers, body });
      expect([body, problemOf(answer).code]).toEqual([body, "invalid_request"]);
    }
    const answer = await service.ask("/v1/quotes?tld=.af", { method: "POST", body: { items: [ITEM] } });
    expect(problemOf(answer).errors?.map(({ field }) => field)).toEqual(["tld"]);
  });
});

describe("as time passes,", () => {
  // Its background calls would count as those of the others.
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock });
  });
  afterAll(() => service.close());
  const callsOf = async (act: () => Promise<unknown>, route: string): Promise<number> => {
    const before = service.calls(route);
    await act();
    return service.calls(route) - before;
  };
  const bodyOf = async (path: string): Promise<unknown> => (await service.ask(path)).body;
  const cart = async (domain: string, action: string) => {
    const items = [{ domain, action, years: 1 }];
    const { status, body } = await service.ask("/v1/quotes", { method: "POST", body: { items } });
    expect(status).toBe(200);
    return body;
  };

  test("a name is checked again for a cart, however fresh the search result is, but not for a double click", async () => {
    const domain = "to-be-taken.af";
    const checks = (act: () => Promise<unknown>) => callsOf(act, CHECK);
    expect(await checks(() => service.ask(availabilityPath(domain)))).toBe(1);
    await clock.advance(6000);
    expect(await checks(() => service.ask(availabilityPath(domain)))).toBe(0);
    service.sandbox.control.setTaken(domain, true);
    const once = async () =>
      expect(await cart(domain, "registration")).toMatchObject({
        items: [{ status: "taken", price: null }],
        total: [],
      });
    expect(await checks(once)).toBe(1);
    expect(await checks(once)).toBe(0);
    expect(await bodyOf(availabilityPath(domain))).toMatchObject({ status: "taken" });
  });

  test("a price in a cart is asked for again once it is older than a minute", async () => {
    const quotes = () => callsOf(() => cart("herat.af", "renewal"), PRICING);
    await quotes();
    await clock.advance(70_000);
    await quotes();
    await clock.advance(59_000);
    expect(await quotes()).toBe(0);
    await clock.advance(2_000);
    expect(await quotes()).toBe(1);
  });

  test("a search that discovers a price change shows no older price as certain", async () => {
    const shown = z.object({
      domain: z.string(),
      price: z.object({ amount: z.string() }),
      stale: z.boolean(),
    });
    for (const name of ["jalalabad.af", "jalalabad.com.af"]) service.sandbox.control.setTaken(name, false);
    const before = shown.parse(await bodyOf("/v1/availability?domain=jalalabad.af"));
    expect(before).toMatchObject({ price: { amount: "26.99" }, stale: false });
    await clock.advance(2_000);
    service.sandbox.control.setTier("demo", "Platinum");
    const { body } = await inTime(clock, service.ask("/v1/search?q=jalalabad&tlds=.af,.com.af"));
    const [known, fresh] = z.object({ results: z.array(shown) }).parse(body).results;
    expect([known?.domain, fresh?.domain, fresh?.stale]).toEqual(["jalalabad.af", "jalalabad.com.af", false]);
    expect(known?.stale === true || known?.price.amount !== "26.99").toBe(true);
  });
});

describe("in another shop,", () => {
  function inShop(catalog: string, act: (shop: Service) => Promise<void>): Promise<void> {
    return withService({ retail: SMALL_SHOP.replace(/catalog: .*/, `catalog: ${catalog}`) }, act);
  }

  test("a TLD without registrations isn't offered for names, but its renewals have prices; a registry can take Latin names alone, so another name is refused there and left out of searches", () =>
    inShop(
      "[{ tld: .com.af, years: { renewal: [1] } }, { tld: .af, years: { registration: [1] } }, { tld: .net.af, scripts: [latin], years: { registration: [1] } }]",
      async ({ ask }) => {
        const message = "has an ending that isn't sold here; names are sold under .af, .net.af";
        for (const [path, field] of [
          ["/v1/availability?domain=kabul.com.af", "domain"],
          ["/v1/search?q=kabul.org.af", "q"],
        ] as const)
          expect(problemOf(await ask(path)).errors).toEqual([{ field, reason: "not_sold", message }]);
        const line = { domain: "kabul.com.af", action: "renewal", years: 1 };
        const cart = await ask("/v1/quotes", { method: "POST", body: { items: [line] } });
        expect(cart.body).toMatchObject({ items: [{ ...line, price: { currency: "USD" } }] });
        const prices = await ask("/v1/prices?tld=.com.af");
        expect(prices.body).toMatchObject({ prices: [{ tld: ".com.af", action: "renewal" }] });
        expect(/ tlds="([^"]*)"/.exec((await ask("/")).text)?.[1]).toBe(".af,.net.af");

        const refused = problemOf(await ask(availabilityPath("کابل.net.af")));
        expect(refused.errors).toMatchObject([{ field: "domain", reason: "script" }]);
        const { body } = await ask(`/v1/search?q=${encoded("کابل")}`);
        expect(body).toMatchObject({ results: [{ unicodeName: "کابل.af" }] });
        expect((await ask(availabilityPath("bücher.net.af"))).status).toBe(200);
      },
    ));

  test("without any registrations, the error names no endings", () =>
    inShop("[{ tld: .af, years: { renewal: [1] } }]", async ({ ask }) => {
      const message = "can't be registered: no names are sold here";
      for (const [path, field] of [
        ["/v1/availability?domain=kabul.af", "domain"],
        ["/v1/availability?domain=kabul", "domain"],
        ["/v1/search?q=kabul.com", "q"],
      ] as const)
        expect(problemOf(await ask(path)).errors).toEqual([{ field, reason: "not_sold", message }]);
    }));
});
