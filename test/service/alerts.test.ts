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

/** Scrapes a service as Prometheus would, every minute or every other minute. */
class Recorder {
  readonly #scene: Scene;
  readonly #everyMinutes: number;
  readonly #series = new Map<string, (string | undefined)[]>();
  #scrapes = 0;

  constructor(scene: Scene, everyMinutes = 1) {
    this.#scene = scene;
    this.#everyMinutes = everyMinutes;
  }

  /** The time of the last scrape. */
  get minute(): number {
    return (this.#scrapes - 1) * this.#everyMinutes;
  }

  async record(minutes: number, meanwhile: (scene: Scene) => Promise<void>): Promise<void> {
    const { service, clock } = this.#scene;
    for (const end = this.#scrapes + minutes / this.#everyMinutes; this.#scrapes < end; this.#scrapes += 1) {
      const fromMs = clock.monotonic();
      await meanwhile(this.#scene);
      await clock.advance(Math.max(0, fromMs + this.#everyMinutes * MINUTE_MS - clock.monotonic()));
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
            interval: `${this.#everyMinutes}m`,
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
const RECOVERY_MINUTES = 20;

const ALERTS: readonly (readonly [string, number, Condition])[] = [
  ["StorefrontDown", 3, conditions.notListening],
  ["StorefrontCredentialRefused", 4, conditions.credentialRefused],
  ["StorefrontCircuitOpen", 5, conditions.upstreamFails],
  ["StorefrontUpstreamFailing", 17, conditions.upstreamFails],
  ["StorefrontVisitorsRefused", 12, conditions.moreVisitorsThanCalls],
  ["StorefrontRetailConfigRejected", 3, conditions.badPriceFile],
  ["StorefrontPricesMissing", 18, conditions.pricesMissing],
  ["StorefrontPricesDoubtful", 18, conditions.doubtfulPrices],
  ["StorefrontMarginLost", 4, conditions.marginLost],
  ["StorefrontRedisLost", 3, conditions.redisLost],
  ["StorefrontOwnFaults", 4, conditions.signingFails],
];
for (const [alert, minutes, condition] of ALERTS)
  testWith(
    condition.withRedis === true ? ["promtool", "redis-server"] : ["promtool"],
    `${alert} fires within ${minutes} minutes of its condition and resolves afterwards`,
    () =>
      inScene(condition, async (scene) => {
        const recorder = new Recorder(scene);
        await recorder.record(6, noTraffic);
        const before = recorder.minute;
        await condition.cause(scene);
        await recorder.record(minutes, condition.meanwhile ?? noTraffic);
        const during = recorder.minute;
        await condition.cure(scene);
        await recorder.record(RECOVERY_MINUTES, noTraffic);
        recorder.expectAlerts([
          { atMinute: before, alert, fires: false },
          { atMinute: during, alert, fires: true },
          { atMinute: recorder.minute, alert: ".+", fires: false },
        ]);
      }),
  );

testWith(["promtool"], "no alert fires in an ordinary night and day", () =>
  inScene({}, async (scene) => {
    const recorder = new Recorder(scene, 2);
    // At night one visitor in forty minutes, longer than any rule looks back, and by day two more every other minute.
    await crowd(scene, 1);
    await recorder.record(40, noTraffic);
    await recorder.record(40, () => crowd(scene, 2));
    const { minute } = recorder;
    recorder.expectAlerts([{ alert: ".+", fires: false, atMinute: minute, forMinutes: minute }]);
  }),
);
