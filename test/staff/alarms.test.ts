/**
 * Each alarm and each alert is raised by its real cause, and ends with it: the alarm on the staff page, which says what to do, and in notices; the
 * alert by Prometheus' own evaluation of the metrics. None is raised in ordinary hours.
 */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { bearer, temporaryFolder, until } from "../support/service.js";
import { overviewOf } from "../support/staff.js";
import { succeeds, testWith } from "../support/tools.js";
import * as conditions from "./conditions.js";
import { type Condition, crowd, inScene, type Scene, type SceneSetup } from "./conditions.js";
import { pass, Receiver } from "./receiver.js";

const RULES = new URL("../../deploy/prometheus/alerts.yml", import.meta.url).pathname;
const MINUTE_MS = 60_000;
/** Longer than any rule looks back. */
const RECOVERY_MINUTES = 12;

/** What Prometheus sees: scrapes a service every minute, and evaluates the alert rules with promtool. */
class Recorder {
  readonly #scene: Scene;
  readonly #series = new Map<string, (string | undefined)[]>();
  readonly #expected: object[] = [];
  #scrapes = 0;
  #dueAt = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** The time of the last scrape. */
  get minute(): number {
    return this.#scrapes - 1;
  }

  async record(minutes: number, meanwhile?: (scene: Scene) => Promise<void>): Promise<void> {
    const { service, clock } = this.#scene;
    for (const end = this.#scrapes + minutes; this.#scrapes < end; this.#scrapes += 1) {
      await meanwhile?.(this.#scene);
      await clock.advance(Math.max(0, this.#dueAt - clock.monotonic()));
      this.#dueAt = clock.monotonic() + MINUTE_MS;
      const answer = await service.ask("/metrics", { headers: bearer("metrics") }).catch(() => null);
      const isUp = answer?.status === 200;
      this.#sample("up", "", isUp ? "1" : "0");
      if (!isUp) continue;
      for (const [, name = "", labels = "", value] of answer.text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm))
        if (!name.endsWith("_bucket") && !name.startsWith("nodejs_")) this.#sample(name, `${labels},`, value);
    }
  }

  #sample(name: string, labels: string, value: string | undefined): void {
    const series = `${name}{${labels.replace(/^,/, "")}job="af-storefront",instance="a"}`;
    const values = this.#series.get(series) ?? [];
    values[this.#scrapes] = value;
    this.#series.set(series, values);
  }

  /** Expects that the alert fires now, or doesn't, or that it hasn't at any time in that many minutes. */
  expect(alert: string, fires: boolean, forMinutes = 1): void {
    this.#expected.push({
      expr: `clamp_max(count(count_over_time(ALERTS{alertname=~"${alert}",alertstate="firing"}[${forMinutes}m])), 1) or vector(0)`,
      eval_time: `${this.minute}m`,
      exp_samples: [{ labels: "{}", value: Number(fires) }],
    });
  }

