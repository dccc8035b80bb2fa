/** The ledger file never allows a call too many after a kill, data loss, corruption, or a change of the settings or clocks. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger.js";
import { type FileLedgerSettings, openFileLedger } from "../../src/quota/ledger-file.js";
import { failureReason } from "../../src/system-error.js";
import { FakeClock } from "../support/fake-clock.js";

const WINDOW_MS = 60_000;
const OCCUPIED_MS = WINDOW_MS + 60;
const GRACE_MS = 10_000;

let directory: string;
let clock: FakeClock;
let faults: string[];
const noLock = () => Promise.resolve(() => Promise.resolve());

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "quota-")), "state");
  clock = new FakeClock();
  faults = [];
});

afterEach(() => {
  rmSync(join(directory, ".."), { recursive: true });
});

/** Opens the ledger as a new process does. A process is killed by not closing its ledger. */
function open(more: Partial<FileLedgerSettings> = {}): Promise<Ledger> {
  return openFileLedger({
    directory,
    fingerprint: "f00d",
    limit: 12,
    headroom: 2,
    windowMs: WINDOW_MS,
    coldStart: "assume-free",
    clock,
    onFault: (what) => faults.push(what),
    uptimeMs: () => 5_000_000 + clock.monotonic(),
    claim: noLock,
    ...more,
  });
}

const file = () => join(directory, "quota-f00d.ledger");

/** Takes every slot that is usable now, and by default settles it; returns how many. */
async function takeAll(ledger: Ledger, settled = true): Promise<number> {
  for (let taken = 0; ; taken += 1) {
    const slot = ledger.take();
    if (slot === null) return taken;
    if (settled) ledger.settle(slot, "answered");
  }
}

describe("a restart", () => {
  test("keeps settled calls with the times at which they settled", async () => {
    const first = await open();
    for (let n = 0; n < 4; n += 1) {
      first.settle(first.take() ?? NaN, "answered");
    }
    await clock.advance(40_000);
    await takeAll(first);
    const second = await open();
    expect(await takeAll(second)).toBe(0);
    await clock.advance(OCCUPIED_MS - 40_000 + 1);
    expect(await takeAll(second)).toBe(4);
  });

  test("counts calls in flight from the new start, plus a grace period", async () => {
    await takeAll(await open(), false);
    await clock.advance(30_000);
    const second = await open();
    await clock.advance(OCCUPIED_MS + GRACE_MS - 1);
    expect(await takeAll(second)).toBe(0);
    await clock.advance(1);
    expect(await takeAll(second)).toBe(10);
  });

  test("doesn't make slots rest again when it is repeated", async () => {
    await takeAll(await open(), false);
    for (let n = 0; n < 10; n += 1) {
      await open();
      await clock.advance((OCCUPIED_MS + GRACE_MS) / 10);
    }
    await clock.advance(20);
    expect(await takeAll(await open())).toBe(10);
  });

  test("keeps a pause", async () => {
    (await open()).pause(30_000);
    await clock.advance(10_000);
    expect((await open()).pausedUntilAt - clock.monotonic()).toBeCloseTo(20_000, -1);
  });

  test("trusts no recorded time if the wall clock was set or the machine was restarted", async () => {
    for (const change of ["forward", "back", "reboot"]) {
      rmSync(directory, { recursive: true, force: true });
      await takeAll(await open());
      await clock.advance(1000);
      if (change !== "reboot") clock.stepWall(change === "forward" ? 3_600_000 : -3_600_000);
      const uptimeMs = () => (change === "reboot" ? 20_000 : 5_000_000) + clock.monotonic();
      const second = await open({ uptimeMs });
      await clock.advance(OCCUPIED_MS);
      expect(await takeAll(second)).toBe(0);
      await clock.advance(GRACE_MS);
      expect(await takeAll(second)).toBe(10);
    }
  });
});

