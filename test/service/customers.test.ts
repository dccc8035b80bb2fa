/** What customers see of their own domains, and that they see nobody else's. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { z } from "zod";
import { readConfig } from "../../src/config/env.js";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import {
  type Answer,
  bearer,
  problemOf,
  type Service,
  type ServiceOptions,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";

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

function claimsAt(clock: FakeClock, more: JWTPayload = {}): JWTPayload {
  const now = Math.floor(clock.now() / 1000);
  return { iss: ISSUER, aud: AUDIENCE, exp: now + 600, domains: ["khyber.af"], ...more };
}

function signToken(claims: JWTPayload, { secret = SECRET, alg = "HS256" } = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg }).sign(new TextEncoder().encode(secret));
}

const asCustomer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

async function startWithDomains(clock: FakeClock, options: Partial<ServiceOptions> = {}): Promise<Service> {
  const service = await startService({ clock, env: secretEnv, ...options });
  await until(() => service.calls(LIST) === 1, "the loading of the domain list");
  return service;
}

describe("a customer", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startWithDomains(clock);
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
    const { domains } = z
      .strictObject({ domains: z.array(z.looseObject({ domain: z.string() })) })
      .parse(body);
    expect(domains.map(({ domain }) => domain)).toEqual(["hindukush.net.af", "khyber.af"]);
    expect(domains[1]).toEqual(khyber);
    expect((await ask("/v1/me/domains", [])).body).toEqual({ domains: [] });
  });

  test("sees no wholesale prices", async () => {
    const { body } = await service.ask("/v1/staff/prices", { headers: bearer("read") });
    const wholesale = z.object({
      prices: z.array(z.object({ wholesale: z.object({ amount: z.string() }) })),
    });
    const amounts = wholesale.parse(body).prices.map((price) => price.wholesale.amount);
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
  let clock: FakeClock;
  let service: Service;
  beforeEach(async () => {
    clock = new FakeClock();
    service = await startWithDomains(clock);
  });
  afterEach(() => service.close());

  const shown = z.looseObject({ renewal: z.array(z.unknown()) });
  const see = async () => {
    const token = await signToken(claimsAt(clock));
    return shown.parse((await service.ask("/v1/me/domains/khyber.af", asCustomer(token))).body);
  };

  test("sees no doubtful renewal price", async () => {
    const renewals = async (): Promise<number> => (await see()).renewal.length;
    expect(await renewals()).toBe(3);
    const hold = service.sandbox.control.hold({ operation: "quote" });
    const purge = { method: "POST", headers: bearer("operate"), body: { what: "prices" } };
    expect((await service.ask("/v1/staff/cache/purge", purge)).status).toBe(200);
    expect(await renewals()).toBe(0);
    hold.release();
    await until(async () => {
      await clock.advance(1_000);
      return (await renewals()) === 3;
    }, "the return of the prices");
  });

  test("sees the last known data, marked stale, when the upstream fails", async () => {
    const before = await see();
    await service.sandbox.close();
    await clock.advance(301_000);
    expect(await see()).toEqual({ ...before, source: "stale" });
  });
});

test("expired tokens don't count as guesses, so customers who share an address don't lock each other out", async () => {
  const clock = new FakeClock();
  const service = await startWithDomains(clock);
  const wrongTokens = () => service.log.filter((line) => line.includes("auth.token.wrong")).length;
  try {
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
  } finally {
    await service.close();
  }
});

describe("a customer of a reseller with more domains than the upstream lists", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await startWithDomains(clock, {
      reseller: "big",
      env: secretEnv,
    });
  });
  afterAll(() => service.close());

  const ask = async (path: string, ...domains: string[]) =>
    service.ask(path, asCustomer(await signToken(claimsAt(clock, { domains }))));

  test("sees every domain, with one upstream call for each that isn't listed", async () => {
    const names = Array.from({ length: 12 }, (_, n) => `client-${n + 110}.af`);
    const answer = await ask("/v1/me/domains", "client-001.af", ...names, "nobody-has-this.af");
    const { domains } = z.object({ domains: z.array(z.object({ domain: z.string() })) }).parse(answer.body);
    expect(domains.map(({ domain }) => domain)).toEqual(["client-001.af", ...names]);
    expect(service.calls(DOMAIN)).toBe(13);

    expect((await ask("/v1/me/domains/client-110.af", "client-110.af")).status).toBe(200);
    expect((await ask("/v1/me/domains/nobody-has-this.af", "nobody-has-this.af")).status).toBe(404);
    expect((await ask("/v1/me/domains/client-125.af", "client-001.af")).status).toBe(404);
    expect(service.calls(DOMAIN)).toBe(13);
    expect((await ask("/v1/me/domains/client-125.af", "client-125.af")).status).toBe(200);
    expect(service.calls(DOMAIN)).toBe(14);
  });
});

test("a customer sees all details of a domain of which the upstream lists only the name", async () => {
  const clock = new FakeClock();
  const service = await startWithDomains(clock, { sandbox: { shapes: { listItems: "names" } } });
  try {
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
  } finally {
    await service.close();
  }
});

test("without a way to verify tokens, the customer endpoints don't exist", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock, warm: false });
  try {
    const { requestId: _id, ...nothing } = problemOf(await service.ask("/v1/nothing"));
    const token = asCustomer(await signToken(claimsAt(clock)));
    for (const path of ["/v1/me/domains", "/v1/me/domains/khyber.af"]) {
      for (const method of ["GET", "POST", "OPTIONS"]) {
        const { requestId: _other, ...problem } = problemOf(await service.ask(path, { ...token, method }));
        expect(problem).toEqual(nothing);
      }
    }
  } finally {
    await service.close();
  }
});

test("a secret replaced in its file takes effect within a second, unless it is too short", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "secret");
  writeFileSync(file, `${SECRET}\n`);
  const clock = new FakeClock();
  const service = await startWithDomains(clock, { env: { CUSTOMER_JWT_SECRET_FILE: file } });
  const statusFor = async (secret: string) =>
    (await service.ask("/v1/me/domains", asCustomer(await signToken(claimsAt(clock), { secret })))).status;
  try {
    expect(await statusFor(SECRET)).toBe(200);
    writeFileSync(file, `${SECRET}-new\n`);
    await clock.advance(1000);
    expect([await statusFor(SECRET), await statusFor(`${SECRET}-new`)]).toEqual([401, 200]);
    writeFileSync(file, "short\n");
    await clock.advance(1000);
    expect([await statusFor("short"), await statusFor(`${SECRET}-new`)]).toEqual([401, 200]);
  } finally {
    await service.close();
    folder.remove();
  }
});

test("tokens are verified with the login's published keys, which are fetched without sending any secrets", async () => {
  const clock = new FakeClock();
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
  const service = await startWithDomains(clock, {
    env: {
      CUSTOMER_JWKS_URL: `http://127.0.0.1:${port}/keys`,
      CUSTOMER_JWT_ISSUER: ISSUER,
      CUSTOMER_JWT_AUDIENCE: AUDIENCE,
    },
  });
  try {
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
  } finally {
    await service.close();
    login.closeAllConnections();
    await new Promise((done) => login.close(done));
  }
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
  const jwks = (address: string) => ({
    CUSTOMER_JWKS_URL: address,
    CUSTOMER_JWT_ISSUER: ISSUER,
    CUSTOMER_JWT_AUDIENCE: AUDIENCE,
  });

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
