/** Each alarm of the staff page is raised by its real condition in the sandbox, says what to do, and ends with the condition. */
import { expect, test } from "@jest/globals";
import type { z } from "zod";
import { overviewShape } from "../../src/wire/staff.js";
import * as conditions from "../support/conditions.js";
import { crowd, inScene, type Scene } from "../support/conditions.js";
import { bearer, until } from "../support/service.js";
import { testWith } from "../support/tools.js";

type Alarm = z.infer<typeof overviewShape>["alarms"][number];

async function alarmsOf({ service }: Scene): Promise<readonly Alarm[]> {
  const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
  return overviewShape.parse(body).alarms;
}

test("an ordinary hour raises no alarm", () =>
  inScene({}, async (scene) => {
    for (let minute = 0; minute < 60; minute += 1) {
      await crowd(scene, 5);
      await scene.clock.advance(60_000);
      expect(await alarmsOf(scene)).toEqual([]);
    }
  }));

const ALARMS: readonly (readonly [RegExp, conditions.Condition])[] = [
  [/^In the last minute, visitors were asked to try again later/, conditions.moreVisitorsThanCalls],
  [/^The registry reported that its limit is exceeded\. Calls are paused/, conditions.upstreamLimits],
  [/^The registry keeps failing, so only trial requests are made: .*check/, conditions.upstreamFails],
  [/^The registry refuses every credential/, conditions.credentialRefused],
  [
    /^The changed price file isn't used: rules\[0\]\.markupPercent: is a bare number/,
    conditions.badPriceFile,
  ],
  [/^\d+ of \d+ prices are doubtful\./, conditions.doubtfulPrices],
  [/^Redis can't be reached\./, conditions.redisLost],
  [/^Redis refuses commands\./, conditions.redisRefuses],
  [/^More proxies are in front of the service than TRUST_PROXY_HOPS says/, conditions.unknownProxy],
  [/^Requests arrive past the proxies that TRUST_PROXY_HOPS expects/, conditions.pastTheProxy],
  [/^Visitors are waiting a long time for the registry: exact/, conditions.longWaits],
  [/^1 signed promise has fallen below the minimum price\. Margin lost: /, conditions.marginLost],
];
for (const [text, condition] of ALARMS)
  testWith(
    condition.withRedis === true ? ["redis-server"] : [],
    `${text} is raised with its condition and ends with it`,
    () =>
      inScene(condition, async (scene) => {
        const raised = async (): Promise<Alarm | undefined> =>
          (await alarmsOf(scene)).find((alarm) => text.test(alarm.text));
        expect(await raised()).toBeUndefined();
        await condition.cause(scene);
        await until(async () => (await raised()) !== undefined, "the alarm");
        expect((await raised())?.todo).toMatch(/^[A-Z].{20,}\.$/);
        await condition.cure(scene);
        await until(async () => (await raised()) === undefined, "the end of the alarm");
      }),
  );

test("the alarm for long waits says that nobody is refused only if that is true", () =>
  inScene({ env: { UPSTREAM_RATE_LIMIT: "60", QUOTA_MAX_WAIT_MS: "20000" } }, async (scene) => {
    await crowd(scene, 60);
    const alarms = await alarmsOf(scene);
    expect(alarms.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^In the last minute, visitors were asked to try again later/),
      expect.stringMatching(/^Visitors are waiting a long time for the registry: exact/),
    ]);
    expect(alarms.map(({ todo }) => todo).join(" ")).not.toContain("Nobody is refused");
  }));

test("the alarm for a pause says until when it lasts, to the minute", () =>
  inScene({}, async (scene) => {
    await scene.clock.advance(30_000);
    await conditions.upstreamLimits.cause(scene);
    const paused = (await alarmsOf(scene)).find(({ kind }) => kind === "paused");
    // A minute from half past is rounded up.
    expect(paused?.text).toMatch(/Calls are paused until 00:02 UTC\.$/);
  }));
