/** Liveness, readiness and health are accurate and coarse, and cost no calls. */
import { expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { FakeClock } from "../support/fake-clock.js";
import { SMALL_SHOP } from "../support/retail.js";
import {
  bearer,
  callsOf,
  CHECK,
  inTime,
  type Service,
  type ServiceOptions,
  temporaryFolder,
  until,
  withService,
} from "../support/service.js";
import { healthCheck } from "../support/staff.js";
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

/** A small shop of which the calls at startup have ended. */
function withHealthyService(act: (service: Service, clock: FakeClock) => Promise<void>): Promise<void> {
  return withService({ retail: SMALL_SHOP }, async (service, clock) => {
    await until(() => service.calls() === 3);
    await act(service, clock);
  });
}

test("a healthy service says so to anyone, and where its data comes from, without a call and without counting the requests", () =>
  withHealthyService(async (service) => {
    const remaining = async (): Promise<number> => {
      const { headers } = await service.ask("/v1/quotes?tld=.af&action=renewal");
      return Number(/r=(\d+)/.exec(headers["ratelimit"] ?? "")?.[1]);
    };
    const before = await remaining();
    const live = await service.ask("/livez");
    expect([live.status, live.body]).toEqual([200, { status: "live" }]);
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([200, { status: "ready" }]);
    const health = await service.ask("/health");
    expect(health.status).toBe(200);
    expect(health.headers["content-type"]).toMatch(/^application\/health\+json/);
    expect(health.body).toEqual({ status: "pass", version: "1.2.3", description: SANDBOX, checks: ALL_PASS });
    for (const { headers } of [live, ready, health]) {
      expect(headers["cache-control"]).toBe("no-store");
      expect(headers).not.toHaveProperty("ratelimit");
    }
    expect(await remaining()).toBe(before - 1);
    expect(service.calls()).toBe(3);
  }));

test("health warns that the quota is spent, without a number; the metrics agree, and count the calls that arrived", async () => {
  const env = { UPSTREAM_RATE_LIMIT: "8", UPSTREAM_RATE_HEADROOM: "3" };
  await withService({ retail: SMALL_SHOP, env }, async (service) => {
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
    const { text } = await service.ask("/metrics", { headers: bearer("metrics") });
    const states = [...text.matchAll(/^health_check\{check="(\w+)"\} (\d)$/gm)];
    expect(Object.fromEntries(states.map(([, check = "", state]) => [check, state]))).toEqual(
      Object.fromEntries(Object.keys(ALL_PASS).map((check) => [check, check === "quota" ? "1" : "0"])),
    );
    const counts = [...text.matchAll(/^upstream_call_duration_seconds_count\{.*\} (\d+)$/gm)];
    expect(counts.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(service.calls());
  });
});

/** How soon a change must show. */
const TRUE_WITHIN_MS = 5_000;

test("health warns only while STATE_DIR can't be written, or after it was replaced", async () => {
  const folder = temporaryFolder();
  const state = join(folder.path, "state");
  const env: ServiceOptions["env"] = (sandbox) => ({
    STATE_DIR: state,
    ...upstreamAt(sandbox),
    QUOTA_COLD_START: "assume-free",
  });
  await withService({ retail: SMALL_SHOP, env }, async (service, clock) => {
    async function becomes(check: Readonly<Record<string, string>>): Promise<void> {
      await clock.advance(TRUE_WITHIN_MS);
      await until(
        async () => isDeepStrictEqual(await healthCheck(service, "quota"), check),
        JSON.stringify(check),
      );
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
  });
  folder.remove();
});

const upstreamCheck = (service: Service): Promise<unknown> => healthCheck(service, "upstream");

test.each([
  ["one operation that hangs", "check", "silence-before-head", 10],
  ["an upstream that has failed for ten minutes", "all", "status-503", 600],
] as const)("health warns of %s, and recovers within seconds even without visitors", (_what, of, fault, s) =>
  withHealthyService(async (service, clock) => {
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
  }),
);

test.each([
  ["one failed call", "status-500", 1, 0],
  ["a minute of rejected calls", "status-422", undefined, 60_000],
])("after %s, a few trial requests are enough to notice the recovery", (_what, fault, calls, forMs) =>
  withHealthyService(async (service, clock) => {
    const before = callsOf(service.sandbox, CHECK);
    service.sandbox.control.setFault("check", { fault, ...(calls && { calls }) });
    await service.ask("/v1/availability?domain=kabul.af");
    const warning = { status: "warn", output: "The last call failed." };
    expect(await upstreamCheck(service)).toEqual(warning);
    for (let passedMs = 0; passedMs < forMs; passedMs += 2_000) {
      await clock.advance(2_000);
      expect(await upstreamCheck(service)).toEqual(warning);
      // An operation that works doesn't hide the one that doesn't.
      if (passedMs === 30_000) await service.ask("/v1/staff/tier", { headers: bearer("read") });
    }
    expect(callsOf(service.sandbox, CHECK) - before).toBeLessThanOrEqual(7);
    service.sandbox.control.clearFaults();
    await clock.advance(forMs > 0 ? 15_000 : TRUE_WITHIN_MS);
    expect(await upstreamCheck(service)).toEqual({ status: "pass" });
  }),
);

test("a refused credential that is accepted again is noticed without a visitor: within 5 s if it was refused once, within 75 s if repeatedly", () =>
  withHealthyService(async (service, clock) => {
    for (const [forMs, withinMs] of [
      [0, TRUE_WITHIN_MS],
      [3 * 60_000, 75_000],
    ] as const) {
      service.sandbox.control.setApiAccess("demo", false);
      await service.ask(`/v1/availability?domain=refused-${forMs}.af`);
      await clock.advance(forMs);
      expect(await upstreamCheck(service)).toMatchObject({ status: "fail" });
      service.sandbox.control.setApiAccess("demo", true);
      await clock.advance(withinMs);
      expect(await upstreamCheck(service)).toEqual({ status: "pass" });
    }
  }));

test("health warns while visitors are refused for lack of quota, and passes 5 s after the last of them", () =>
  withService({ retail: SMALL_SHOP, env: { UPSTREAM_RATE_LIMIT: "60" } }, async (service, clock) => {
    const quota = (): Promise<unknown> => healthCheck(service, "quota");
    expect(await quota()).toEqual({ status: "pass" });
    const crowd = Array.from({ length: 100 }, (_, n) => service.ask(`/v1/availability?domain=new-${n}.af`));
    await until(async () => !isDeepStrictEqual(await quota(), { status: "pass" }), "the warning");
    await inTime(clock, Promise.all(crowd));
    await clock.advance(5000);
    expect(await quota()).toEqual({ status: "pass" });
  }));
