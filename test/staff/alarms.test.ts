/** Each alarm begins on the staff page and as a notice with its real condition in the sandbox, says what to do, and ends with the condition. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import * as conditions from "../support/conditions.js";
import { crowd, inScene } from "../support/conditions.js";
import { alarmsOf, expectAlarms, type Expected } from "./alarm.js";
import { pass, Receiver } from "./receiver.js";

let receiver: Receiver;
beforeEach(async () => {
  receiver = new Receiver();
  await receiver.open();
});
afterEach(() => receiver.close());

/** Those of each group happen one after another to one service. */
const ALARMS: Readonly<Record<string, readonly Expected[]>> = {
  "from the registry": [
    [
      "paused",
      // To the minute: a minute from a quarter past is rounded up.
      /^The registry reported that its limit is exceeded\. Calls are paused until 00:02 UTC\.$/,
      conditions.upstreamLimits,
    ],
    ["waits", /^Visitors are waiting a long time for the registry: exact/, conditions.longWaits],
    [
      "registry",
      /^The registry keeps failing, so only trial requests are made: .*check/,
      conditions.upstreamFails,
    ],
    ["credential", /^The registry refuses every credential/, conditions.credentialRefused],
  ],
  "of prices": [
    [
      "price_file",
      /^The changed price file isn't used: rules\[0\]\.markupPercent: is a bare number/,
      conditions.badPriceFile,
    ],
    ["prices", /^Retail is nearly the same multiple of wholesale in all/, conditions.constantMarkup],
    ["doubtful", /^\d+ of \d+ prices are doubtful\./, conditions.doubtfulPrices],
    ["margin", /^1 signed promise has fallen below the minimum price\. Margin lost: /, conditions.marginLost],
  ],
  "of a full list": [["list", /^The registry's list is full \(100 domains\)/, conditions.listFull]],
  "of the balance": [
    [
      "balance",
      /^The account's balance and its credit limit don't cover a typical order\./,
      conditions.balanceLow,
    ],
  ],
  "of a domain that expires soon": [
    [
      "expiring",
      /^A domain expires within 7 days without auto-renewal: old-bazaar\.af/,
      conditions.expiresSoon,
    ],
  ],
  "of a domain that has expired": [["expired", /^A domain has expired: old-bazaar\.af/, conditions.expired]],
  "of proxies": [
    [
      "proxy",
      /^More proxies are in front of the service than TRUST_PROXY_HOPS says/,
      conditions.unknownProxy,
    ],
  ],
  "of a proxy that is passed by": [
    ["proxy", /^Requests arrive past the proxies that TRUST_PROXY_HOPS expects/, conditions.pastTheProxy],
  ],
  "of visitors": [
    [
      "refused",
      /^In the last minute, visitors were asked to try again later/,
      conditions.moreVisitorsThanCalls,
    ],
  ],
};
test.each(Object.entries(ALARMS))(
  "alarms %s are raised with their conditions and end with them, and staff are notified of both",
  (_group, alarms) => {
    const [[, , setup] = ["", /./, {}]] = alarms;
    return inScene({ ...setup, env: { ...setup.env, ...receiver.env } }, (scene) =>
      expectAlarms(scene, receiver, alarms),
    );
  },
);

test("an ordinary quarter of an hour raises no alarm; unexpected data causes a notice for each new field, and lasts as long as the process", () =>
  inScene({ env: receiver.env }, async (scene) => {
    for (let minute = 0; minute < 15; minute += 1) {
      await crowd(scene, 5);
      await scene.clock.advance(60_000);
      expect(await alarmsOf(scene)).toEqual([]);
    }
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
