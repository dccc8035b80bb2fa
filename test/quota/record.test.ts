/** The record never allows a call too many after a kill, data loss, corruption, or a change of the settings or clocks. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { InUseError } from "../../src/quota/lock.js";
import type { ColdStart, NoteStore } from "../../src/quota/note.js";
import { createRecords } from "../../src/quota/record.js";
import { graceMsOf, SlotTable } from "../../src/quota/slot-table.js";
import { failureReason } from "../../src/system-error.js";
import { FakeClock } from "../support/fake-clock.js";
import { largestWindow } from "./support/rolling.js";

const BUDGET = { limit: 12, headroom: 2, windowMs: 60_000 };
const OCCUPIED_MS = BUDGET.windowMs + 60;
const GRACE_MS = 10_000;
const FREE = { places: [], pausedForMs: 0, windowMs: BUDGET.windowMs, slots: [] };

let directory: string;
let clock: FakeClock;
let open: { readonly notes: NoteStore; readonly table: SlotTable } | null;

beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), "quota-")), "state");
  clock = new FakeClock();
  open = null;
});
afterEach(async () => {
  await open?.notes.giveUp("f00d", FREE).catch(() => undefined);
  rmSync(join(directory, ".."), { recursive: true });
});

const file = () => join(directory, "quota-f00d.ledger");

interface Start extends Partial<typeof BUDGET> {
  readonly coldStart?: ColdStart;
}

/** Starts a process whose predecessor was killed: its record is as it was written last. */
async function start({ coldStart = "assume-free", ...more }: Start = {}): Promise<SlotTable> {
  if (open !== null) {
    const text = readIfThere();
    await open.notes.giveUp("f00d", FREE).catch(() => undefined);
    if (text === undefined) rmSync(file(), { force: true });
    else writeFileSync(file(), text);
  }
  const budget = { ...BUDGET, ...more };
  const notes = createRecords(directory, budget, clock);
  const { note, record } = await notes.take("f00d", coldStart);
  const onFault = (what: string): void => {
    throw new Error(what);
  };
  const table = new SlotTable({ ...budget, rests: note, record, onFault, clock });
  open = { notes, table };
  return table;
}

function readIfThere(): Buffer | undefined {
  try {
    return readFileSync(file());
  } catch {
    return undefined;
  }
}

/** Takes every slot that is usable now, and by default settles it; returns how many. */
function takeAll(table: SlotTable, settled = true): number {
  for (let taken = 0; ; taken += 1) {
    const slot = table.take();
    if (slot === null) return taken;
    if (settled) table.settle(slot, "answered");
  }
}

describe("a restart", () => {
  test("keeps settled calls with the times at which they settled", async () => {
    const first = await start();
    for (let n = 0; n < 4; n += 1) first.settle(first.take() ?? NaN, "answered");
    await clock.advance(40_000);
    takeAll(first);
    const second = await start();
    expect(takeAll(second)).toBe(0);
    await clock.advance(OCCUPIED_MS - 40_000 + 1);
    expect(takeAll(second)).toBe(4);
  });

  test("counts calls in flight from the new start, plus a grace period, and not again when it is repeated", async () => {
    takeAll(await start(), false);
    await clock.advance(30_000);
    await start();
    for (let n = 0; n < 10; n += 1) {
      await clock.advance((OCCUPIED_MS + GRACE_MS) / 10 - 1);
      expect(takeAll(await start())).toBe(0);
    }
    await clock.advance(20);
    expect(takeAll(await start())).toBe(10);
  });

  test("keeps a pause", async () => {
    const first = await start();
    for (const operation of ["check", "quote"]) first.pause(operation, 30_000);
    await clock.advance(10_000);
    expect((await start()).pausedUntilAt() - clock.monotonic()).toBeCloseTo(20_000, -1);
  });

  test.each(["forward", "back", "reboot"])(
    "trusts no recorded time if the wall clock was set or the machine was restarted (%s)",
    async (change) => {
      takeAll(await start());
      await clock.advance(100_000);
      takeAll(await start());
      if (change === "reboot") clock = new FakeClock(clock.now() + 1_000);
      else clock.stepWall(change === "forward" ? 3_600_000 : -3_600_000);
      const second = await start();
      await clock.advance(OCCUPIED_MS);
      expect(takeAll(second)).toBe(0);
      await clock.advance(GRACE_MS);
      expect(takeAll(second)).toBe(10);
    },
  );
});