describe("without a valid record,", () => {
  test("a missing file means a spent window with a usable headroom, or a free one, as configured", async () => {
    const spent = await open({ coldStart: "assume-spent" });
    expect(await takeAll(spent)).toBe(2);
    expect(spent.usage().largestWindowToday).toBe(2);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(await takeAll(spent)).toBe(10);
    rmSync(directory, { recursive: true });
    expect(await takeAll(await open())).toBe(10);
  });

  test.each([
    ["is empty", () => Buffer.alloc(0)],
    ["is noise", () => Buffer.from(Array.from({ length: 900 }, (_, index) => (index * 7919) % 256))],
    [
      "has a torn header",
      (good: Buffer) => Buffer.concat([good.subarray(0, 20), Buffer.alloc(44), good.subarray(64)]),
    ],
  ])("a file that %s means a spent window, whatever a missing one would mean", async (_, corrupt) => {
    await takeAll(await open());
    await clock.advance(OCCUPIED_MS);
    writeFileSync(file(), corrupt(readFileSync(file())));
    const ledger = await open();
    expect(await takeAll(ledger)).toBe(2);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(await takeAll(ledger)).toBe(10);
  });

  test("a truncated file and a corrupt line cost only the slots that they affect", async () => {
    await takeAll(await open());
    await clock.advance(OCCUPIED_MS + 1);
    const good = readFileSync(file());
    writeFileSync(file(), good.subarray(0, good.length - 70));
    expect(await takeAll(await open())).toBe(8);
    rmSync(file());
    await open();
    const text = readFileSync(file(), "latin1");
    writeFileSync(file(), `${text.slice(0, 64 * 4)}X${text.slice(64 * 4 + 1)}`, "latin1");
    expect(await takeAll(await open())).toBe(9);
  });
});

describe("after a change of settings,", () => {
  test("a smaller budget still counts every earlier call", async () => {
    const first = await open();
    for (let n = 0; n < 10; n += 1) {
      first.settle(first.take() ?? NaN, "answered");
      await clock.advance(1000);
    }
    const second = await open({ limit: 6 });
    // Ten calls at 0 s … 9 s; four are allowed, so the first slot is usable when only three of them still count.
    await clock.advance(OCCUPIED_MS - 10_000 + 6000 - 1);
    expect(await takeAll(second)).toBe(0);
    await clock.advance(2);
    expect(await takeAll(second)).toBe(1);
  });

  test("a smaller budget forgets no call, if the earlier one is restored before they have all rested", async () => {
    expect(await takeAll(await open())).toBe(10);
    await clock.advance(1000);
    for (let times = 0; times < 2; times += 1) expect(await takeAll(await open({ limit: 6 }))).toBe(0);
    await clock.advance(1000);
    expect(await takeAll(await open())).toBe(0);
    expect(await takeAll(await open({ limit: 15 }))).toBe(3);
    await clock.advance(OCCUPIED_MS);
    expect(await takeAll(await open({ limit: 6 }))).toBe(4);
    expect(await takeAll(await open())).toBe(6);
  });

  test("a larger budget adds slots, a longer window starts spent, a shorter one ends sooner", async () => {
    await takeAll(await open());
    expect(await takeAll(await open({ limit: 15 }))).toBe(3);
    expect(await takeAll(await open({ limit: 15, windowMs: WINDOW_MS * 2 }))).toBe(0);
    await clock.advance(25_000);
    expect(await takeAll(await open({ windowMs: 20_000 }))).toBe(0);
    await clock.advance(2 * WINDOW_MS);
    expect(await takeAll(await open({ windowMs: 20_000 }))).toBe(10);
  });

  test("a smaller budget for a longer window forgets no call either", async () => {
    await takeAll(await open({ windowMs: 20_000 }));
    await open({ limit: 6 });
    expect(await takeAll(await open())).toBe(0);
  });
});

describe("the file", () => {
  test("is accessible only to its owner", async () => {
    await open();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  test("is written in place, before each call and after it", async () => {
    const ledger = await open();
    const before = statSync(file());
    const slot = ledger.take();
    expect(readFileSync(file(), "latin1")).toMatch(/^sent /m);
    ledger.settle(slot ?? NaN, "answered");
    expect(readFileSync(file(), "latin1")).not.toMatch(/^sent /m);
    expect(statSync(file())).toMatchObject({ ino: before.ino, size: before.size });
  });

  test("belongs to the process that started last; an earlier owner makes no more calls", async () => {
    const first = await open();
    const second = await open();
    let failure: unknown = null;
    try {
      first.take();
    } catch (error) {
      failure = error;
    }
    // The operator has to restart it, so the log must name the cause.
    expect(failureReason(failure)).toBe("LedgerReplacedError");
    expect(await takeAll(second)).toBe(10);
  });

  test("is written again with everything that is known if it was deleted", async () => {
    const first = await open();
    expect(await takeAll(first)).toBe(10);
    rmSync(file());
    await clock.advance(OCCUPIED_MS);
    expect(await takeAll(first)).toBe(10);
    expect(await takeAll(await open())).toBe(0);
  });

  test("prevents the call and frees its slot if it can't be written", async () => {
    const ledger = await open();
    rmSync(directory, { recursive: true });
    expect(() => ledger.take()).toThrow("ENOENT");
    expect(ledger.usage().used).toBe(0);
    await expect(open({ fingerprint: "../x" })).rejects.toThrow("fingerprint");
  });
});
