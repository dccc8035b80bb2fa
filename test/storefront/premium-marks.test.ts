/** What is remembered of premium names: the latest decision, after a restart too. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { readdirSync, readFileSync, renameSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { createPool } from "../../src/cache/cache.js";
import { createSavedLists } from "../../src/cache/saved-facts.js";
import { parseDomainName } from "../../src/domain-name.js";
import { parseWholesale, type Wholesale } from "../../src/money.js";
import {
  createPremiumMarks,
  decodeStoredPremium,
  PREMIUM_KEPT_MS,
  premiumCaution,
  type PremiumMarks,
  savedMarks,
} from "../../src/storefront/premium-marks.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog, temporaryFolder, until } from "../support/service.js";

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
  const files = createSavedLists({
    directory: folder.path,
    name: "names",
    replica,
    keptMs: PREMIUM_KEPT_MS,
    shape: savedMarks,
    source: () => "here",
    clock,
    log: recordingLog([]),
  });
  saved.push(() => files.saved());
  return createPremiumMarks({
    pool: createPool({ entries: 100, failureMs: 0, freshness, caution: premiumCaution, clock }),
    files,
    clock,
  });
}

async function allSaved(): Promise<void> {
  await Promise.all(saved.map((one) => one()));
}

async function restart(replica = "one"): Promise<void> {
  await allSaved();
  marks = start(replica);
  marks.restore();
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

  test("a name is premium if the checks of two replicas overlapped, whichever of them saved last", async () => {
    const other = start("two");
    for (const isSavedLast of [true, false]) {
      await clock.advance(HOUR_MS);
      for (const replica of [marks, other]) {
        note(true, 0, GOLD, 0, replica);
        await allSaved();
      }
      await clock.advance(30_000);
      const ordinary = () => note(false, 9_000, GOLD, 2_000, other);
      if (!isSavedLast) ordinary();
      await allSaved();
      note(true, 10_000, GOLD, 2_000);
      await allSaved();
      if (isSavedLast) ordinary();
      await clock.advance(1_000);
      await restart();
      expect(isPremium()).toBe(true);
    }
  });

  test.each(["one", "two", "three"])(
    "of replica %s, it knows what two have noted at once",
    async (replica) => {
      const other = start("two");
      note(true, 0, nameOf("gold"));
      note(true, 0, nameOf("hotel"), 0, other);
      await restart(replica);
      expect(["gold", "hotel"].map((label) => isPremium(nameOf(label)))).toEqual([true, true]);
    },
  );

  test("it knows what a version without replicas' own files has saved", async () => {
    note(true);
    await allSaved();
    renameSync(fileOf("one"), join(folder.path, "names.json"));
    await restart();
    expect(isPremium()).toBe(true);
  });

  test("a file that is older than another by as long as names are remembered is deleted", async () => {
    note(true);
    note(true, 0, nameOf("hotel"), 0, start("two"));
    await allSaved();
    const writtenAtMs = (agoMs: number): void => {
      utimesSync(fileOf("one"), new Date(), new Date(clock.now() - agoMs));
    };
    writtenAtMs(PREMIUM_KEPT_MS - 1000);
    await restart("two");
    expect([isPremium(), isPremium(nameOf("hotel"))]).toEqual([true, true]);
    writtenAtMs(PREMIUM_KEPT_MS + 1000);
    await restart("two");
    expect([isPremium(), isPremium(nameOf("hotel"))]).toEqual([undefined, true]);
    await until(() => readdirSync(folder.path).length === 1, "the deletion");
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

  test("with a clock that was ahead by a year for a while, the names are known once it is right", async () => {
    for (const replica of ["one", "two"]) note(true, 0, nameOf(replica), 0, start(replica));
    await allSaved();
    clock.stepWall(365 * 24 * HOUR_MS);
    await restart();
    clock.stepWall(-365 * 24 * HOUR_MS);
    await restart();
    expect(["one", "two"].map((label) => isPremium(nameOf(label)))).toEqual([true, true]);
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

describe("the decoder of stored marks", () => {
  const stored = {
    isPremium: true,
    years: 2,
    wholesale: { kind: "wholesale", amount: "20.00", currency: "USD" },
  };

  test("returns a mark as it was stored", () => {
    expect(decodeStoredPremium(JSON.parse(JSON.stringify(stored)))).toEqual(stored);
  });

  test.each([
    ["an invalid term", { ...stored, years: 0 }],
    ["an unknown field", { ...stored, more: 1 }],
    ["null", null],
  ])("rejects %s", (_what, data) => {
    expect(decodeStoredPremium(data)).toBeUndefined();
  });
});
