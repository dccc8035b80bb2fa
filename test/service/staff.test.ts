/** The staff API, by scope: what it answers as JSON and as CSV, purges, figures, and the audit: who did what, when, and with what outcome. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { z } from "zod";
import { perLane } from "../../src/quota/lane.js";
import { createRecordFile } from "../../src/record-file.js";
import { acts as kindOfAct, createAudit } from "../../src/staff/audit.js";
import { createHistory, type FiguresSource } from "../../src/staff/history.js";
import { createRecentCalls } from "../../src/upstream/recent-calls.js";
import { csvOf } from "../../src/wire/csv.js";
import { openApiDocument } from "../../src/wire/document.js";
import { historyShape } from "../../src/wire/overview.js";
import { auditShape, balanceShape, staffDomainsShape } from "../../src/wire/staff.js";
import { priceListShape } from "../../src/wire/visitors.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { claimsOf } from "../support/promise.js";
import { SMALL_SHOP } from "../support/retail.js";
import { renewal, RETAIL, shopAt, WORLD } from "../shop/shop.js";
import { overviewOf, purge, staffRead } from "../support/staff.js";
import {
  bearer,
  CHECK,
  problemOf,
  recordingLog,
  type Service,
  STAFF,
  startService,
  temporaryFolder,
  until,
  withService,
} from "../support/service.js";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const document = openApiDocument({ version: "1.2.3" });
const MINUTE_MS = 60_000;
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

const rowsIn = (
  text: string,
): { readonly columns: readonly string[]; readonly rows: readonly string[][] } => {
  expect(text.endsWith("\r\n")).toBe(true);
  const [header = "", ...lines] = text.trimEnd().split("\r\n");
  return { columns: header.split(","), rows: lines.map((line) => line.split(",")) };
};

describe("the staff API", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock });
    await until(() => service.calls("GET /api/v1/domains") === 1);
    await service.ask("/v1/staff/tier", { headers: { Authorization: "Bearer guessed" } });
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
    const purgeWith = (headers: Readonly<Record<string, string>>) =>
      service.ask("/v1/staff/cache/purge", { method: "POST", headers, body: { what: "account" } });
    expect(problemOf(await purgeWith({})).code).toBe("unauthenticated");
    expect(problemOf(await purgeWith(bearer("read"))).code).toBe("forbidden");
    expect((await purgeWith(bearer("operate"))).status).toBe(200);
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
    matchesDocument(document, "get", "/v1/staff/overview", answer);
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
      alarms: PRESET === undefined ? [] : expect.any(Array),
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

  const readAs = (path: string, Accept: string) =>
    service.ask(path, { headers: { ...bearer("read"), Accept } });

  test.each([
    ["/v1/staff/domains", "domains", "domain"],
    ["/v1/staff/prices", "prices", "tld"],
    ["/v1/staff/audit", "acts", "outcome"],
  ] as const)(
    "GET %s returns the same rows as CSV, with a header line, unless JSON is preferred",
    async (path, list, column) => {
      const { body } = await read(path);
      const rows = z.object({ [list]: z.array(z.record(z.string(), z.unknown())) }).parse(body)[list] ?? [];
      expect(rows.length).toBeGreaterThan(0);
      const answer = await readAs(path, "text/csv");
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        "content-type": "text/csv; charset=utf-8; header=present",
        "cache-control": "no-store",
        vary: expect.stringContaining("Accept"),
        "content-disposition": expect.stringMatching(/^attachment; filename="?[a-z]+\.csv"?$/),
      });
      const table = rowsIn(answer.text);
      const at = table.columns.indexOf(column);
      expect(table.rows.map((row) => row[at])).toEqual(rows.map((row) => row[column]));
      matchesDocument(document, "get", path, answer);
      for (const accept of ["*/*", "text/csv;q=0.5, application/json"])
        expect((await readAs(path, accept)).headers["content-type"]).toMatch(/^application\/json/);
      const without = await service.ask(path, { headers: { Accept: "text/csv" } });
      expect(problemOf(without).code).toBe("unauthenticated");
    },
  );

  test("only lists are available as CSV", async () => {
    expect(problemOf(await readAs("/v1/staff/overview", "text/csv")).code).toBe("not_acceptable");
  });
});

