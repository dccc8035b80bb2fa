/** Which credential is used, and for how long a refused one is left alone. */
import { describe, expect, test } from "@jest/globals";
import { type CredentialSource, createCredentials } from "../../src/upstream/credentials.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";

function source(key: string, secret = `${key}-secret`): CredentialSource {
  return { key: fixedSecret(key), secret: fixedSecret(secret) };
}

/** A source whose value the test changes, as a changed file does. */
function changing(first: string): { source: CredentialSource; change(key: string, secret: string): void } {
  let pair = { key: first, secret: `${first}-secret` };
  return {
    source: { key: { current: () => pair.key }, secret: { current: () => pair.secret } },
    change(key, secret) {
      pair = { key, secret };
    },
  };
}

describe("credentials", () => {
  test("the active one is used while it is not refused", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("first"), source("second"), clock);
    const active = credentials.usable();
    expect(active).toMatchObject({ role: "active", key: "first", secret: "first-secret" });
    if (active === null) throw new Error("there is none");
    credentials.refused(active);
    expect(credentials.usable()).toMatchObject({ role: "standby", key: "second" });
    await clock.advance(74_999);
    expect(credentials.usable()).toMatchObject({ role: "standby" });
    await clock.advance(1);
    expect(credentials.usable()).toMatchObject({ role: "active" });
    expect(credentials.states()).toMatchObject([{ refused: true }, { refused: false }]);
    credentials.accepted(active);
    expect(credentials.states()).toMatchObject([{ refused: false }, { refused: false }]);
  });

  test("one call at a time may try a refused one again", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    const only = credentials.usable();
    if (only === null) throw new Error("there is none");
    expect([credentials.admits(only), credentials.admits(only)]).toEqual([true, true]);
    credentials.refused(only);
    expect(credentials.admits(only)).toBe(false);
    await clock.advance(75_000);
    expect([credentials.admits(only), credentials.admits(only)]).toEqual([true, false]);
    credentials.accepted(only);
    expect([credentials.admits(only), credentials.admits(only)]).toEqual([true, true]);
  });

  test("with all refused there is none", () => {
    const credentials = createCredentials(source("only"), null, new FakeClock());
    const only = credentials.usable();
    if (only !== null) credentials.refused(only);
    expect(credentials.usable()).toBeNull();
  });

  test.each([
    ["key", "new", "only-secret"],
    ["secret", "only", "new-secret"],
  ])("a refused credential whose %s has changed is used at once", (_what, key, secret) => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    const old = credentials.usable();
    if (old !== null) credentials.refused(old);
    change(key, secret);
    expect(credentials.usable()).toMatchObject({ key, secret });
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("a late refusal of the old one does not touch the new one", () => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    const old = credentials.usable();
    change("new", "new-secret");
    if (old !== null) credentials.refused(old);
    expect(credentials.usable()).toMatchObject({ key: "new" });
  });

  test("fingerprints and states tell the credential to nobody", () => {
    const credentials = createCredentials(source("the-key", "the-secret"), source("b"), new FakeClock());
    const [active] = credentials.states();
    expect(active?.fingerprint).toMatch(/^[\da-f]{12}$/);
    expect(active?.fingerprint).toBe(credentials.usable()?.fingerprint);
    expect(JSON.stringify(credentials.states())).not.toMatch(/the-/);
    const rotated = createCredentials(source("the-key", "another"), null, new FakeClock());
    expect(rotated.states()[0]?.fingerprint).toBe(active?.fingerprint);
  });

  test("only the latest refusals are remembered", () => {
    const { source: only, change } = changing("key 0");
    const credentials = createCredentials(only, null, new FakeClock());
    for (let n = 0; n < 100; n += 1) {
      change(`key ${n}`, "secret");
      const one = credentials.usable();
      if (one !== null) credentials.refused(one);
    }
    expect(credentials.usable()).toBeNull();
    change("key 85", "secret");
    expect(credentials.usable()).toBeNull();
  });
});
