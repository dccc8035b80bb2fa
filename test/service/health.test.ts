/** Liveness, readiness and health are accurate and coarse, and cost no calls. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import {
  bearer,
  callsOf,
  CHECK,
  inTime,
  problemOf,
  type Service,
  startService,
  temporaryFolder,
  until,
} from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";

const SANDBOX = "Embedded sandbox: no real registry data.";
const ALL_PASS = {
  upstream: [{ status: "pass" }],
  quota: [{ status: "pass" }],
  redis: [{ status: "pass", output: "Not configured." }],
  prices: [{ status: "pass" }],
  owner: [{ status: "pass", output: "Without replicas." }],
  proxy: [{ status: "pass" }],
};

describe("a healthy service", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
  });
  afterAll(() => service.close());

  test("says so to anyone, and where its data comes from, without a call", async () => {
    await until(() => service.calls() === 29);
    const live = await service.ask("/livez");
    expect([live.status, live.body]).toEqual([200, { status: "live" }]);
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([200, { status: "ready" }]);
    const health = await service.ask("/health");
    expect(health.status).toBe(200);
    expect(health.headers["content-type"]).toMatch(/^application\/health\+json/);
    expect(health.body).toEqual({ status: "pass", version: "1.2.3", description: SANDBOX, checks: ALL_PASS });
    for (const { headers } of [live, ready, health]) expect(headers["cache-control"]).toBe("no-store");
    expect(service.calls()).toBe(29);
  });

  test("doesn't count health requests against the client's limit", async () => {
    const remaining = async (): Promise<number> => {
      const { headers } = await service.ask("/v1/quotes?tld=.af&action=renewal");
      return Number(/r=(\d+)/.exec(headers["ratelimit"] ?? "")?.[1]);
    };
    const before = await remaining();
    for (const path of ["/livez", "/readyz", "/health"])
      expect((await service.ask(path)).headers).not.toHaveProperty("ratelimit");
    expect(await remaining()).toBe(before - 1);
  });
});

test("health warns while no price is known, and /v1/prices says when to retry", async () => {
  const clock = new FakeClock();
  const service = await startService({
    clock,
    // The calls of the last window are unknown, so the price list has to wait for its end.
    env: (sandbox) => ({ ...upstreamAt(sandbox), QUOTA_COLD_START: "assume-spent" }),
    warm: false,
  });
  try {
    await clock.advance(20_000);
    const { code, retryAfter = 0 } = problemOf(await service.ask("/v1/prices"));
    expect([code, retryAfter]).toEqual(["quota_exhausted", 56]);
    const { status, body } = await service.ask("/health");
    expect([status, body]).toEqual([
      200,
      {
        status: "warn",
        version: "1.2.3",
        description: "Live upstream.",
        checks: { ...ALL_PASS, prices: [{ status: "warn", output: "No prices are known yet." }] },
      },
    ]);
    await clock.advance(retryAfter * 1000);
    await until(async () => (await service.ask("/v1/prices")).status === 200, "the first prices");
  } finally {
    await service.close();
  }
});

test("health fails while every credential is refused, and /v1/prices says when one is tried again", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock, reseller: "locked", warm: false });
  try {
    await until(() => service.log.some((line) => line.includes("upstream.credential.refused")));
    const { code, retryAfter = 0 } = problemOf(await service.ask("/v1/prices"));
    expect([code, retryAfter]).toEqual(["upstream_failed", 5]);
    const health = await service.ask("/health");
    expect(health.status).toBe(503);
    expect(health.body).toMatchObject({
      status: "fail",
      checks: {
        upstream: [{ status: "fail", output: "Every credential is refused." }],
        prices: [{ status: "warn", output: "No prices are known yet." }],
      },
    });
    expect((await service.ask("/livez")).status).toBe(200);
    service.sandbox.control.setApiAccess("locked", true);
    await clock.advance(retryAfter * 1000);
    await until(() => service.calls() === 1, "the next call");
  } finally {
    await service.close();
  }
});

test("health warns that the quota is spent, without a number", async () => {
  const retail = `
currency: USD
catalog: [{ tld: .af, years: { registration: [1] } }]
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;
  const env = { UPSTREAM_RATE_LIMIT: "7", UPSTREAM_RATE_HEADROOM: "3" };
  const service = await startService({ clock: new FakeClock(), retail, env });
  try {
    await service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/v1/availability?domain=google.af");
    const { status, body } = await service.ask("/health");
    expect([status, body]).toEqual([
      200,
      {
        status: "warn",
        version: "1.2.3",
        description: SANDBOX,
        checks: { ...ALL_PASS, quota: [{ status: "warn", output: "No call can be made at the moment." }] },
      },
    ]);
  } finally {
    await service.close();
  }
});

/** How soon a change must show. */
const TRUE_WITHIN_MS = 5_000;

