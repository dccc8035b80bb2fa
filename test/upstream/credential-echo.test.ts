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

test.each<[string, string]>([
  ["the key", body(ACTIVE.key)],
  ["the secret", body(`AF ${ACTIVE.secret}!`)],
  ["the secret in a field that nobody reads", body("AF-100", `,"meta":{"debug":["${ACTIVE.secret}"]}`)],
  ["the secret as a field's name", body("AF-100", `,"${ACTIVE.secret}":1`)],
  ["the secret with JSON's escapes", body(escaped(ACTIVE.secret, (code) => `\\u00${code}`))],
  ["one letter with them", body(ACTIVE.secret.replace("t", "\\u0074"))],
  ["the key with an address's escapes", body(escaped(ACTIVE.key, (code) => `%${code.toUpperCase()}`))],
  ["one letter with them", body(ACTIVE.key.replace("-", "%2D"))],
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

test("a key that is hardly a secret is not looked for", async () => {
  const { upstream } = createBench({
    baseUrl: stub.url,
    credential: { key: "AF-100", secret: ACTIVE.secret },
  });
  await expect(upstream.balance(ask())).resolves.toMatchObject({ accountNumber: "AF-100" });
});
