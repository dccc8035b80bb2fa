/** When an operation keeps failing or a credential is refused, few calls are made, and withdrawn calls spend nothing. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { ServiceError } from "../../src/errors.js";
import { Line, type Quota } from "../../src/quota/line.js";
import type { Lane } from "../../src/quota/lane.js";
import type { Ask } from "../../src/quota/quota.js";
import { SlotTable } from "../../src/quota/slot-table.js";
import { Tickets } from "../../src/quota/tickets.js";
import type { Upstream } from "../../src/upstream/operations.js";
import { FakeClock } from "../support/fake-clock.js";
import { until } from "../support/service.js";
import {
  ask,
  AVAILABLE,
  type Bench,
  type BenchSettings,
  createBench,
  KABUL,
  refusalOf,
} from "./support/bench.js";
import { answer, json, type Play, startStub, type Stub, success } from "./support/stub.js";

/** Few enough that calls aren't spread over the window. */
const LIMIT = 19;
const REFUSED = answer(401, "");
const BROKEN = answer(500, "");

let stub: Stub;
let clock: FakeClock;
/** Of the active credential. */
let quota: Quota;

beforeAll(async () => {
  stub = await startStub(success(AVAILABLE));
});

beforeEach(() => {
  stub.forget();
  clock = new FakeClock();
  quota = openQuota();
});

afterAll(() => stub.close());

function openQuota(): Quota {
  const table = new SlotTable({ limit: LIMIT, headroom: 0, windowMs: 60_000, clock });
  return new Line({ table, clock, onFault: () => {}, tickets: new Tickets(), mayCall: () => true });
}

function bench(settings: Partial<BenchSettings> = {}): Bench {
  return createBench({ baseUrl: stub.url, clock, quotaOf: () => quota, ...settings });
}

async function check(upstream: Upstream, lane: Lane = "exact", client = "a"): Promise<unknown> {
  const waitUntilAt = lane === "refresh" ? Infinity : clock.monotonic() + 8000;
  const asked: Ask = { ...ask(), lane, client, waitUntilAt };
  return (await upstream.check(asked, KABUL, 1)).value;
}

function quote(upstream: Upstream): Promise<unknown> {
  return upstream.quote(ask(), { tld: ".af", action: "renewal", years: 1 });
}

/** Holds requests until `release` is called. */
function held(play: Play): { readonly play: Play; release(): void } {
  const open: (() => void)[] = [];
  return {
    play: (socket, seen) => {
      open.push(() => {
        play(socket, seen);
      });
    },
    release() {
      for (const one of open.splice(0)) one();
    },
  };
}

const used = (): number => quota.snapshot().used;

async function fail(upstream: Upstream, times = 5): Promise<void> {
  stub.next(...Array.from({ length: times }, () => BROKEN));
  for (let n = 0; n < times; n += 1) expect((await refusalOf(check(upstream))).code).toBe("upstream_failed");
}

describe("an operation that fails", () => {
  test("gets one trial request, and is called again as soon as that succeeds", async () => {
    const { upstream } = bench();
    await fail(upstream);
    await clock.advance(30_000);
    const trial = held(success(AVAILABLE));
    stub.next(trial.play);
    const first = check(upstream);
    await until(() => stub.seen.length === 6);
    const others = await Promise.all(Array.from({ length: 20 }, () => refusalOf(check(upstream))));
    expect(new Set(others.map(({ code }) => code))).toEqual(new Set(["upstream_failed"]));
    trial.release();
    await expect(first).resolves.toMatchObject({ status: "available" });
    await expect(check(upstream)).resolves.toMatchObject({ status: "available" });
    expect(stub.seen).toHaveLength(7);
    expect(upstream.health().openCircuits).toEqual([]);
  });

  test("withdraws the calls that wait for the quota, so they fail immediately and spend nothing", async () => {
    const { upstream } = bench();
    await check(upstream);
    const failing = held(BROKEN);
    stub.next(...Array.from({ length: LIMIT - 1 }, () => failing.play));
    const calls = Array.from({ length: LIMIT + 9 }, (_, n) =>
      refusalOf(check(upstream, n < LIMIT - 1 ? "exact" : "refresh", `client ${n}`)),
    );
    await until(() => stub.seen.length === LIMIT);
    failing.release();
    // The clock stands still, so a call that still waited for a slot would wait forever.
    const codes = new Set((await Promise.all(calls)).map(({ code }) => code));
    expect(codes).toEqual(new Set(["upstream_failed"]));
    expect([stub.seen.length, used()]).toEqual([LIMIT, LIMIT]);
  });

  test("whose trial request fails isn't called for as long again, and says why it failed last", async () => {
    const { upstream } = bench();
    await fail(upstream);
    await clock.advance(30_000);
    stub.next(success({}));
    expect((await refusalOf(check(upstream))).code).toBe("upstream_contract");
    await clock.advance(26_000);
    expect((await refusalOf(check(upstream))).code).toBe("upstream_contract");
    expect(stub.seen).toHaveLength(6);
    await clock.advance(4_000);
    await expect(check(upstream)).resolves.toMatchObject({ status: "available" });
  });

  test("makes one failure of another operation enough, until it works again", async () => {
    const { upstream } = bench();
    await fail(upstream);
    stub.next(BROKEN);
    expect((await refusalOf(quote(upstream))).code).toBe("upstream_failed");
    expect(upstream.health().openCircuits).toEqual(["check", "quote"]);
    await clock.advance(30_000);
    stub.next(success(AVAILABLE), success({ amount: "1.00", currency: "USD" }), BROKEN);
    await check(upstream);
    await quote(upstream);
    await refusalOf(quote(upstream));
    expect(upstream.health().openCircuits).toEqual([]);
  });

  test.each<[string, boolean, Play]>([
    ["an answer that violates the contract", true, success({ ...AVAILABLE, available: "yes" })],
    ["a 503", true, answer(503, "")],
    ["a reset", true, (socket) => socket.resetAndDestroy()],
    ["a 400", false, json({ success: false, error: { code: "invalid_domain" } }, 400)],
    ["a 200 with an error", false, json({ success: false, error: { code: "invalid_domain" } })],
  ])("counts %s towards opening the circuit: %s", async (_what, counts, play) => {
    const { upstream } = bench();
    stub.next(...Array.from({ length: 10 }, () => play));
    for (let n = 0; n < 10; n += 1)
      expect((await refusalOf(check(upstream))).code).toMatch(/^upstream_(failed|contract)$/);
    expect(stub.seen).toHaveLength(counts ? 5 : 10);
  });

  test.each<[string, Play, string]>([
    ["a rate limit", answer(429, "", { "Retry-After": "1" }), "quota_exhausted"],
    ["a refused credential", REFUSED, "upstream_failed"],
    ["a domain that isn't managed", answer(404, ""), "not managed"],
  ])("doesn't count %s as a failure", async (_what, play, outcome) => {
    const { upstream } = bench();
    stub.next(BROKEN, BROKEN, BROKEN, BROKEN, play);
    const outcomes: string[] = [];
    for (let n = 0; n < 5; n += 1)
      outcomes.push(
        await upstream.domain(ask(), KABUL).then(
          ({ value }) => (value === null ? "not managed" : value.domain),
          (error: unknown) => (error instanceof ServiceError ? error.code : "internal"),
        ),
      );
    expect(outcomes).toEqual([...Array<string>(4).fill("upstream_failed"), outcome]);
    expect([stub.seen.length, upstream.health().openCircuits]).toEqual([5, []]);
  });
});

