/** Which credential is used, how one proves itself, and for how long a refused one is left alone. */
import { describe, expect, test } from "@jest/globals";
import {
  type Credential,
  type Credentials,
  type CredentialSource,
  createCredentials,
  type Use,
} from "../../src/upstream/credentials.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock, settle } from "../support/fake-clock.js";

function source(key: string, secret = `${key}-secret`): CredentialSource {
  return { key: fixedSecret(key), secret: fixedSecret(secret) };
}

/** A source whose value the test changes, as a changed file does: it is seen only later, unless `reread` is set. */
function changing(first: string): {
  source: CredentialSource;
  change(key: string, secret: string): void;
  write(key: string, secret: string): void;
} {
  let written = { key: first, secret: `${first}-secret` };
  let seen = written;
  const reading = (of: "key" | "secret") => ({
    current: (how?: { readonly reread: boolean }) => {
      if (how?.reread === true) seen = written;
      return seen[of];
    },
  });
  return {
    source: { key: reading("key"), secret: reading("secret") },
    change(key, secret) {
      written = seen = { key, secret };
    },
    write(key, secret) {
      written = { key, secret };
    },
  };
}

function inUse(credentials: Credentials): Credential {
  const credential = credentials.usable();
  if (credential === null) throw new Error("there is none");
  return credential;
}

function begun(credentials: Credentials, credential = inUse(credentials)): Use {
  const use = credentials.begin(credential);
  if (use === null) throw new Error("no call may be made");
  return use;
}

function accept(credentials: Credentials): void {
  const use = begun(credentials);
  use.accepted();
  use.ended();
}

function refuse(credentials: Credentials): void {
  const use = begun(credentials);
  use.refused();
  use.ended();
}

/** How long a credential rests after its first refusal, and after each other one. */
const AFTER_FIRST_MS = 5_000;
const AFTER_LATER_MS = 75_000;

