/**
 * Each alarm and each alert is raised by its real cause, and ends with it: the alarm on the staff page, which says what to do, and in notices; the
 * alert by Prometheus' own evaluation of the metrics. None is raised in ordinary hours.
 */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { bearer, temporaryFolder, until } from "../support/service.js";
import { overviewOf } from "../support/staff.js";
import { succeeds, testWith } from "../support/tools.js";
import * as incidents from "./incidents.js";
import { crowd, type Incident, inScene, type Scene, type SceneSetup } from "./incidents.js";
import { pass, Receiver } from "./receiver.js";

const RULES = new URL("../../deploy/prometheus/alerts.yml", import.meta.url).pathname;
const MINUTE_MS = 60_000;
/** Longer than any rule looks back. */
const LOOK_BACK_MINUTES = 16;
/** Until the last alert has ended. */
const RECOVERY_MINUTES = 12;

/** What Prometheus sees: scrapes a service every minute, and evaluates the alert rules with promtool. */
class Recorder {
  readonly #scene: Scene;
  readonly #rules = readFileSync(RULES, "utf8");
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
      for (const [, name = "", labels = "", value] of (isUp ? answer.text : "").matchAll(
        /^(\w+)(?:\{(.*)\})? (\S+)$/gm,
      ))
        if (this.#rules.includes(name)) this.#sample(name, `${labels},`, value);
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

/** Causes the incident and ends it. */
async function expectIncident(scene: Scene, recorder: Recorder, incident: Incident): Promise<void> {
  const { alarm, alerts = {} } = incident;
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
  await incident.cause(scene);
  if (alarm !== undefined) {
    await until(async () => (await raised()) !== undefined, `the alarm ${kind}`);
    expect((await raised())?.todo).toMatch(/^[A-Z].{20,}\.$/);
    await expectNotices("begun");
  }
  for (const [alert, minutes] of Object.entries(alerts)) {
    await recorder.record(since + minutes - recorder.minute, incident.meanwhile);
    recorder.expect(alert, true);
  }

  await incident.cure(scene);
  if (alarm === undefined) return;
  await until(async () => (await raised()) === undefined, `the end of the alarm ${kind}`);
  await expectNotices("begun", "ended");
}

/** Those of each group happen one after another to one service. */
const GROUPS: Readonly<Record<string, readonly Incident[]>> = {
  "the registry and the account": [
    incidents.notListening,
    incidents.upstreamLimits,
    incidents.longWaits,
    incidents.upstreamFails,
    incidents.credentialRefused,
    incidents.unknownProxy,
    incidents.listFull,
    incidents.expiresSoon,
  ],
  prices: [
    incidents.badPriceFile,
    incidents.constantMarkup,
    incidents.doubtfulPrices,
    incidents.signingFails,
    incidents.marginLost,
  ],
  "missing prices": [incidents.pricesMissing],
  visitors: [incidents.moreVisitorsThanCalls],
  "an expired domain": [incidents.pastTheProxy, incidents.balanceLow, incidents.expired],
  Redis: [incidents.redisLost, incidents.redisRefuses],
};
for (const [what, group] of Object.entries(GROUPS)) {
  const setup: SceneSetup = {};
  for (const incident of group) Object.assign(setup, incident);
  testWith(
    setup.withRedis === true ? ["promtool", "redis-server"] : ["promtool"],
    `the alarms and alerts of ${what} are raised by their causes and end with them, and staff are notified of both`,
    () =>
      inScene({ ...setup, env: { ...setup.env, ...receiver.env } }, async (scene) => {
        const recorder = new Recorder(scene);
        await recorder.record(2);
        for (const incident of group) await expectIncident(scene, recorder, incident);
        await recorder.record(group.some(({ alerts }) => alerts) ? RECOVERY_MINUTES : 1);
        recorder.expect(".+", false);
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
      // At night one visitor, and by day two more every minute.
      await crowd(scene, 1);
      await recorder.record(LOOK_BACK_MINUTES, expectNoAlarm);
      await recorder.record(LOOK_BACK_MINUTES, async () => {
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
