/** The ledger file: what a kill, a missing file, garbage, other settings and other clocks leave of it. Never a call too many. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { Ledger } from "../../src/quota/ledger/ledger.js";
import { type FileLedgerSettings, openFileLedger } from "../../src/quota/ledger/file.js";
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

/** A process that starts; killing it is never closing it. */
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

/** Takes all that there is now, and settles it if told. */
async function takeAll(ledger: Ledger, settled = true): Promise<number> {
  for (let taken = 0; ; taken += 1) {
    const got = await ledger.take();
    if (!("slot" in got)) return taken;
    if (settled) await ledger.settle(got.slot, "answered");
  }
}

describe("a restart", () => {
  test("remembers settled calls by the time at which they settled", async () => {
    const first = await open();
    for (let n = 0; n < 4; n += 1) {
      const got = await first.take();
      if ("slot" in got) await first.settle(got.slot, "answered");
    }
    await clock.advance(40_000);
    await takeAll(first);
    const second = await open();
    expect(await takeAll(second)).toBe(0);
    await clock.advance(OCCUPIED_MS - 40_000 + 1);
    expect(await takeAll(second)).toBe(4);
  });

  test("counts calls in flight from the new start, with a grace", async () => {
    await takeAll(await open(), false);
    await clock.advance(30_000);
    const second = await open();
    await clock.advance(OCCUPIED_MS + GRACE_MS - 1);
    expect(await takeAll(second)).toBe(0);
    await clock.advance(1);
    expect(await takeAll(second)).toBe(10);
  });

  test("does not restart the rest of a slot every time", async () => {
    await takeAll(await open(), false);
    for (let n = 0; n < 10; n += 1) {
      await open();
      await clock.advance((OCCUPIED_MS + GRACE_MS) / 10);
    }
    await clock.advance(20);
    expect(await takeAll(await open())).toBe(10);
  });

  test("remembers a pause", async () => {
    await (await open()).pause(30_000);
    await clock.advance(10_000);
    expect((await open()).forecast().pausedForMs).toBeCloseTo(20_000, -1);
  });

  test("believes no time when the wall clock was set or the machine was started again", async () => {
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

describe("without a believable record", () => {
  test("a missing file is a spent window with its headroom usable, or a free one", async () => {
    const spent = await open({ coldStart: "assume-spent" });
    expect(await takeAll(spent)).toBe(2);
    expect(spent.usage().largestWindowToday).toBe(2);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(await takeAll(spent)).toBe(10);
    rmSync(directory, { recursive: true });
    expect(await takeAll(await open())).toBe(10);
  });

  test.each([
    ["empty", () => Buffer.alloc(0)],
    ["noise", () => Buffer.from(Array.from({ length: 900 }, (_, index) => (index * 7919) % 256))],
    [
      "its header torn",
      (good: Buffer) => Buffer.concat([good.subarray(0, 20), Buffer.alloc(44), good.subarray(64)]),
    ],
  ])("a file that is %s is a spent window, whatever a missing one would be", async (_, spoil) => {
    await takeAll(await open());
    await clock.advance(OCCUPIED_MS);
    writeFileSync(file(), spoil(readFileSync(file())));
    const ledger = await open();
    expect(await takeAll(ledger)).toBe(2);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(await takeAll(ledger)).toBe(10);
  });

  test("a short file and a spoilt line cost their slots alone", async () => {
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

describe("other settings than before", () => {
  test("a smaller budget still counts every earlier call", async () => {
    const first = await open();
    for (let n = 0; n < 10; n += 1) {
      const got = await first.take();
      if ("slot" in got) await first.settle(got.slot, "answered");
      await clock.advance(1000);
    }
    const second = await open({ limit: 6 });
    // Ten calls at 0 s … 9 s; four are allowed, so the first slot is there when only three of them still count.
    await clock.advance(OCCUPIED_MS - 10_000 + 6000 - 1);
    expect(await takeAll(second)).toBe(0);
    await clock.advance(2);
    expect(await takeAll(second)).toBe(1);
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
});

describe("the file", () => {
  test("is the owner's alone", async () => {
    await open();
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  test("is written before the call and after it, in place", async () => {
    const ledger = await open();
    const before = statSync(file());
    const got = await ledger.take();
    expect(readFileSync(file(), "latin1")).toMatch(/^sent /m);
    if ("slot" in got) await ledger.settle(got.slot, "answered");
    expect(readFileSync(file(), "latin1")).not.toMatch(/^sent /m);
    expect(statSync(file())).toMatchObject({ ino: before.ino, size: before.size });
  });

  test("belongs to the latest start: an earlier owner sends nothing more", async () => {
    const first = await open();
    const second = await open();
    await expect(first.take()).rejects.toThrow("taken over");
    expect(await takeAll(second)).toBe(10);
  });

  test("that somebody deleted is written again with all that is known", async () => {
    const first = await open();
    expect(await takeAll(first)).toBe(10);
    rmSync(file());
    await clock.advance(OCCUPIED_MS);
    expect(await takeAll(first)).toBe(10);
    expect(await takeAll(await open())).toBe(0);
  });

  test("that cannot be written refuses the call, and takes the slot back", async () => {
    const ledger = await open();
    rmSync(directory, { recursive: true });
    await expect(ledger.take()).rejects.toThrow("ENOENT");
    expect(ledger.usage().used).toBe(0);
    await expect(open({ fingerprint: "../x" })).rejects.toThrow("fingerprint");
  });
});
