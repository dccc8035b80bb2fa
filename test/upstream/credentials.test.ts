/** Which credential is used, how a credential is verified, and for how long a refused one isn't used. */
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

/** A source whose value the test changes. Like a changed file, a written value is seen only when it is read again. */
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

function usableCredential(credentials: Credentials): Credential {
  const credential = credentials.usable();
  if (credential === null) throw new Error("no credential is usable");
  return credential;
}

function begin(credentials: Credentials, credential = usableCredential(credentials)): Use {
  const use = credentials.begin(credential);
  if (use === null) throw new Error("the credential allows no call");
  return use;
}

function accept(credentials: Credentials): void {
  const use = begin(credentials);
  use.accepted();
  use.ended();
}

function refuse(credentials: Credentials): void {
  const use = begin(credentials);
  use.refused();
  use.ended();
}

/** How long a credential isn't used after its first refusal, and after each later one. */
const AFTER_FIRST_MS = 5_000;
const AFTER_LATER_MS = 75_000;

describe("a credential", () => {
  test("that is active is used until it is refused", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("first"), source("second"), clock);
    expect(usableCredential(credentials)).toMatchObject({
      role: "active",
      key: "first",
      secret: "first-secret",
    });
    refuse(credentials);
    expect(credentials.usable()).toMatchObject({ role: "standby", key: "second" });
    for (const waitMs of [AFTER_FIRST_MS, AFTER_LATER_MS]) {
      await clock.advance(waitMs - 1);
      expect(credentials.usable()).toMatchObject({ role: "standby" });
      await clock.advance(1);
      expect(credentials.usable()).toMatchObject({ role: "active" });
      if (waitMs === AFTER_FIRST_MS) refuse(credentials);
    }
    expect(credentials.states()).toMatchObject([{ refused: true }, { refused: false }]);
    accept(credentials);
    expect(credentials.states()).toMatchObject([{ refused: false }, { refused: false }]);
  });

  test("that is unverified is tried with one call at a time, and other calls wait for the result", async () => {
    const credentials = createCredentials(source("only"), source("standby"), new FakeClock());
    const only = usableCredential(credentials);
    expect(credentials.verification(only)).toBeNull();
    const first = begin(credentials);
    expect(credentials.begin(only)).toBeNull();
    expect(credentials.usable()).toEqual(only);
    const results: boolean[] = [];
    void credentials.verification(only)?.then((isVerified) => results.push(isVerified));
    await settle();
    expect(results).toEqual([]);
    first.ended();
    await settle();
    expect(results).toEqual([false]);
    // That call verified nothing, so the next one tries.
    const second = begin(credentials);
    expect(credentials.begin(only)).toBeNull();
    const verification = credentials.verification(only);
    second.accepted();
    second.ended();
    await expect(verification).resolves.toBe(true);
    expect(credentials.verification(only)).toBeNull();
    expect([credentials.begin(only), credentials.begin(only)]).not.toContain(null);
  });

  test("that was refused is retried with one call at a time, and no other call waits for it", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    const only = usableCredential(credentials);
    refuse(credentials);
    expect(credentials.admits(only)).toBe(false);
    await clock.advance(75_000);
    const use = begin(credentials);
    expect([credentials.admits(only), credentials.usable(), credentials.verification(only)]).toEqual([
      false,
      null,
      null,
    ]);
    use.accepted();
    use.ended();
    expect([credentials.begin(only), credentials.begin(only)]).not.toContain(null);
  });

  test("can be retried immediately after a call that verified nothing", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    refuse(credentials);
    await clock.advance(75_000);
    begin(credentials).ended();
    accept(credentials);
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("counts simultaneous refusals as one, which the answer to an older call doesn't undo", async () => {
    const clock = new FakeClock();
    const credentials = createCredentials(source("only"), null, clock);
    accept(credentials);
    const calls = Array.from({ length: 10 }, () => begin(credentials));
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

  test("that was accepted again counts its next refusal as the first", async () => {
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

  test("isn't usable while all are refused", () => {
    const credentials = createCredentials(source("only"), null, new FakeClock());
    refuse(credentials);
    expect(credentials.usable()).toBeNull();
  });

  test.each([
    ["key", "new", "only-secret"],
    ["secret", "only", "new-secret"],
  ])("that was refused is used again as soon as its %s changes", (_what, key, secret) => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    refuse(credentials);
    change(key, secret);
    expect(credentials.usable()).toMatchObject({ key, secret });
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("that was replaced just before it was refused is reread immediately", () => {
    const { source: only, write } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    write("new", "new-secret");
    expect(usableCredential(credentials)).toMatchObject({ key: "only" });
    refuse(credentials);
    expect(usableCredential(credentials)).toMatchObject({ key: "new" });
  });

  test("isn't affected by a late refusal of the one that it replaced", () => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, new FakeClock());
    const old = begin(credentials);
    change("new", "new-secret");
    old.refused();
    expect(credentials.usable()).toMatchObject({ key: "new" });
  });

  test("stays in use until its replacement is accepted, even if the replacement is refused", () => {
    const { source: only, change } = changing("old");
    const credentials = createCredentials(only, null, new FakeClock());
    accept(credentials);
    // This is the state while only one of two files has been written.
    change("new", "old-secret");
    const mixed = begin(credentials);
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

  test("that was refused is forgotten as soon as there is a new one", async () => {
    const { source: only, change } = changing("old");
    const clock = new FakeClock();
    const credentials = createCredentials(only, null, clock);
    accept(credentials);
    refuse(credentials);
    change("new", "new-secret");
    refuse(credentials);
    expect([credentials.usable(), credentials.states().length]).toEqual([null, 1]);
  });

  test("isn't revealed by its fingerprint or state", () => {
    const credentials = createCredentials(source("the-key", "the-secret"), source("b"), new FakeClock());
    const [active] = credentials.states();
    expect(active?.fingerprint).toMatch(/^[\da-f]{12}$/);
    expect(active?.fingerprint).toBe(credentials.usable()?.fingerprint);
    expect(JSON.stringify(credentials.states())).not.toMatch(/the-/);
    const rotated = createCredentials(source("the-key", "another"), null, new FakeClock());
    expect(rotated.states()[0]?.fingerprint).toBe(active?.fingerprint);
  });

  test("is usable again once its refusal is no longer among the latest ones", () => {
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
