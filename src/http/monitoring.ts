/** Reports the state of the service: the overview for staff, `/health`, the metrics, and this replica's figures for the fleet. */
import { hash } from "node:crypto";
import type { Engine, EngineSettings } from "../engine.js";
import { createFleet } from "../fleet.js";
import { ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import { promisesInForce } from "../retail/lost-margin.js";
import { OPERATIONS } from "../upstream/vocabulary.js";
import type { HealthParts } from "./health.js";
import { createHistory, type History } from "./history.js";
import {
  fleetFigures,
  healthChecks,
  presentOverview,
  priceCounts,
  priceWarnings,
  type RedisStatus,
  savedCalls,
} from "./overview.js";

interface MonitoringSettings extends Pick<EngineSettings, "config" | "mode" | "upstream" | "clock" | "log"> {
  readonly version: string;
  readonly engine: Engine;
  readonly metrics: Metrics;
  /** Requests refused since startup: beyond a client's limit, beyond its cold limit, and locally, without an upstream call. */
  readonly refusals: () => { readonly requests: number; readonly cold: number; readonly locally: number };
}

export interface Monitoring {
  overview(): ReturnType<typeof presentOverview>;
  /** The figures of the last day: of all replicas, or of this one without Redis. */
  history(): ReturnType<History["present"]>;
  readonly checks: HealthParts["checks"];
  /** Starts recording the history; returns a function that stops it. */
  keepHistory(): () => void;
  /** Leaves the fleet; resolves even if Redis is unreachable. */
  close(): Promise<void>;
}

/** Registers the gauges and counters of all parts, and joins the fleet. */
export function createMonitoring(settings: MonitoringSettings): Monitoring {
  const { config, version, mode, engine, metrics, refusals, clock, log } = settings;
  const { credentials, upstream, pools, prices, policies, redis } = engine;
  const quota = () => engine.quota()?.snapshot() ?? null;
  const promises = () =>
    promisesInForce(engine.promises.inForce(), prices.facts(), policies.current(), clock.now());
  const saved = () => savedCalls(pools, refusals().locally);
  const redisState = (): RedisStatus => redis?.state() ?? "none";
  const rateLimited = () => {
    const { requests, cold } = refusals();
    return { requests, cold };
  };
  const fleet = createFleet({
    link: redis,
    version,
    replicasMax: config.quota.replicasMax,
    settings: () => agreedSettings(settings),
    figures: () => fleetFigures(quota(), promises(), saved()),
    clock,
    log,
  });
  const warnings = priceWarnings(engine, clock);
  const checks = () =>
    healthChecks({ engine, redis: redisState(), fleet: fleet.fault(), quota: quota(), warnings: warnings() });

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
  metrics.family("prices", () => priceCounts(prices));
  metrics.family("promises", () => {
    const { inForce: in_force, belowFloor: below_floor } = promises();
    return { in_force, below_floor };
  });
  metrics.family("saved", saved);
  metrics.replicas(() => fleet.members().length);
  metrics.family("rateLimited", rateLimited);
  metrics.family("unexpected", upstream.unexpected.totals);
  metrics.family("redis", () => redis?.refusals() ?? {});

  function overview() {
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
      members: fleet.members(),
    });
  }
  const history = createHistory({ source: overview, redis, clock });

  return { overview, history: history.present, keepHistory: history.keep, checks, close: fleet.close };
}

/** A fingerprint of what all replicas must have in common: upstream, credential, quota, client limits, and the price rules in effect. */
function agreedSettings({ config, mode, upstream, engine }: MonitoringSettings): string {
  const { quota, clientPerMinute, clientColdPerMinute } = config;
  // How the ledger starts is a matter of one start.
  const { coldStart: _coldStart, ...shared } = quota;
  const where = mode === "sandbox" ? mode : upstream.baseUrl;
  const rules = engine.policies.config();
  const agreed = [where, engine.credentialInUse(), shared, rules, clientPerMinute, clientColdPerMinute];
  return hash("sha256", JSON.stringify(agreed), "hex").slice(0, 12);
}
