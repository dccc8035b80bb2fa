/** What customers see of their own domains, and that they see nobody else's; and what they, staff and visitors see of records that upstreams really send. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { renameSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { z } from "zod";
import { readConfig } from "../../src/config/env.js";
import { customerDomainsShape } from "../../src/wire/customers.js";
import { openApiDocument } from "../../src/wire/document.js";
import { overviewShape } from "../../src/wire/overview.js";
import { staffDomainsShape, staffPricesShape } from "../../src/wire/staff.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { SMALL_SHOP } from "../support/retail.js";
import {
  type Answer,
  bearer,
  inTime,
  problemOf,
  type Service,
  type ServiceOptions,
  startService,
  temporaryFolder,
  until,
  withService,
} from "../support/service.js";
import { purge } from "../support/staff.js";

const SECRET = "a-secret-that-the-login-shares-with-us";
const ISSUER = "https://login.example.af";
const AUDIENCE = "storefront";
const LIST = "GET /api/v1/domains";
const DOMAIN = "GET /api/v1/domains/{domain}";
const NOW = "2026-03-20T00:00:00.000Z";
const document = openApiDocument({ version: "1" });

const secretEnv = {
  CUSTOMER_JWT_SECRET: SECRET,
  CUSTOMER_JWT_ISSUER: ISSUER,
  CUSTOMER_JWT_AUDIENCE: AUDIENCE,
};

const jwks = (address: string) => ({
  CUSTOMER_JWKS_URL: address,
  CUSTOMER_JWT_ISSUER: ISSUER,
  CUSTOMER_JWT_AUDIENCE: AUDIENCE,
});

function claimsAt(clock: FakeClock, more: JWTPayload = {}): JWTPayload {
  const now = Math.floor(clock.now() / 1000);
  return { iss: ISSUER, aud: AUDIENCE, exp: now + 600, domains: ["khyber.af"], ...more };
}

function signToken(claims: JWTPayload, { secret = SECRET, alg = "HS256" } = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg }).sign(new TextEncoder().encode(secret));
}

const asCustomer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

/** A small shop that knows the list of its domains. */
function withDomains(
  options: Partial<ServiceOptions>,
  act: Parameters<typeof withService>[1],
): Promise<void> {
  return withService({ retail: SMALL_SHOP, env: secretEnv, ...options }, async (service, clock) => {
    await until(() => service.calls(LIST) === 1, "the loading of the domain list");
    await act(service, clock);
  });
}

