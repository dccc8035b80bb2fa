/** Each credential has its own budget, and replicas that share one never exceed it together. */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { createColdLimit } from "../../src/http/edge/cold-limit.js";
import { ofOneReplica } from "../../src/http/edge/shared-counts.js";
import type { Quota, QuotaRequest } from "../../src/quota/quota.js";
import { createQuotas, type Quotas } from "../../src/quota/quotas.js";
import { FakeClock, settle } from "../support/fake-clock.js";
import { recordingLog, until } from "../support/service.js";

const ASK: QuotaRequest = {
  lane: "exact",
  client: "a",
  queryKey: "",
  maxWaitMs: 0,
  signal: new AbortController().signal,
};

let directory = "";
let quotas: Quotas;
let clock = new FakeClock();

function open(replicasMax = 1, time = new FakeClock()): Quotas {
  clock = time;
  const budget = { limit: 10, headroom: 2, windowMs: 60_000 };
  quotas = createQuotas({
    ...budget,
    coldStart: "assume-spent",
    replicasMax,
    longestCallMs: 5000,
    home: { directory },
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
  rmSync(directory, { recursive: true });
});

test("a credential that has no record on startup has only the headroom", async () => {
  await open().openAll(["first"]);
  expect(await capacity(await quotas.of("first"))).toBe(2);
});

test("a credential that first appears at runtime, by rotation, has its whole budget", async () => {
  await open().openAll(["first"]);
  expect(await capacity(await quotas.of("second"))).toBe(8);
});

test("a credential that is used again still counts its earlier calls", async () => {
  await open().openAll(["first"]);
  expect(await capacity(await quotas.of("second"))).toBe(8);
  await quotas.of("third");
  expect(await capacity(await quotas.of("second"))).toBe(0);
});

test.each([1, 2, 3, 5, 8])(
  "%i replicas together stay within the budget, and within the limit after a cold start",
  async (replicas) => {
    await open(replicas).openAll(["first"]);
    const cold = await capacity(await quotas.of("first"));
    const free = await capacity(await quotas.of("second"));
    expect(replicas * free).toBeLessThanOrEqual(8);
    expect(free).toBeGreaterThan(0);
    expect(replicas * (cold + free)).toBeLessThanOrEqual(10);
  },
);

test("background work learns exactly when there is room for it", async () => {
  await open().openAll(["first"]);
  const quota = await quotas.of("first");
  const roomInMs = quota.roomInMs();
  expect(roomInMs).toBeGreaterThan(60_000);
  await clock.advance(roomInMs - 1);
  expect(quota.roomInMs()).toBe(1);
  await clock.advance(1);
  expect(quota.roomInMs()).toBe(0);
});

test("background work leaves two fifths of the budget to visitors", async () => {
  await open().openAll([]);
  const quota = await quotas.of("first");
  let background = 0;
  for (; quota.roomInMs() === 0; background += 1)
    await quota.run({ ...ASK, lane: "refresh" }, async () => null);
  expect([background, await capacity(quota)]).toEqual([5, 3]);
});

const VISITOR = { ...ASK, client: "visitor", queryKey: "kabul.af" };

/** Spends the budget of the credential and reserves a call for the visitor; returns the wait. */
async function reserve(quota: Quota): Promise<number> {
  for (let calls = 0; calls < 8; calls += 1) await quota.run(ASK, async () => calls);
  await clock.advance(5_000);
  const { kept, retryAfterMs = 0 } = quota.refusal(VISITOR) ?? {};
  expect(kept).toBe(true);
  return retryAfterMs;
}

async function expectClaim(quota: Quota): Promise<void> {
  await quota.run(VISITOR, async () => null);
  expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: 1, honoured: 1, unclaimed: 0 });
}

test("a call that was reserved before the credential was replaced can be claimed after it", async () => {
  await open().openAll([]);
  const inMs = await reserve(await quotas.of("first"));
  const second = await quotas.of("second");
  expect(second.refusal(VISITOR)).toBeNull();
  for (let calls = 0; calls < 8; calls += 1) await second.run(ASK, async () => calls);
  expect(second.refusal(VISITOR)).toMatchObject({ kept: true, retryAfterMs: inMs });
  await clock.advance(inMs);
  expect(quotas.opened("second")?.refusal(VISITOR)).toBeNull();
});

