/**
 * Every statement of the upstream's document as a test over HTTP, independent of what the document leaves open: it runs with the shapes of
 * every preset. What the document says of the portal is in portal.test.ts.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { z } from "zod";
import { PRESET_NAMES } from "../src/presets.js";
import { type Sandbox, startSandbox } from "../src/sandbox.js";
import * as client from "./client.js";
import { type Call, type Credential, dataOf, type Reply } from "./client.js";

const AVAILABLE = "kabul.af";
const ENDPOINTS: readonly [method: "GET" | "POST", path: string, body: unknown][] = [
  ["POST", "/api/v1/domains/check", { domain: AVAILABLE, years: 1 }],
  ["POST", "/api/v1/pricing", { tld: ".af", action: "renewal", years: 1 }],
  ["GET", "/api/v1/domains", undefined],
  ["GET", "/api/v1/domains/{domain}", undefined],
  ["GET", "/api/v1/account/balance", undefined],
  ["GET", "/api/v1/account/tier", undefined],
];

let sandbox: Sandbox;
/** A domain that the credential's reseller manages. */
let managed = "";
/** The answer of each endpoint to a plain request, made before the first test. */
let answers: ReadonlyMap<string, Reply>;

const withName = (path: string): string => path.replace("{domain}", managed);
const askUnauthenticated = (method: string, path: string, options: Call = {}): Promise<Reply> =>
  client.call(method, sandbox.url + path, options);
const ask = (
  method: string,
  path: string,
  options: Call = {},
  as: Credential = sandbox.credential(),
): Promise<Reply> =>
  askUnauthenticated(method, path, {
    ...options,
    headers: { ...client.authHeaders(as), ...options.headers },
  });

function answered(path: string): Reply {
  const reply = answers.get(path);
  if (reply === undefined) throw new Error(`${path} was not called`);
  return reply;
}

/** The list's items, wherever its undocumented shape puts them: in the outermost array. */
function items(reply: Reply): unknown[] {
  let layer: unknown[] = [dataOf(reply)];
  while (layer.length > 0) {
    const list = layer.find((value) => Array.isArray(value));
    if (list !== undefined) return z.array(z.unknown()).parse(list);
    layer = layer.flatMap((value): unknown[] =>
      typeof value === "object" && value !== null ? Object.values(value) : [],
    );
  }
  throw new Error("the answer contains no list");
}