describe("a customer", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock, env: secretEnv });
    await until(() => service.calls(LIST) === 1, "the loading of the domain list");
  });
  afterAll(() => service.close());

  const ask = async (path: string, domains: unknown = ["khyber.af"], method = "GET"): Promise<Answer> => {
    const token = await signToken(claimsAt(clock, { domains }));
    const answer = await service.ask(path, { ...asCustomer(token), method });
    matchesDocument(document, method, path, answer);
    expect(answer.headers["cache-control"]).toBe("no-store");
    return answer;
  };

  const khyber = {
    domain: "khyber.af",
    status: "active",
    registeredAt: "2019-03-14T00:00:00.000Z",
    expiresAt: expect.stringMatching(/^20\d\d-03-14T/),
    autoRenew: true,
    nameservers: ["ns1.sandbox-dns.af", "ns2.sandbox-dns.af"],
    renewal: [
      { years: 1, price: { amount: "27.99", currency: "USD" } },
      { years: 2, price: { amount: "53.99", currency: "USD" } },
      { years: 3, price: { amount: "78.99", currency: "USD" } },
    ],
    asOf: NOW,
    source: "cache",
  };

  test("sees a domain in the token, however the name is written, with its renewal prices, without an upstream call", async () => {
    const before = service.calls();
    for (const name of ["khyber.af", "KHYBER.af."]) {
      const { status, body } = await ask(`/v1/me/domains/${name}`);
      expect([status, body]).toEqual([200, khyber]);
    }
    expect(await ask("/v1/me/domains/khyber.af", undefined, "HEAD")).toMatchObject({ status: 200, text: "" });
    expect((await ask("/v1/me/domains/bamyan.af", undefined, "HEAD")).status).toBe(404);
    expect(service.calls()).toBe(before);
  });

  test("sees all domains in the token that the reseller manages, once each and in the token's order", async () => {
    const claim = [
      "HINDUKUSH.net.af.",
      "google.af",
      "khyber.af",
      "Khyber.AF",
      "kabul.com",
      "www.khyber.af",
      "..",
      "",
    ];
    const { body } = await ask("/v1/me/domains", claim);
    const { domains } = customerDomainsShape.parse(body);
    expect(domains.map(({ domain }) => domain)).toEqual(["hindukush.net.af", "khyber.af"]);
    expect(domains[1]).toEqual(khyber);
    expect((await ask("/v1/me/domains", [])).body).toEqual({ domains: [] });
  });

  test("sees no wholesale prices", async () => {
    const { body } = await service.ask("/v1/staff/prices", { headers: bearer("read") });
    const amounts = staffPricesShape.parse(body).prices.map((price) => price.wholesale.amount);
    const { text } = await ask("/v1/me/domains", ["khyber.af", "hindukush.net.af", "kabul-bakery.com.af"]);
    expect(amounts.filter((amount) => text.includes(`"${amount}"`))).toEqual([]);
  });

  test("can't tell other customers' names from unknown ones, and neither causes an upstream call", async () => {
    const before = service.calls();
    const problemFor = async (name: string, domains: readonly string[]) => {
      const { requestId: _id, ...problem } = problemOf(await ask(`/v1/me/domains/${name}`, domains));
      return problem;
    };
    const others = await problemFor("bamyan.af", ["khyber.af"]);
    expect(others.code).toBe("not_found");
    expect(await problemFor("nobody-has-this.af", ["khyber.af"])).toEqual(others);
    expect(await problemFor("nobody-has-this.af", ["nobody-has-this.af"])).toEqual(others);
    expect(await problemFor("google.af", ["google.af"])).toEqual(others);
    expect(await problemFor("kabul.com", ["kabul.com"])).toEqual(others);
    expect(await problemFor("www.khyber.af", ["khyber.af"])).toEqual(others);
    expect(service.calls()).toBe(before);
  });

  test("gets an error for an invalid name or a query parameter", async () => {
    for (const name of ["%00", "*", "khyber"])
      expect(problemOf(await ask(`/v1/me/domains/${name}`)).errors?.[0]?.field).toBe("domain");
    expect(problemOf(await ask("/v1/me/domains?all=1")).errors?.[0]?.field).toBe("all");
  });

  const at = (seconds: number): number => Math.floor(clock.now() / 1000) + seconds;
  test("is rejected as unauthenticated with any other token", async () => {
    const tokens: Readonly<Record<string, string | Promise<string>>> = {
      none: "",
      "of staff": bearer("read").Authorization.slice("Bearer ".length),
      malformed: "a.b.c",
      "signed with another secret": signToken(claimsAt(clock), { secret: `${SECRET}!` }),
      "signed with another algorithm": signToken(claimsAt(clock), {
        alg: "HS512",
        secret: SECRET.repeat(2),
      }),
      unsigned: new UnsecuredJWT(claimsAt(clock)).encode(),
      expired: signToken(claimsAt(clock, { exp: at(0) })),
      "without an expiry": signToken({ iss: ISSUER, aud: AUDIENCE, domains: [] }),
      "not valid yet": signToken(claimsAt(clock, { nbf: at(5) })),
      "of another issuer": signToken(claimsAt(clock, { iss: "https://other.example.af" })),
      "without an issuer": signToken({ aud: AUDIENCE, exp: at(600), domains: [] }),
      "for another audience": signToken(claimsAt(clock, { aud: ["another"] })),
      "without domains": signToken({ iss: ISSUER, aud: AUDIENCE, exp: at(600) }),
      "whose domains are a string": signToken(claimsAt(clock, { domains: "khyber.af" })),
      "whose domains aren't all strings": signToken(claimsAt(clock, { domains: ["khyber.af", 7] })),
    };
    for (const [which, token] of Object.entries(tokens)) {
      const answer = await service.ask("/v1/me/domains/khyber.af", asCustomer(await token));
      expect([which, problemOf(answer).code]).toEqual([which, "unauthenticated"]);
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer realm="customer"/);
      matchesDocument(document, "GET", "/v1/me/domains/khyber.af", answer);
    }
    expect((await service.ask("/v1/me/domains")).status).toBe(401);
  });

  test("leaves no name and no token in the log", async () => {
    const token = await signToken(claimsAt(clock, { domains: ["khyber.af", "unlogged-name.af"] }));
    await service.ask("/v1/me/domains/khyber.af", asCustomer(token));
    await service.ask("/v1/me/domains/unlogged-name.af", asCustomer(token));
    expect(service.log.join()).not.toMatch(/unlogged-name|khyber/);
    expect(service.log.join()).not.toContain(token.slice(0, 20));
  });
});

