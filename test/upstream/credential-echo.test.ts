/** An upstream that repeats the credential: whatever it writes it into, the answer is refused and nothing of it is told. */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { ACTIVE, ask, AVAILABLE, createBench, expectNothingTold, KABUL, refusalOf } from "./support/bench.js";
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
  ["the secret in a field that nobody reads", body("AF-100", `,"meta":{"debug":["${ACTIVE.secret}"]}`)],
  ["the secret as a field's name", body("AF-100", `,"${ACTIVE.secret}":1`)],
  ["the secret with JSON's escapes", body(escaped(ACTIVE.secret, (code) => `\\u00${code}`))],
  ["one letter with them", body(ACTIVE.secret.replace("t", "\\u0074"))],
  ["the key with an address's escapes", body(escaped(ACTIVE.key, (code) => `%${code.toUpperCase()}`))],
  ["one letter with them", body(ACTIVE.key.replace("-", "%2D"))],
  ["the secret in upper case", body(ACTIVE.secret.toUpperCase())],
  ["the key in upper case", body(ACTIVE.key.toUpperCase())],
  ["the secret spaced", body(ACTIVE.secret.replaceAll(/./g, "$& "))],
  ["the secret with tabs and line breaks", unread(ACTIVE.secret.replaceAll(/.{3}/g, "$&\\t\\n"))],
  ["the secret with invisible characters", unread(ACTIVE.secret.replaceAll(/./g, "$&\u200b\u00ad\u2060"))],
  ["the secret with a byte order mark inside", body(ACTIVE.secret.replace(/^..../, "$&\ufeff"))],
  ["the secret in groups", body(ACTIVE.secret.replaceAll(/.{4}/g, "$&:"))],
  ["the secret in full-width letters", body(ACTIVE.secret.replaceAll(/[!-~]/g, fullWidth))],
  ["the secret in base64", body(base64(ACTIVE.secret))],
  ["the secret in base64 without padding", body(base64(ACTIVE.secret).replaceAll("=", ""))],
  ["the secret in base64 behind one letter", body(base64(`x${ACTIVE.secret}y`))],
  ["the secret in base64 behind two letters", body(base64(`xy${ACTIVE.secret}z`))],
  ["key and secret as Basic credentials", body(`Basic ${base64(`${ACTIVE.key}:${ACTIVE.secret}`)}`)],
  ["the secret in base64url", body(Buffer.from(`??>${ACTIVE.secret}`).toString("base64url"))],
  ["the secret in hex", body(Buffer.from(ACTIVE.secret).toString("hex"))],
  ["the secret in upper-case hex", body(Buffer.from(ACTIVE.secret).toString("hex").toUpperCase())],
  [
    "the secret in hex with colons",
    body(Buffer.from(ACTIVE.secret).toString("hex").replaceAll(/../g, "$&:")),
  ],
])("an answer with %s is not understood", async (_what, text) => {
  const { upstream, lines } = createBench({ baseUrl: stub.url });
  stub.next(answer(200, text));
  const error = await refusalOf(upstream.balance(ask()));
  expect(error.code).toBe("upstream_contract");
  expectNothingTold(error, lines);
  await expect(upstream.balance(ask())).resolves.toMatchObject({ accountNumber: "AF-100" });
});

test("a secret that JSON has to escape is found all the same", async () => {
  const credential = { key: "active-key-7f3a", secret: 'quoted"and\\slashed%41/91bc' };
  const { upstream } = createBench({ baseUrl: stub.url, credential });
  for (const told of [
    JSON.stringify(credential.secret),
    JSON.stringify(encodeURIComponent(credential.secret)),
  ]) {
    stub.next(answer(200, body("AF-100", `,"debug":${told}`)));
    expect((await refusalOf(upstream.balance(ask()))).code).toBe("upstream_contract");
  }
});

test("a visitor who asks for a name with the key in it learns nothing from being refused", async () => {
  const credential = { key: "kabul.af", secret: ACTIVE.secret };
  const { upstream } = createBench({ baseUrl: stub.url, credential });
  stub.next(success(AVAILABLE));
  await expect(upstream.check(ask(), KABUL, 1)).resolves.toMatchObject({ status: "available" });
});

test.each([
  ["lower case", (secret: string) => secret.toLowerCase()],
  ["base64", base64],
  ["hex", (secret: string) => Buffer.from(secret).toString("hex")],
])("the name of a tier and the status of a domain may not be the credential in %s", async (_form, write) => {
  const credential = { key: "Active-Key-7F3A", secret: "S3cret-0F-Our-Own" };
  const { upstream, lines } = createBench({ baseUrl: stub.url, credential });
  for (const told of [credential.key, credential.secret].map(write)) {
    stub.next(success({ current_tier: told, next_tier: null, domains_needed: null }));
    const error = await refusalOf(upstream.tier(ask()));
    expect(error.code).toBe("upstream_contract");
    stub.next(
      success({
        domain: "kabul.af",
        status: told,
        registered_at: "2020-07-02",
        expires_at: "2030-07-02",
        auto_renew: true,
        nameservers: [],
      }),
    );
    expect((await refusalOf(upstream.domain(ask(), KABUL))).code).toBe("upstream_contract");
    expect(lines.join()).not.toContain(told);
  }
});

test("a key that is hardly a secret is not looked for", async () => {
  const { upstream } = createBench({
    baseUrl: stub.url,
    credential: { key: "AF-100", secret: ACTIVE.secret },
  });
  await expect(upstream.balance(ask())).resolves.toMatchObject({ accountNumber: "AF-100" });
});
