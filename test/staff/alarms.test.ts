/** Each alarm begins on the staff page and as a notice with its real condition in the sandbox, says what to do, and ends with the condition. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { z } from "zod";
import { overviewShape } from "../../src/wire/overview.js";
import * as conditions from "../support/conditions.js";
import { crowd, inScene, type Scene } from "../support/conditions.js";
import { bearer, until } from "../support/service.js";
import { testWith } from "../support/tools.js";
import { pass, Receiver } from "./receiver.js";

type Alarm = z.infer<typeof overviewShape>["alarms"][number];

async function alarmsOf({ service }: Scene): Promise<readonly Alarm[]> {
  const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
  return overviewShape.parse(body).alarms;
}

let receiver: Receiver;
beforeEach(async () => {
  receiver = new Receiver();
  await receiver.open();
});
afterEach(() => receiver.close());

test("an ordinary quarter of an hour raises no alarm", () =>
  inScene({}, async (scene) => {
    for (let minute = 0; minute < 15; minute += 1) {
      await crowd(scene, 5);
      await scene.clock.advance(60_000);
      expect(await alarmsOf(scene)).toEqual([]);
    }
  }));

const ALARMS: readonly (readonly [kind: string, text: RegExp, condition: conditions.Condition])[] = [
  [
    "refused",
    /^In the last minute, visitors were asked to try again later/,
    conditions.moreVisitorsThanCalls,
  ],
  [
    "paused",
    /^The registry reported that its limit is exceeded\. Calls are paused/,
    conditions.upstreamLimits,
  ],
  [
    "registry",
    /^The registry keeps failing, so only trial requests are made: .*check/,
    conditions.upstreamFails,
  ],
  ["credential", /^The registry refuses every credential/, conditions.credentialRefused],
  [
    "price_file",
    /^The changed price file isn't used: rules\[0\]\.markupPercent: is a bare number/,
    conditions.badPriceFile,
  ],
  ["doubtful", /^\d+ of \d+ prices are doubtful\./, conditions.doubtfulPrices],
  ["redis", /^Redis can't be reached\./, conditions.redisLost],
  ["redis", /^Redis refuses commands\./, conditions.redisRefuses],
  ["proxy", /^More proxies are in front of the service than TRUST_PROXY_HOPS says/, conditions.unknownProxy],
  ["proxy", /^Requests arrive past the proxies that TRUST_PROXY_HOPS expects/, conditions.pastTheProxy],
  ["waits", /^Visitors are waiting a long time for the registry: exact/, conditions.longWaits],
  ["margin", /^1 signed promise has fallen below the minimum price\. Margin lost: /, conditions.marginLost],
  ["prices", /^Retail is nearly the same multiple of wholesale in all/, conditions.constantMarkup],
  ["list", /^The registry's list is full \(100 domains\)/, conditions.listFull],
  [
    "expiring",
    /^A domain expires within 7 days without auto-renewal: old-bazaar\.af/,
    conditions.expiresSoon,
  ],
  ["expired", /^A domain has expired: old-bazaar\.af/, conditions.expired],
  [
    "balance",
    /^The account's balance and its credit limit don't cover a typical order\./,
    conditions.balanceLow,
  ],
];
for (const [kind, text, condition] of ALARMS)
  testWith(
    condition.withRedis === true ? ["redis-server"] : [],
    `${text} is raised with its condition and ends with it, and staff are notified of both`,
    () =>
      inScene({ ...condition, env: { ...condition.env, ...receiver.env } }, async (scene) => {
        const raised = async (): Promise<Alarm | undefined> =>
          (await alarmsOf(scene)).find((alarm) => alarm.kind === kind && text.test(alarm.text));
        await pass(scene.clock, 15_000);
        expect([await raised(), receiver.of(kind)]).toEqual([undefined, []]);
        await condition.cause(scene);
        await until(async () => (await raised()) !== undefined, "the alarm");
        expect((await raised())?.todo).toMatch(/^[A-Z].{20,}\.$/);
        await pass(scene.clock, 15_000);
        expect(receiver.of(kind)).toEqual(["begun"]);
        await condition.cure(scene);
        await until(async () => (await raised()) === undefined, "the end of the alarm");
        await pass(scene.clock, 90_000);
        expect(receiver.of(kind)).toEqual(["begun", "ended"]);
      }),
  );

test("unexpected data causes a notice for each new field, and lasts as long as the process", () =>
  inScene({ env: receiver.env }, async (scene) => {
    scene.service.sandbox.control.setShapes({ envelope: "meta" });
    await crowd(scene, 1);
    await pass(scene.clock, 120_000);
    expect(new Set(receiver.of("unexpected"))).toEqual(new Set(["begun"]));
  }));

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