describe("a purge", () => {
  test("of availability makes the next visitor's request call the upstream", () =>
    withService({ retail: SMALL_SHOP }, async (service) => {
      await purge(service, "availability");
      await service.ask("/v1/availability?domain=kabul.af");
      const answer = await purge(service, "availability");
      expect(answer.headers["cache-control"]).toBe("no-store");
      expect(answer.body).toEqual({ purged: { availability: 1 } });
      expect((await purge(service, "availability")).body).toEqual({ purged: { availability: 0 } });
      const before = service.calls(CHECK);
      await service.ask("/v1/availability?domain=kabul.af");
      expect(service.calls(CHECK) - before).toBe(1);
    }));

  test("of the account ends domains, balance and tier; of everything it counts each kind, and prices are refreshed automatically; of anything else it is rejected", () =>
    withService({ retail: SMALL_SHOP }, async (service, clock) => {
      await purge(service, "account");
      for (const path of ["domains", "balance", "tier"]) await staffRead(service, path);
      expect((await purge(service, "account")).body).toEqual({ purged: { account: 3 } });
      expect((await staffRead(service, "tier")).body).toMatchObject({ source: "upstream" });
      for (const body of [{}, { what: "names" }, { what: ["prices"] }, { what: "prices", force: true }, []])
        expect(
          problemOf(
            await service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body }),
          ).code,
        ).toBe("invalid_request");
      expect((await purge(service, "all")).body).toEqual({
        purged: { prices: 2, availability: expect.any(Number), account: expect.any(Number) },
      });
      await clock.advance(5000);
      await until(async () => {
        const { body } = await service.ask("/v1/prices");
        const known = priceListShape.safeParse(body);
        return known.data?.prices.length === 2;
      }, "the refresh of the price list");
    }));
});

test("the account is shown as it was, marked stale, when the upstream fails", () =>
  withService({ retail: SMALL_SHOP }, async (service, clock) => {
    const balance = async () => (await staffRead(service, "balance")).body;
    const { asOf } = balanceShape.parse(await balance());
    await service.sandbox.close();
    await clock.advance(301_000);
    expect(await balance()).toMatchObject({ balance: "1843.50", asOf, source: "stale" });
  }));

test("a domain list that ends after a hundred says that there are more, as CSV in every row", () =>
  withService({ reseller: "big", retail: SMALL_SHOP }, async (service) => {
    const { body } = await staffRead(service, "domains");
    expect(body).toMatchObject({ truncated: true });
    expect(staffDomainsShape.parse(body).domains).toHaveLength(100);
    const headers = { ...bearer("read"), Accept: "text/csv" };
    const { columns, rows } = rowsIn((await service.ask("/v1/staff/domains", { headers })).text);
    const at = columns.indexOf("truncated");
    expect(rows.map((row) => row[at])).toEqual(Array.from({ length: 100 }, () => "true"));
    await staffRead(service, "balance");
    const { text } = await staffRead(service, "overview");
    expect(text).toContain("The registry lists only 100 domains, but the account has 130.");
  }));

test("text that a spreadsheet would run as a formula is escaped; numbers stay numbers", () => {
  const cells = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-1+1": "'-1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "\tx": "'\tx",
    "＝1": "'＝1",
    "-0.80": "-0.80",
    12: "12",
    'a "b", c': '"a ""b"", c"',
    "two\nlines": '"two\nlines"',
  };
  for (const [cell, written] of Object.entries(cells))
    expect(csvOf({ columns: ["cell"], rows: [{ cell }] })).toBe(`cell\r\n${written}\r\n`);
  expect(csvOf({ columns: ["cell"], rows: [{ cell: null }] })).toBe("cell\r\n\r\n");
});

