/** What is remembered of premium names: the latest decision, after a restart too. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { createPool } from "../../src/cache/cache.js";
import { createSavedFile } from "../../src/saved-file.js";
import { parseDomainName } from "../../src/domain-name.js";
import { parseWholesale, type Wholesale } from "../../src/money.js";
import {
  createPremiumMarks,
  premiumCaution,
  type PremiumMarks,
  savedMarks,
} from "../../src/storefront/premium-marks.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, temporaryFolder } from "../support/service.js";

const HOUR_MS = 3_600_000;
const nameOf = (label: string) => parseDomainName(`${label}.af`, [".af"], "domain");
const GOLD = nameOf("gold");

function usd(amount: string): Wholesale {
  const price = parseWholesale(amount, "USD");
  if (price === null) throw new Error(`${amount} isn't a price`);
  return price;
}

let folder: ReturnType<typeof temporaryFolder>;
let clock: FakeClock;
let marks: PremiumMarks;
let saved: (() => Promise<void>)[];

beforeEach(() => {
  folder = temporaryFolder();
  clock = new FakeClock();
  saved = [];
  marks = start("one");
});
afterEach(() => {
  folder.remove();
});

const fileOf = (replica: string): string => join(folder.path, `names.${replica}.json`);

function start(replica: string): PremiumMarks {
  const freshness = () => ({ freshMs: HOUR_MS, usableMs: HOUR_MS });
  const file = createSavedFile({
    path: fileOf(replica),
    shape: savedMarks,
    source: () => "here",
    clock,
    log: recordingLog([]),
  });
  saved.push(() => file.saved());
  return createPremiumMarks({
    pool: createPool({ entries: 100, failureMs: 0, freshness, caution: premiumCaution, clock }),
    file,
    clock,
  });
}

async function allSaved(): Promise<void> {
  await Promise.all(saved.map((one) => one()));
}

async function restart(replica = "one"): Promise<void> {
  await allSaved();
  marks = start(replica);
  await marks.restore();
}

/** Notes a decision about a check that was requested so long ago, and answered after `tookMs`. */
function note(isPremium: boolean, agoMs = 0, name = GOLD, tookMs = 0, by = marks): void {
  const askedMs = clock.monotonic() - agoMs;
  by.note(name, {
    value: { isPremium, years: 2, wholesale: usd("1450.00") },
    askedMs,
    answeredMs: askedMs + tookMs,
  });
}

const isPremium = (name = GOLD): boolean | undefined => marks.of(name)?.value.isPremium;

describe("the latest decision about a name", () => {
  beforeEach(() => clock.advance(60_000));

  test("is remembered with the price that it was about", () => {
    expect(isPremium()).toBeUndefined();
    note(true);
    expect(marks.of(GOLD)).toMatchObject({
      value: { isPremium: true, years: 2, wholesale: usd("1450.00") },
      askedMs: 60_000,
    });
    expect(isPremium(nameOf("silver"))).toBeUndefined();
  });

  test("replaces the one about an earlier check, and not the other way round", () => {
    note(true, 10_000);
    note(false, 20_000);
    expect(isPremium()).toBe(true);
    note(false);
    expect(isPremium()).toBe(false);
    note(true, 5_000);
    expect(isPremium()).toBe(false);
  });

  test("is 'premium' if checks that overlap led to different ones, whichever is noted first", () => {
    const premium = () => note(true, 10_000, GOLD, 2_000);
    const ordinary = () => note(false, 9_000, GOLD, 2_000);
    for (const decisions of [
      [premium, ordinary],
      [ordinary, premium],
    ]) {
      marks = start("one");
      note(true, 30_000);
      for (const decide of decisions) decide();
      expect(isPremium()).toBe(true);
    }
    note(false, 7_000);
    expect(isPremium()).toBe(false);
  });

  test("isn't remembered for a name that has always been ordinary", () => {
    note(false);
    expect(isPremium()).toBeUndefined();
  });
});

describe("after a restart", () => {
  test("the decisions are known, and as old as before", async () => {
    await clock.advance(10_000);
    note(true, 4_000);
    await restart();
    expect(marks.of(GOLD)).toMatchObject({
      value: { isPremium: true, years: 2, wholesale: usd("1450.00") },
      askedMs: 6_000,
    });
    await clock.advance(HOUR_MS);
    expect(isPremium()).toBeUndefined();
  });

  test("nothing is known without a file", async () => {
    await restart();
    expect(isPremium()).toBeUndefined();
  });

  test("decisions that were noted within a second of each other are known as well", async () => {
    const names = ["one", "two", "three"].map(nameOf);
    for (const name of names) note(true, 0, name);
    await allSaved();
    const { mtimeNs } = statSync(fileOf("one"), { bigint: true });
    await clock.advance(999);
    await allSaved();
    expect(statSync(fileOf("one"), { bigint: true }).mtimeNs).toBe(mtimeNs);
    await clock.advance(1);
    await restart();
    expect(names.map(isPremium)).toEqual([true, true, true]);
  });

  test("so are those noted just before the process stopped", async () => {
    const names = ["one", "two"].map(nameOf);
    for (const name of names) note(true, 0, name);
    marks.flush();
    await restart();
    expect(names.map(isPremium)).toEqual([true, true]);
  });

  test("a name is premium even if the clock was set back since, until a later check", async () => {
    await clock.advance(10_000);
    note(true);
    clock.stepWall(-HOUR_MS / 2);
    await restart();
    expect(isPremium()).toBe(true);
    await clock.advance(1);
    note(false);
    expect(isPremium()).toBe(false);
  });

  test("a decision that a name became ordinary isn't trusted if the clock was set back since", async () => {
    note(true);
    await clock.advance(5_000);
    note(true, 0, nameOf("hotel"));
    note(false);
    await clock.advance(1_000);
    clock.stepWall(-HOUR_MS / 2);
    await restart();
    expect([isPremium(), isPremium(nameOf("hotel"))]).toEqual([undefined, true]);
  });

  test("a name that became ordinary is ordinary", async () => {
    note(true);
    await clock.advance(5_000);
    note(false);
    await restart();
    expect(isPremium()).toBe(false);
  });
});

test("the files don't contain the names", async () => {
  note(true);
  await allSaved();
  const text = readFileSync(fileOf("one"), "utf8");
  expect(text).toContain("1450.00");
  expect(text).not.toContain("gold");
});

test("while it is unknown which of two decisions is newer, premium wins", () => {
  const mark = (value: boolean) => ({ isPremium: value, years: 1, wholesale: usd("20.00") });
  expect(premiumCaution(mark(true), mark(false))).toBeGreaterThan(0);
  expect(premiumCaution(mark(false), mark(true))).toBeLessThan(0);
  expect(premiumCaution(mark(true), mark(true))).toBe(0);
});