describe("of a domain, a customer", () => {
  const shown = z.looseObject({ renewal: z.array(z.unknown()) });
  const see = async (service: Service, clock: FakeClock) => {
    const token = await signToken(claimsAt(clock));
    return shown.parse((await service.ask("/v1/me/domains/khyber.af", asCustomer(token))).body);
  };

  test("sees no doubtful renewal price", () =>
    withDomains({}, async (service, clock) => {
      const renewals = async (): Promise<number> => (await see(service, clock)).renewal.length;
      expect(await renewals()).toBe(1);
      const hold = service.sandbox.control.hold({ operation: "quote" });
      await purge(service, "prices");
      expect(await renewals()).toBe(0);
      hold.release();
      await until(async () => {
        await clock.advance(1_000);
        return (await renewals()) === 1;
      }, "the return of the price");
    }));

  test("sees the last known data, marked stale, when the upstream fails", () =>
    withDomains({}, async (service, clock) => {
      const before = await see(service, clock);
      await service.sandbox.close();
      await clock.advance(301_000);
      expect(await see(service, clock)).toEqual({ ...before, source: "stale" });
    }));
});

test("expired tokens don't count as guesses, so customers who share an address don't lock each other out", () =>
  withDomains({}, async (service, clock) => {
    const wrongTokens = () => service.log.filter((line) => line.includes("auth.token.wrong")).length;
    const valid = asCustomer(await signToken(claimsAt(clock)));
    const exp = Math.floor(clock.now() / 1000) - 60;
    const expired = await signToken(claimsAt(clock, { exp }));
    for (let n = 0; n < 40; n += 1)
      expect((await service.ask("/v1/me/domains", asCustomer(expired))).headers["www-authenticate"]).toBe(
        'Bearer realm="customer", error="invalid_token"',
      );
    expect(wrongTokens()).toBe(0);
    expect((await service.ask("/v1/me/domains", valid)).status).toBe(200);
    // An expiry in the past doesn't excuse a wrong signature, issuer or audience.
    const wrong = [
      await signToken(claimsAt(clock, { exp }), { secret: `${SECRET}!` }),
      await signToken(claimsAt(clock, { exp, iss: "https://other.example.af" })),
      await signToken(claimsAt(clock, { exp, aud: "another" })),
    ];
    for (const token of wrong)
      expect((await service.ask("/v1/me/domains", asCustomer(token))).status).toBe(401);
    expect(wrongTokens()).toBe(wrong.length);
  }));

test("a customer of a reseller with more domains than the upstream lists sees every one, with one upstream call for each that isn't listed", () =>
  withDomains({ reseller: "big" }, async (service, clock) => {
    const ask = async (path: string, ...domains: string[]) =>
      service.ask(path, asCustomer(await signToken(claimsAt(clock, { domains }))));
    const names = Array.from({ length: 12 }, (_, n) => `client-${n + 110}.af`);
    const answer = await ask("/v1/me/domains", "client-001.af", ...names, "nobody-has-this.af");
    const { domains } = customerDomainsShape.parse(answer.body);
    expect(domains.map(({ domain }) => domain)).toEqual(["client-001.af", ...names]);
    expect(service.calls(DOMAIN)).toBe(13);

    expect((await ask("/v1/me/domains/client-110.af", "client-110.af")).status).toBe(200);
    expect((await ask("/v1/me/domains/nobody-has-this.af", "nobody-has-this.af")).status).toBe(404);
    expect((await ask("/v1/me/domains/client-125.af", "client-001.af")).status).toBe(404);
    expect(service.calls(DOMAIN)).toBe(13);
    expect((await ask("/v1/me/domains/client-125.af", "client-125.af")).status).toBe(200);
    expect(service.calls(DOMAIN)).toBe(14);
  }));