/** In the background, only the domains and the tier are requested. */
const ONE_PRICE = SMALL_SHOP.replace(", renewal: [1]", "");

describe("the figures of a service", () => {
  test("count each operation's calls and failures, without a call, and forget them after ten minutes", () =>
    withService({ retail: ONE_PRICE }, async (service, clock) => {
      const recent = async () => (await overviewOf(service)).upstream.recent;
      await until(() => service.calls("GET /api/v1/domains") === 1);
      await staffRead(service, "balance");
      await staffRead(service, "domains/google.af");
      service.sandbox.control.setShapes({ notManaged: 403 });
      await staffRead(service, "domains/kabul.af");
      service.sandbox.control.setFault("check", { fault: "status-500" });
      await service.ask("/v1/availability?domain=kabul.af");
      const calls = service.calls();
      const quick = { meanMs: 0, p95Ms: 0 };
      expect(await recent()).toEqual({
        windowMs: 600_000,
        operations: [
          { operation: "check", calls: 1, failed: 1, ...quick },
          { operation: "quote", calls: 1, failed: 0, ...quick },
          { operation: "domains", calls: 1, failed: 0, ...quick },
          // That the reseller doesn't manage a domain is an answer, with either status.
          { operation: "domain", calls: 2, failed: 0, ...quick },
          { operation: "balance", calls: 1, failed: 0, ...quick },
        ],
      });
      expect(service.calls()).toBe(calls);
      service.sandbox.control.clearFaults();
      await clock.advance(610_000);
      const later = (await recent()).operations.map(({ operation }) => operation);
      expect(later).not.toContain("check");
      expect(later).not.toContain("balance");
    }));

  test("are recorded, one row per minute", () =>
    withService({ retail: ONE_PRICE }, async (service, clock) => {
      const history = async () => {
        const answer = await staffRead(service, "history");
        matchesDocument(document, "get", "/v1/staff/history", answer);
        return historyShape.parse(answer.body);
      };
      const before = await history();
      for (let times = 0; times < 4; times += 1) await service.ask("/v1/availability?domain=herat.af");
      await clock.advance(MINUTE_MS);
      const after = await history();
      expect(after.at.length).toBe(before.at.length + 1);
      expect(Date.parse(after.at.at(-1) ?? "") - Date.parse(after.at.at(-2) ?? "")).toBe(MINUTE_MS);
      // Whether or not the price list was refreshed in that minute, only one of the four requests cost a call.
      expect(after.hitRate.at(-1)).toBeGreaterThan(0);
      expect(after.budget.at(-1)).toBe(997);
    }));
});

test("recent calls have a mean and a 95th percentile, and use bounded memory, which holds the newest of each operation", () => {
  const calls = createRecentCalls(new FakeClock());
  for (let ms = 1; ms <= 100; ms += 1) calls.note("check", "200", ms);
  calls.note("tier", "upstream_timeout", 5000);
  expect(calls.figures()).toEqual([
    { operation: "check", calls: 100, failed: 0, meanMs: 51, p95Ms: 95 },
    { operation: "tier", calls: 1, failed: 1, meanMs: 5000, p95Ms: 5000 },
  ]);
  for (let times = 0; times < 5000; times += 1) calls.note("check", times < 4000 ? "500" : "200", 1);
  expect(calls.figures()).toMatchObject([
    { operation: "check", calls: 1000, failed: 0 },
    { operation: "tier", calls: 1 },
  ]);
});

