/** An upstream that echoes the credential: in whatever form it does, the answer is rejected and nothing of it is revealed. */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import {
  ACTIVE,
  ask,
  AVAILABLE,
  createBench,
  expectNothingRevealed,
  KABUL,
  refusalOf,
} from "./support/bench.js";
import { answer, startStub, type Stub, success } from "./support/stub.js";

const BALANCE = {
  account_number: "AF-100",
  balance: "250.00",
  currency: "USD",
  credit_limit: "0.00",
  active_domains: 12,
};

let stub: Stub;

beforeAll(async () => {
  stub = await startStub(success(BALANCE));
});

beforeEach(() => {
  stub.forget();
});

afterAll(() => stub.close());

const body = (accountNumber: string, rest = ""): string =>
  `{"success":true,"data":${JSON.stringify(BALANCE).replace("AF-100", accountNumber)}${rest}}`;
const escaped = (text: string, escape: (code: string) => string): string =>
  text.replaceAll(/./g, (char) => escape(char.charCodeAt(0).toString(16)));

const unread = (text: string): string => body("AF-100", `,"debug":"${text}"`);
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const fullWidth = (char: string): string => String.fromCharCode(char.charCodeAt(0) + 0xfee0);

test.each<[string, string]>([
  ["the key", body(ACTIVE.key)],
  ["the secret", body(`AF ${ACTIVE.secret}!`)],
  ["the secret in a field that isn't read", body("AF-100", `,"meta":{"debug":["${ACTIVE.secret}"]}`)],
  ["the secret as a field name", body("AF-100", `,"${ACTIVE.secret}":1`)],
  ["the secret with JSON escapes", body(escaped(ACTIVE.secret, (code) => `\\u00${code}`))],
  ["the secret with one JSON escape", body(ACTIVE.secret.replace("t", "\\u0074"))],
  ["the key percent-encoded", body(escaped(ACTIVE.key, (code) => `%${code.toUpperCase()}`))],
  ["the key with one percent-encoded character", body(ACTIVE.key.replace("-", "%2D"))],
  ["the secret in upper case", body(ACTIVE.secret.toUpperCase())],
  ["the key in upper case", body(ACTIVE.key.toUpperCase())],
  ["the secret with spaces", body(ACTIVE.secret.replaceAll(/./g, "$& "))],
  ["the secret with tabs and line breaks", unread(ACTIVE.secret.replaceAll(/.{3}/g, "$&\\t\\n"))],
  ["the secret with invisible characters", unread(ACTIVE.secret.replaceAll(/./g, "$&\u200b\u00ad\u2060"))],
  ["the secret with a byte order mark inside", body(ACTIVE.secret.replace(/^..../, "$&\ufeff"))],
  ["the secret in groups", body(ACTIVE.secret.replaceAll(/.{4}/g, "$&:"))],
  ["the secret in full-width letters", body(ACTIVE.secret.replaceAll(/[!-~]/g, fullWidth))],
  ["the secret in base64", body(base64(ACTIVE.secret))],
  ["the secret in base64 without padding", body(base64(ACTIVE.secret).replaceAll("=", ""))],
  ["the secret after one letter in base64", body(base64(`x${ACTIVE.secret}y`))],
  ["the secret after two letters in base64", body(base64(`xy${ACTIVE.secret}z`))],
  ["key and secret as Basic credentials", body(`Basic ${base64(`${ACTIVE.key}:${ACTIVE.secret}`)}`)],
  ["the secret in base64url", body(Buffer.from(`??>${ACTIVE.secret}`).toString("base64url"))],
  ["the secret in hex", body(Buffer.from(ACTIVE.secret).toString("hex"))],
  ["the secret in upper-case hex", body(Buffer.from(ACTIVE.secret).toString("hex").toUpperCase())],
  [
    "the secret in hex with colons",
    body(Buffer.from(ACTIVE.secret).toString("hex").replaceAll(/../g, "$&:")),
  ],
])("an answer with %s is rejected", async (_what, text) => {
  const { upstream, lines } = createBench({ baseUrl: stub.url });
  stub.next(answer(200, text));
  const error = await refusalOf(upstream.balance(ask()));
  expect(error.code).toBe("upstream_contract");
  expectNothingRevealed(error, lines);
  await expect(upstream.balance(ask())).resolves.toMatchObject({ accountNumber: "AF-100" });
});

test("a secret that has to be escaped in JSON is found too", async () => {
  const credential = { key: "active-key-7f3a", secret: 'quoted"and\\slashed%41/91bc' };
  const { upstream } = createBench({ baseUrl: stub.url, credential });
  for (const form of [
    JSON.stringify(credential.secret),
    JSON.stringify(encodeURIComponent(credential.secret)),
  ]) {
    stub.next(answer(200, body("AF-100", `,"debug":${form}`)));
    expect((await refusalOf(upstream.balance(ask()))).code).toBe("upstream_contract");
  }
});

test("a visitor can't guess the key by searching for it, because the requested name isn't rejected", async () => {
  const credential = { key: "kabul.af", secret: ACTIVE.secret };
  const { upstream } = createBench({ baseUrl: stub.url, credential });
  stub.next(success(AVAILABLE));
  await expect(upstream.check(ask(), KABUL, 1)).resolves.toMatchObject({ status: "available" });
});

test.each([
  ["lower case", (secret: string) => secret.toLowerCase()],
  ["base64", base64],
  ["hex", (secret: string) => Buffer.from(secret).toString("hex")],
])("a tier or a domain status that is the credential in %s is rejected", async (_form, write) => {
  const credential = { key: "Active-Key-7F3A", secret: "S3cret-0F-Our-Own" };
  const { upstream, lines } = createBench({ baseUrl: stub.url, credential });
  for (const echo of [credential.key, credential.secret].map(write)) {
    stub.next(success({ current_tier: echo, next_tier: null, domains_needed: null }));
    const error = await refusalOf(upstream.tier(ask()));
    expect(error.code).toBe("upstream_contract");
    stub.next(
      success({
        domain: "kabul.af",
        status: echo,
        registered_at: "2020-07-02",
        expires_at: "2030-07-02",
        auto_renew: true,
        nameservers: [],
      }),
    );
    expect((await refusalOf(upstream.domain(ask(), KABUL))).code).toBe("upstream_contract");
    expect(lines.join()).not.toContain(echo);
  }
});

test("a key that is too short to be a secret isn't looked for", async () => {
  const { upstream } = createBench({
    baseUrl: stub.url,
    credential: { key: "AF-100", secret: ACTIVE.secret },
  });
  await expect(upstream.balance(ask())).resolves.toMatchObject({ accountNumber: "AF-100" });
});