test("a customer sees all details of a domain of which the upstream lists only the name", () =>
  withDomains({ sandbox: { shapes: { listItems: "names" } } }, async (service, clock) => {
    const token = asCustomer(await signToken(claimsAt(clock, { domains: ["khyber.af", "bamyan.af"] })));
    const { body } = await service.ask("/v1/me/domains", token);
    const dates = { registeredAt: expect.any(String), expiresAt: expect.any(String) };
    expect(body).toMatchObject({
      domains: [
        { domain: "khyber.af", ...dates },
        { domain: "bamyan.af", ...dates },
      ],
    });
    expect(service.calls(DOMAIN)).toBe(2);
  }));

test("without a way to verify tokens, the customer endpoints don't exist", () =>
  withService({ warm: false }, async (service, clock) => {
    const { requestId: _id, ...nothing } = problemOf(await service.ask("/v1/nothing"));
    const token = asCustomer(await signToken(claimsAt(clock)));
    for (const path of ["/v1/me/domains", "/v1/me/domains/khyber.af"]) {
      for (const method of ["GET", "POST", "OPTIONS"]) {
        const { requestId: _other, ...problem } = problemOf(await service.ask(path, { ...token, method }));
        expect(problem).toEqual(nothing);
      }
    }
  }));

test("a secret replaced in its file, also through symbolic links as in Kubernetes, takes effect within a second, unless it is too short", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "secret");
  writeFileSync(file, `${SECRET}\n`);
  await withDomains({ env: { CUSTOMER_JWT_SECRET_FILE: file } }, async (service, clock) => {
    const statusFor = async (secret: string) =>
      (await service.ask("/v1/me/domains", asCustomer(await signToken(claimsAt(clock), { secret })))).status;
    expect(await statusFor(SECRET)).toBe(200);
    writeFileSync(file, `${SECRET}-new\r\n`);
    await clock.advance(1000);
    expect([await statusFor(SECRET), await statusFor(`${SECRET}-new`)]).toEqual([401, 200]);
    writeFileSync(file, "short\n");
    await clock.advance(1000);
    expect([await statusFor("short"), await statusFor(`${SECRET}-new`)]).toEqual([401, 200]);
    writeFileSync(join(folder.path, "last"), `${SECRET}-last`);
    symlinkSync("last", `${file}.link`);
    renameSync(`${file}.link`, file);
    await clock.advance(1000);
    expect([await statusFor(`${SECRET}-new`), await statusFor(`${SECRET}-last`)]).toEqual([401, 200]);
  });
  folder.remove();
});

test("tokens are verified with the login's published keys, which are fetched without sending any secrets", async () => {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const received: IncomingHttpHeaders[] = [];
  let isDown = true;
  const login = createServer((request, response) => {
    received.push(request.headers);
    if (isDown) response.writeHead(500).end("LEAKED-TEXT-OF-THE-LOGIN");
    else void exportJWK(publicKey).then((jwk) => response.end(JSON.stringify({ keys: [jwk] })));
  });
  await new Promise<void>((done) => {
    login.listen(0, "127.0.0.1", done);
  });
  const { port } = z.object({ port: z.int() }).parse(login.address());
  const env = jwks(`http://127.0.0.1:${port}/keys`);
  await withDomains({ env }, async (service, clock) => {
    const token = await new SignJWT(claimsAt(clock)).setProtectedHeader({ alg: "ES256" }).sign(privateKey);
    const ask = () => service.ask("/v1/me/domains/khyber.af", asCustomer(token));
    const failed = await ask();
    expect(problemOf(failed)).toMatchObject({ code: "upstream_failed", retryAfter: 10 });
    expect(failed.text + service.log.join()).not.toMatch(/LEAKED|127\.0\.0\.1/);
    matchesDocument(document, "GET", "/v1/me/domains/khyber.af", failed);
    isDown = false;
    await clock.advance(10_000);
    expect((await ask()).status).toBe(200);
    expect(received).toHaveLength(2);
    const { key, secret } = service.sandbox.credential();
    const sent = JSON.stringify(received).toLowerCase();
    for (const word of ["x-service", "authorization", "cookie", "x-request-id", key, secret, token])
      expect(sent).not.toContain(word.toLowerCase());
  }).finally(() => {
    login.closeAllConnections();
    login.close();
  });
});