test("figures are kept for a day", async () => {
  const clock = new FakeClock();
  const figures: FiguresSource = {
    quota: { used: 1, budget: 57, lanes: perLane(() => ({ served: 0, waitedMsTotal: 0 })) },
    caches: { names: { counts: { hit: 0, inflight: 0, miss: 0, stale: 0 } } },
    upstream: { recent: { operations: [{ calls: 0, failed: 0, meanMs: 100, p95Ms: 1 }] } },
  };
  const history = createHistory({ source: () => figures, stored: null, clock });
  const stop = history.keep();
  await clock.advance(25 * 60 * MINUTE_MS);
  stop();
  const { waitMs, everyMs: _every, ...columns } = await history.present();
  for (const column of [...Object.values(columns), ...Object.values(waitMs)])
    expect(column).toHaveLength(24 * 60);
  expect(Date.parse(columns.at.at(-1) ?? "")).toBe(clock.now());
});

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PATH = "/v1/staff/domains/expiring.ics";

function newToken(name: string, ...scopes: string[]) {
  const printed = execFileSync(process.execPath, ["dist/keys/token.js", name, ...scopes], {
    cwd: ROOT,
  }).toString();
  const after = (words: string): string | undefined =>
    printed
      .split("\n")
      .find((line) => line.startsWith(words))
      ?.split(": ")[1];
  return { entry: after("entry") ?? "", link: after("link") };
}

describe("the calendar", () => {
  const [anna, ben] = [newToken("anna", "read"), newToken("ben", "metrics")];
  let service: Service;
  beforeAll(async () => {
    const reader = `reader:${createHash("sha256").update(STAFF.read).digest("hex")}:read`;
    service = await startService({
      clock: new FakeClock(),
      retail: SMALL_SHOP,
      // Some presets list no dates, or not whether a domain renews.
      sandbox: { shapes: {} },
      env: { STAFF_TOKENS: `${anna.entry},${reader}` },
    });
  });
  afterAll(() => service.close());

  test("has a day for each domain, with its name and whether it renews", async () => {
    const answer = await service.ask(PATH, { headers: bearer("read") });
    matchesDocument(document, "get", PATH, answer);
    expect(answer.headers["cache-control"]).toBe("no-store");
    // Folded lines continue with a space.
    const lines = answer.text.replaceAll("\r\n ", "").split("\r\n");
    expect([lines[0], lines.filter((line) => line === "BEGIN:VEVENT").length]).toEqual([
      "BEGIN:VCALENDAR",
      12,
    ]);
    const at = lines.indexOf("SUMMARY:bamyan.af expires (doesn't renew automatically)");
    const event = lines.slice(lines.lastIndexOf("BEGIN:VEVENT", at), lines.indexOf("END:VEVENT", at));
    expect(event.join("\n")).toMatch(/^DTSTART;VALUE=DATE:\d{4}0702$/m);
    expect(event.join("\n")).toMatch(/^UID:[0-9a-f]{32}@expiring$/m);
    expect(lines).toContain("SUMMARY:khyber.af expires (renews automatically)");
    for (const line of answer.text.split("\r\n")) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
    expect(answer.text).not.toMatch(/ns1|RS-100482|[^\r]\n/);
    const again = { ...bearer("read"), "If-None-Match": answer.headers["etag"] ?? "" };
    expect((await service.ask(PATH, { headers: again })).status).toBe(304);
  });

  test("opens with the link that npm run token prints, which opens nothing else and can't be altered", async () => {
    const link = anna.link ?? "";
    expect((await service.ask(link)).text).toContain("khyber.af expires");
    const [, query = ""] = link.split("?");
    const refused = [
      `/v1/staff/domains?${query}`,
      `/v1/staff/domains/khyber.af?${query}`,
      PATH,
      `${PATH}?name=anna`,
      link.replace("anna", "reader"),
      `${link.slice(0, -2)}xx`,
    ];
    for (const path of refused) expect(problemOf(await service.ask(path)).code).toBe("unauthenticated");
    expect(problemOf(await service.ask(`${link}&years=1`)).code).toBe("unauthenticated");
    expect(ben.link).toBeUndefined();
    expect(service.log.join("\n")).not.toContain(query.split("=").at(-1));
  });
});