/** All primitive values, in order. */
function leaves(value: unknown): unknown[] {
  if (value === undefined) return [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [value];
}

const decimal = /^-?\d+\.\d{2}$/;

const check = (body: unknown): Promise<Reply> => ask("POST", "/api/v1/domains/check", { body });
const quote = (body: unknown): Promise<Reply> => ask("POST", "/api/v1/pricing", { body });
const balance = (as: Credential): Promise<Reply> => ask("GET", "/api/v1/account/balance", {}, as);
const isJson = (reply: Reply): boolean =>
  /^application\/(?:[a-z.-]+\+)?json\b/.test(reply.headers.get("content-type") ?? "") &&
  reply.json !== undefined;
const successful = ({ status, json }: Reply): boolean =>
  status === 200 && z.object({ success: z.literal(true) }).safeParse(json).success;
/** The document doesn't specify the status of a refusal, so it only has to be neither a success nor a server error. */
const refused = (reply: Reply): boolean =>
  (reply.status >= 400 && reply.status < 500) || (reply.status === 200 && !successful(reply));
/** The document doesn't specify what a success without a record looks like either. */
const hasNoRecord = (reply: Reply): boolean =>
  refused(reply) ||
  (successful(reply) &&
    leaves(z.object({ data: z.unknown() }).parse(reply.json).data).every((leaf) => leaf === null));

describe.each(PRESET_NAMES)("with the preset %s", (preset) => {
  beforeAll(async () => {
    sandbox = await startSandbox({ shapes: { preset } });
    const list = await ask("GET", "/api/v1/domains");
    managed = z
      .string()
      .parse(leaves(items(list)[0]).find((leaf) => /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(String(leaf))));
    const replies = ENDPOINTS.map(async ([method, path, body]) => {
      return [path, await ask(method, withName(path), { body })] as const;
    });
    answers = new Map(await Promise.all(replies));
  });
  afterAll(() => sandbox.close());

  it.each(ENDPOINTS)("§1 the response of %s %s is JSON", (_method, path) => {
    expect(isJson(answered(path))).toBe(true);
  });
  it("§1 a refusal is JSON, too", async () => {
    expect(isJson(await askUnauthenticated("GET", "/api/v1/domains"))).toBe(true);
    expect(isJson(await ask("GET", "/api/v1/nothing-of-the-kind"))).toBe(true);
    expect(isJson(await check("{not json"))).toBe(true);
  });
  it.each(["POST", "PUT", "PATCH", "DELETE"])(
    "§1 there is no write operation: %s on a domain is refused",
    async (method) => {
      const reply = await ask(method, "/api/v1/domains/not-managed-by-anybody.af", { body: {} });
      expect(refused(reply)).toBe(true);
    },
  );

  it.each(ENDPOINTS)("§2 %s %s returns success: true and data, an object", (_method, path) => {
    expect(answered(path).status).toBe(200);
    expect(() => dataOf(answered(path))).not.toThrow();
  });
  it("§2 an availability result has the name checked, that it is available, and the reseller-effective price", () => {
    expect(dataOf(answered("/api/v1/domains/check"))).toMatchObject({
      domain: AVAILABLE,
      status: "available",
      available: true,
      pricing: { amount: expect.stringMatching(decimal), currency: expect.stringMatching(/./) },
    });
  });
  it("§2 a name that is registered is not available", async () => {
    const data = dataOf(await check({ domain: managed, years: 1 }));
    expect(data["available"]).toBe(false);
    expect(data["status"]).not.toBe("available");
  });
  it("§2 a balance has decimal strings with two fraction digits, and the number of active domains", () => {
    const data = dataOf(answered("/api/v1/account/balance"));
    expect(data).toMatchObject({
      account_number: expect.stringMatching(/./),
      currency: expect.stringMatching(/./),
      balance: expect.stringMatching(decimal),
      credit_limit: expect.stringMatching(decimal),
    });
    expect(Number.isInteger(data["active_domains"])).toBe(true);
  });
  it("§2 a domain record carries status, expiry, registration date, auto-renew and nameservers", () => {
    const record = dataOf(answered("/api/v1/domains/{domain}"));
    expect(leaves(record).length).toBeGreaterThanOrEqual(5);
    expect(JSON.stringify(record)).toContain(managed);
  });
  it("§2 a tier record carries the current tier, the next tier and the number of domains needed to advance", () => {
    expect(leaves(dataOf(answered("/api/v1/account/tier"))).length).toBeGreaterThanOrEqual(3);
  });
  it.each(["registration", "renewal", "transfer", "restore"])("§2 a quote may be for %s", async (action) => {
    const reply = await quote({ tld: ".af", action, years: 1 });
    expect(reply.status).toBe(200);
    expect(reply.text).toMatch(/:"?\d+\.\d{1,2}\b/);
  });
  it("§2 a quote takes a TLD that is written with a leading dot", async () => {
    expect(successful(await quote({ tld: ".com.af", action: "renewal", years: 1 }))).toBe(true);
  });
  it("§2 years is an integer", async () => {
    expect(refused(await quote({ tld: ".af", action: "renewal", years: "one" }))).toBe(true);
  });

  it("§3 the API changes no domain state", async () => {
    await check({ domain: managed, years: 1 });
    await quote({ tld: ".af", action: "renewal", years: 2 });
    const again = await ask("GET", `/api/v1/domains/${managed}`);
    expect(dataOf(again)).toEqual(dataOf(answered("/api/v1/domains/{domain}")));
  });

  it("§4 a request body that is not JSON is refused", async () => {
    expect(refused(await check("domain=kabul.af"))).toBe(true);
    const form = await ask("POST", "/api/v1/domains/check", {
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: "domain=kabul.af",
    });
    expect(refused(form)).toBe(true);
  });
  it("§4 a check takes domain, a string, and years, an integer", async () => {
    expect(successful(await check({ domain: AVAILABLE, years: 2 }))).toBe(true);
    expect(refused(await check({ domain: 7, years: 1 }))).toBe(true);
    expect(refused(await check({ domain: AVAILABLE, years: "two" }))).toBe(true);
  });
  it("§4 action must be one of the four", async () => {
    expect(refused(await quote({ tld: ".af", action: "deletion", years: 1 }))).toBe(true);
  });
  it("§4 the domains listed are those that can be read one by one", () => {
    expect(leaves(items(answered("/api/v1/domains")))).toContain(managed);
    expect(leaves(dataOf(answered("/api/v1/domains/{domain}")))).toContain(managed);
  });
  it("§4 a domain that the reseller does not manage is not shown", async () => {
    expect(hasNoRecord(await ask("GET", `/api/v1/domains/${AVAILABLE}`))).toBe(true);
  });

  it.each(["X-Service-Key", "X-Service-Secret"])("§5 every request carries %s", async (name) => {
    const { [name]: _left, ...headers } = client.authHeaders(sandbox.credential());
    expect(refused(await askUnauthenticated("GET", "/api/v1/domains", { headers }))).toBe(true);
  });
  it.each(ENDPOINTS)("§5 %s %s is refused without credentials", async (method, path, body) => {
    const reply = await askUnauthenticated(method, withName(path), { body });
    expect(refused(reply)).toBe(true);
  });
  it("§5 a wrong secret is refused", async () => {
    const { key, secret } = sandbox.credential();
    expect(refused(await balance({ key, secret: `${secret}x` }))).toBe(true);
  });
  it("§5 all data returned is that of the one reseller to whom the credential belongs", async () => {
    const euro = sandbox.control.createCredential("euro");
    expect(dataOf(await balance(euro))["account_number"]).not.toBe(
      dataOf(await balance(sandbox.credential()))["account_number"],
    );
    expect(hasNoRecord(await ask("GET", `/api/v1/domains/${managed}`, {}, euro))).toBe(true);
    const foreign = items(await ask("GET", "/api/v1/domains", {}, euro));
    expect(leaves(foreign)).not.toContain(managed);
    const tier = "/api/v1/account/tier";
    expect(dataOf(await ask("GET", tier, {}, euro))).not.toEqual(dataOf(answered(tier)));
  });

  it.each(["/api/v1/events", "/api/v1/webhooks"])(
    "§6 there are no events: %s is not served",
    async (path) => {
      expect(refused(await ask("GET", path))).toBe(true);
    },
  );

  it.each([
    ["missing credentials", () => askUnauthenticated("GET", "/api/v1/domains")],
    ["invalid credentials", () => balance({ key: "no-such-key", secret: "no-such-secret" })],
    ["invalid input", () => check({ domain: "-not a name-", years: 1 })],
    ["an unknown address", () => ask("GET", "/api/v1/nothing-of-the-kind")],
  ])(
    "§7 %s is answered with a structured error object that has a machine-readable code",
    async (_case, run) => {
      const reply = await run();
      expect(refused(reply)).toBe(true);
      expect(reply.text).toMatch(/"\w*(?:code|type|error)\w*":"[A-Za-z0-9_.:/-]+"/i);
      expect(reply.json).not.toMatchObject({ success: true });
    },
  );

  it("§8 60 requests per minute are accepted by default, over all endpoints, and the next ones are not; the limit is per credential", async () => {
    const [fresh, other] = [
      sandbox.control.createCredential("demo"),
      sandbox.control.createCredential("demo"),
    ];
    for (let round = 0; round < 10; round += 1) {
      for (const [method, path, body] of ENDPOINTS) {
        expect(successful(await ask(method, withName(path), { body }, fresh))).toBe(true);
      }
    }
    for (const [method, path, body] of ENDPOINTS) {
      expect(successful(await ask(method, withName(path), { body }, fresh))).toBe(false);
    }
    expect(successful(await balance(other))).toBe(true);
  });
  it("§8 at most 100 domains are returned by GET /api/v1/domains", () => {
    expect(items(answered("/api/v1/domains")).length).toBeLessThanOrEqual(100);
  });
  it("§8 GET /api/v1/domains returns 100 domains of an account that has more", async () => {
    const big = sandbox.control.createCredential("big");
    expect(dataOf(await balance(big))["active_domains"]).toBeGreaterThan(100);
    expect(items(await ask("GET", "/api/v1/domains", {}, big))).toHaveLength(100);
  });

  it("§9 the version is part of the path: another prefix is not served", async () => {
    const reply = await ask("GET", "/api/v2/domains");
    expect(reply.status).toBe(404);
    expect(isJson(reply)).toBe(true);
    expect((await ask("GET", "/domains")).status).toBe(404);
  });
  it.each([
    "/api/v1/domains",
    "/api/v1/domains/register",
    "/api/v1/domains/renew",
    "/api/v1/domains/transfer",
  ])("§9 registration, renewal and transfer are not API writes in v1: POST %s is refused", async (path) => {
    const reply = await ask("POST", path, { body: {} });
    expect(refused(reply)).toBe(true);
  });
});
