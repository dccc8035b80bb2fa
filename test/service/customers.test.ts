/** What customers see of their own domains, and that nobody else does. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { z } from "zod";
import { readConfig } from "../../src/config/env.js";
import { openApiDocument } from "../../src/http/openapi.js";
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

function sealed(claims: JWTPayload, { secret = SECRET, alg = "HS256" } = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg }).sign(new TextEncoder().encode(secret));
}

const asCustomer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

async function started(clock: FakeClock, options: Partial<ServiceOptions> = {}): Promise<Service> {
  const service = await startService({ clock, env: secretEnv, ...options });
  await until(() => service.calls(LIST) === 1, "the list of domains");
  return service;
}

describe("a customer", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await started(clock);
  });
  afterAll(() => service.close());

  const ask = async (path: string, domains: unknown = ["khyber.af"], method = "GET"): Promise<Answer> => {
    const token = await sealed(claimsAt(clock, { domains }));
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

  test("sees a domain of the token, with what a renewal costs, and no call is made for it", async () => {
    const before = service.calls();
    const { status, body } = await ask("/v1/me/domains/khyber.af");
    expect([status, body]).toEqual([200, khyber]);
    expect(service.calls()).toBe(before);
  });

  test("sees all domains of the token that the reseller manages, each once and in its order", async () => {
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

  test("may write the name in any case", async () => {
    expect((await ask("/v1/me/domains/KHYBER.af.")).body).toEqual(khyber);
  });

  test("sees no wholesale amount", async () => {
    const { body } = await service.ask("/v1/staff/prices", { headers: bearer("read") });
    const wholesale = z.object({
      prices: z.array(z.object({ wholesale: z.object({ amount: z.string() }) })),
    });
    const amounts = wholesale.parse(body).prices.map((price) => price.wholesale.amount);
    const { text } = await ask("/v1/me/domains", ["khyber.af", "hindukush.net.af", "kabul-bakery.com.af"]);
    expect(amounts.filter((amount) => text.includes(`"${amount}"`))).toEqual([]);
  });

  test("cannot tell a name of others from one that does not exist, and neither is asked for", async () => {
    const before = service.calls();
    const told = async (name: string, domains: readonly string[]) => {
      const { requestId: _id, ...problem } = problemOf(await ask(`/v1/me/domains/${name}`, domains));
      return problem;
    };
    const others = await told("bamyan.af", ["khyber.af"]);
    expect(others.code).toBe("not_found");
    expect(await told("nobody-has-this.af", ["khyber.af"])).toEqual(others);
    expect(await told("nobody-has-this.af", ["nobody-has-this.af"])).toEqual(others);
    expect(await told("google.af", ["google.af"])).toEqual(others);
    expect(await told("kabul.com", ["kabul.com"])).toEqual(others);
    expect(await told("www.khyber.af", ["khyber.af"])).toEqual(others);
    expect(service.calls()).toBe(before);
  });

  test("is refused what is no name, and parameters", async () => {
    for (const name of ["%00", "*", "khyber"])
      expect(problemOf(await ask(`/v1/me/domains/${name}`)).errors?.[0]?.field).toBe("domain");
    expect(problemOf(await ask("/v1/me/domains?all=1")).errors?.[0]?.field).toBe("all");
  });

  test("asking HEAD gets no body and costs nothing", async () => {
    const before = service.calls();
    expect(await ask("/v1/me/domains/khyber.af", undefined, "HEAD")).toMatchObject({ status: 200, text: "" });
    expect((await ask("/v1/me/domains/bamyan.af", undefined, "HEAD")).status).toBe(404);
    expect(service.calls()).toBe(before);
  });

  const at = (seconds: number): number => Math.floor(clock.now() / 1000) + seconds;
  test.each<[string, () => Promise<string> | string]>([
    ["no token", () => ""],
    ["a staff token", () => bearer("read").Authorization.slice("Bearer ".length)],
    ["anything else", () => "a.b.c"],
    ["another secret", () => sealed(claimsAt(clock), { secret: `${SECRET}!` })],
    ["another algorithm", () => sealed(claimsAt(clock), { alg: "HS512", secret: SECRET.repeat(2) })],
    ["no signature", () => new UnsecuredJWT(claimsAt(clock)).encode()],
    ["an expiry that has passed", () => sealed(claimsAt(clock, { exp: at(0) }))],
    ["no expiry", () => sealed({ iss: ISSUER, aud: AUDIENCE, domains: [] })],
    ["a beginning to come", () => sealed(claimsAt(clock, { nbf: at(5) }))],
    ["another issuer", () => sealed(claimsAt(clock, { iss: "https://other.example.af" }))],
    ["no issuer", () => sealed({ aud: AUDIENCE, exp: at(600), domains: [] })],
    ["another audience", () => sealed(claimsAt(clock, { aud: ["another"] }))],
    ["no domains", () => sealed({ iss: ISSUER, aud: AUDIENCE, exp: at(600) })],
    ["domains as text", () => sealed(claimsAt(clock, { domains: "khyber.af" }))],
    ["domains that are not all text", () => sealed(claimsAt(clock, { domains: ["khyber.af", 7] }))],
  ])("with %s is not let in", async (_what, token) => {
    for (const path of ["/v1/me/domains", "/v1/me/domains/khyber.af"]) {
      const answer = await service.ask(path, asCustomer(await token()));
      expect(problemOf(answer).code).toBe("unauthenticated");
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer realm="customer"/);
      matchesDocument(document, "GET", path, answer);
    }
  });

  test("leaves no name and no token in the log", async () => {
    const token = await sealed(claimsAt(clock, { domains: ["khyber.af", "unlogged-name.af"] }));
    await service.ask("/v1/me/domains/khyber.af", asCustomer(token));
    await service.ask("/v1/me/domains/unlogged-name.af", asCustomer(token));
    expect(service.log.join()).not.toMatch(/unlogged-name|khyber/);
    expect(service.log.join()).not.toContain(token.slice(0, 20));
  });

  test("sees what was known when the upstream fails", async () => {
    const own = new FakeClock();
    const other = await started(own);
    try {
      await other.sandbox.close();
      await own.advance(301_000);
      const token = await sealed(claimsAt(own));
      const { body } = await other.ask("/v1/me/domains/khyber.af", asCustomer(token));
      expect(body).toEqual({ ...khyber, source: "stale" });
    } finally {
      await other.close();
    }
  });
});

describe("a customer of a reseller with more domains than the upstream lists", () => {
  const clock = new FakeClock();
  let service: Service;
  beforeAll(async () => {
    service = await started(clock, {
      reseller: "big",
      env: secretEnv,
    });
  });
  afterAll(() => service.close());

  const ask = async (path: string, ...domains: string[]) =>
    service.ask(path, asCustomer(await sealed(claimsAt(clock, { domains }))));

  test("sees each by its own request", async () => {
    const names = Array.from({ length: 12 }, (_, n) => `client-${n + 110}.af`);
    const told = await ask("/v1/me/domains", "client-001.af", ...names, "nobody-has-this.af");
    const { domains } = z.object({ domains: z.array(z.object({ domain: z.string() })) }).parse(told.body);
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

test("a customer sees all of a domain of which the upstream's list has only the name", async () => {
  const clock = new FakeClock();
  const service = await started(clock, { sandbox: { shapes: { listItems: "names" } } });
  try {
    const token = asCustomer(await sealed(claimsAt(clock, { domains: ["khyber.af", "bamyan.af"] })));
    const { body } = await service.ask("/v1/me/domains", token);
    const told = { registeredAt: expect.any(String), expiresAt: expect.any(String) };
    expect(body).toMatchObject({
      domains: [
        { domain: "khyber.af", ...told },
        { domain: "bamyan.af", ...told },
      ],
    });
    expect(service.calls(DOMAIN)).toBe(2);
  } finally {
    await service.close();
  }
});

test("without a way to verify tokens the addresses are not there", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock, warm: false });
  try {
    const { requestId: _id, ...nothing } = problemOf(await service.ask("/v1/nothing"));
    const token = asCustomer(await sealed(claimsAt(clock)));
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

test("a secret replaced in its file is believed within a second, one that is too short never", async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, "secret");
  writeFileSync(file, `${SECRET}\n`);
  const clock = new FakeClock();
  const service = await started(clock, { env: { CUSTOMER_JWT_SECRET_FILE: file } });
  const statusFor = async (secret: string) =>
    (await service.ask("/v1/me/domains", asCustomer(await sealed(claimsAt(clock), { secret })))).status;
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

test("tokens are verified with the keys that the login publishes, for which nothing of ours is sent", async () => {
  const clock = new FakeClock();
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const asked: IncomingHttpHeaders[] = [];
  let isDown = true;
  const login = createServer((request, response) => {
    asked.push(request.headers);
    if (isDown) response.writeHead(500).end("LEAKED-TEXT-OF-THE-LOGIN");
    else void exportJWK(publicKey).then((jwk) => response.end(JSON.stringify({ keys: [jwk] })));
  });
  await new Promise<void>((done) => {
    login.listen(0, "127.0.0.1", done);
  });
  const { port } = z.object({ port: z.int() }).parse(login.address());
  const service = await started(clock, {
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
    expect(asked).toHaveLength(2);
    const { key, secret } = service.sandbox.credential();
    const sent = JSON.stringify(asked).toLowerCase();
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
    [secretEnv, []],
    [{ CUSTOMER_JWT_SECRET: SECRET }, []],
    [{ ...production, ...secretEnv }, []],
    [{ ...production, ...jwks("https://login.example.af/keys?tenant=1") }, []],
    [{ ...production, ...jwks("http://127.0.0.1:8080/keys") }, []],
    [{ ...production, ...jwks("http://login.example.af/keys") }, ["CUSTOMER_JWKS_URL"]],
    [jwks("http://login.example.af/keys"), []],
    [jwks("https://me:secret@login.example.af/keys"), ["CUSTOMER_JWKS_URL"]],
    [jwks("file:///etc/passwd"), ["CUSTOMER_JWKS_URL"]],
    [{ ...secretEnv, CUSTOMER_JWT_SECRET: "short" }, ["CUSTOMER_JWT_SECRET"]],
    [{ ...secretEnv, ...jwks("https://login.example.af/keys") }, ["CUSTOMER_JWT_SECRET"]],
    [{ CUSTOMER_JWT_ISSUER: ISSUER }, ["CUSTOMER_JWT_ISSUER"]],
    [{ ...production, CUSTOMER_JWT_SECRET: SECRET }, ["CUSTOMER_JWT_ISSUER", "CUSTOMER_JWT_AUDIENCE"]],
  ])("%j have faults in %j", (env, faults) => {
    expect(faultsOf(env)).toEqual(faults);
  });
});

test("a renewal price that is in doubt isn't shown", async () => {
  const clock = new FakeClock();
  const service = await started(clock);
  try {
    const shown = z.object({ renewal: z.array(z.unknown()) });
    const token = await sealed(claimsAt(clock, { domains: ["khyber.af"] }));
    const renewals = async (): Promise<number> =>
      shown.parse((await service.ask("/v1/me/domains/khyber.af", asCustomer(token))).body).renewal.length;
    expect(await renewals()).toBe(3);
    const hold = service.sandbox.control.hold({ operation: "quote" });
    const purge = { method: "POST", headers: bearer("operate"), body: { what: "prices" } };
    expect((await service.ask("/v1/staff/cache/purge", purge)).status).toBe(200);
    expect(await renewals()).toBe(0);
    hold.release();
    await until(async () => {
      await clock.advance(1_000);
      return (await renewals()) === 3;
    }, "the prices");
  } finally {
    await service.close();
  }
});
