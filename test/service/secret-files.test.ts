/** Secret files that change while the service runs: the log says which are used and which aren't. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { newPromiseKey } from "../../src/retail/promise.js";
import { FakeClock } from "../support/fake-clock.js";
import { type Service, startService, temporaryFolder } from "../support/service.js";

const digestOf = (token: string): string => createHash("sha256").update(token).digest("hex");
const ANNA = `anna:${digestOf("hers")}:read`;

describe("a secret file", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let service: Service;
  let clock: FakeClock;
  const pathOf = (name: string): string => join(folder.path, name);
  beforeEach(async () => {
    folder = temporaryFolder();
    clock = new FakeClock();
    service = await startService({
      clock,
      env: (sandbox) => {
        const { key, secret } = sandbox.credential();
        const files = {
          UPSTREAM_SERVICE_KEY: key,
          UPSTREAM_SERVICE_SECRET: secret,
          STAFF_TOKENS: ANNA,
          PROMISE_PRIVATE_KEY: newPromiseKey(),
          CUSTOMER_JWT_SECRET: "a shared secret of 32 characters",
        };
        const env: Record<string, string> = {
          UPSTREAM_BASE_URL: sandbox.url,
          QUOTA_COLD_START: "assume-free",
          STATE_DIR: pathOf("state"),
        };
        for (const [name, text] of Object.entries(files)) {
          writeFileSync(pathOf(name), text);
          env[name] = "";
          env[`${name}_FILE`] = pathOf(name);
        }
        return env;
      },
    });
  });
  afterEach(async () => {
    await service.close();
    folder.remove();
  });

  const logged = (): string[] => service.log.filter((line) => line.includes("secret.file."));
  const statusOfAnna = async (): Promise<number> =>
    (await service.ask("/v1/staff/tier", { headers: { Authorization: "Bearer hers" } })).status;

  test.each([
    ["UPSTREAM_SERVICE_KEY", "two words", "must be 1 to 512 printable characters without white space"],
    ["UPSTREAM_SERVICE_SECRET", "line\nline", "must be 1 to 512 printable characters without white space"],
    ["STAFF_TOKENS", "anna", "entry 1 must be name:sha256hex:scope+scope"],
    ["PROMISE_PRIVATE_KEY", "a text", "must contain an Ed25519 private key"],
    ["CUSTOMER_JWT_SECRET", "short", "must have at least 32 characters"],
  ])("%s that becomes malformed isn't used, and is reported once", async (name, text, problem) => {
    writeFileSync(pathOf(name), text);
    await clock.advance(10_000);
    expect(logged()).toEqual([expect.stringContaining(problem)]);
    expect(logged()[0]).toContain(`${name}_FILE`);
    expect(logged()[0]).not.toContain(text);
    expect(service.log.join()).not.toContain("credential.refused");
    expect(await statusOfAnna()).toBe(200);
  });

  test.each<[string, string, (path: string) => void]>([
    ["is emptied", "must name a regular file that isn't empty", (path) => writeFileSync(path, "")],
    ["is deleted", "names a file that doesn't exist", (path) => rmSync(path)],
    [
      "is replaced by a folder",
      "must name a regular file that isn't empty",
      (path) => {
        rmSync(path);
        mkdirSync(path);
      },
    ],
  ])("that %s is reported, because the tokens in it stay valid", async (_what, problem, change) => {
    change(pathOf("STAFF_TOKENS"));
    await clock.advance(10_000);
    expect(await statusOfAnna()).toBe(200);
    expect(logged()).toEqual([expect.stringContaining(problem)]);
    rmSync(pathOf("STAFF_TOKENS"), { recursive: true, force: true });
    writeFileSync(pathOf("STAFF_TOKENS"), `bert:${digestOf("his")}:read`);
    await clock.advance(2_000);
    expect(await statusOfAnna()).toBe(401);
    expect(logged()).toEqual([
      expect.stringContaining("secret.file.rejected"),
      expect.stringContaining("secret.file.applied"),
    ]);
  });

  test("that changes is reported as applied, without a request that uses it", async () => {
    writeFileSync(pathOf("STAFF_TOKENS"), `bert:${digestOf("his")}:read`);
    await clock.advance(2_000);
    expect(logged()).toEqual([expect.stringContaining("STAFF_TOKENS_FILE")]);
    expect(logged()[0]).toContain("secret.file.applied");
  });

  test("that is missing for a moment, as while it is replaced, isn't reported as rejected", async () => {
    rmSync(pathOf("STAFF_TOKENS"));
    await clock.advance(1_000);
    writeFileSync(pathOf("STAFF_TOKENS"), ANNA);
    await clock.advance(5_000);
    expect(logged()).toEqual([]);
  });
});
