/** Reports the state of the service: the overview for staff, `/health`, and the metrics. */
import { every } from "../clock.js";
import type { Engine, EngineSettings } from "../engine.js";
import { ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import { promisesInForce } from "../retail/lost-margin.js";
import { OPERATIONS } from "../upstream/vocabulary.js";
import type { AnswerOf } from "../wire/answer.js";
import type { overviewShape } from "../wire/overview.js";
import { type Alarm, alarmsOf } from "./alarms.js";
import { createHistory, type History, meanWaits } from "./history.js";
import { createNotices, savedNotices } from "./notices.js";
import {
  type HealthChecks,
  healthChecks,
  type Ownership,
  presentOverview,
  priceCounts,
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
  const { credentials, upstream, notebook, prices, policies, redis, store } = engine;
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

  const byCheck = { pass: 0, warn: 1, fail: 2 };
  metrics.family("health", () =>
    Object.fromEntries(Object.entries(checks()).map(([name, { status }]) => [name, byCheck[status]])),
  );
  metrics.family("circuits", () => {
    const { openCircuits } = upstream.health();
    return Object.fromEntries(OPERATIONS.map((one) => [one, Number(openCircuits.includes(one))]));
  });
  metrics.family("credentials", () =>
    Object.fromEntries(credentials.states().map(({ role, refused }) => [role, Number(refused)])),
  );
  metrics.family("retailFaults", () => {
    const { fingerprint, faults } = policies.state();
    return { [fingerprint]: faults.length };
  });
  metrics.quota(quota);
  // Only the owner asks for prices, so another replica's would seem to be missing.
  metrics.family("prices", () => (settings.owner().role === "follower" ? {} : priceCounts(prices)));
  metrics.family("promises", () => {
    const { inForce: in_force, belowFloor: below_floor } = promises();
    return { in_force, below_floor };
  });
  metrics.family("saved", saved);
  metrics.family("role", () => ({ [settings.owner().role]: 1 }));
  metrics.family("rateLimited", rateLimited);
  metrics.family("unexpected", upstream.unexpected.totals);

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