const DAY_MS = 24 * 3_600_000;

async function acts(service: Service) {
  const answer = await service.ask("/v1/staff/audit", { headers: bearer("read") });
  expect(answer.status).toBe(200);
  matchesDocument(document, "get", "/v1/staff/audit", answer);
  return auditShape.parse(answer.body).acts;
}
const tryPurge = (service: Service, what: string) =>
  service.ask("/v1/staff/cache/purge", { method: "POST", headers: bearer("operate"), body: { what } });

describe("the audit", () => {
  let clock: FakeClock;
  let service: Service;
  let folder: ReturnType<typeof temporaryFolder>;
  const start = async (): Promise<void> => {
    const env = { STATE_DIR: join(folder.path, "state"), RETAIL_CONFIG: join(folder.path, "retail.yaml") };
    // Some presets write 20.00 as the number 20, which isn't understood.
    service = await startService({ clock, world: WORLD, sandbox: { shapes: {} }, env });
  };
  const file = () => join(folder.path, "state", "audit.jsonl");
  beforeEach(async () => {
    clock = new FakeClock();
    folder = temporaryFolder();
    writeFileSync(join(folder.path, "retail.yaml"), RETAIL);
    await start();
  });
  afterEach(async () => {
    await service.close();
    folder.remove();
  });

  test("lists purges, previews, promise look-ups, refused tokens and price changes, newest first", async () => {
    const preview = (body: string) =>
      service.ask("/v1/staff/prices/preview", {
        method: "POST",
        headers: { ...bearer("operate"), "Content-Type": "application/yaml" },
        body,
      });
    expect(await acts(service)).toEqual([]);
    await tryPurge(service, "account");
    await clock.advance(1);
    await tryPurge(service, "everything");
    await clock.advance(1);
    await preview(RETAIL.replace("50", "60"));
    await clock.advance(1);
    await preview("");
    await clock.advance(1);
    const { body } = await shopAt(service).post([renewal("kabul.af")]);
    const { jti } = claimsOf(z.object({ promise: z.string() }).parse(body).promise);
    await service.ask(`/v1/staff/promises/${jti}`, { headers: bearer("read") });
    await clock.advance(1);
    await service.ask("/v1/staff/promises/%3Cscript%3E", { headers: bearer("read") });
    await clock.advance(1);
    await service.ask("/v1/staff/tier", { headers: { Authorization: "Bearer guessed" } });
    await clock.advance(1);
    await service.ask("/v1/staff/tier", { headers: bearer("operate") });
    await clock.advance(1);
    writeFileSync(join(folder.path, "retail.yaml"), RETAIL.replace("50", "60"));
    await clock.advance(1_000);
    expect(
      (await acts(service)).map(({ who, what, subject, outcome }) => [who, what, subject, outcome]),
    ).toEqual([
      [null, "retail_config", expect.stringMatching(/^[0-9a-f]{12}$/), "applied"],
      ["operate", "token", "/v1/staff/tier", "forbidden"],
      [null, "token", "/v1/staff/tier", "unauthenticated"],
      ["read", "promise", null, "not_found"],
      ["read", "promise", jti, "done"],
      ["operate", "preview", "1 faults", "done"],
      ["operate", "preview", "5 changes", "done"],
      ["operate", "purge", null, "invalid_request"],
      ["operate", "purge", "account", "done"],
    ]);
    expect(service.log.filter((line) => line.includes('"event":"staff.act"'))).toHaveLength(9);
    expect(readFileSync(file(), "utf8")).not.toContain("guessed");
  });

  test("survives a restart, in a file that only its owner can read, and skips torn lines", async () => {
    await tryPurge(service, "account");
    await until(async () => (await acts(service)).length === 1);
    await service.close();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    appendFileSync(file(), '{"id":"torn');
    await start();
    expect(await acts(service)).toEqual([
      {
        id: expect.any(String),
        when: "2026-03-20T00:00:00.000Z",
        who: "operate",
        what: "purge",
        subject: "account",
        outcome: "done",
        times: 1,
      },
    ]);
    // A torn line doesn't damage the next one.
    await tryPurge(service, "tier");
    await service.close();
    await start();
    expect(await acts(service)).toHaveLength(2);
  });

  test("counts guessed tokens together, so that they can't push out the other acts", async () => {
    // express-rate-limit reads the machine's clock.
    const machine = jest.spyOn(Date, "now").mockImplementation(() => clock.now());
    await tryPurge(service, "account");
    for (let times = 0; times < 100; times += 1)
      await service.ask("/v1/staff/tier", { headers: { Authorization: `Bearer guess-${times}` } });
    await clock.advance(60_000);
    expect((await acts(service)).map(({ what, times }) => [what, times])).toEqual([
      // Past the limit for wrong tokens, tokens aren't read any more.
      ["token", 30],
      ["purge", 1],
    ]);
    expect(readFileSync(file(), "utf8").trim().split("\n").length).toBeLessThan(10);
    machine.mockRestore();
  });

  test("continues in memory when its file can't be written, and the log says so, at a start before any act", async () => {
    const failures = () => service.log.filter((line) => line.includes('"event":"audit.failed"')).length;
    await tryPurge(service, "account");
    await until(async () => (await acts(service)).length === 1);
    rmSync(file());
    mkdirSync(file());
    await tryPurge(service, "all");
    await until(async () => (await acts(service)).length === 2);
    expect(failures()).toBe(1);
    await service.close();
    await start();
    expect(failures()).toBe(1);
  });
});