describe("an unverified credential", () => {
  test("is tried with one call, so a refused burst counts as one refusal", async () => {
    const { upstream, lines, credentials } = bench();
    const refusal = held(REFUSED);
    stub.next(...Array.from({ length: 100 }, () => refusal.play));
    const burst = Array.from({ length: 15 }, () => refusalOf(check(upstream)));
    await until(() => stub.seen.length === 1);
    refusal.release();
    for (const { code } of await Promise.all(burst)) expect(code).toBe("upstream_failed");
    expect([stub.seen.length, used()]).toEqual([1, 1]);
    expect(lines.filter((line) => line.includes("credential.refused"))).toHaveLength(1);
    expect(credentials.states()).toMatchObject([{ refused: true }]);
  });

  test("makes other calls wait no longer than one call may take", async () => {
    const { upstream } = bench({ timeoutMs: 5000 });
    stub.next(() => {});
    const burst = Promise.all(Array.from({ length: 10 }, () => refusalOf(check(upstream))));
    await until(() => stub.seen.length === 1);
    await clock.advance(5000);
    for (const { code } of await burst) expect(code).toBe("upstream_timeout");
    expect(stub.seen).toHaveLength(1);
    await expect(check(upstream)).resolves.toMatchObject({ status: "available" });
  });
});

describe("the log", () => {
  test("has one line when a credential is accepted for the first time, and one when it is accepted again after a refusal", async () => {
    const { upstream, lines } = bench();
    const standings = (): string[] =>
      lines.flatMap((line) => /"upstream\.credential\.(\w+)"/.exec(line)?.[1] ?? []);
    for (let n = 0; n < 3; n += 1) await check(upstream);
    expect(standings()).toEqual(["accepted"]);
    stub.next(REFUSED);
    await refusalOf(check(upstream));
    await clock.advance(6_000);
    for (let n = 0; n < 3; n += 1) await check(upstream);
    expect(standings()).toEqual(["accepted", "refused", "accepted"]);
  });
});

describe("a revoked credential", () => {
  test("leaves a visitor only the rest of the maximum wait", async () => {
    const maxWaitsMs: number[] = [];
    const limited = new ServiceError("quota_exhausted", "The upstream has asked for a pause.");
    const { upstream } = bench({
      standby: true,
      quotaOf: () => ({
        pause: () => {},
        withdrawUseless: () => {},
        run(asked, call) {
          maxWaitsMs.push(asked.maxWaitMs);
          return call({ isValid: () => true, answered: () => {}, refusal: () => limited });
        },
      }),
    });
    const refusal = held(REFUSED);
    stub.next(refusal.play);
    const call = check(upstream);
    await until(() => stub.seen.length === 1);
    await clock.advance(3000);
    refusal.release();
    await call;
    expect(maxWaitsMs).toEqual([8000, 5000]);
    // The next call for the same request gets only the time that is left.
    const asked: Ask = { ...ask(), waitUntilAt: clock.monotonic() + 8000 };
    await upstream.check(asked, KABUL, 1);
    await clock.advance(6000);
    await upstream.quote(asked, { tld: ".af", action: "renewal", years: 1 });
    expect(maxWaitsMs.slice(2)).toEqual([8000, 2000]);
  });
});