describe("credentials", () => {
  test("the active one is used until it is refused", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("first"), source("second"), clock);
    expect(inUse(credentials)).toMatchObject({ role: "active", key: "first", secret: "first-secret" });
    refuse(credentials);
    expect(credentials.usable()).toMatchObject({ role: "standby", key: "second" });
    for (const restMs of [AFTER_FIRST_MS, AFTER_LATER_MS]) {
      await clock.advance(restMs - 1);
      expect(credentials.usable()).toMatchObject({ role: "standby" });
      await clock.advance(1);
      expect(credentials.usable()).toMatchObject({ role: "active" });
      if (restMs === AFTER_FIRST_MS) refuse(credentials);
    }
    expect(credentials.states()).toMatchObject([{ refused: true }, { refused: false }]);
    accept(credentials);
    expect(credentials.states()).toMatchObject([{ refused: false }, { refused: false }]);
  });

  test("an unverified one is tried with one call at a time, and other calls wait for the result", async () => {
    const credentials = createCredentials(source("only"), source("standby"), new FakeClock());
    const only = inUse(credentials);
    expect(credentials.verification(only)).toBeNull();
    const first = begun(credentials);
    expect(credentials.begin(only)).toBeNull();
    expect(credentials.usable()).toEqual(only);
    const results: boolean[] = [];
    void credentials.verification(only)?.then((isVerified) => results.push(isVerified));
    await settle();
    expect(results).toEqual([]);
    first.ended();
    await settle();
    expect(results).toEqual([false]);
    // It verified nothing, so the next call tries.
    const second = begun(credentials);
    expect(credentials.begin(only)).toBeNull();
    const verification = credentials.verification(only);
    second.accepted();
    second.ended();
    await expect(verification).resolves.toBe(true);
    expect(credentials.verification(only)).toBeNull();
    expect([credentials.begin(only), credentials.begin(only)]).not.toContain(null);
  });

  test("a refused one is tried again by one call at a time, and no other call waits for it", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    const only = inUse(credentials);
    refuse(credentials);
    expect(credentials.admits(only)).toBe(false);
    await clock.advance(75_000);
    const use = begun(credentials);
    expect([credentials.admits(only), credentials.usable(), credentials.verification(only)]).toEqual([
      false,
      null,
      null,
    ]);
    use.accepted();
    use.ended();
    expect([credentials.begin(only), credentials.begin(only)]).not.toContain(null);
  });

  test("after a call that verified nothing, the next one may try immediately", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    refuse(credentials);
    await clock.advance(75_000);
    begun(credentials).ended();
    accept(credentials);
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("simultaneous refusals count as one, and the answer to an older call doesn't lift it", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    accept(credentials);
    const calls = Array.from({ length: 10 }, () => begun(credentials));
    const [first, second, ...rest] = calls;
    expect(first?.refused()).toBe(true);
    second?.accepted();
    expect(rest.map((use) => use.refused())).toEqual(rest.map(() => false));
    for (const use of calls) use.ended();
    expect(credentials.usable()).toBeNull();
    await clock.advance(AFTER_FIRST_MS - 1);
    expect(credentials.usable()).toBeNull();
    await clock.advance(1);
    expect(credentials.usable()).not.toBeNull();
  });

  test("a refusal after it was accepted again is a first one", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    refuse(credentials);
    await clock.advance(AFTER_FIRST_MS);
    refuse(credentials);
    expect(credentials.usableInMs()).toBe(AFTER_LATER_MS);
    await clock.advance(AFTER_LATER_MS);
    accept(credentials);
    refuse(credentials);
    expect(credentials.usableInMs()).toBe(AFTER_FIRST_MS);
  });

  test("there is none while all are refused", () => {
    const credentials = createCredentials(source("only"), null, new FakeClock());
    refuse(credentials);
    expect(credentials.usable()).toBeNull();
  });

  test.each([
    ["key", "new", "only-secret"],
    ["secret", "only", "new-secret"],
  ])("a refused credential whose %s has changed is used at once", (_what, key, secret) => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    refuse(credentials);
    change(key, secret);
    expect(credentials.usable()).toMatchObject({ key, secret });
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("a replacement from the moment before a refusal is used immediately", () => {
    const { source: only, write } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    write("new", "new-secret");
    expect(inUse(credentials)).toMatchObject({ key: "only" });
    refuse(credentials);
    expect(inUse(credentials)).toMatchObject({ key: "new" });
  });

  test("a late refusal of the old one doesn't affect the new one", () => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    const old = begun(credentials);
    change("new", "new-secret");
    old.refused();
    expect(credentials.usable()).toMatchObject({ key: "new" });
  });

  test("the old one stays in use until the new one is accepted, and if the new one is refused", () => {
    const { source: only, change } = changing("old");
    const credentials = createCredentials(only, null, new FakeClock());
    accept(credentials);
    // As between the writing of two files.
    change("new", "old-secret");
    const mixed = begun(credentials);
    expect(credentials.usable()).toMatchObject({ key: "old", secret: "old-secret" });
    mixed.refused();
    mixed.ended();
    expect(credentials.usable()).toMatchObject({ key: "old", secret: "old-secret" });
    expect(credentials.states().map(({ refused }) => refused)).toEqual([true, false]);
    change("new", "new-secret");
    accept(credentials);
    expect(credentials.usable()).toMatchObject({ key: "new", secret: "new-secret" });
    expect(credentials.states()).toHaveLength(1);
  });

  test("a refused old one is forgotten as soon as there is a new one", async () => {
    const { source: only, change } = changing("old");
    const clock = new FakeClock();
    const credentials = createCredentials(only, null, clock);
    accept(credentials);
    refuse(credentials);
    change("new", "new-secret");
    refuse(credentials);
    expect([credentials.usable(), credentials.states().length]).toEqual([null, 1]);
  });

  test("fingerprints and states don't reveal the credential", () => {
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
      refuse(credentials);
    }
    expect(credentials.usable()).toBeNull();
    change("key 85", "secret");
    expect(credentials.usable()).toBeNull();
    change("key 1", "secret");
    expect(credentials.usable()).not.toBeNull();
  });
});