test("health warns only while STATE_DIR can't be written, or after it was replaced", async () => {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const state = join(folder.path, "state");
  const service = await startService({
    clock,
    env: (sandbox) => {
      return {
        STATE_DIR: state,
        ...upstreamAt(sandbox),
        QUOTA_COLD_START: "assume-free",
      };
    },
  });
  try {
    async function becomes(check: Readonly<Record<string, string>>): Promise<void> {
      await clock.advance(TRUE_WITHIN_MS);
      await until(async () => {
        const { body } = await service.ask("/health");
        const { checks } = z.object({ checks: z.object({ quota: z.array(z.unknown()) }) }).parse(body);
        return isDeepStrictEqual(checks.quota[0], check);
      }, JSON.stringify(check));
    }
    await becomes({ status: "pass" });
    renameSync(state, `${state}.away`);
    await becomes({ status: "warn", output: "STATE_DIR can't be written." });
    renameSync(`${state}.away`, state);
    await becomes({ status: "pass" });

    // Writing to a pipe without a reader takes for ever. Nobody waits for a slow disk in the meantime.
    const pipe = join(state, ".writable.new");
    // A check may be about to rename its file.
    await until(() => spawnSync("mkfifo", [pipe]).status === 0, "the pipe");
    await becomes({ status: "pass" });
    const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
    await until(() => !existsSync(pipe), "the end of the check");
    closeSync(reader);

    rmSync(state, { recursive: true });
    // Otherwise, the new folder could get the inode number of the old one.
    mkdirSync(`${state}.other`);
    mkdirSync(state);
    await becomes({ status: "warn", output: "STATE_DIR was replaced; restart the service." });
  } finally {
    await service.close();
    folder.remove();
  }
});

const upstreamCheck = async (service: Service): Promise<unknown> => {
  const { body } = await service.ask("/health");
  return z.object({ checks: z.object({ upstream: z.tuple([z.unknown()]) }) }).parse(body).checks.upstream[0];
};

test.each([
  ["one operation that fails", "check", "status-500", 10],
  ["one operation that hangs", "check", "silence-before-head", 10],
  ["an upstream that fails", "all", "status-503", 10],
  ["an upstream that hangs", "all", "silence-before-head", 10],
  ["an upstream that has failed for ten minutes", "all", "status-503", 600],
] as const)(
  "health warns of %s, and recovers within seconds even without visitors",
  async (_what, of, fault, s) => {
    const clock = new FakeClock();
    const service = await startService({ clock });
    try {
      await until(() => service.calls() === 29);
      service.sandbox.control.setFault(of, { fault });
      await inTime(
        clock,
        Promise.all(Array.from({ length: 6 }, (_, n) => service.ask(`/v1/availability?domain=free${n}.af`))),
      );
      const warning = { status: "warn", output: "Calls keep failing; only trial requests are made." };
      expect(await upstreamCheck(service)).toEqual(warning);
      await clock.advance(s * 1000);
      expect(await upstreamCheck(service)).toEqual(warning);
      const before = callsOf(service.sandbox);
      service.sandbox.control.clearFaults();
      // In a long outage, trial requests are 12 s apart.
      await clock.advance(s > 30 ? 15_000 : TRUE_WITHIN_MS);
      expect(await upstreamCheck(service)).toEqual({ status: "pass" });
      expect(callsOf(service.sandbox) - before).toBeLessThanOrEqual(8);
    } finally {
      await service.close();
    }
  },
);

test("after one failed call, health warns only until a trial request succeeds", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  try {
    await until(() => service.calls() === 29);
    service.sandbox.control.setFault("check", { fault: "status-500" });
    await service.ask("/v1/availability?domain=kabul.af");
    service.sandbox.control.clearFaults();
    expect(await upstreamCheck(service)).toEqual({ status: "warn", output: "The last call failed." });
    await clock.advance(TRUE_WITHIN_MS);
    expect(await upstreamCheck(service)).toEqual({ status: "pass" });
  } finally {
    await service.close();
  }
});

