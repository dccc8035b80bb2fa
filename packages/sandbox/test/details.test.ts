/** The sandbox's choices where the document is silent: names, statuses and configuration faults. They aren't part of conformance. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readConfig } from "../src/config.js";
import { looksTaken } from "../src/names.js";
import { type Sandbox, startSandbox } from "../src/sandbox.js";
import { authHeaders, call, dataOf, failureOf, post, type Reply } from "./client.js";

let sandbox: Sandbox;
const check = (body: unknown): Promise<Reply> => post(sandbox, "/domains/check", body);
const quote = (body: unknown): Promise<Reply> => post(sandbox, "/pricing", body);
const get = (path: string): Promise<Reply> =>
  call("GET", sandbox.url + path, { headers: authHeaders(sandbox.credential()) });

beforeAll(async () => {
  sandbox = await startSandbox({ rateLimit: { limit: 100_000, windowMs: 60_000 } });
});
afterAll(() => sandbox.close());

describe("a name", () => {
  it.each([
    "",
    "kabul",
    "kabul.af.",
    "-kabul.af",
    "ka_bul.af",
    "kabul..af",
    "کابل.af",
    "\u212Aabul.af",
    "a.kabul.af",
    "com.af",
    "gov.af",
    `${"a".repeat(64)}.af`,
    "127.0.0.1",
    "kabul.af\n",
  ])("such as %j is rejected because it can't be registered", async (domain) => {
    expect(failureOf(await check({ domain }))).toBe("422 invalid_domain");
  });
  it.each(["kabul.edu.af", "kabul.gov.af", "kabul.com"])(
    "such as %s is rejected because its TLD isn't sold",
    async (domain) => {
      expect(failureOf(await check({ domain }))).toBe("422 tld_not_supported");
    },
  );
  it("is returned in lower case", async () => {
    expect(dataOf(await check({ domain: "KaBul.AF" }))["domain"]).toBe("kabul.af");
  });
  it("looks taken in about 30% of cases, and the same after every start", async () => {
    const names = Array.from({ length: 400 }, (_, at) => `name-${at}.com.af`);
    const taken = names.filter((name) => looksTaken(name, 30));
    expect(taken.length / 400).toBeGreaterThan(0.22);
    expect(taken.length / 400).toBeLessThan(0.38);
    for (const domain of names.slice(0, 20))
      expect(dataOf(await check({ domain }))["available"]).toBe(!taken.includes(domain));
  });
  it("that is premium has its own price for the first year of a check, and the ordinary price for more years", async () => {
    expect(dataOf(await check({ domain: "gold.af" }))["pricing"]).toEqual({
      amount: "1450.00",
      currency: "USD",
    });
    expect(dataOf(await check({ domain: "gold.af", years: 2 }))["pricing"]).toEqual({
      amount: "1469.18",
      currency: "USD",
    });
  });
});

describe("a request", () => {
  it.each([
    [{ tld: ".af", action: "renewal", years: 11 }, "422 validation_failed"],
    [{ tld: ".af", action: "renewal", years: 1.5 }, "422 validation_failed"],
    [{ tld: ".af", action: "renewal", years: "1" }, "422 validation_failed"],
    [{ tld: ".af", action: "Renewal" }, "422 validation_failed"],
    [{ action: "renewal" }, "422 validation_failed"],
    [{ tld: ".gov.af", action: "renewal" }, "422 tld_not_supported"],
    [{ tld: ".constructor", action: "renewal" }, "422 tld_not_supported"],
    [{ tld: ".af", action: "transfer", years: 2 }, "422 term_not_offered"],
    ["{", "400 invalid_json"],
    ["", "422 validation_failed"],
    [{ tld: "x".repeat(20_000) }, "413 payload_too_large"],
  ])("for the quote %j is answered with %s", async (body, expected) => {
    expect(failureOf(await quote(body))).toBe(expected);
  });
  it("is for one year by default", async () => {
    expect(dataOf(await quote({ tld: ".af", action: "restore" }))).toEqual({
      tld: ".af",
      action: "restore",
      years: 1,
      pricing: { amount: "78.96", currency: "USD" },
    });
  });
  it.each([
    ["/api/v1/domains/kabul%2Eaf%2F..", "422 invalid_domain"],
    ["/api/v1/domains/%ZZ", "400 bad_request"],
    ["/api/v1/domains/", "404 not_found"],
    ["/api/v1/Domains", "404 not_found"],
    ["/API/v1/domains", "404 not_found"],
    ["/api/v1/domains/check", "405 method_not_allowed"],
    ["/api/v2/domains", "404 not_found"],
    ["/", "404 not_found"],
  ])("such as GET %s is answered with %s", async (path, expected) => {
    expect(failureOf(await get(path))).toBe(expected);
  });
  it("with an undocumented method, including HEAD, is answered with 405 and Allow", async () => {
    const headers = authHeaders(sandbox.credential());
    for (const method of ["HEAD", "OPTIONS", "PATCH", "POST"]) {
      const reply = await call(method, `${sandbox.url}/api/v1/domains/saffron.af`, { headers });
      expect([reply.status, reply.headers.get("allow")]).toEqual([405, "GET"]);
    }
  });
  it("with a repeated credential header isn't authenticated", async () => {
    const { key, secret } = sandbox.credential();
    const status = await new Promise((resolve, reject) => {
      request(`${sandbox.url}/api/v1/domains`, {
        headers: { "X-Service-Key": [key, key], "X-Service-Secret": secret },
      })
        .on("response", (response) => {
          response.resume();
          resolve(response.statusCode);
        })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(401);
  });
  it("that isn't HTTP is answered in JSON, too", async () => {
    const text = await new Promise<string>((resolve, reject) => {
      let seen = "";
      connect(Number(new URL(sandbox.url).port), "127.0.0.1")
        .on("data", (chunk) => (seen += chunk.toString()))
        .on("end", () => resolve(seen))
        .on("error", reject)
        .end("NONSENSE\r\n\r\n");
    });
    expect(text).toContain('"code":"bad_request"');
  });
});

describe("the domain record", () => {
  it("has lower-case names, UTC dates and an expiry in the future, unless the domain has expired", async () => {
    expect(dataOf(await get("/api/v1/domains/SAFFRON.af"))).toEqual({
      domain: "saffron.af",
      status: "active",
      expires_at: expect.stringMatching(/^\d{4}-05-30T00:00:00Z$/),
      registered_at: "2022-05-30T00:00:00Z",
      auto_renew: true,
      nameservers: ["ns1.sandbox-dns.af", "ns2.sandbox-dns.af"],
    });
    const ends = async (name: string): Promise<number> =>
      Date.parse(String(dataOf(await get(`/api/v1/domains/${name}`))["expires_at"]));
    expect(await ends("saffron.af")).toBeGreaterThan(Date.now());
    expect(await ends("old-bazaar.af")).toBeLessThan(Date.now());
  });
});

describe("a configuration", () => {
  const folder = mkdtempSync(join(tmpdir(), "sandbox-config-"));
  const valid = `
nameservers: [ns1.example.af]
tiers: [{ name: Bronze, fromDomains: 0, discountPercent: 0 }]
priceLists: { USD: { .af: { registration: ["1.00"], renewal: [], transfer: [], restore: [] } } }
names: { takenPercent: 0 }
resellers:
  - { id: demo, accountNumber: A, currency: USD, tier: Bronze, balance: "0.00", creditLimit: "0.00" }
`;
  const read = (text: string): unknown => {
    const file = join(folder, "sandbox.yaml");
    writeFileSync(file, text);
    return readConfig(file);
  };
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });

  it("is read if it is valid", () => {
    expect(read(valid)).toMatchObject({ rateLimit: { limit: 60, windowMs: 60_000 } });
  });
  it.each([
    ['"1.00"', '"1.0"', "priceLists.USD..af.registration.0"],
    ["tier: Bronze", "tier: Tin", "resellers.0.tier"],
    ["currency: USD", "currency: EUR", "resellers.0.currency"],
    ["takenPercent: 0", "takenPercent: 0, more: 1", "names"],
    ["id: demo", "id: Demo", "resellers.0.id"],
    ["nameservers:", "nameserver:", "nameservers"],
  ])("is rejected with the path of its error: %s written as %s", (right, wrong, path) => {
    expect(() => read(valid.replace(right, wrong))).toThrow(`  ${path}: `);
  });
  it("is rejected with its file name if it isn't YAML or doesn't exist", () => {
    expect(() => read("a: [")).toThrow(
      /sandbox\.yaml is not a valid sandbox configuration:\n {2}not YAML: .+ at line 1, column 5$/,
    );
    expect(() => readConfig(join(folder, "none.yaml"))).toThrow("none.yaml");
  });
});
