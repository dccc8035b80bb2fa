/** Each alert fires on the metrics of a service in which its condition really occurs, resolves afterwards, and none fires in ordinary hours. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import * as conditions from "../support/conditions.js";
import { type Condition, crowd, inScene, type Scene } from "../support/conditions.js";
import { bearer, temporaryFolder } from "../support/service.js";
import { succeeds, testWith } from "../support/tools.js";

const RULES = new URL("../../deploy/prometheus/alerts.yml", import.meta.url).pathname;
const MINUTE_MS = 60_000;

interface Expected {
  readonly alert: string;
  readonly fires: boolean;
  /** The minute at which the alert is evaluated. With `forMinutes`, it fires if it did at any time in that many minutes before. */
  readonly atMinute: number;
  readonly forMinutes?: number;
}

/** Scrapes a service every minute, as Prometheus would. */
class Recorder {
  readonly #scene: Scene;
  readonly #series = new Map<string, (string | undefined)[]>();
  #scrapes = 0;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** The time of the last scrape. */
  get minute(): number {
    return this.#scrapes - 1;
  }

  async record(minutes: number, meanwhile: (scene: Scene) => Promise<void>): Promise<void> {
    const { service, clock } = this.#scene;
    for (const end = this.#scrapes + minutes; this.#scrapes < end; this.#scrapes += 1) {
      const fromMs = clock.monotonic();
      await meanwhile(this.#scene);
      await clock.advance(Math.max(0, fromMs + MINUTE_MS - clock.monotonic()));
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

  /** Evaluates the alert rules on the recorded series with promtool. */
  expectAlerts(expected: readonly Expected[]): void {
    const folder = temporaryFolder();
    const file = join(folder.path, "recorded.yml");
    const length = this.#scrapes;
    writeFileSync(
      file,
      stringify({
        rule_files: [RULES],
        evaluation_interval: "1m",
        tests: [
          {
            interval: "1m",
            input_series: [...this.#series].map(([series, values]) => ({
              series,
              values: Array.from({ length }, (_, scrape) => values[scrape] ?? "_").join(" "),
            })),
            promql_expr_test: expected.map(({ atMinute, forMinutes = 1, alert, fires }) => ({
              expr: `clamp_max(count(count_over_time(ALERTS{alertname=~"${alert}",alertstate="firing"}[${forMinutes}m])), 1) or vector(0)`,
              eval_time: `${atMinute}m`,
              exp_samples: [{ labels: "{}", value: Number(fires) }],
            })),
          },
        ],
      }),
    );
    succeeds("promtool", "test", "rules", file);
    folder.remove();
  }
}

const noTraffic = (): Promise<void> => Promise.resolve();
/** In minutes, longer than any rule looks back. */
const RECOVERY_MINUTES = 12;

/** A condition, and the alerts that it raises, each with the minutes within which it fires. */
type Incident = readonly [condition: Condition, alerts: Readonly<Record<string, number>>];

/** Those of each line happen one after another to one service. */
const INCIDENTS: readonly (readonly [Incident, ...Incident[]])[] = [
  [
    [conditions.notListening, { StorefrontDown: 3 }],
    [conditions.credentialRefused, { StorefrontCredentialRefused: 4 }],
    [conditions.upstreamFails, { StorefrontCircuitOpen: 5, StorefrontUpstreamFailing: 17 }],
  ],
  [
    [conditions.badPriceFile, { StorefrontRetailConfigRejected: 3 }],
    [conditions.doubtfulPrices, { StorefrontPricesDoubtful: 18 }],
    [conditions.signingFails, { StorefrontOwnFaults: 4 }],
    [conditions.marginLost, { StorefrontMarginLost: 4 }],
  ],
  [[conditions.moreVisitorsThanCalls, { StorefrontVisitorsRefused: 12 }]],
  [[conditions.pricesMissing, { StorefrontPricesMissing: 18 }]],
  [[conditions.redisLost, { StorefrontRedisLost: 3 }]],
];
for (const incidents of INCIDENTS) {
  const [[setup]] = incidents;
  const alerts = incidents.flatMap(([, expected]) =>
    Object.entries(expected).map(([alert, minutes]) => `${alert} fires within ${minutes} minutes`),
  );
  testWith(
    setup.withRedis === true ? ["promtool", "redis-server"] : ["promtool"],
    `${alerts.join(", ")} of its condition and resolves afterwards`,
    () =>
      inScene(setup, async (scene) => {
        const recorder = new Recorder(scene);
        const expected: Expected[] = [];
        await recorder.record(6, noTraffic);
        for (const [condition, raised] of incidents) {
          for (const alert of Object.keys(raised))
            expected.push({ atMinute: recorder.minute, alert, fires: false });
          const since = recorder.minute;
          await condition.cause(scene);
          for (const [alert, minutes] of Object.entries(raised)) {
            await recorder.record(since + minutes - recorder.minute, condition.meanwhile ?? noTraffic);
            expected.push({ atMinute: recorder.minute, alert, fires: true });
          }
          await condition.cure(scene);
          await recorder.record(RECOVERY_MINUTES, noTraffic);
          expected.push({ atMinute: recorder.minute, alert: ".+", fires: false });
        }
        recorder.expectAlerts(expected);
      }),
  );
}

testWith(["promtool"], "no alert fires in an ordinary night and day", () =>
  inScene({}, async (scene) => {
    const recorder = new Recorder(scene);
    // At night one visitor in twenty minutes, longer than any rule looks back, and by day two more every minute.
    await crowd(scene, 1);
    await recorder.record(20, noTraffic);
    await recorder.record(20, () => crowd(scene, 2));
    const { minute } = recorder;
    recorder.expectAlerts([{ alert: ".+", fires: false, atMinute: minute, forMinutes: minute }]);
  }),
);