test("after a power cut, which may lose the last writes, only the headroom of the slots that seemed to have rested is usable, once", async () => {
  takeAll(await start());
  await clock.advance(OCCUPIED_MS + GRACE_MS);
  const table = await start();
  table.settle(table.take() ?? NaN, "answered");
  const written = readFileSync(file());
  expect(takeAll(table)).toBe(9);
  writeFileSync(file(), written);
  clock = new FakeClock(clock.now() + 20_000);
  expect(takeAll(await start())).toBe(BUDGET.headroom);
  clock = new FakeClock(clock.now() + 20_000);
  const last = await start();
  await clock.advance(OCCUPIED_MS);
  expect(takeAll(last)).toBe(0);
  await clock.advance(GRACE_MS);
  expect(takeAll(last)).toBe(10);
});

describe("without a valid record,", () => {
  test("a missing file means a spent window with a usable headroom, or a free one, as configured", async () => {
    const spent = await start({ coldStart: "assume-spent" });
    expect(takeAll(spent)).toBe(2);
    expect(spent.usage().largestWindowToday).toBe(2);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(takeAll(spent)).toBe(10);
    rmSync(directory, { recursive: true });
    expect(takeAll(await start())).toBe(10);
  });

  test.each([
    ["is empty", () => Buffer.alloc(0)],
    ["is noise", () => Buffer.from(Array.from({ length: 900 }, (_, index) => (index * 7919) % 256))],
    ["is torn", (good: Buffer) => Buffer.concat([good.subarray(0, 100), Buffer.alloc(good.length - 100)])],
    ["is truncated", (good: Buffer) => good.subarray(0, 90)],
    [
      "has a changed digit",
      (good: Buffer) => Buffer.from(good.toString("latin1").replace('"pausedForMs":0', '"pausedForMs":1')),
    ],
  ])("a file that %s means a spent window, whatever a missing one would mean", async (_, corrupt) => {
    takeAll(await start());
    await clock.advance(OCCUPIED_MS);
    takeAll(await start(), false);
    const good = readFileSync(file());
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    await start();
    writeFileSync(file(), corrupt(good));
    const table = await start();
    expect(takeAll(table)).toBe(2);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(takeAll(table)).toBe(10);
  });
});

describe("after a change of settings,", () => {
  test("a smaller budget still counts every earlier call", async () => {
    const first = await start();
    for (let n = 0; n < 10; n += 1) {
      first.settle(first.take() ?? NaN, "answered");
      await clock.advance(1000);
    }
    const second = await start({ limit: 6 });
    // Ten calls at 0 s … 9 s; four are allowed, so the first slot is usable when only three of them still count.
    await clock.advance(OCCUPIED_MS - 10_000 + 6000 - 1);
    expect(takeAll(second)).toBe(0);
    await clock.advance(2);
    expect(takeAll(second)).toBe(1);
  });

  test("slots that a larger budget adds may have been used, and another window makes all of them so", async () => {
    await start({ limit: 6 });
    expect(takeAll(await start())).toBe(4);
    await clock.advance(OCCUPIED_MS + GRACE_MS);
    expect(takeAll(await start())).toBe(10);
    for (const windowMs of [20_000, 120_000]) {
      const table = await start({ windowMs });
      expect(takeAll(table)).toBe(0);
      await clock.advance(2 * windowMs);
      expect(takeAll(table)).toBe(10);
    }
  });
});