test.each([
  ["one rejected call", 1, 0],
  ["a minute of rejected calls", undefined, 60_000],
])("after %s, a few trial requests are enough to notice the recovery", async (_what, calls, forMs) => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  try {
    await until(() => service.calls() === 29);
    const before = callsOf(service.sandbox, CHECK);
    service.sandbox.control.setFault("check", { fault: "status-422", ...(calls && { calls }) });
    await service.ask("/v1/availability?domain=kabul.af");
    const warning = { status: "warn", output: "The last call failed." };
    expect(await upstreamCheck(service)).toEqual(warning);
    for (let passedMs = 0; passedMs < forMs; passedMs += 500) {
      await clock.advance(500);
      expect(await upstreamCheck(service)).toEqual(warning);
      // An operation that works doesn't hide the one that doesn't.
      if (passedMs === 30_000) await service.ask("/v1/staff/tier", { headers: bearer("read") });
    }
    expect(callsOf(service.sandbox, CHECK) - before).toBeLessThanOrEqual(7);
    service.sandbox.control.clearFaults();
    await clock.advance(forMs > 0 ? 15_000 : TRUE_WITHIN_MS);
    expect(await upstreamCheck(service)).toEqual({ status: "pass" });
  } finally {
    await service.close();
  }
});

test.each([
  ["within 5 s if it was refused once", 0, TRUE_WITHIN_MS],
  ["within 75 s if it was refused repeatedly", 3 * 60_000, 75_000],
])(
  "a refused credential that is accepted again is noticed without a visitor, %s",
  async (_when, forMs, withinMs) => {
    const clock = new FakeClock();
    const service = await startService({ clock });
    try {
      await until(() => service.calls() === 29);
      service.sandbox.control.setApiAccess("demo", false);
      await service.ask("/v1/availability?domain=kabul.af");
      await clock.advance(forMs);
      expect(await upstreamCheck(service)).toMatchObject({ status: "fail" });
      service.sandbox.control.setApiAccess("demo", true);
      await clock.advance(withinMs);
      expect(await upstreamCheck(service)).toEqual({ status: "pass" });
    } finally {
      await service.close();
    }
  },
);

test("health warns while visitors are refused for lack of quota, and passes 5 s after the last of them", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock, env: { UPSTREAM_RATE_LIMIT: "60" }, warm: false });
  const quota = async (): Promise<unknown> => {
    const { body } = await service.ask("/health");
    return z.object({ checks: z.object({ quota: z.tuple([z.object({ status: z.string() })]) }) }).parse(body)
      .checks.quota[0].status;
  };
  try {
    expect(await quota()).toBe("pass");
    const crowd = Array.from({ length: 100 }, (_, n) => service.ask(`/v1/availability?domain=new-${n}.af`));
    await until(async () => (await quota()) === "warn", "the warning");
    await inTime(clock, Promise.all(crowd));
    await clock.advance(5000);
    expect(await quota()).toBe("pass");
  } finally {
    await service.close();
  }
});

test("a service that is asked to stop isn't ready but still serves, then rejects new requests, and says with every answer that its connection ends", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  const { control } = service.sandbox;
  try {
    const held = control.hold({ operation: "check", calls: 1, decided: "on-arrival" });
    const inFlight = service.ask("/v1/availability?domain=kabul.af");
    await until(() => held.answers().length > 0, "the call");
    service.drain();
    const live = await service.ask("/livez");
    expect([live.status, live.headers["connection"]]).toEqual([200, "close"]);
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([503, { status: "draining" }]);
    for (const [path, question] of [
      ["/v1/prices", {}],
      ["/v1/prices", {}],
      ["/staff", {}],
      ["/v1/quotes", { method: "POST", body: { items: [{ domain: "herat.af", action: "renewal" }] } }],
    ] as const) {
      const served = await service.ask(path, question);
      expect([path, served.status, served.headers["connection"]]).toEqual([path, 200, "close"]);
    }
    service.stop();
    expect((await service.ask("/readyz")).status).toBe(503);
    const refused = await service.ask("/v1/prices");
    expect(problemOf(refused)).toMatchObject({ code: "shutting_down", retryAfter: 1 });
    expect(refused.headers["connection"]).toBe("close");
    held.release();
    const answered = await inTime(clock, inFlight);
    expect([answered.status, answered.headers["connection"]]).toEqual([200, "close"]);
  } finally {
    await service.close();
  }
});
