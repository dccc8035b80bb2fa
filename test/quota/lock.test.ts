/** Only one process can own a ledger, and a process that has ended doesn't own it any more. */
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { claimLock, InUseError } from "../../src/quota/lock.js";
import { openFileLedger } from "../../src/quota/ledger-file.js";
import { FakeClock } from "../support/fake-clock.js";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lock-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

test("a second owner is rejected with a message that says what to do, and accepted after the first has closed", async () => {
  const settings = {
    directory,
    fingerprint: "f00d",
    limit: 3,
    headroom: 1,
    windowMs: 1000,
    coldStart: "assume-free",
    clock: new FakeClock(),
    onFault: () => {},
  } as const;
  const first = await openFileLedger(settings);
  await expect(openFileLedger(settings)).rejects.toThrow(InUseError);
  await expect(openFileLedger(settings)).rejects.toThrow(
    "several processes share a quota only through REDIS_URL",
  );
  const other = await openFileLedger({ ...settings, fingerprint: "beef" });
  await first.close();
  await (await openFileLedger(settings)).close();
  await other.close();
});

test("the lock of a process that was killed is taken over immediately", async () => {
  const path = join(directory, "ledger");
  const script = `require("net").createServer().listen(${JSON.stringify(`${path}.lock`)}, () => process.kill(process.pid, "SIGKILL"))`;
  expect(spawnSync(process.execPath, ["-e", script]).signal).toBe("SIGKILL");
  expect(existsSync(`${path}.lock`)).toBe(true);
  const release = await claimLock(path);
  await expect(claimLock(path)).rejects.toThrow(InUseError);
  await release();
});

test("only the owner of STATE_DIR can use the lock, like every other file in it", async () => {
  const path = join(directory, "ledger");
  const release = await claimLock(path);
  expect(statSync(`${path}.lock`).mode & 0o077).toBe(0);
  await release();
});

test("a file that isn't a lock is taken over, and a path too long for a socket can be locked too", async () => {
  const path = join(directory, "ledger");
  writeFileSync(`${path}.lock`, "123");
  await (
    await claimLock(path)
  )();
  const long = join(directory, "x".repeat(120));
  const release = await claimLock(long);
  await expect(claimLock(long)).rejects.toThrow(InUseError);
  await release();
});

test("only one of many simultaneous claims succeeds", async () => {
  const path = join(directory, "ledger");
  const claims = await Promise.allSettled(Array.from({ length: 8 }, () => claimLock(path)));
  const won = claims.filter((claim) => claim.status === "fulfilled");
  expect(won).toHaveLength(1);
  for (const claim of won) await claim.value();
});
