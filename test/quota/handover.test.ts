/** The handover file that a replica leaves on disk, so that its successor can send its leave request. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import {
  type Known,
  openHandover,
  type Handover,
  type HandoverSettings,
} from "../../src/quota/ledger/handover.js";
import { systemClock } from "../../src/clock.js";
import { openRedisLedger } from "../../src/quota/ledger/redis.js";
import { connectRedis } from "../../src/redis-link.js";
import { fixedSecret } from "../../src/secret.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";

const KNOWN: Known = {
  monotonicMs: 0,
  place: "here",
  share: 6,
  epoch: "e",
  generation: 7,
  revision: 12,
  reports: [{ id: 2, grant: "a:1", at: 4.5 }],
  extra: [9],
  pausedUntil: 0,
};

let clock: FakeClock;
let directory: string;
let faults: unknown[];
beforeEach(async () => {
  clock = new FakeClock();
  directory = await mkdtemp(join(tmpdir(), "handover-"));
  faults = [];
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const handover = (me: string, more: Partial<HandoverSettings> = {}): Handover =>
  openHandover({ directory, me, clock, onFault: (error) => faults.push(error), ...more });

function written(me: string): Handover {
  const opened = handover(me);
  expect(opened.write(KNOWN)).toBe(true);
  return opened;
}

describe("the handover of a replica that ended", () => {
  test("is what the replica wrote last, whatever its length, and can be taken once", () => {
    const a = written("a");
    a.write({ ...KNOWN, extra: Array.from({ length: 50 }, (_, index) => index) });
    a.write(KNOWN);
    const b = handover("b");
    expect([b.take("a", 0), b.take("a", 0)]).toEqual([KNOWN, null]);
  });

  test("doesn't exist if the replica never wrote one, or isn't known", () => {
    handover("a");
    expect([handover("b").take("a", 0), handover("c").take("d", 0)]).toEqual([null, null]);
  });

  test("isn't trusted if it is incomplete", async () => {
    written("a");
    const [file = ""] = await readdir(directory);
    const text = await readFile(join(directory, file), "utf8");
    await writeFile(join(directory, file), text.slice(0, -5));
    expect(handover("b").take("a", 0)).toBeNull();
  });

  test("isn't trusted if the replica reached Redis after it last wrote", async () => {
    for (const name of ["a", "b"]) written(name);
    await clock.advance(60_000);
    expect(handover("c").take("a", 55_000)).toBeNull();
    expect(handover("d").take("b", 59_500)).toEqual(KNOWN);
  });

  test("isn't trusted if the wall clock was set or the machine restarted in the meantime", async () => {
    for (const name of ["a", "b"]) written(name);
    clock.stepWall(-5000);
    expect(handover("c").take("a", 0)).toBeNull();
    await clock.advance(60_000);
    handover("d").write({ ...KNOWN, monotonicMs: clock.monotonic() });
    expect(handover("e", { clock: new FakeClock(clock.now()) }).take("d", 60_000)).toBeNull();
  });
});

describe("the handover of the last replica in a place", () => {
  const later = async (me: string, known: Partial<Known>): Promise<void> => {
    await clock.advance(1000);
    handover(me).write({ ...KNOWN, monotonicMs: clock.monotonic(), ...known });
  };

  test("is that of the last replica there that had a share, and can be taken once", async () => {
    await later("a", {});
    await later("b", {});
    await later("c", { share: 0 });
    await later("d", { place: "elsewhere" });
    const own = handover("e");
    own.write({ ...KNOWN, monotonicMs: clock.monotonic() });
    expect(own.takeOfPlace("here", 60_000)).toMatchObject({ name: "b", known: { monotonicMs: 2000 } });
    expect(own.takeOfPlace("here", 60_000)).toMatchObject({ name: "a" });
    expect(own.takeOfPlace("here", 60_000)).toBeNull();
  });

  test("isn't that of a replica that wrote too long ago, or before the machine was restarted", async () => {
    await later("a", {});
    await clock.advance(60_001);
    expect(handover("b").takeOfPlace("here", 60_000)).toBeNull();
    await later("c", {});
    expect(handover("d", { clock: new FakeClock(clock.now()) }).takeOfPlace("here", 60_000)).toBeNull();
  });
});

test("a replica whose handover was taken can't write any more, so it can't call without Redis, and reports this once", async () => {
  const redis = connectRedis({
    url: fixedSecret(`unix://${directory}/nobody-listens`),
    clock: systemClock,
    log: recordingLog([]),
  });
  const opening = openRedisLedger({
    redis,
    fingerprint: "abc",
    limit: 3,
    headroom: 0,
    windowMs: 1000,
    coldStart: "assume-free",
    replicasMax: 1,
    longestCallMs: 100,
    place: "here",
    directory,
    clock,
    onFault: (_what, error) => faults.push(error),
  });
  await clock.advance(60_000);
  const ledger = await opening;
  try {
    expect(await ledger.take()).toHaveProperty("slot");
    expect(handover("b").takeOfPlace("abc here", 60_000)).not.toBeNull();
    for (let times = 0; times < 2; times += 1) expect(await ledger.take()).toHaveProperty("retryInMs");
    // The two other slots have rested.
    expect(ledger.forecast().usableInMs(1)).toBe(0);
    expect(await readdir(directory)).toEqual(["quota-b.handover"]);
    expect(faults).toHaveLength(1);
  } finally {
    await ledger.close();
    redis.close();
  }
});

test("no file remains of a replica that left properly, or of one whose handover was taken", async () => {
  const [a, b] = [written("a"), written("b")];
  expect(b.take("a", 0)).toEqual(KNOWN);
  b.end();
  a.end();
  expect(await readdir(directory)).toEqual([]);
});

describe("if nothing can be written,", () => {
  test("a replica continues without Redis, although no successor will know of its calls, and reports this once", () => {
    const a = handover("a", { directory: "/dev/null/var" });
    expect(a.write(KNOWN)).toBe(true);
    a.end();
    expect(faults).toHaveLength(1);
    expect(handover("b", { directory: "/dev/null/var" }).take("a", 0)).toBeNull();
  });

  test("a replica whose folder was deleted can't continue without Redis, and reports this", async () => {
    const a = written("a");
    await rm(directory, { recursive: true });
    expect(a.write(KNOWN)).toBe(false);
    expect(faults).toHaveLength(1);
  });
});
