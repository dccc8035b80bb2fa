/** Each credential has its own budget, and places outlive a change of credentials and an orderly restart. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createColdLimit } from "../../src/http/edge/cold-limit.js";
import type { Quota } from "../../src/quota/line.js";
import { createQuotas, type Quotas } from "../../src/quota/quotas.js";
import { createRecords } from "../../src/quota/record.js";
import { FakeClock } from "../support/fake-clock.js";
import { recordingLog } from "../support/service.js";
import { ask, refused } from "./support/asks.js";

const NOW = { queryKey: "", maxWaitMs: 0 };
const ASK = ask(NOW);

let directory = "";
let quotas: Quotas;
let clock = new FakeClock();

function open(time = new FakeClock()): Quotas {
  clock = time;
  const budget = { limit: 10, headroom: 2, windowMs: 60_000 };
  quotas = createQuotas({
    ...budget,
    coldStart: "assume-spent",
    notes: createRecords(directory, budget, clock),
    clock,
    log: recordingLog([]),
  });
  return quotas;
}

/** The number of calls that are allowed immediately. */
async function capacity(quota: Quota): Promise<number> {
  for (let calls = 0; ; calls += 1) {
    try {
      await quota.run(ASK, async () => calls);
    } catch {
      return calls;
    }
  }
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quotas-"));
});
afterEach(async () => {
  await quotas.close();
  rmSync(directory, { recursive: true, force: true });
});

test("a credential that has no record on startup has only the headroom", async () => {
  await open().openAll(["first"]);
  expect(await capacity(await quotas.of("first"))).toBe(2);
});

test("a credential that first appears at runtime, by rotation, has its whole budget", async () => {
  await open().openAll(["first"]);
  expect(await capacity(await quotas.of("second"))).toBe(8);
});

test("a call that can't be written down isn't made, and is refused", async () => {
  await open().openAll([]);
  const quota = await quotas.of("first");
  rmSync(directory, { recursive: true });
  let isMade = false;
  const call = async (): Promise<void> => {
    isMade = true;
  };
  await expect(quota.run(ASK, call)).rejects.toMatchObject({ code: "quota_exhausted" });
  expect(isMade).toBe(false);
});

test("background work leaves two fifths of the budget to visitors", async () => {
  await open().openAll([]);
  const quota = await quotas.of("first");
  let background = 0;
  for (; quota.backgroundRoomInMs() === 0; background += 1)
    await quota.run(ask({ ...NOW, lane: "refresh" }), async () => null);
  expect([background, await capacity(quota)]).toEqual([5, 3]);
});

const VISITOR = ask({ client: "visitor", queryKey: "kabul.af", maxWaitMs: 0 });

/** Spends the budget of the credential and reserves a call for the visitor; returns the wait. */
async function reserve(quota: Quota): Promise<number> {
  for (let calls = 0; calls < 8; calls += 1) await quota.run(ASK, async () => calls);
  await clock.advance(5_000);
  const { kept, retryAfterMs = 0 } = await refused(quota, VISITOR);
  expect(kept).toBe(true);
  return retryAfterMs;
}

async function expectClaim(quota: Quota): Promise<void> {
  await quota.run(VISITOR, async () => null);
  expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 1, honoured: 1, unclaimed: 0 });
}

test("a place that was given before the credential was replaced can be claimed after it", async () => {
  await open().openAll([]);
  const inMs = await reserve(await quotas.of("first"));
  const second = await quotas.of("second");
  for (let calls = 0; calls < 8; calls += 1) await second.run(ASK, async () => calls);
  expect(await refused(second, VISITOR)).toMatchObject({ kept: true, retryAfterMs: inMs });
  await clock.advance(inMs);
  const waiting = second.run({ ...VISITOR, maxWaitMs: 8_000 }, async () => "served");
  await clock.advance(8_000);
  expect(await waiting).toBe("served");
});

describe("a place that was given before an orderly restart", () => {
  const path = (): string => join(directory, "quota-first.ledger");

  /** Gives the visitor a place, and stops. */
  async function placed(): Promise<number> {
    await open().openAll([]);
    const inMs = await reserve(await quotas.of("first"));
    await quotas.close();
    return inMs;
  }

  async function restarted(): Promise<Quota> {
    await open(clock).openAll(["first"]);
    return quotas.of("first");
  }

  test("can be claimed once after it, and the file doesn't reveal its client", async () => {
    const inMs = await placed();
    const saved = readFileSync(path(), "utf8");
    expect(saved).toContain("dueInMs");
    expect(saved).not.toContain("visitor");
    const quota = await restarted();
    expect(readFileSync(path(), "utf8")).not.toContain("dueInMs");
    await clock.advance(inMs);
    await expectClaim(quota);
  });

  test("can be claimed although its client has used up its limit on new names", async () => {
    const inMs = await placed();
    const quota = await restarted();
    const isContested = (asker: string): boolean => quota.isContested(asker);
    const cold = createColdLimit({ perMinute: 1, isContested, clock });
    const others = Array.from({ length: 20 }, (_, n) => {
      return quota.run(ask({ client: `other ${n}`, maxWaitMs: 600_000 }), async () => null);
    });
    const ended = Promise.allSettled(others);
    await clock.advance(inMs - 2_000);
    cold.count("address");
    expect(cold.refusal("address", "visitor")).toMatchObject({ code: "rate_limited" });
    await clock.advance(2_000);
    expect(cold.refusal("address", "visitor")).toBeNull();
    await quotas.close();
    await ended;
  });
});
