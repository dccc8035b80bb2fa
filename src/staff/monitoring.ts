/** Reports the state of the service: the overview for staff, `/health`, and the metrics. */
import { every } from "../clock.js";
import type { Engine, EngineSettings } from "../engine.js";
import { ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import { promisesInForce } from "../retail/lost-margin.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/overview.js";
import { type Alarm, alarmsOf } from "./alarms.js";
import { registerGauges } from "./gauges.js";
import { createHistory, type History, meanWaits } from "./history.js";
import { createNotices, savedNotices } from "./notices.js";
import {
  type HealthChecks,
  healthChecks,
  type Ownership,
  presentOverview,
  priceWarnings,
  type ProxyFit,
  type RedisStatus,
  savedCalls,
} from "./overview.js";

interface MonitoringSettings extends Pick<EngineSettings, "config" | "mode" | "clock" | "log"> {
  readonly engine: Engine;
  readonly metrics: Metrics;
  readonly owner: () => Ownership;
  readonly proxy: () => ProxyFit;
  /** Requests refused since startup: beyond a client's limit, beyond its cold limit, and locally, without an upstream call. */
  readonly refusals: () => { readonly requests: number; readonly cold: number; readonly locally: number };
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

/** Registers the gauges and counters of all parts. */
export function createMonitoring(settings: MonitoringSettings): Monitoring {
  const { mode, engine, metrics, refusals, clock } = settings;
  const { notebook, prices, policies, redis, store } = engine;
  const quota = () => engine.quota()?.snapshot() ?? null;
  const promises = () =>
    promisesInForce(engine.carts.inForce(), prices.all(), policies.current(), clock.now());
  const saved = () => savedCalls(notebook, refusals().locally);
  const redisState = (): RedisStatus => redis?.state() ?? "none";
  const rateLimited = () => {
    const { requests, cold } = refusals();
    return { requests, cold };
  };
  const warnings = priceWarnings(engine, clock);
  const checks = () =>
    healthChecks({
      engine,
      redis: redisState(),
      owner: settings.owner(),
      proxy: settings.proxy(),
      quota: quota(),
      warnings: warnings(),
    });

  registerGauges(metrics, {
    engine,
    checks,
    quota,
    promises,
    saved,
    rateLimited,
    owner: settings.owner,
  });

  function figures() {
    const now = quota();
    if (now === null)
      throw new ServiceError("quota_exhausted", "The service is starting.", { retryAfterMs: 1000 });
    return presentOverview({
      engine,
      mode,
      quota: now,
      redis: redisState(),
      promises: promises(),
      saved: saved(),
      rateLimited: rateLimited(),
      owner: settings.owner(),
      proxy: settings.proxy(),
    });
  }
  const lanes = () => quota()?.lanes;
  /** As of five to ten seconds ago, and of up to five. */
  let [earlier, later] = [lanes(), lanes()];
  const noteLanes = (): void => {
    [earlier, later] = [later, lanes()];
  };
  const alarmsNow = (each: boolean, figuresNow = figures()): Alarm[] =>
    alarmsOf(
      {
        overview: figuresNow,
        waitMs: meanWaits(figuresNow.quota.lanes, earlier ?? figuresNow.quota.lanes),
        priceWarnings: warnings(),
        prices,
        ...engine.account.known(),
        nowMs: clock.now(),
      },
      each,
    );
  const notices = createNotices({
    receiver: settings.config.notify,
    file: store.saved({ name: "notices", shape: savedNotices, source: () => "notices" }),
    alarms() {
      const { domains, balance } = engine.account.known();
      const unknown = new Set([
        ...(domains === undefined ? ["expired", "expiring", "list"] : []),
        ...(balance === undefined ? ["balance", "list"] : []),
      ]);
      return { alarms: quota() === null ? [] : alarmsNow(true), unknown };
    },
    carts: engine.carts,
    clock,
    log: settings.log,
  });

  function overview() {
    const now = figures();
    const alarms = alarmsNow(false, now).map(({ kind, level, text, amounts, todo }) => ({
      kind,
      level,
      text: amounts === undefined ? text : `${text} ${amounts}`,
      todo,
    }));
    return { ...now, alarms, notices: notices.present() };
  }
  const history = createHistory({ source: figures, stored: store.history, clock });

  function watch(): () => void {
    const stops = [history.keep(), every(clock, LANES_EVERY_MS, noteLanes), notices.keep()];
    return () => {
      for (const stop of stops) stop();
    };
  }

  return { overview, history: history.present, watch, checks };
}
