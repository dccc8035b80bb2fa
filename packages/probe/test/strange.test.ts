/** The probe against an upstream that no sandbox setting plays, with personal data where only machine-readable values are expected. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createServer, type Server } from "node:http";
import { systemClock } from "../../../src/clock.js";
import { readConfig } from "../../../src/config/env.js";
import { probe } from "../../../src/probe/probe.js";
import type { Result } from "../src/result.js";
import { tableOf } from "../src/table.js";
import { fixedSecret } from "../../../src/secret.js";

const KEY = "a-key-that-is-echoed";
const PRIVATE =
  /khyber|ahmad|karimi|RS-100482|secret-host|example\.org|2027|2019|03\/01|88\.12|88|412|silver|a-key/i;

const success = (data: unknown, beside: object = {}): string =>
  JSON.stringify({ success: true, data, ...beside });

const ANSWERS: Readonly<Record<string, readonly [status: number, body: string]>> = {
  "/api/v1/domains": [
    200,
    success(
      {
        notes: ["Ahmad Karimi called"],
        domains: [
          {
            domain: "khyber.af",
            status: "held for Ahmad Karimi",
            expires_at: "03/01/2027",
            registered_at: "2019-03-14",
            auto_renew: "Ahmad",
            nameservers: [{ "ns1.secret-host.af": true }],
            owner: "karimi@example.org",
          },
        ],
        "RS-100482": { "khyber.af": 1 },
      },
      { "khyber.af": "x" },
    ),
  ],
  "/api/v1/domains/storefront-probe.af": [
    404,
    JSON.stringify({ error: { code: "Khyber is not yours Ahmad", message: KEY } }),
  ],
  "/api/v1/domains/check": [
    200,
    success({
      domain: "khyber.af",
      available: false,
      status: "registered by Ahmad Karimi",
      pricing: { amount: "88.12", "khyber.af": 1 },
    }),
  ],
  "/api/v1/pricing": [200, success({ "khyber.af": { total: "88.12 USD", price: 88.12, per: "ahmad" } })],
  "/api/v1/account/balance": [200, "<html>RS-100482: 412.00</html>"],
  "/api/v1/account/tier": [200, success({ level: "Silver", "khyber.af": 3 })],
};

let server: Server;
let result: Result;

beforeAll(async () => {
  server = createServer((request, response) => {
    const [status, body] = ANSWERS[request.url ?? ""] ?? [500, ""];
    response.writeHead(status, { "Content-Type": "application/json", "X-RateLimit-Remaining": "412" });
    response.end(body);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  const read = readConfig({}, systemClock);
  if (!read.ok || typeof address !== "object" || address === null)
    throw new Error("the server has no port, or the configuration is invalid");
  result = await probe({
    config: read.config,
    upstream: {
      baseUrl: `http://127.0.0.1:${address.port}`,
      active: { key: fixedSecret(KEY), secret: fixedSecret("a-secret") },
    },
    live: null,
    clock: systemClock,
  });
});
afterAll(() => new Promise((done) => server.close(done)));

const seen = (name: string): unknown => result.points.find(({ point }) => point === name);

test("what the service can't read is reported, and the verdict says so", () => {
  expect(result.verdict).toBe("fails");
  for (const [name, form] of [
    ["dates", "text 99/99/9999, text 9999-99-99"],
    ["autoRenew", "text a"],
    ["nameservers", "list of objects with (not a field name)"],
    ["recordFields", "domain, status, expires_at, registered_at, auto_renew, nameservers"],
  ])
    expect(seen(name ?? "")).toMatchObject({ seen: form, copes: false });
  expect(result.calls.map(({ operation, outcome }) => [operation, outcome])).toEqual([
    ["domains", "understood"],
    ["domain", "understood"],
    ["check", "not understood"],
    ["quote", "not understood"],
    ["balance", "not understood"],
    ["tier", "not understood"],
  ]);
});

test("what no sandbox setting plays is still reported, but left out of the settings", () => {
  expect(seen("listWrapper")).toMatchObject({ seen: "domains", fits: ["domains"], copes: true });
  expect(seen("listPaging")).toMatchObject({ seen: "notes, (not a field name)", fits: [] });
  expect(seen("quoteFields")).toMatchObject({
    seen: "(not a field name).price, per text a",
    fits: [],
    copes: false,
  });
  expect(seen("takenPricing")).toMatchObject({ seen: "object", fits: [], copes: false });
  expect(seen("envelope")).toMatchObject({ seen: "(not a field name)", fits: [], copes: true });
  expect(seen("errorFields")).toMatchObject({ seen: "error.code, error.message", fits: ["nested"] });
  expect(seen("errorCodes")).toMatchObject({ seen: "text a a a a a", fits: [] });
  expect(result.shapes).toMatchObject({ recordFields: "at", notManaged: 404, errorFlag: "absent" });
  for (const name of ["dates", "takenPricing", "takenStatus", "envelope", "errorCodes"])
    expect(result.shapes).not.toHaveProperty(name);
});

test("personal data is never revealed, wherever the upstream puts it", () => {
  expect(JSON.stringify(result)).not.toMatch(PRIVATE);
  expect(tableOf(result)).not.toMatch(PRIVATE);
});
