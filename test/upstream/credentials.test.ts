/** Which credential is used, how a credential is verified, and for how long a refused one isn't used. */
import { beforeEach, describe, expect, test } from "@jest/globals";
import { fixedSecret } from "../../src/secret.js";
import {
  type Credential,
  type Credentials,
  type CredentialSource,
  createCredentials,
  type Reception,
} from "../../src/upstream/credentials.js";
import { FakeClock, settle } from "../support/fake-clock.js";

function source(key: string, secret = `${key}-secret`): CredentialSource {
  return { key: fixedSecret(key), secret: fixedSecret(secret) };
}

/** A source whose value the test changes. Like a changed file, a written value is seen only when it is read again. */
function changing(first: string) {
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
    change(key: string, secret: string): void {
      written = seen = { key, secret };
    },
    write(key: string, secret: string): void {
      written = { key, secret };
    },
  };
}

function usableCredential(credentials: Credentials): Credential {
  const credential = credentials.usable();
  if (credential === null) throw new Error("no credential is usable");
  return credential;
}

const begin = (credentials: Credentials) => credentials.begin(usableCredential(credentials));
const call = (credentials: Credentials, reception: Reception): boolean => begin(credentials)(reception);

/** How long a credential isn't used after its first refusal, and after each later one. */
const AFTER_FIRST_MS = 5_000;
const AFTER_LATER_MS = 75_000;

let clock: FakeClock;
beforeEach(() => {
  clock = new FakeClock();
});

describe("a credential", () => {
  test("that is active is used until it is refused; a refusal after it was accepted counts as the first", async () => {
    const credentials = createCredentials(source("first"), source("second"), clock);
    expect(credentials.usable()).toMatchObject({ role: "active", key: "first", secret: "first-secret" });
    for (const waitMs of [AFTER_FIRST_MS, AFTER_LATER_MS, AFTER_LATER_MS]) {
      expect(call(credentials, "refused")).toBe(true);
      await clock.advance(waitMs - 1);
      expect(credentials.usable()).toMatchObject({ role: "standby", key: "second" });
      await clock.advance(1);
      expect(credentials.usable()).toMatchObject({ role: "active" });
    }
    expect(credentials.states()).toMatchObject([{ refused: true }, { refused: false }]);
    expect([call(credentials, "accepted"), call(credentials, "accepted")]).toEqual([true, false]);
    expect(credentials.states()).toMatchObject([{ refused: false }, { refused: false }]);
    call(credentials, "refused");
    call(credentials, "refused");
    expect([credentials.usable(), credentials.usableInMs()]).toEqual([null, AFTER_FIRST_MS]);
  });

  test("that is unverified is tried with one call at a time, and other calls wait for the result", async () => {
    const credentials = createCredentials(source("only"), source("standby"), clock);
    const only = usableCredential(credentials);
    expect(credentials.verification(only)).toBeNull();
    const first = begin(credentials);
    expect([credentials.admits(only), credentials.usable()]).toEqual([false, only]);
    const results: boolean[] = [];
    void credentials.verification(only)?.then((isVerified) => results.push(isVerified));
    await settle();
    expect(results).toEqual([]);
    first("unknown");
    await settle();
    expect(results).toEqual([false]);
    // That call verified nothing, so the next one tries.
    const second = begin(credentials);
    const verification = credentials.verification(only);
    second("accepted");
    await expect(verification).resolves.toBe(true);
    begin(credentials);
    expect([credentials.verification(only), credentials.admits(only)]).toEqual([null, true]);
  });

  test("counts simultaneous refusals as one, which the answer to an older call doesn't undo", async () => {
    const credentials = createCredentials(source("only"), null, clock);
    call(credentials, "accepted");
    const [first, second, ...rest] = Array.from({ length: 10 }, () => begin(credentials));
    expect([first?.("refused"), second?.("accepted")]).toEqual([true, false]);
    expect(rest.map((end) => end("refused"))).toEqual(rest.map(() => false));
    expect([credentials.usable(), credentials.usableInMs()]).toEqual([null, AFTER_FIRST_MS]);
  });

  test.each([
    ["key", "new", "only-secret"],
    ["secret", "only", "new-secret"],
  ])("that was refused is used again as soon as its %s changes", (_what, key, secret) => {
    const { source: only, change } = changing("only");
    const credentials = createCredentials(only, null, clock);
    call(credentials, "refused");
    change(key, secret);
    expect(credentials.usable()).toMatchObject({ key, secret });
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("that was replaced just before it was refused is reread immediately, and its late refusals change nothing", () => {
    const { source: only, write } = changing("only");
    const credentials = createCredentials(only, null, clock);
    call(credentials, "accepted");
    const late = begin(credentials);
    write("new", "new-secret");
    call(credentials, "refused");
    late("refused");
    expect(credentials.usable()).toMatchObject({ key: "new" });
    expect(credentials.states()).toMatchObject([{ refused: false }]);
  });

  test("stays in use until its replacement is accepted, even if the replacement is refused", () => {
    const { source: only, change } = changing("old");
    const credentials = createCredentials(only, null, clock);
    call(credentials, "accepted");
    // This is the state while only one of two files has been written.
    change("new", "old-secret");
    const mixed = begin(credentials);
    expect(credentials.usable()).toMatchObject({ key: "old", secret: "old-secret" });
    mixed("refused");
    expect(credentials.usable()).toMatchObject({ key: "old", secret: "old-secret" });
    expect(credentials.states().map(({ refused }) => refused)).toEqual([true, false]);
    change("new", "new-secret");
    call(credentials, "accepted");
    expect(credentials.usable()).toMatchObject({ key: "new", secret: "new-secret" });
    expect(credentials.states()).toHaveLength(1);
  });

  test("that was replaced still serves the calls that wait with it, and rests on when it comes back", () => {
    const { source: only, change } = changing("old");
    const credentials = createCredentials(only, null, clock);
    const old = usableCredential(credentials);
    call(credentials, "accepted");
    change("new", "new-secret");
    call(credentials, "accepted");
    expect(credentials.admits(old)).toBe(true);
    expect(credentials.begin(old)("refused")).toBe(true);
    expect([credentials.admits(old), credentials.usable()]).toEqual([
      false,
      expect.objectContaining({ key: "new" }),
    ]);
    change("old", "old-secret");
    expect(credentials.usable()).toMatchObject({ key: "new" });
  });

  test("isn't revealed by its fingerprint or state", () => {
    const credentials = createCredentials(source("the-key", "the-secret"), source("b"), clock);
    const [active] = credentials.states();
    expect(active?.fingerprint).toMatch(/^[\da-f]{12}$/);
    expect(active?.fingerprint).toBe(credentials.usable()?.fingerprint);
    expect(JSON.stringify(credentials.states())).not.toMatch(/the-/);
    const rotated = createCredentials(source("the-key", "another"), null, clock);
    expect(rotated.states()[0]?.fingerprint).toBe(active?.fingerprint);
  });
});
