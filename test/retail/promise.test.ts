/** A promise contains what was shown and nothing about its cost, and its keys can be changed while promises are valid. */
import { describe, expect, test } from "@jest/globals";
import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { fileURLToPath } from "node:url";
import * as fc from "fast-check";
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify } from "jose";
import { z } from "zod";
import { readConfig } from "../../src/config/env.js";
import { decimal, parseWholesale, retailOf } from "../../src/money.js";
import {
  createPromises,
  newPromiseKey,
  parsePromiseKeys,
  type PromisedLine,
  type Promises,
} from "../../src/retail/promise.js";
import { NAME_KINDS } from "../../src/retail/policy.js";
import type { Secret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

const VALID_MS = 900_000;

function line(retail: string, wholesale: string, more: Partial<PromisedLine> = {}): PromisedLine {
  const cost = parseWholesale(wholesale, "USD");
  if (cost === null) throw new Error(`not a wholesale price: ${wholesale}`);
  return {
    domain: "kabul.af",
    tld: ".af",
    action: "registration",
    years: 1,
    price: retailOf(decimal(retail), "USD"),
    wholesale: cost,
    kind: "ordinary",
    ...more,
  };
}

function setup(keys: Secret = { current: () => key }) {
  const clock = new FakeClock();
  const log = recordingLog([]);
  return {
    clock,
    promises: createPromises({ keys, validMs: () => VALID_MS, keep: async () => {}, clock, log }),
  };
}

const key = newPromiseKey();

function signed(promises: Promises, ...lines: PromisedLine[]) {
  const promise = promises.sign(lines, VALID_MS);
  if (promise === null) throw new Error("no promise was signed");
  return promise;
}

function decoded(jws: string, part: 0 | 1): Record<string, unknown> {
  const text = Buffer.from(jws.split(".")[part] ?? "", "base64url").toString("utf8");
  return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
}

function verified(promises: Promises, jws: string, clock: FakeClock) {
  const published = createLocalJWKSet({ keys: promises.publicKeys().keys.map((one) => ({ ...one })) });
  return jwtVerify(jws, published, { algorithms: ["EdDSA"], currentDate: new Date(clock.now()) });
}

describe("a promise", () => {
  test("contains its key id, its times and the lines as they were shown, and nothing else", async () => {
    const { promises, clock } = setup();
    const { jws, validUntilMs } = signed(promises, line("26.99", "20.21"));
    const [published] = promises.publicKeys().keys;
    expect(decoded(jws, 0)).toEqual({ alg: "EdDSA", kid: published?.kid, typ: "price-promise+jwt" });
    expect(decoded(jws, 1)).toEqual({
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
      iat: clock.now() / 1000,
      exp: (clock.now() + VALID_MS) / 1000,
      currency: "USD",
      items: [
        {
          domain: "kabul.af",
          tld: ".af",
          action: "registration",
          years: 1,
          price: { amount: "26.99", currency: "USD" },
        },
      ],
    });
    expect(validUntilMs).toBe(clock.now() + VALID_MS);
    await expect(verified(promises, jws, clock)).resolves.toMatchObject({ payload: { currency: "USD" } });
  });

  test("expires at the second that it states", async () => {
    const { promises, clock } = setup();
    await clock.advance(999);
    const { jws, validUntilMs } = signed(promises, line("26.99", "20.21"));
    await clock.advance(validUntilMs - clock.now() - 1);
    await expect(verified(promises, jws, clock)).resolves.toBeDefined();
    await clock.advance(1);
    await expect(verified(promises, jws, clock)).rejects.toThrow(/exp/);
  });

  test("reveals nothing about wholesale: lines with other costs, premium or not, have the same form", () => {
    const amount = fc.integer({ min: 1, max: 99_999_999 }).map((cents) => (cents / 100).toFixed(2));
    const cost = fc.record({ wholesale: amount, kind: fc.constantFrom(...NAME_KINDS) });
    const item = fc.record({ retail: amount, one: cost, other: cost });
    fc.assert(
      fc.property(fc.array(item, { minLength: 1, maxLength: 20 }), (items) => {
        const { promises } = setup();
        const of = (which: "one" | "other") => {
          const lines = items.map(({ retail, [which]: { wholesale, kind } }) =>
            line(retail, wholesale, { kind }),
          );
          const { jti: _jti, ...claims } = decoded(signed(promises, ...lines).jws, 1);
          return claims;
        };
        const claims = of("one");
        expect(claims).toEqual(of("other"));
        const amounts = JSON.stringify(claims).match(/\d+\.\d+/g);
        expect(amounts).toEqual(items.map(({ retail }) => retail));
      }),
      { numRuns: 60 },
    );
  });
});

describe("the keys", () => {
  test("are identified by their RFC 7638 thumbprint", async () => {
    for (const published of setup().promises.publicKeys().keys)
      expect(published.kid).toBe(await calculateJwkThumbprint({ ...published }));
  });

  test("can be several: the first signs, the others, private or public, are only published", () => {
    const [next, last] = [newPromiseKey(), newPromiseKey()];
    const lastPublic = createPublicKey(last).export({ type: "spki", format: "pem" }).toString();
    const { promises } = setup({ current: () => `a note\n${key}${next}${lastPublic}${key}` });
    const { keys } = promises.publicKeys();
    expect(keys).toHaveLength(3);
    expect(JSON.stringify(keys)).not.toContain('"d"');
    expect(decoded(signed(promises, line("26.99", "20.21")).jws, 0)["kid"]).toBe(keys[0]?.kid);
    const alone = setup({ current: () => last }).promises.publicKeys().keys;
    expect(keys[2]).toEqual(alone[0]);
  });

  const pem = { type: "pkcs8", format: "pem" } as const;
  const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const sealed = generateKeyPairSync("ed25519").privateKey.export({
    ...pem,
    cipher: "aes-256-cbc",
    passphrase: "open",
  });
  test.each<[string, string, RegExp]>([
    ["no key at all", "a text", /must contain an Ed25519 private key/],
    ["a key of another type", ec.privateKey.export(pem).toString(), /key 1 must be an Ed25519 key/],
    [
      "a public key",
      createPublicKey(key).export({ type: "spki", format: "pem" }).toString(),
      /key 1 must be a private key/,
    ],
    ["a key with a passphrase", sealed.toString(), /key 1 must be a private key in PEM without a passphrase/],
    ["a broken second key", key + key.replace(/\n.{20}/, "\n"), /key 2 must be a key in PEM/],
  ])("prevent startup, without being quoted, if the setting contains %s", (_what, text, problem) => {
    const result = readConfig({ PROMISE_PRIVATE_KEY: text }, new FakeClock());
    const faults = result.ok ? [] : result.faults;
    expect(faults).toEqual([expect.stringMatching(problem)]);
    expect(faults[0]).toMatch(/^PROMISE_PRIVATE_KEY: /);
    const body = text.split("\n")[1] ?? "";
    if (body !== "") expect(faults[0]).not.toContain(body);
  });

  test("are created by `npm run promise-key`, which writes nothing else to stdout", () => {
    const command = fileURLToPath(new URL("../../dist/keys/promise-key.js", import.meta.url));
    const text = execFileSync(process.execPath, [command], { encoding: "utf8", stdio: "pipe" });
    expect(text).toMatch(/^-----BEGIN PRIVATE KEY-----\n[^-]+-----END PRIVATE KEY-----\n$/);
    expect(parsePromiseKeys(text)).toMatchObject({ ok: true });
  });
});
