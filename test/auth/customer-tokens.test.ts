/** The keys that a login publishes are fetched rarely and within limits, and are never used for anything else. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { generateKeyPairSync } from "node:crypto";
import { createServer, type Server } from "node:http";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { z } from "zod";
import { createCustomerTokens, type CustomerTokens } from "../../src/customers/customer-tokens.js";
import { ServiceError } from "../../src/errors.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";

interface Published {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly hangs?: boolean;
}

let clock: FakeClock;
let login: Server;
let asked: number;
let published: Published;
let url: string;
let tokens: CustomerTokens;

beforeEach(async () => {
  clock = new FakeClock();
  asked = 0;
  published = {};
  login = createServer((_request, response) => {
    asked += 1;
    const { status = 200, headers, body, hangs } = published;
    if (hangs) return;
    response.writeHead(status, headers);
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  await new Promise<void>((done) => {
    login.listen(0, "127.0.0.1", done);
  });
  const { port } = z.object({ port: z.int() }).parse(login.address());
  url = `http://127.0.0.1:${port}/keys`;
  tokens = createCustomerTokens({
    keys: { jwksUrl: url },
    issuer: null,
    audience: null,
    clock,
    log: recordingLog([]),
  });
});
afterEach(async () => {
  login.closeAllConnections();
  await new Promise((done) => login.close(done));
});

const claims = () => ({ domains: ["kabul.af"], exp: clock.now() / 1000 + 100_000 });

async function key(kid: string, alg: "ES256" | "EdDSA" = "ES256") {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  return {
    jwk: { ...(await exportJWK(publicKey)), kid, alg },
    sign: () => new SignJWT(claims()).setProtectedHeader({ alg, kid }).sign(privateKey),
  };
}

/** The names in the token, why it isn't accepted, or the code of the error. */
async function namesOf(token: string): Promise<readonly string[] | string> {
  try {
    const owner = await tokens.ownerOf(token, new AbortController().signal);
    return typeof owner === "string" ? owner : [...owner.names.keys()];
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
}

test("published keys are fetched once for any number of tokens", async () => {
  const [one, two] = [await key("one"), await key("two", "EdDSA")];
  published = { body: { keys: [one.jwk, two.jwk] } };
  const signed = await Promise.all([one.sign(), two.sign(), one.sign()]);
  expect(await Promise.all(signed.map(namesOf))).toEqual([["kabul.af"], ["kabul.af"], ["kabul.af"]]);
  expect(asked).toBe(1);
});

test("published keys are never used as shared secrets, and another key with the same id isn't accepted", async () => {
  const [one, other] = [await key("one", "EdDSA"), await key("one", "EdDSA")];
  const secret = "a-secret-that-is-published-by-mistake";
  published = {
    body: { keys: [one.jwk, { kty: "oct", k: Buffer.from(secret).toString("base64url"), kid: "oct" }] },
  };
  expect(await namesOf(await other.sign())).toBe("wrong");
  for (const text of [secret, String(one.jwk.x)]) {
    const token = new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid: "oct" });
    expect(await namesOf(await token.sign(new TextEncoder().encode(text)))).toBe("wrong");
  }
});

test("new keys are found, but unknown keys cause at most one fetch every 30 s", async () => {
  const [one, two] = [await key("one"), await key("two")];
  published = { body: { keys: [one.jwk] } };
  expect(await namesOf(await one.sign())).toEqual(["kabul.af"]);
  published = { body: { keys: [one.jwk, two.jwk] } };
  for (let n = 0; n < 5; n += 1) expect(await namesOf(await two.sign())).toBe("wrong");
  expect(asked).toBe(1);
  await clock.advance(30_001);
  for (const signer of [one, two]) expect(await namesOf(await signer.sign())).toEqual(["kabul.af"]);
  expect(asked).toBe(2);
});

test("withdrawn keys are rejected once the published keys have been fetched again", async () => {
  const [one, two] = [await key("one"), await key("two")];
  published = { body: { keys: [one.jwk] } };
  expect(await namesOf(await one.sign())).toEqual(["kabul.af"]);
  published = { body: { keys: [two.jwk] } };
  await clock.advance(600_001);
  expect(await namesOf(await one.sign())).toEqual(["kabul.af"]);
  await until(() => asked === 2);
  await until(async () => (await namesOf(await one.sign())) === "wrong");
});

test("published keys can be used for an hour while the login is down", async () => {
  const one = await key("one");
  published = { body: { keys: [one.jwk] } };
  expect(await namesOf(await one.sign())).toEqual(["kabul.af"]);
  published = { status: 500 };
  await clock.advance(3_600_000);
  expect(await namesOf(await one.sign())).toEqual(["kabul.af"]);
  await clock.advance(1);
  expect(await namesOf(await one.sign())).toBe("upstream_failed");
});

describe("keys that can't be fetched or used", () => {
  test.each<[string, () => Published]>([
    ["an error", () => ({ status: 503, body: { keys: [] } })],
    ["a redirect", () => ({ status: 302, headers: { Location: url }, body: { keys: [] } })],
    ["a body that isn't JSON", () => ({ body: "<html>keys</html>" })],
    ["a body that isn't a key set", () => ({ body: { keys: "one" } })],
    ["a body that is too large", () => ({ body: { keys: [], more: "x".repeat(300_000) } })],
  ])("because of %s aren't requested again for ten seconds", async (_what, answer) => {
    const one = await key("one");
    published = answer();
    expect(await namesOf(await one.sign())).toBe("upstream_failed");
    expect(await namesOf(await one.sign())).toBe("upstream_failed");
    expect(asked).toBe(1);
    published = { body: { keys: [one.jwk] } };
    await clock.advance(10_000);
    expect(await namesOf(await one.sign())).toEqual(["kabul.af"]);
  });

  test("because the login hangs are given up after a timeout", async () => {
    const one = await key("one");
    published = { hangs: true };
    const answer = namesOf(await one.sign());
    await until(() => asked === 1);
    await clock.advance(3000);
    expect(await answer).toBe("upstream_failed");
  });

  test("because they are too weak count as a failure of the login, not of the token", async () => {
    const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
    published = { body: { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "weak", alg: "RS256" }] } };
    const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    expect(await namesOf(`${part({ alg: "RS256", kid: "weak" })}.${part(claims())}.AAAA`)).toBe(
      "upstream_failed",
    );
  });
});
