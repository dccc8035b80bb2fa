/** The staff API, by scope. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import {
  bearer,
  CHECK,
  problemOf,
  type Service,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";

const NOW = "2026-03-20T00:00:00.000Z";
const DOMAIN = "GET /api/v1/domains/{domain}";

/** The sandbox preset with which the whole suite runs, if it isn't the default. */
const PRESET = process.env["SANDBOX_PRESET"];

/** Wholesale, retail and margin of everything in the shipped price list, for the sandbox's reseller in the Silver tier. */
const PRICES = [
  [".af", "registration", 1, "20.21", "26.99", "6.78", "rule 1"],
  [".af", "registration", 2, "39.39", "48.99", "9.60", "rule 3"],
  [".af", "registration", 3, "57.67", "70.99", "13.32", "rule 3"],
  [".af", "renewal", 1, "22.09", "27.99", "5.90", "rule 3"],
  [".af", "renewal", 2, "43.33", "53.99", "10.66", "rule 3"],
  [".af", "renewal", 3, "64.30", "78.99", "14.69", "rule 3"],
  [".af", "transfer", 1, "18.57", "23.99", "5.42", "rule 3"],
  [".af", "restore", 1, "78.96", "96.00", "17.04", "rule 2"],
  [".com.af", "registration", 1, "9.21", "11.99", "2.78", "rule 3"],
  [".com.af", "registration", 2, "17.81", "22.99", "5.18", "rule 3"],
  [".com.af", "registration", 3, "26.23", "32.99", "6.76", "rule 3"],
  [".com.af", "renewal", 1, "10.25", "13.99", "3.74", "rule 3"],
  [".com.af", "renewal", 2, "20.07", "24.99", "4.92", "rule 3"],
  [".com.af", "renewal", 3, "29.70", "36.99", "7.29", "rule 3"],
  [".com.af", "transfer", 1, "8.60", "11.99", "3.39", "rule 3"],
  [".com.af", "restore", 1, "43.71", "56.00", "12.29", "rule 2"],
  [".net.af", "registration", 1, "8.08", "10.99", "2.91", "rule 3"],
  [".net.af", "registration", 2, "15.75", "19.99", "4.24", "rule 3"],
  [".net.af", "renewal", 1, "9.02", "11.99", "2.97", "rule 3"],
  [".net.af", "renewal", 2, "17.72", "22.99", "5.27", "rule 3"],
  [".net.af", "transfer", 1, "7.76", "9.99", "2.23", "rule 3"],
  [".net.af", "restore", 1, "43.71", "56.00", "12.29", "rule 2"],
  [".org.af", "registration", 1, "7.85", "10.99", "3.14", "rule 3"],
  [".org.af", "registration", 2, "15.23", "19.99", "4.76", "rule 3"],
  [".org.af", "renewal", 1, "8.79", "11.99", "3.20", "rule 3"],
  [".org.af", "renewal", 2, "17.20", "21.99", "4.79", "rule 3"],
  [".org.af", "transfer", 1, "7.47", "9.99", "2.52", "rule 3"],
  [".org.af", "restore", 1, "41.36", "53.00", "11.64", "rule 2"],
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

  test("returns a 404 for a domain that isn't the reseller's", async () => {
    expect(problemOf(await read("/v1/staff/domains/google.af")).code).toBe("not_found");
  });

  test.each([".", "..", "%2e", "%2e%2e%2fbalance", "af", "kabul.com", "%00", "*"])(
    "makes no call for the domain %s",
    async (domain) => {
      const before = service.calls();
      const { status } = await read(`/v1/staff/domains/${domain}`);
      expect([400, 404]).toContain(status);
      expect(service.calls()).toBe(before);
    },
  );

  test.each([
    "/v1/staff/domains",
    "/v1/staff/domains/khyber.af",
    "/v1/staff/balance",
    "/v1/staff/tier",
    "/v1/staff/prices",
  ])("sends no body of %s to a client that already has it, as JSON or as CSV", async (path) => {
    for (const Accept of ["application/json", "text/csv, application/json;q=0.5"]) {
      const headers = { ...bearer("read"), Accept };
      await service.ask(path, { headers });
      const { headers: given, text } = await service.ask(path, { headers });
      const tag = given["etag"];
      expect(tag).toMatch(/^"[\w-]+"$/);
      const again = await service.ask(path, { headers: { ...headers, "If-None-Match": String(tag) } });
      expect([again.status, again.text, text === ""]).toEqual([304, "", false]);
    }
  });

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
    expect(prices).toEqual(
      PRICES.map(([tld, action, years, wholesale, retail, margin, rule]) => ({
        tld,
        action,
        years,
        wholesale: { amount: wholesale, currency: "USD" },
        retail: { amount: retail, currency: "USD" },
        margin: { amount: margin, currency: "USD" },
        rule,
        asOf: NOW,
      })),
    );
  });

  test("returns an overview of the service", async () => {
    await service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/v1/availability?domain=kabul.af");
    const { body } = await read("/v1/staff/overview");
    const count = expect.any(Number);
    const pool = {
      entries: count,
      bound: count,
      inflight: 0,
      counts: { hit: count, inflight: count, miss: count, stale: count, failed: count },
    };
    const lane = {
      queued: 0,
      served: count,
      refused: count,
      left: count,
      retried: 0,
      retriedServed: 0,
      waitedMsTotal: count,
      longestWaitMs: count,
    };
    expect(body).toEqual({
      mode: "sandbox",
      quota: {
        used: service.calls(),
        budget: 997,
        limit: 1000,
        windowMs: 60_000,
        largestWindowToday: service.calls(),
        pausedForMs: 0,
        lanes: {
          checkout: lane,
          exact: lane,
          search: lane,
          account: lane,
          refresh: lane,
          suggestion: lane,
        },
        waits: {
          retryAfter: { count: 0, p50Seconds: 0, p99Seconds: 0, maxSeconds: 0 },
          reservations: { made: 0, claimed: 0, honoured: 0, unclaimed: 0 },
          refused: { reserved: 0, busy: 0, early: 0, late: 0, fault: 0 },
          idleCalls: 0,
          refusedAgoMs: null,
        },
      },
      rateLimited: { requests: count, cold: 0 },
      caches: { availability: pool, prices: pool, tier: pool, account: pool },
      upstream: {
        lastSuccessAt: NOW,
        lastFailureAt: null,
        openCircuits: [],
        recent: { windowMs: 600_000, operations: expect.any(Array) },
      },
      // Another preset has shapes that count as unexpected.
      unexpected: PRESET === undefined ? [] : expect.any(Array),
      credentials: [{ role: "active", fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/), refused: false }],
      redis: "none",
      prices: {
        sold: 28,
        known: 28,
        doubtful: expect.any(Number),
        epochsEnded: expect.any(Array),
        config: { fingerprint: expect.stringMatching(/^[0-9a-f]{12}$/), since: NOW, faults: [] },
      },
      promises: { inForce: 0, belowFloor: 0, marginLost: [] },
      saved: { cache: count, coalesced: count, refusedLocally: count },
      owner: { role: "alone", since: expect.any(String) },
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

  test.each(READ)("accepts no parameters for %s", async (path) => {
    expect(problemOf(await read(`${path}?limit=1`)).errors?.map(({ field }) => field)).toEqual(["limit"]);
  });

  test("isn't found under another spelling of the address", async () => {
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

describe("purging", () => {
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

  test("availability clears the names, and the next visitor's request makes a call", async () => {
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

  test("the account clears domains, balance and tier", async () => {
    await purge({ what: "account" });
    for (const path of ["/v1/staff/domains", "/v1/staff/balance", "/v1/staff/tier"]) await read(path);
    expect((await purge({ what: "account" })).body).toEqual({ purged: { account: 3 } });
    expect((await read("/v1/staff/tier")).body).toMatchObject({ source: "upstream" });
  });

  test("everything returns each count, and prices are refreshed automatically", async () => {
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

  test.each([{}, { what: "names" }, { what: ["prices"] }, { what: "prices", force: true }, []])(
    "with the body %j is rejected",
    async (body) => {
      expect(problemOf(await purge(body)).code).toBe("invalid_request");
    },
  );
});

test("a token list that becomes malformed is ignored, and the log says so", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "tokens");
  const digest = createHash("sha256").update("hers").digest("hex");
  writeFileSync(file, `anna:${digest}:read`);
  const clock = new FakeClock();
  const service = await startService({ clock, env: { STAFF_TOKENS_FILE: file, STAFF_TOKENS: "" } });
  const asAnna = async () =>
    (await service.ask("/v1/staff/tier", { headers: { Authorization: "Bearer hers" } })).status;
  try {
    for (const text of [`anna:${digest}:re`, `# staff\nanna:${digest}:read`, `anna:${digest}:read;`]) {
      writeFileSync(file, text);
      await clock.advance(2_000);
      expect(await asAnna()).toBe(200);
    }
    expect(service.log.filter((line) => line.includes("secret.file.rejected"))).toHaveLength(1);
    writeFileSync(file, `bert:${digest}:metrics`);
    await clock.advance(2_000);
    expect(await asAnna()).toBe(403);
  } finally {
    await service.close();
    folder.remove();
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

test("account data is shown as stale when the upstream fails", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  try {
    const ask = () => service.ask("/v1/staff/balance", { headers: bearer("read") });
    await ask();
    await service.sandbox.close();
    await clock.advance(301_000);
    expect((await ask()).body).toMatchObject({ balance: "1843.50", asOf: NOW, source: "stale" });
  } finally {
    await service.close();
  }
});

test("a credential rotated at the upstream and replaced in its files is used without a restart", async () => {
  const folder = mkdtempSync(join(tmpdir(), "secrets-"));
  const clock = new FakeClock();
  const write = ({ key, secret }: { readonly key: string; readonly secret: string }): void => {
    writeFileSync(join(folder, "key"), `${key}\n`);
    writeFileSync(join(folder, "secret"), `${secret}\n`);
  };
  const service = await startService({
    clock,
    env: (sandbox) => {
      write(sandbox.credential());
      return {
        UPSTREAM_BASE_URL: sandbox.url,
        UPSTREAM_SERVICE_KEY_FILE: join(folder, "key"),
        UPSTREAM_SERVICE_SECRET_FILE: join(folder, "secret"),
        QUOTA_COLD_START: "assume-free",
        STATE_DIR: join(folder, "state"),
      };
    },
  });
  try {
    expect((await service.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
    const { key } = service.sandbox.credential();
    const fresh = service.sandbox.control.rotate(key, { revokeOld: true });
    await clock.advance(1000);
    expect(problemOf(await service.ask("/v1/availability?domain=herat.af")).code).toBe("upstream_failed");
    const refused = service.sandbox.stats().credentials.find((one) => one.key === key)?.refused;
    for (let asked = 0; asked < 5; asked += 1) await service.ask(`/v1/availability?domain=herat-${asked}.af`);
    expect(service.sandbox.stats().credentials.find((one) => one.key === key)?.refused).toBe(refused);
    write(fresh);
    // A new credential has its own window, of which nothing is known.
    await clock.advance(4000);
    expect((await service.ask("/v1/availability?domain=balkh.af")).status).toBe(200);
  } finally {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test("the standby credential takes over when the active one is refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "standby-"));
  const service = await startService({
    clock: new FakeClock(),
    env: (sandbox) => {
      const active = sandbox.credential();
      const standby = sandbox.control.rotate(active.key);
      return {
        UPSTREAM_BASE_URL: sandbox.url,
        UPSTREAM_SERVICE_KEY: active.key,
        UPSTREAM_SERVICE_SECRET: active.secret,
        UPSTREAM_STANDBY_KEY: standby.key,
        UPSTREAM_STANDBY_SECRET: standby.secret,
        QUOTA_COLD_START: "assume-free",
        STATE_DIR: folder,
      };
    },
  });
  try {
    service.sandbox.control.revoke(service.sandbox.credential().key);
    expect((await service.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
    const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
    expect(body).toMatchObject({
      mode: "upstream",
      credentials: [
        { role: "active", refused: true },
        { role: "standby", refused: false },
      ],
    });
  } finally {
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
