/** The staff API, by scope. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { z } from "zod";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { bearer, CHECK, problemOf, type Service, startService, until } from "../support/service.js";

const NOW = "2026-03-20T00:00:00.000Z";
const DOMAIN = "GET /api/v1/domains/{domain}";

/** The sandbox preset with which the whole suite runs, if it isn't the default. */
const PRESET = process.env["SANDBOX_PRESET"];

/** Wholesale, retail and margin of a price of each rule, for the sandbox's reseller in the Silver tier. */
const PRICES = [
  [".af", "registration", 1, "20.21", "26.99", "6.78", "rule 1"],
  [".com.af", "restore", 1, "43.71", "56.00", "12.29", "rule 2"],
  [".org.af", "renewal", 2, "17.20", "21.99", "4.79", "rule 3"],
] as const;

describe("the staff API", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock });
    await until(() => service.calls("GET /api/v1/domains") === 1);
  });
  afterAll(() => service.close());

  const read = (path: string) => service.ask(path, { headers: bearer("read") });

  const READ = [
    "/v1/staff/domains",
    "/v1/staff/domains/khyber.af",
    "/v1/staff/balance",
    "/v1/staff/tier",
    "/v1/staff/prices",
    "/v1/staff/overview",
    "/v1/staff/history",
  ];

  test.each([...READ, "/metrics"])("requires a token with the right scope for GET %s", async (path) => {
    const scope = path === "/metrics" ? "metrics" : "read";
    const calls = service.calls();
    for (const Authorization of ["", "Bearer", "Bearer wrong", "Basic cmVhZDpyZWFk", "Bearer a b"]) {
      const refused = await service.ask(path, { headers: { Authorization } });
      expect(problemOf(refused).code).toBe("unauthenticated");
      expect(refused.headers["www-authenticate"]).toBe('Bearer realm="staff"');
    }
    for (const other of (["read", "operate", "metrics"] as const).filter((name) => name !== scope)) {
      const refused = await service.ask(path, { headers: bearer(other) });
      expect(problemOf(refused).code).toBe("forbidden");
      expect(refused.headers["www-authenticate"]).toBe(
        `Bearer realm="staff", error="insufficient_scope", scope="${scope}"`,
      );
    }
    expect(service.calls()).toBe(calls);
    const { status, headers } = await service.ask(path, { headers: bearer(scope) });
    expect([status, headers["cache-control"]]).toEqual([200, "no-store"]);
  });

  test("requires the operate scope for a purge", async () => {
    const purge = (headers: Readonly<Record<string, string>>) =>
      service.ask("/v1/staff/cache/purge", { method: "POST", headers, body: { what: "account" } });
    expect(problemOf(await purge({})).code).toBe("unauthenticated");
    expect(problemOf(await purge(bearer("read"))).code).toBe("forbidden");
    expect((await purge(bearer("operate"))).status).toBe(200);
    await read("/v1/staff/domains");
  });

  test("lists the reseller's domains", async () => {
    const { body } = await read("/v1/staff/domains");
    const list = z
      .strictObject({ domains: z.array(z.unknown()), asOf: z.literal(NOW), source: z.literal("cache") })
      .parse(body);
    expect(list.domains).toHaveLength(12);
    const bamyan = {
      domain: "bamyan.af",
      status: "active",
      registeredAt: "2020-07-02T00:00:00.000Z",
      expiresAt: expect.stringMatching(/^20\d\d-07-02T00:00:00\.000Z$/),
      autoRenew: false,
      nameservers: ["ns1.sandbox-dns.af", "ns2.sandbox-dns.af"],
    };
    // Some upstreams list less than they know, or use different words.
    expect(list.domains).toContainEqual(
      PRESET === undefined ? bamyan : expect.objectContaining({ domain: "bamyan.af" }),
    );
  });

  test("returns one domain, the second time from memory", async () => {
    const one = {
      domain: "hindukush.net.af",
      status: PRESET === undefined ? "suspended" : expect.any(String),
      registeredAt: "2024-01-16T00:00:00.000Z",
      expiresAt: expect.stringMatching(/^20\d\d-01-16T00:00:00\.000Z$/),
      autoRenew: true,
      nameservers: ["ns1.sandbox-dns.af", "ns2.sandbox-dns.af"],
      asOf: NOW,
    };
    const before = service.calls(DOMAIN);
    expect((await read("/v1/staff/domains/hindukush.net.af")).body).toEqual({ ...one, source: "upstream" });
    expect((await read("/v1/staff/domains/HinduKush.net.af.")).body).toEqual({ ...one, source: "cache" });
    expect(service.calls(DOMAIN) - before).toBe(1);
  });

  test("returns a 404 for a domain that isn't the reseller's, and makes no call for what can't be one", async () => {
    expect(problemOf(await read("/v1/staff/domains/google.af")).code).toBe("not_found");
    const before = service.calls();
    for (const domain of [".", "..", "%2e", "%2e%2e%2fbalance", "af", "kabul.com", "%00", "*"])
      expect([400, 404]).toContain((await read(`/v1/staff/domains/${domain}`)).status);
    expect(service.calls()).toBe(before);
  });

  test.each(READ.slice(0, 5))(
    "sends no body of %s to a client that already has it, as JSON or as CSV",
    async (path) => {
      for (const Accept of ["application/json", "text/csv, application/json;q=0.5"]) {
        const headers = { ...bearer("read"), Accept };
        await service.ask(path, { headers });
        const { headers: given, text } = await service.ask(path, { headers });
        const tag = given["etag"];
        expect(tag).toMatch(/^"[\w-]+"$/);
        const again = await service.ask(path, { headers: { ...headers, "If-None-Match": String(tag) } });
        expect([again.status, again.text, text === ""]).toEqual([304, "", false]);
      }
    },
  );

  test("returns the balance and the tier, with their age and source", async () => {
    expect((await read("/v1/staff/balance")).body).toEqual({
      accountNumber: "RS-100482",
      balance: "1843.50",
      currency: "USD",
      creditLimit: "500.00",
      activeDomains: 10,
      asOf: NOW,
      source: expect.stringMatching(/^(?:upstream|cache)$/),
    });
    expect((await read("/v1/staff/tier")).body).toEqual({
      currentTier: "Silver",
      nextTier: "Gold",
      domainsNeeded: 15,
      asOf: NOW,
      source: expect.stringMatching(/^(?:upstream|cache)$/),
    });
    expect((await read("/v1/staff/balance")).body).toMatchObject({ source: "cache" });
  });

  test("returns the components of every price", async () => {
    const { body } = await read("/v1/staff/prices");
    const { prices, ...rest } = z
      .strictObject({ asOf: z.string(), prices: z.array(z.unknown()), warnings: z.array(z.string()) })
      .parse(body);
    expect(rest).toEqual({ asOf: NOW, warnings: [] });
    expect(prices).toHaveLength(28);
    for (const [tld, action, years, wholesale, retail, margin, rule] of PRICES)
      expect(prices).toContainEqual({
        tld,
        action,
        years,
        wholesale: { amount: wholesale, currency: "USD" },
        retail: { amount: retail, currency: "USD" },
        margin: { amount: margin, currency: "USD" },
        rule,
        asOf: NOW,
      });
  });

  test("returns an overview of the service", async () => {
    await service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/v1/availability?domain=kabul.af");
    const answer = await read("/v1/staff/overview");
    matchesDocument(openApiDocument({ version: "1" }), "get", "/v1/staff/overview", answer);
    const idle = { queued: 0, retried: 0 };
    expect(answer.body).toMatchObject({
      mode: "sandbox",
      quota: {
        used: service.calls(),
        budget: 997,
        limit: 1000,
        windowMs: 60_000,
        largestWindowToday: service.calls(),
        pausedForMs: 0,
        lanes: { checkout: idle, exact: idle, search: idle, account: idle, refresh: idle, suggestion: idle },
        waits: {
          retryAfter: { count: 0 },
          reservations: { made: 0 },
          refused: { reserved: 0, busy: 0, early: 0, late: 0, fault: 0 },
        },
      },
      upstream: { lastSuccessAt: NOW, lastFailureAt: null, openCircuits: [] },
      // Another preset has shapes that count as unexpected.
      unexpected: PRESET === undefined ? [] : expect.any(Array),
      credentials: [{ role: "active", fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/), refused: false }],
      redis: "none",
      prices: {
        sold: 28,
        known: 28,
        config: { fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/), since: NOW, faults: [] },
      },
      promises: { inForce: 0, belowFloor: 0, marginLost: [] },
      owner: { role: "alone" },
      proxy: "fits",
      alarms: [],
      notices: { on: false, waiting: 0, last: [] },
    });
  });

  test("serves the Prometheus metrics", async () => {
    await read("/v1/staff/prices");
    for (let asked = 0; asked < 2; asked += 1) await service.ask("/v1/availability?domain=kabul.af");
    const answer = await service.ask("/metrics", { headers: bearer("metrics") });
    expect(answer.headers["content-type"]).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(answer.text).toMatch(/^http_request_duration_seconds_count\{.*route="\/v1\/staff\/prices"/m);
    expect(answer.text).toMatch(/^quota_calls\{what="budget"\} 997$/m);
    expect(answer.text).toMatch(/^quota_lane_refused_total\{lane="exact"\} 0$/m);
    const served = /^quota_lane_served_total\{lane="exact"\} (\d+)$/m;
    expect(Number(served.exec(answer.text)?.[1])).toBeGreaterThan(0);
    expect((await service.ask("/metrics", { headers: bearer("metrics") })).text.match(served)?.[1]).toBe(
      served.exec(answer.text)?.[1],
    );
    expect(answer.text).toMatch(/^upstream_calls_saved_total\{by="cache"\} [1-9]/m);
  });

  test("accepts no parameters, and isn't found under another spelling of the address", async () => {
    for (const path of READ)
      expect(problemOf(await read(`${path}?limit=1`)).errors?.map(({ field }) => field)).toEqual(["limit"]);
    for (const path of [
      "/V1/STAFF/balance",
      "/V1/STAFF/",
      "/v1/staff/balance/",
      "/v1/Staff/balance",
      "//v1/staff/balance",
    ])
      expect(problemOf(await read(path)).code).toBe("not_found");
  });

  test("doesn't let scripts of other websites read its answers", async () => {
    const { headers } = await service.ask("/v1/staff/balance", {
      headers: { ...bearer("read"), Origin: "https://www.example.af" },
    });
    expect(headers).not.toHaveProperty("access-control-allow-origin");
  });
});