describe("the file", () => {
  test("is accessible only to its owner", async () => {
    await start();
    expect([statSync(file()).mode & 0o777, statSync(directory).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(statSync(`${file()}.lock`).mode & 0o077).toBe(0);
  });

  test("is written in place, before each call and after it, so that a full disk stops nothing", async () => {
    const table = await start();
    const before = statSync(file());
    const slot = table.take();
    expect(readFileSync(file(), "latin1")).toContain("null");
    table.settle(slot ?? NaN, "answered");
    expect(readFileSync(file(), "latin1")).not.toContain("null");
    expect(statSync(file())).toMatchObject({ ino: before.ino, size: before.size });
  });

  test("belongs to the process that replaced it last; an earlier owner makes no more calls", async () => {
    const table = await start();
    expect(table.take()).not.toBeNull();
    rmSync(`${file()}.lock`, { force: true });
    const second = await createRecords(directory, BUDGET, clock).take("f00d", "assume-free");
    expect(second.note?.slots.filter((ms) => ms === null)).toHaveLength(1);
    let failure: unknown = null;
    try {
      table.take();
    } catch (error) {
      failure = error;
    }
    // The operator has to restart it, so the log must name the cause.
    expect(failureReason(failure)).toBe("LedgerReplacedError");
  });

  test("is written again with everything that is known if it was deleted", async () => {
    const first = await start();
    expect(takeAll(first)).toBe(10);
    rmSync(file());
    await clock.advance(OCCUPIED_MS);
    expect(takeAll(first)).toBe(10);
    expect(takeAll(await start())).toBe(0);
  });

  test("prevents the call and frees its slot if it can't be written", async () => {
    const table = await start();
    rmSync(directory, { recursive: true });
    expect(() => table.take()).toThrow("ENOENT");
    expect(table.usage().used).toBe(0);
  });

  test("is refused to a second process with a message that says what to do, until the first has closed", async () => {
    await start();
    const second = createRecords(directory, BUDGET, clock);
    await expect(second.take("f00d", "assume-free")).rejects.toThrow(InUseError);
    await expect(second.take("f00d", "assume-free")).rejects.toThrow("share a quota only through REDIS_URL");
    await second.take("beef", "assume-free");
    await open?.notes.giveUp("f00d", FREE);
    await second.take("f00d", "assume-free");
    await second.giveUp("f00d", FREE);
    await second.giveUp("beef", FREE);
  });

  test("of a process that was killed is taken over immediately, also in a folder too deep for a lock", async () => {
    await (await start(), open?.notes.giveUp("f00d", FREE));
    const script = `require("net").createServer().listen(${JSON.stringify(`${file()}.lock`)}, () => process.kill(process.pid, "SIGKILL"))`;
    expect(spawnSync(process.execPath, ["-e", script]).signal).toBe("SIGKILL");
    expect(takeAll(await start())).toBe(0);
    directory = join(directory, "x".repeat(120));
    expect(takeAll(await start())).toBe(10);
  });
});

type Step =
  | { readonly kind: "wait"; readonly ms: number }
  | {
      readonly kind: "calls";
      readonly count: number;
      readonly tookMs: number;
      readonly arrives: number;
      readonly abandoned: boolean;
    }
  | {
      readonly kind: "kill";
      readonly downMs: number;
      readonly between: boolean;
      readonly late: number;
      /** The limit of the next process. */
      readonly limit: number;
    };

const part = fc.double({ min: 0, max: 1, noNaN: true });
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 0, max: 4000 }) }),
    fc.record({
      kind: fc.constant("calls" as const),
      count: fc.integer({ min: 1, max: 6 }),
      tookMs: fc.integer({ min: 0, max: 3000 }),
      arrives: fc.oneof(fc.constantFrom(0, 1), part),
      abandoned: fc.boolean(),
    }),
    fc.record({
      kind: fc.constant("kill" as const),
      downMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3000 })),
      between: fc.boolean(),
      late: fc.oneof(fc.constantFrom(0, 1), part),
      limit: fc.constantFrom(6, 3),
    }),
  ),
  { minLength: 5, maxLength: 60 },
);

interface Flight {
  /** Whether its process was killed, so nobody settles it. */
  orphan: boolean;
  /** Whether it was settled, so it arrives within the recorded grace period even if the process is killed. */
  ended: boolean;
  readonly arrive: () => void;
}

/** Runs a script; returns when calls arrived at the upstream. */
async function play(script: readonly Step[], coldStart: ColdStart): Promise<number[]> {
  const small = { windowMs: 6000, headroom: 1, coldStart };
  const graceMs = graceMsOf(small.windowMs);
  const arrivals: number[] = [];
  let flights: Flight[] = [];
  let table = await start({ ...small, limit: 6 });
  for (const step of script) {
    if (step.kind === "wait") await clock.advance(step.ms);
    else if (step.kind === "calls")
      for (let n = 0; n < step.count; n += 1) {
        const owner = table;
        const slot = owner.take();
        if (slot === null) break;
        let arrived = false;
        const arrive = (): void => {
          if (!arrived) arrivals.push(clock.monotonic());
          arrived = true;
        };
        const flight: Flight = { orphan: false, ended: false, arrive };
        flights.push(flight);
        clock.after((step.tookMs + (step.abandoned ? graceMs : 0)) * step.arrives, () => {
          if (!flight.orphan) arrive();
        });
        clock.after(step.tookMs, () => {
          if (flight.orphan) return;
          flight.ended = true;
          owner.settle(slot, step.abandoned ? "abandoned" : "answered");
        });
      }
    else {
      // Recorded, but killed before the call was sent.
      if (step.between) table.take();
      for (const flight of flights.filter(({ ended }) => !ended)) {
        flight.orphan = true;
        // A call in flight may arrive while no process runs, or within a grace period after the next start.
        clock.after((step.downMs + graceMs) * step.late, flight.arrive);
      }
      flights = [];
      await clock.advance(step.downMs);
      table = await start({ ...small, limit: step.limit });
    }
  }
  await clock.advance(small.windowMs * 2);
  return arrivals;
}

test("no rolling window ever exceeds the budget, whenever the process is killed, even if its limit is changed", async () => {
  const coldStarts = fc.constantFrom("assume-spent" as const, "assume-free" as const);
  await fc.assert(
    fc.asyncProperty(steps, coldStarts, async (script, coldStart) => {
      rmSync(directory, { recursive: true, force: true });
      clock = new FakeClock();
      open = null;
      expect(largestWindow(await play(script, coldStart), 6000)).toBeLessThanOrEqual(5);
    }),
    { numRuns: 80 },
  );
});