test("closes a quota that is still being opened, as for a new credential just before a stop", async () => {
  await open().openAll([]);
  const opening = quotas.of("first");
  await quotas.close();
  await expect((await opening).run(ASK, async () => 1)).rejects.toMatchObject({ code: "shutting_down" });
});

describe("a call that was reserved before a restart", () => {
  const path = (): string => join(directory, "reservations-first.json");
  const saved = (): string => (existsSync(path()) ? readFileSync(path(), "utf8") : "");

  /** Opens the quota with the files as they are now, as after kill -9, and lets the time pass. */
  async function afterKill(inMs = 0): Promise<Quota> {
    const killed = quotas;
    const left = directory;
    directory = mkdtempSync(join(tmpdir(), "quotas-"));
    for (const file of readdirSync(left))
      if (!file.endsWith(".lock")) cpSync(join(left, file), join(directory, file));
    const quota = await open(1, clock).of("first");
    await killed.close();
    rmSync(left, { recursive: true });
    await clock.advance(inMs);
    return quota;
  }

  /** Reserves a call for the visitor, and stops. */
  async function reserved(): Promise<number> {
    await open().openAll([]);
    const inMs = await reserve(await quotas.of("first"));
    await quotas.close();
    return inMs;
  }

  /** Reserves a call for the visitor, who waits for it when it is due, because the upstream has asked for a pause of a second. */
  async function claimed() {
    await open().openAll([]);
    const before = await quotas.of("first");
    await clock.advance(await reserve(before));
    await before.pause(1_000);
    const waiting = before.run({ ...VISITOR, maxWaitMs: 8_000 }, async () => null);
    waiting.catch(() => undefined);
    await settle();
    expect(before.snapshot().waits.reservations).toMatchObject({ claimed: 1, honoured: 0 });
    return { before, waiting };
  }

  test("can be claimed once after it, and the file doesn't reveal its client", async () => {
    const inMs = await reserved();
    expect(saved()).toContain("dueAtMs");
    expect(saved()).not.toContain("visitor");
    const quota = await open(1, clock).of("first");
    await clock.advance(inMs);
    await expectClaim(quota);
    await quotas.close();
    expect(saved()).not.toContain("dueAtMs");
  });

  test("can be claimed after it if the process was killed, once the reservation is a quarter of a second old", async () => {
    await open().openAll([]);
    const inMs = await reserve(await quotas.of("first"));
    await clock.advance(250);
    await until(() => saved().includes("dueAtMs"), "the reservation is saved");
    const quota = await afterKill();
    await clock.advance(inMs - 250);
    await expectClaim(quota);
  });

  test.each([
    ["forward", 3_600_000],
    ["back", -3_600_000],
  ])(
    "can be claimed after it if the wall clock had been set %s while the process ran",
    async (_way, byMs) => {
      await open().openAll([]);
      const before = await quotas.of("first");
      clock.stepWall(byMs);
      const inMs = await reserve(before);
      await quotas.close();
      const quota = await open(1, clock).of("first");
      await clock.advance(inMs);
      await expectClaim(quota);
    },
  );

  test("can be claimed after it although its client has used up its limit on new names", async () => {
    const inMs = await reserved();
    const quota = await open(1, clock).of("first");
    const isContested = (asker: string): boolean => quota.isContested(asker);
    const cold = createColdLimit({ perMinute: 1, isContested, clock, share: ofOneReplica });
    const others = Array.from({ length: 20 }, (_, n) => {
      const { signal } = new AbortController();
      return quota.run({ ...ASK, client: `other ${n}`, maxWaitMs: 600_000, signal }, async () => null);
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

  test("can be claimed after several kills in a row", async () => {
    const inMs = await reserved();
    await open(1, clock).of("first");
    await afterKill();
    await expectClaim(await afterKill(inMs));
  });

  test("that has been claimed can't be claimed again after a kill", async () => {
    const inMs = await reserved();
    const quota = await open(1, clock).of("first");
    await clock.advance(inMs);
    await expectClaim(quota);
    await clock.advance(250);
    await until(() => !saved().includes("dueAtMs"), "the claim is saved");
    const next = await afterKill();
    await next.run(VISITOR, async () => null);
    expect(next.snapshot().waits.reservations.honoured).toBe(0);
  });

  test("can be claimed again after it if its holder was already waiting for it", async () => {
    const { waiting } = await claimed();
    await quotas.close();
    await expect(waiting).rejects.toMatchObject({ code: "shutting_down", retryAfterMs: 1000 });
    const quota = await open(1, clock).of("first");
    await clock.advance(1000);
    await expectClaim(quota);
  });

  test.each([
    ["can be claimed soon after it if its second has passed meanwhile", 30_000, 1],
    ["has ended if its second passed more than a minute before it", 61_000, 0],
  ])("%s", async (_what, lateMs, honoured) => {
    const inMs = await reserved();
    await clock.advance(inMs + lateMs);
    const quota = await open(1, clock).of("first");
    await clock.advance(1000);
    await quota.run(VISITOR, async () => null);
    expect(quota.snapshot().waits.reservations).toMatchObject({ claimed: honoured, honoured });
  });

  test("can be claimed after a kill if its holder was already waiting for it", async () => {
    const { before } = await claimed();
    const other = { ...VISITOR, client: "another visitor" };
    expect(before.refusal(other)).toMatchObject({ kept: true });
    await clock.advance(250);
    await until(() => saved().split("dueAtMs").length === 3, "both reservations are saved");
    const quota = await afterKill(1_000);
    await expectClaim(quota);
  });

  test("can be claimed after it if its call was being made, and the upstream asked for a pause instead", async () => {
    await open().openAll([]);
    const before = await quotas.of("first");
    await clock.advance(await reserve(before));
    const inFlight = before.run(VISITOR, async (permit) => {
      await new Promise<void>((done) => clock.after(1_000, done));
      permit.answered();
      await before.pause(30_000);
      throw permit.refusal();
    });
    inFlight.catch(() => undefined);
    await settle();
    const stopped = quotas.close();
    await clock.advance(1_000);
    await expect(inFlight).rejects.toMatchObject({ kept: true, retryAfterMs: 30_000 });
    await stopped;
    const quota = await open(1, clock).of("first");
    await clock.advance(30_000);
    await expectClaim(quota);
  });

  test("can be claimed after it if the upstream has asked for a pause of five minutes", async () => {
    await open().openAll([]);
    const before = await quotas.of("first");
    await before.pause(300_000);
    const refusal = before.refusal(VISITOR);
    expect(refusal).toMatchObject({ kept: true, retryAfterMs: 300_000 });
    await quotas.close();
    const quota = await open(1, clock).of("first");
    await clock.advance(300_000);
    await expectClaim(quota);
  });

  test("can be claimed after several", async () => {
    const inMs = await reserved();
    for (let times = 0; times < 3; times += 1) {
      await open(1, clock).of("first");
      await quotas.close();
    }
    const quota = await open(1, clock).of("first");
    await clock.advance(inMs);
    await expectClaim(quota);
  });

  test.each([
    ["isn't JSON", () => "{"],
    ["has another format", () => '[{"key":"a"}]'],
    [
      "was written by a clock that was ahead",
      (text: string) => text.replaceAll(/"dueAtMs":\d+/g, `"dueAtMs":${clock.now() + 86_400_000}`),
    ],
  ])("is forgotten if its file %s", async (_what, changed) => {
    const inMs = await reserved();
    writeFileSync(path(), changed(saved()));
    const quota = await open(1, clock).of("first");
    await clock.advance(inMs);
    await quota.run(VISITOR, async () => null);
    expect(quota.snapshot().waits.reservations.honoured).toBe(0);
  });
});