describe("a purge", () => {
  let clock: FakeClock;
  let service: Service;
  beforeEach(async () => {
    clock = new FakeClock();
    service = await startService({ clock });
  });
  afterEach(() => service.close());

  const read = (path: string) => service.ask(path, { headers: bearer("read") });
  const purge = async (body: unknown) =>
    service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body });

  test("of availability makes the next visitor's request call the upstream", async () => {
    await purge({ what: "availability" });
    await service.ask("/v1/availability?domain=kabul.af");
    const answer = await purge({ what: "availability" });
    expect(answer.headers["cache-control"]).toBe("no-store");
    expect(answer.body).toEqual({ purged: { availability: 1 } });
    expect((await purge({ what: "availability" })).body).toEqual({ purged: { availability: 0 } });
    const before = service.calls(CHECK);
    await service.ask("/v1/availability?domain=kabul.af");
    expect(service.calls(CHECK) - before).toBe(1);
  });

  test("of the account ends domains, balance and tier", async () => {
    await purge({ what: "account" });
    for (const path of ["/v1/staff/domains", "/v1/staff/balance", "/v1/staff/tier"]) await read(path);
    expect((await purge({ what: "account" })).body).toEqual({ purged: { account: 3 } });
    expect((await read("/v1/staff/tier")).body).toMatchObject({ source: "upstream" });
  });

  test("of anything else is rejected", async () => {
    for (const body of [{}, { what: "names" }, { what: ["prices"] }, { what: "prices", force: true }, []])
      expect(problemOf(await purge(body)).code).toBe("invalid_request");
  });

  test("of everything counts each kind, and prices are refreshed automatically", async () => {
    expect((await purge({ what: "all" })).body).toEqual({
      purged: { prices: 28, availability: expect.any(Number), account: expect.any(Number) },
    });
    await clock.advance(5000);
    await until(async () => {
      const { body } = await service.ask("/v1/prices");
      const known = z.object({ prices: z.array(z.unknown()) }).safeParse(body);
      return known.data?.prices.length === 28;
    }, "the refresh of the price list");
  });
});

test("the account is shown as it was, marked stale, when the upstream fails", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  try {
    const balance = async () => (await service.ask("/v1/staff/balance", { headers: bearer("read") })).body;
    const { asOf } = z.object({ asOf: z.string() }).parse(await balance());
    await service.sandbox.close();
    await clock.advance(301_000);
    expect(await balance()).toMatchObject({ balance: "1843.50", asOf, source: "stale" });
  } finally {
    await service.close();
  }
});

test("a domain list that ends after a hundred says that there are more", async () => {
  const service = await startService({ clock: new FakeClock(), reseller: "big", warm: false });
  try {
    const { body } = await service.ask("/v1/staff/domains", { headers: bearer("read") });
    expect(body).toMatchObject({ truncated: true });
    expect(z.object({ domains: z.array(z.unknown()) }).parse(body).domains).toHaveLength(100);
    await service.ask("/v1/staff/balance", { headers: bearer("read") });
    const { text } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
    expect(text).toContain("The registry lists only 100 domains, but the account has 130.");
  } finally {
    await service.close();
  }
});