describe("the file of the audit", () => {
  const clock = new FakeClock();
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  beforeEach(() => {
    folder = temporaryFolder();
    path = join(folder.path, "acts.jsonl");
  });
  afterEach(() => {
    folder.remove();
  });
  const open = () =>
    createAudit(
      createRecordFile(path, kindOfAct, clock, () => {}),
      clock,
      recordingLog([]),
    );
  const done = (subject: string) => ({ who: "ops", what: "purge", outcome: "done", subject }) as const;
  const shownBy = async (audit: ReturnType<typeof open>) =>
    (await audit.last()).map(({ subject }) => subject);

  test("gets a failed write with the next act, and keeps what another process wrote", async () => {
    const [one, other] = [open(), open()];
    mkdirSync(path);
    one.note(done("account"));
    rmSync(path, { recursive: true });
    one.note(done("all"));
    other.note(done("tier"));
    expect(new Set(await shownBy(open()))).toEqual(new Set(["account", "all", "tier"]));
  });

  test("keeps acts for 30 days and no longer, of which the last 1,000 are shown", async () => {
    const audit = open();
    audit.note(done("account"));
    await clock.advance(29 * DAY_MS);
    expect(await audit.last()).toHaveLength(1);
    await clock.advance(3 * DAY_MS);
    audit.note(done("all"));
    expect(await shownBy(audit)).toEqual(["all"]);
    expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(1);
    for (let times = 0; times < 1_010; times += 1) audit.note(done("prices"));
    expect(await audit.last()).toHaveLength(1_000);
  });

  test("loses no act while the wall clock is ahead, whether it was set before or after the start", async () => {
    let audit = open();
    audit.note(done("account"));
    await clock.advance(2 * DAY_MS);
    audit.note(done("tier"));
    clock.stepWall(35 * DAY_MS);
    audit.note(done("prices"));
    audit = open();
    audit.note(done("all"));
    // As old as they seem, they aren't shown.
    expect(new Set(await shownBy(audit))).toEqual(new Set(["all", "prices"]));
    clock.stepWall(-35 * DAY_MS);
    expect(new Set(await shownBy(audit))).toEqual(new Set(["account", "all", "prices", "tier"]));
  });
});
