/** Each alarm of the staff page is raised by its real condition at the sandbox, says what to do, and is gone after it. */
import { expect, test } from "@jest/globals";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { figuresOf, countsOf } from "../../src/http/figures.js";
import { overviewShape } from "../../src/wire/staff.js";
import type { Alarm } from "../../src/pages/operator/alarm.js";
import { overviewAlarms } from "../../src/pages/operator/overview-alarms.js";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, inTime, type Service, startService, temporaryFolder, until } from "../support/service.js";

const RETAIL = readFileSync(new URL("../../config/retail.yaml", import.meta.url), "utf8");

interface Scene {
  readonly service: Service;
  readonly clock: FakeClock;
  /** The file that the service reads as RETAIL_CONFIG. */
  readonly file: string;
}

interface Condition {
  readonly env?: Readonly<Record<string, string>>;
  readonly cause: (scene: Scene) => Promise<void>;
  readonly cure: (scene: Scene) => Promise<void>;
}

async function alarmsOf({ service }: Scene): Promise<readonly Alarm[]> {
  const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
  const overview = overviewShape.parse(body);
  return overviewAlarms(overview, figuresOf(countsOf(overview, overview)));
}

let asked = 0;
/** Visitors, at the same time, who want names that nobody knows. */
async function crowd({ service, clock }: Scene, visitors: number): Promise<void> {
  const names = Array.from({ length: visitors }, () => `crowd-${(asked += 1)}.af`);
  await inTime(clock, Promise.all(names.map((name) => service.ask(`/v1/availability?domain=${name}`))));
}

const CART = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
const DEAR = { tld: ".af", action: "registration", years: 1, amountCents: 9000 } as const;

const CONDITIONS: readonly (readonly [RegExp, Condition])[] = [
  [
    /^Visitors were asked to come back later/,
    {
      env: { UPSTREAM_RATE_LIMIT: "60", QUOTA_MAX_WAIT_MS: "100" },
      cause: (scene) => crowd(scene, 100),
      cure: ({ clock }) => clock.advance(61_000),
    },
  ],
  [
    /^The registry answered 429\. Calls are paused/,
    {
      cause: async (scene) => {
        scene.service.sandbox.control.setRateLimit({ limit: 1, windowMs: 60_000 });
        await crowd(scene, 1);
      },
      cure: async ({ service, clock }) => {
        service.sandbox.control.setRateLimit({ limit: 1000, windowMs: 60_000 });
        await clock.advance(61_000);
      },
    },
  ],
  [
    /^The registry keeps failing, so only trial requests are made: .*check/,
    {
      cause: async (scene) => {
        scene.service.sandbox.control.setFault("all", { fault: "status-503" });
        for (let times = 0; times < 8; times += 1) await crowd(scene, 1);
      },
      cure: async ({ service, clock }) => {
        service.sandbox.control.clearFaults();
        await clock.advance(120_000);
      },
    },
  ],
  [
    /^The registry refuses every credential/,
    {
      cause: async (scene) => {
        scene.service.sandbox.control.setApiAccess("demo", false);
        await crowd(scene, 1);
      },
      cure: async (scene) => {
        scene.service.sandbox.control.setApiAccess("demo", true);
        await scene.clock.advance(80_000);
        await crowd(scene, 1);
      },
    },
  ],
  [
    /^The changed price file isn't used: rules\[0\]\.markupPercent: is a bare number/,
    {
      cause: async ({ file, clock }) => {
        writeFileSync(file, RETAIL.replace('markupPercent: "25"', "markupPercent: 25"));
        await clock.advance(1_500);
      },
      cure: async ({ file, clock }) => {
        writeFileSync(file, RETAIL);
        await clock.advance(1_500);
      },
    },
  ],
  [
    /^\d+ of \d+ prices are doubtful\./,
    {
      cause: async ({ service }) => {
        service.sandbox.control.setFault("quote", { fault: "status-503" });
        const question = { method: "POST", headers: bearer("operate"), body: { what: "prices" } };
        await service.ask("/v1/staff/cache/purge", question);
      },
      cure: async ({ service, clock }) => {
        service.sandbox.control.clearFaults();
        await clock.advance(120_000);
      },
    },
  ],
  [
    /^1 signed promise has fallen below the minimum price\. Margin lost: /,
    {
      cause: async ({ service, clock }) => {
        await inTime(clock, service.ask("/v1/quotes", { method: "POST", body: CART }));
        service.sandbox.control.setPrice("demo", DEAR);
        const question = { method: "POST", headers: bearer("operate"), body: { what: "prices" } };
        await service.ask("/v1/staff/cache/purge", question);
        await clock.advance(10_000);
      },
      cure: ({ clock }) => clock.advance(15 * 60_000),
    },
  ],
];

test("nothing is an alarm in an ordinary hour", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  const scene = { service, clock, file: "" };
  for (let minute = 0; minute < 60; minute += 1) {
    await crowd(scene, 5);
    await clock.advance(60_000);
    expect(await alarmsOf(scene)).toEqual([]);
  }
  await service.close();
});

test.each(CONDITIONS)("%s", async (text, { env = {}, cause, cure }) => {
  const folder = temporaryFolder();
  const file = join(folder.path, "retail.yaml");
  writeFileSync(file, RETAIL);
  const clock = new FakeClock();
  const service = await startService({ clock, env: { RETAIL_CONFIG: file, ...env } });
  const scene = { service, clock, file };
  const raised = async (): Promise<Alarm | undefined> =>
    (await alarmsOf(scene)).find((alarm) => text.test(alarm.text));
  try {
    expect(await raised()).toBeUndefined();
    await cause(scene);
    await until(async () => (await raised()) !== undefined, "the alarm");
    expect((await raised())?.todo).toMatch(/^[A-Z].{20,}\.$/);
    await cure(scene);
    await until(async () => (await raised()) === undefined, "its end");
  } finally {
    await service.close();
    folder.remove();
  }
});