describe("settings for customer tokens", () => {
  const production = {
    NODE_ENV: "production",
    UPSTREAM_BASE_URL: "https://registry.example",
    UPSTREAM_SERVICE_KEY: "k",
    UPSTREAM_SERVICE_SECRET: "s",
  };
  const faultsOf = (env: Readonly<Record<string, string>>) => {
    const result = readConfig(env, new FakeClock());
    return result.ok ? [] : result.faults.map((fault) => fault.slice(0, fault.indexOf(":")));
  };
  test.each<[Readonly<Record<string, string>>, readonly string[]]>([
    [{ CUSTOMER_JWT_SECRET: SECRET }, []],
    [{ ...production, ...secretEnv }, []],
    [{ ...production, ...jwks("https://login.example.af/keys?tenant=1") }, []],
    [{ ...production, ...jwks("http://127.0.0.1:8080/keys") }, []],
    [{ ...production, ...jwks("http://login.example.af/keys") }, ["CUSTOMER_JWKS_URL"]],
    [jwks("https://me:secret@login.example.af/keys"), ["CUSTOMER_JWKS_URL"]],
    [{ ...secretEnv, CUSTOMER_JWT_SECRET: "short" }, ["CUSTOMER_JWT_SECRET"]],
    [{ ...secretEnv, ...jwks("https://login.example.af/keys") }, ["CUSTOMER_JWT_SECRET"]],
    [{ CUSTOMER_JWT_ISSUER: ISSUER }, ["CUSTOMER_JWT_ISSUER"]],
    [{ ...production, CUSTOMER_JWT_SECRET: SECRET }, ["CUSTOMER_JWT_ISSUER", "CUSTOMER_JWT_AUDIENCE"]],
  ])("given as %j report faults in %j", (env, faults) => {
    expect(faultsOf(env)).toEqual(faults);
  });
});

interface Readers {
  readonly service: Service;
  readonly clock: FakeClock;
  /** As a customer who owns these names. */
  mine(path: string, ...names: readonly string[]): Promise<unknown>;
  staff(path: string): Promise<unknown>;
}

