/** Liveness, readiness and health: true, coarse, and free. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
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
const CALM = {
  upstream: [{ status: "pass" }],
  quota: [{ status: "pass" }],
  redis: [{ status: "pass", output: "Not configured." }],
  prices: [{ status: "pass" }],
};

describe("a service that is well", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
  });
  afterAll(() => service.close());

  test("says so to anyone, and what it answers from, without a call", async () => {
    await until(() => service.calls() === 29);
    const live = await service.ask("/livez");
    expect([live.status, live.body]).toEqual([200, { status: "live" }]);
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([200, { status: "ready" }]);
    const health = await service.ask("/health");
    expect(health.status).toBe(200);
    expect(health.headers["content-type"]).toMatch(/^application\/health\+json/);
    expect(health.body).toEqual({ status: "pass", version: "1.2.3", description: SANDBOX, checks: CALM });
    for (const { headers } of [live, ready, health]) expect(headers["cache-control"]).toBe("no-store");
    expect(service.calls()).toBe(29);
  });

  test("is not counted against a client's requests", async () => {
    const { headers } = await service.ask("/health");
    expect(headers).not.toHaveProperty("ratelimit");
  });
});

test("without a price yet, it warns and /v1/prices says when to come again", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock, reseller: "locked", warm: false });
  try {
    const problem = problemOf(await service.ask("/v1/prices"));
    expect(problem.code).toBe("quota_exhausted");
    await until(() => service.log.some((line) => line.includes("upstream.credential.refused")));
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
  } finally {
    await service.close();
  }
});

test("with its quota spent, it warns without a number", async () => {
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
        checks: { ...CALM, quota: [{ status: "warn", output: "No call can be made at the moment." }] },
      },
    ]);
  } finally {
    await service.close();
  }
});

/** How soon a change has to show. */
const TRUE_WITHIN_MS = 5_000;

test("while STATE_DIR can't be written it warns, and no longer", async () => {
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
    const quota = async () => {
      await clock.advance(TRUE_WITHIN_MS);
      const { body } = await service.ask("/health");
      return z.object({ checks: z.object({ quota: z.array(z.unknown()) }) }).parse(body).checks.quota[0];
    };
    expect(await quota()).toEqual({ status: "pass" });
    renameSync(state, `${state}.away`);
    expect(await quota()).toEqual({ status: "warn", output: "STATE_DIR can't be written." });
    renameSync(`${state}.away`, state);
    expect(await quota()).toEqual({ status: "pass" });
    rmSync(state, { recursive: true });
    // So that the new folder isn't given the number of the old one.
    mkdirSync(`${state}.other`);
    mkdirSync(state);
    expect(await quota()).toEqual({ status: "warn", output: "STATE_DIR was replaced; restart the service." });
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
  "warns of %s, and recovers within seconds although nobody asks anything",
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
      // When an outage lasts, trial requests are 12 s apart.
      await clock.advance(s > 30 ? 15_000 : TRUE_WITHIN_MS);
      expect(await upstreamCheck(service)).toEqual({ status: "pass" });
      expect(callsOf(service.sandbox) - before).toBeLessThanOrEqual(6);
    } finally {
      await service.close();
    }
  },
);

test("one call that failed is made up for by a trial request, so that it doesn't warn for long", async () => {
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
  ["one call that was rejected", 1, 0],
  ["calls that were rejected for a minute", undefined, 60_000],
])("%s: trial requests show when it is over, and few of them meanwhile", async (_what, calls, forMs) => {
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
      // Others that work don't hide the one that doesn't.
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
  ["within 75 s after that", 3 * 60_000, 75_000],
])(
  "a refused credential that is good again is found out without a visitor, %s",
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

test("while people are refused for want of quota it warns, and no more 5 s after the last of them", async () => {
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

test("while it drains, it lives, is not ready, and refuses what is new", async () => {
  const service = await startService({ clock: new FakeClock() });
  try {
    service.drain();
    expect((await service.ask("/livez")).status).toBe(200);
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([503, { status: "draining" }]);
    const refused = await service.ask("/v1/prices");
    expect(problemOf(refused)).toMatchObject({ code: "shutting_down", retryAfter: 1 });
    expect(refused.headers["connection"]).toBe("close");
  } finally {
    await service.close();
  }
});
