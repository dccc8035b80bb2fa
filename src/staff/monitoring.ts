/** Reports the state of the service: the overview with its alarms for staff, `/health`, the metrics, and notices. */
import { every } from "../clock.js";
import type { EngineSettings } from "../engine.js";
import { ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/overview.js";
import { type Alarm, alarmsOf } from "./alarms.js";
import { registerGauges } from "./gauges.js";
import { createHistory, type History, meanWaits } from "./history.js";
import { type AlarmsNow, createNotices, savedNotices } from "./notices.js";
import {
  createHealthChecks,
  type HealthChecks,
  presentOverview,
  priceWarnings,
  quotaOf,
  type ServiceParts,
} from "./overview.js";

interface MonitoringSettings extends ServiceParts, Pick<EngineSettings, "config" | "log"> {
  readonly metrics: Metrics;
}

export interface Monitoring {
  overview(): AnswerOf<typeof overviewShape>;
  /** The figures of the last day: with Redis, also of former owners. */
  history(): ReturnType<History["present"]>;
  checks(): HealthChecks;
  /** Starts recording the history and telling staff of alarms; returns a function that stops it. */
  watch(): () => void;
}

const LANES_EVERY_MS = 5_000;

export function createMonitoring(settings: MonitoringSettings): Monitoring {
  const { engine, clock, log, config } = settings;
  const { account, prices, carts, store } = engine;
  const checks = createHealthChecks(settings);
  registerGauges(settings.metrics, settings, checks);

  const lanes = () => quotaOf(settings)?.lanes;
  /** As of five to ten seconds ago, and of up to five. */
  let [earlier, later] = [lanes(), lanes()];
  const noteLanes = (): void => {
    [earlier, later] = [later, lanes()];
  };

  function figures() {
    const quota = quotaOf(settings);
    if (quota === null)
      throw new ServiceError("quota_exhausted", "The service is starting.", { retryAfterMs: 1000 });
    return presentOverview(settings, quota);
  }

  function alarmsAmong(overview: ReturnType<typeof figures>, each: boolean): Alarm[] {
    const now = overview.quota.lanes;
    return alarmsOf(
      {
        overview,
        waitMs: meanWaits(now, earlier ?? now),
        priceWarnings: priceWarnings(settings),
        prices,
        ...account.known(),
        nowMs: clock.now(),
      },
      each,
    );
  }

  function alarmsNow(): AlarmsNow {
    const { domains, balance } = account.known();
    const unknown = new Set([
      ...(domains === undefined ? ["expired", "expiring", "list"] : []),
      ...(balance === undefined ? ["balance", "list"] : []),
    ]);
    return { alarms: lanes() === undefined ? [] : alarmsAmong(figures(), true), unknown };
  }

  const notices = createNotices({
    receiver: config.notify,
    file: store.saved({ name: "notices", shape: savedNotices, source: () => "notices" }),
    alarms: alarmsNow,
    carts,
    clock,
    log,
  });
  const history = createHistory({ source: figures, stored: store.history, clock });

  return {
    overview() {
      const now = figures();
      const alarms = alarmsAmong(now, false).map(({ kind, level, text, amounts, todo }) => ({
        kind,
        level,
        text: amounts === undefined ? text : `${text} ${amounts}`,
        todo,
      }));
      return { ...now, alarms, notices: notices.present() };
    },
    history: history.present,
    checks,
    watch() {
      const stops = [history.keep(), every(clock, LANES_EVERY_MS, noteLanes), notices.keep()];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}