/** Starts a service whose upstream answers with this list, and this record of any domain. */
async function withUpstream(
  given: { readonly domains?: unknown; readonly domain?: unknown; readonly balance?: unknown },
  check: (readers: Readers) => Promise<void>,
  options: Omit<Partial<ServiceOptions>, "env"> & { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const env = { ...secretEnv, ...options.env };
  await withService({ retail: SMALL_SHOP, ...options, env, warm: false }, async (service, clock) => {
    const { control } = service.sandbox;
    if (given.domains !== undefined)
      control.setFault("domains", { fault: "patched", patch: { domains: given.domains } });
    if (given.domain !== undefined) control.setFault("domain", { fault: "patched", patch: given.domain });
    if (given.balance !== undefined) control.setFault("balance", { fault: "patched", patch: given.balance });
    await until(() => service.log.some((line) => line.includes("prices.refreshed")), "the price list");
    // The list of the start may be that of before the fault.
    await purge(service, "account");
    const asked = async (path: string, headers: Readonly<Record<string, string>>): Promise<unknown> => {
      const answer = await inTime(clock, service.ask(path, { headers }));
      matchesDocument(document, "GET", path, answer);
      return answer.body;
    };
    await check({
      service,
      clock,
      async mine(path, ...domains) {
        return asked(path, asCustomer(await signToken(claimsAt(clock, { domains }))).headers);
      },
      staff: (path) => asked(path, bearer("read")),
    });
  });
}

const good = (name: string) => ({
  domain: name,
  status: "active",
  expires_at: "2027-05-04T00:00:00Z",
  registered_at: "2020-05-04T00:00:00Z",
  auto_renew: true,
  nameservers: [],
});
const statusOf = async ({ service }: Readers, name: string): Promise<unknown> =>
  (await service.ask(`/v1/availability?domain=${encodeURIComponent(name)}`)).body;

describe("a record that can't be read", () => {
  /** Each with the name that staff see beside the reason. */
  const BAD: readonly (readonly [string, unknown, string | null])[] = [
    ["null", null, null],
    ["a record whose name is empty", good(""), null],
    ["a record with an underscore in its name", good("my_shop.af"), null],
    ["two names", { ...good("odd-one.af"), fqdn: "odd-three.af" }, "odd-one.af"],
    ["two spellings of a field", { ...good("odd-one.af"), expiresAt: "2029-01-01" }, "odd-one.af"],
    ["two spellings of the name", { ...good("odd-one.af"), Domain: "odd-two.af" }, "odd-one.af"],
    [
      "a wrapped record with two expiries",
      { domain: { ...good("odd-one.af"), "expires-at": 1 } },
      "odd-one.af",
    ],
  ];

  test("is left out and counted, while the others stand, and its name counts as owned", async () => {
    const given = [good("first.af"), ...BAD.map(([, item]) => item), good("last.af")];
    await withUpstream({ domains: given }, async (readers) => {
      const list = await readers.staff("/v1/staff/domains");
      expect(list).toMatchObject({
        domains: [{ domain: "first.af" }, { domain: "last.af" }],
        unreadable: BAD.map(([, , domain]) => ({ domain, why: expect.any(String) })),
      });
      const csv = await readers.service.ask("/v1/staff/domains", {
        headers: { ...bearer("read"), Accept: "text/csv" },
      });
      expect([csv.status, csv.text.trim().split("\r\n").length]).toEqual([200, 3]);
      for (const name of ["first.af", "last.af", "odd-one.af", "odd-two.af"])
        expect(await statusOf(readers, name)).toMatchObject({ status: "taken" });
      expect(await readers.mine("/v1/me/domains", "last.af", "first.af")).toMatchObject({
        domains: [{ domain: "last.af" }, { domain: "first.af" }],
      });
    });
  });

  test("of a customer is asked for by its name", async () => {
    const given = [{ ...good("khyber.af"), expiresAt: "2029-01-01" }, good("other.af")];
    await withUpstream({ domains: given }, async ({ mine }) => {
      const khyber = { domain: "khyber.af", status: "active" };
      expect(await mine("/v1/me/domains", "khyber.af")).toMatchObject({ domains: [khyber] });
      expect(await mine("/v1/me/domains/khyber.af", "khyber.af")).toMatchObject(khyber);
    });
  });

  test("is an answer that isn't understood if it is all that the list has", async () => {
    await withUpstream({ domains: [{ ...good("x.af"), domain: null }] }, async ({ staff }) => {
      expect(await staff("/v1/staff/domains")).toMatchObject({ code: "upstream_contract" });
    });
  });
});

test("an expiry that a domain can't have is unknown and reported", async () => {
  const { expires_at: _no, ...record } = good("");
  /** What is written, and the expiry that staff see. test/upstream/contract has the ways to write a date. */
  const Y2027 = "2027-05-04T00:00:00.000Z";
  const WRITTEN: readonly (readonly [Readonly<Record<string, unknown>>, string | null])[] = [
    // A year of the Afghan calendar.
    [{ expires_at: "1406-02-14" }, null],
    [{ expires_at: "0000-00-00", expiry_date: "2027-05-04" }, Y2027],
    [{ expires_at: "1970-01-01T00:00:00Z" }, null],
    [{ expires_at: 20270504 }, null],
    [{ expires_at: "2029-01-01", expiry_date: "2027-05-04" }, Y2027],
    // The others are good, and not reported.
    [{ expires_at: { date: "2027-05-04 00:00:00.000000", timezone: "UTC" } }, Y2027],
    [{ expires_at: 1809388800000 }, Y2027],
    [{ expires_at: "", expires_on: "2027-05-04" }, Y2027],
    [{ expires_at: "2027-05-04T10:00:00Z", expiry_date: "2027-05-04" }, Y2027],
  ];
  for (const [rows, reported] of [
    [WRITTEN.slice(0, 5), 2],
    [WRITTEN.slice(5), 0],
  ] as const) {
    const domains = rows.map(([dates], at) => ({ ...record, domain: `dated-${at}.af`, ...dates }));
    await withUpstream({ domains }, async ({ staff }) => {
      const list = staffDomainsShape.parse(await staff("/v1/staff/domains"));
      expect(list.domains.map(({ expiresAt }, at) => [rows[at]?.[0], expiresAt])).toEqual(rows);
      const { unexpected } = overviewShape.parse(await staff("/v1/staff/overview"));
      expect(unexpected.filter(({ what }) => what.startsWith("expires_at"))).toHaveLength(reported);
    });
  }
});

describe("a list with fewer domains than the account has", () => {
  const some = Array.from({ length: 50 }, (_, at) => good(`listed-${at}.af`));

  test("is truncated for staff, and what it lacks is asked for", async () => {
    await withUpstream(
      { domains: some, balance: { active_domains: 137 } },
      async ({ staff, mine, service }) => {
        expect(await staff("/v1/staff/domains")).toMatchObject({ truncated: true });
        const khyber = { domain: "khyber.af", status: "active" };
        expect(await mine("/v1/me/domains/khyber.af", "khyber.af")).toMatchObject(khyber);
        expect(await mine("/v1/me/domains", "listed-7.af", "khyber.af")).toMatchObject({
          domains: [{ domain: "listed-7.af" }, khyber],
        });
        expect(service.calls(DOMAIN)).toBe(1);
      },
    );
  });

  test("unlike one with as many, which is whole", async () => {
    await withUpstream(
      { domains: some, balance: { active_domains: 50 } },
      async ({ staff, mine, service }) => {
        expect(await staff("/v1/staff/domains")).not.toHaveProperty("truncated");
        expect(await mine("/v1/me/domains/khyber.af", "khyber.af")).toMatchObject({ code: "not_found" });
        expect(service.calls(DOMAIN)).toBe(0);
      },
    );
  });
});

describe("a customer with 120 domains", () => {
  const NAMES = Array.from({ length: 120 }, (_, n) => `client-${String(n + 1).padStart(3, "0")}.af`);
  const listed = z.object({
    domains: z.array(
      z.looseObject({ domain: z.string(), status: z.string(), retryAfter: z.number().optional() }),
    ),
  });

  test("sees what is known at once, and more with each repetition, while the quota is nearly used up", async () => {
    const options = { reseller: "big", env: { UPSTREAM_RATE_LIMIT: "60", UPSTREAM_RATE_HEADROOM: "3" } };
    await withUpstream(
      {},
      async ({ mine, clock, service }) => {
        const known: number[] = [];
        // One of those that aren't listed isn't understood at first.
        service.sandbox.control.setFault("domain", { fault: "data-number", calls: 1 });
        for (let tries = 0; tries < 20; tries += 1) {
          const { domains } = listed.parse(await mine("/v1/me/domains", ...NAMES));
          expect(domains.map(({ domain }) => domain)).toEqual(NAMES);
          const unknown = domains.filter(({ status }) => status === "unknown");
          known.push(120 - unknown.length);
          for (const one of unknown) expect(Object.keys(one)).toEqual(["domain", "status", "retryAfter"]);
          if (unknown.length === 0) break;
          const soonest = Math.min(...unknown.map(({ retryAfter = 0 }) => retryAfter));
          expect(soonest).toBeGreaterThan(0);
          await clock.advance(soonest * 1000);
        }
        expect(known[0]).toBeGreaterThanOrEqual(100);
        expect(known).toEqual(known.toSorted((a, b) => a - b));
        expect(known.at(-1)).toBe(120);
        expect(service.calls(DOMAIN)).toBe(21);
      },
      options,
    );
  });
});

test("the status of a check that isn't about the name says nothing about it, is reported, and is asked again after seconds", async () => {
  await withUpstream({}, async (readers) => {
    const { service, clock } = readers;
    const words = ["rate_limited", "maintenance"];
    for (const [at, word] of [...words, "42"].entries()) {
      const patch = { available: false, status: word, pricing: null };
      service.sandbox.control.setFault("check", { fault: "patched", patch });
      const path = `/v1/availability?domain=word-${at}.af`;
      expect(problemOf(await service.ask(path)).code).toBe("upstream_contract");
      const search = await service.ask(`/v1/search?q=word-${at}&tlds=.af`);
      expect(search.body).toMatchObject({ results: [{ status: "unknown" }], complete: false });
      service.sandbox.control.clearFaults();
      await clock.advance(10_000);
      expect((await service.ask(path)).status).toBe(200);
    }
    const overview = JSON.stringify(await readers.staff("/v1/staff/overview"));
    for (const word of words) expect(overview).toContain(`data.status \\"${word}\\"`);
  });
});