  evaluate(): void {
    const folder = temporaryFolder();
    const file = join(folder.path, "recorded.yml");
    const scrapes = Array.from({ length: this.#scrapes }, (_, scrape) => scrape);
    const series = [...this.#series].map(([name, values]) => ({
      series: name,
      values: scrapes.map((scrape) => values[scrape] ?? "_").join(" "),
    }));
    const recorded = { interval: "1m", input_series: series, promql_expr_test: this.#expected };
    writeFileSync(file, stringify({ rule_files: [RULES], evaluation_interval: "1m", tests: [recorded] }));
    succeeds("promtool", "test", "rules", file);
    folder.remove();
  }
}

let receiver: Receiver;
beforeEach(async () => {
  receiver = new Receiver();
  await receiver.open();
});
afterEach(() => receiver.close());

interface Incident {
  readonly condition: Condition;
  readonly alarm?: { readonly kind: string; readonly text: RegExp };
  /** Each with the minutes within which it fires. */
  readonly alerts?: Readonly<Record<string, number>>;
}

/** Causes the condition and ends it. */
async function expectIncident(
  scene: Scene,
  recorder: Recorder,
  { condition, alarm, alerts = {} }: Incident,
): Promise<void> {
  const { kind = "", text = /./ } = alarm ?? {};
  const raised = async () =>
    (await overviewOf(scene.service)).alarms.find((one) => one.kind === kind && text.test(one.text));
  const before = receiver.of(kind).length;
  const expectNotices = async (...states: readonly string[]): Promise<void> => {
    const notices = (): string[] => receiver.of(kind).slice(before);
    await until(async () => {
      if (notices().length < states.length) await pass(scene.clock, 5_000);
      return notices().length >= states.length;
    }, `the notices of ${kind}`);
    expect([kind, notices()]).toEqual([kind, states]);
  };
  if (alarm !== undefined) expect([kind, await raised()]).toEqual([kind, undefined]);
  for (const alert of Object.keys(alerts)) recorder.expect(alert, false);

  const since = recorder.minute;
  await condition.cause(scene);
  if (alarm !== undefined) {
    await until(async () => (await raised()) !== undefined, `the alarm ${kind}`);
    expect((await raised())?.todo).toMatch(/^[A-Z].{20,}\.$/);
    await expectNotices("begun");
  }
  for (const [alert, minutes] of Object.entries(alerts)) {
    await recorder.record(since + minutes - recorder.minute, condition.meanwhile);
    recorder.expect(alert, true);
  }

  await condition.cure(scene);
  if (alarm !== undefined) {
    await until(async () => (await raised()) === undefined, `the end of the alarm ${kind}`);
    await expectNotices("begun", "ended");
  }
  await recorder.record(Object.keys(alerts).length > 0 ? RECOVERY_MINUTES : 1);
  recorder.expect(".+", false);
}

/** Those of each group happen one after another to one service. */
const INCIDENTS: Readonly<Record<string, readonly Incident[]>> = {
  "the registry": [
    { condition: conditions.notListening, alerts: { StorefrontDown: 3 } },
    {
      condition: conditions.upstreamLimits,
      // To the minute: a minute from a quarter past is rounded up.
      alarm: {
        kind: "paused",
        text: /^The registry reported that its limit is exceeded\. Calls are paused until 00:\d\d UTC\.$/,
      },
    },
    {
      condition: conditions.longWaits,
      alarm: { kind: "waits", text: /^Visitors are waiting a long time for the registry: exact/ },
    },
    {
      condition: conditions.upstreamFails,
      alarm: {
        kind: "registry",
        text: /^The registry keeps failing, so only trial requests are made: .*check/,
      },
      alerts: { StorefrontCircuitOpen: 5, StorefrontUpstreamFailing: 17 },
    },
    {
      condition: conditions.credentialRefused,
      alarm: { kind: "credential", text: /^The registry refuses every credential/ },
      alerts: { StorefrontCredentialRefused: 4 },
    },
  ],
  prices: [
    {
      condition: conditions.badPriceFile,
      alarm: {
        kind: "price_file",
        text: /^The changed price file isn't used: rules\[0\]\.markupPercent: is a bare number/,
      },
      alerts: { StorefrontRetailConfigRejected: 3 },
    },
    {
      condition: conditions.constantMarkup,
      alarm: { kind: "prices", text: /^Retail is nearly the same multiple of wholesale in all/ },
    },
    {
      condition: conditions.doubtfulPrices,
      alarm: { kind: "doubtful", text: /^\d+ of \d+ prices are doubtful\./ },
      alerts: { StorefrontPricesDoubtful: 18 },
    },
    { condition: conditions.signingFails, alerts: { StorefrontOwnFaults: 4 } },
    {
      condition: conditions.marginLost,
      alarm: {
        kind: "margin",
        text: /^1 signed promise has fallen below the minimum price\. Margin lost: \d+\.\d\d USD/,
      },
      alerts: { StorefrontMarginLost: 4 },
    },
  ],
  "missing prices": [{ condition: conditions.pricesMissing, alerts: { StorefrontPricesMissing: 18 } }],
  visitors: [
    {
      condition: conditions.moreVisitorsThanCalls,
      alarm: { kind: "refused", text: /^In the last minute, visitors were asked to try again later/ },
      alerts: { StorefrontVisitorsRefused: 12 },
    },
  ],
  "the account": [
    {
      condition: conditions.unknownProxy,
      alarm: {
        kind: "proxy",
        text: /^More proxies are in front of the service than TRUST_PROXY_HOPS says/,
      },
    },
    {
      condition: conditions.listFull,
      alarm: { kind: "list", text: /^The registry's list is full \(100 domains\)/ },
    },
    {
      condition: conditions.expiresSoon,
      alarm: {
        kind: "expiring",
        text: /^A domain expires within 7 days without auto-renewal: old-bazaar\.af/,
      },
    },
  ],
  "an expired domain": [
    {
      condition: conditions.pastTheProxy,
      alarm: { kind: "proxy", text: /^Requests arrive past the proxies that TRUST_PROXY_HOPS expects/ },
    },
    {
      condition: conditions.balanceLow,
      alarm: {
        kind: "balance",
        text: /^The account's balance and its credit limit don't cover a typical order\./,
      },
    },
    {
      condition: conditions.expired,
      alarm: { kind: "expired", text: /^A domain has expired: old-bazaar\.af/ },
    },
  ],
  Redis: [
    {
      condition: conditions.redisLost,
      alarm: { kind: "redis", text: /^Redis can't be reached\./ },
      alerts: { StorefrontRedisLost: 3 },
    },
    { condition: conditions.redisRefuses, alarm: { kind: "redis", text: /^Redis refuses commands\./ } },
  ],
};
for (const [what, incidents] of Object.entries(INCIDENTS)) {
  const setup: SceneSetup = {};
  for (const { condition } of incidents) Object.assign(setup, condition);
  testWith(
    setup.withRedis === true ? ["promtool", "redis-server"] : ["promtool"],
    `the alarms and alerts of ${what} are raised by their causes and end with them, and staff are notified of both`,
    () =>
      inScene({ ...setup, env: { ...setup.env, ...receiver.env } }, async (scene) => {
        const recorder = new Recorder(scene);
        await recorder.record(2);
        for (const incident of incidents) await expectIncident(scene, recorder, incident);
        recorder.evaluate();
        // Notices go through other people's servers.
        expect(JSON.stringify(receiver.taken)).not.toMatch(/\d+\.\d\d\b|Secret|sandbox-demo/);
      }),
  );
}

testWith(
  ["promtool"],
  "an ordinary night and day raise no alarm and no alert; unexpected data causes a notice for each new field, and lasts as long as the process",
  () =>
    inScene({ env: receiver.env }, async (scene) => {
      const recorder = new Recorder(scene);
      const expectNoAlarm = async (): Promise<void> =>
        expect((await overviewOf(scene.service)).alarms).toEqual([]);
      // At night one visitor in twenty minutes, longer than any rule looks back, and by day two more every minute.
      await crowd(scene, 1);
      await recorder.record(20, expectNoAlarm);
      await recorder.record(20, async () => {
        await crowd(scene, 2);
        await expectNoAlarm();
      });
      recorder.expect(".+", false, recorder.minute);
      recorder.evaluate();
      scene.service.sandbox.control.setShapes({ envelope: "meta" });
      await crowd(scene, 1);
      await pass(scene.clock, 120_000);
      expect(new Set(receiver.of("unexpected"))).toEqual(new Set(["begun"]));
    }),
);

test("the alarm for long waits says that nobody is refused only if that is true", () =>
  inScene({ env: { UPSTREAM_RATE_LIMIT: "60", QUOTA_MAX_WAIT_MS: "20000" } }, async (scene) => {
    await crowd(scene, 60);
    const { alarms } = await overviewOf(scene.service);
    expect(alarms.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^In the last minute, visitors were asked to try again later/),
      expect.stringMatching(/^Visitors are waiting a long time for the registry: exact/),
    ]);
    expect(alarms.map(({ todo }) => todo).join(" ")).not.toContain("Nobody is refused");
  }));
