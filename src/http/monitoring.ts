/** Reports the state of the service: the overview for staff, `/health`, the metrics, and this replica's figures for the fleet. */
import { createHash } from "node:crypto";
import type { Config } from "../config/env.js";
import type { Engine } from "../engine.js";
import { createFleet } from "../fleet.js";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { Metrics } from "../metrics.js";
import { promisesInForce } from "../retail/lost-margin.js";
import type { HealthParts } from "./health.js";
import { createHistory, type History } from "./history.js";
import {
  fleetFigures,
  healthChecks,
  presentOverview,
  priceWarnings,
  type Redis,
  savedCalls,
  stateReaders,
} from "./overview.js";

export interface MonitoringSettings {
  readonly config: Config;
  readonly version: string;
  readonly mode: "sandbox" | "upstream";
  /** The upstream's base URL. */
  readonly upstreamUrl: string;
  readonly engine: Engine;
  readonly metrics: Metrics;
  /** Requests refused since startup: beyond a client's limit, beyond its cold limit, and locally, without an upstream call. */
  readonly refusals: () => { readonly requests: number; readonly cold: number; readonly locally: number };
  readonly clock: Clock;
  readonly log: Log;
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
  const { config, mode, engine, metrics, refusals, clock, log } = settings;
  const { credentials, upstream, pools, prices, epochs, policies, promises, redis } = engine;
  const quota = () => engine.quota()?.snapshot() ?? null;
  const inForce = () => promisesInForce(promises.inForce(), prices.facts(), policies.current(), clock.now());
  const saved = () => ({ pools, refusedLocally: refusals().locally });
  const redisState = (): Redis => redis?.state() ?? "none";
  const fleet = createFleet({
    link: redis,
    version: settings.version,
    replicasMax: config.quota.replicasMax,
    settings: () => agreedSettings(settings),
    figures: () => fleetFigures({ ...saved(), quota: quota(), promises: inForce() }),
    clock,
    log,
  });
  const warnings = priceWarnings(prices, policies, clock);
  const checks = () =>
    healthChecks({
      redis: redisState(),
      fleet: fleet.fault(),
      credentials,
      upstream,
      quota: quota(),
      stateProblem: engine.stateProblem(),
      known: prices.facts(),
      sold: prices.size,
      warnings: warnings(),
    });

  const state = stateReaders({ checks, upstream, credentials, policies });
  metrics.family("health", state.health);
  metrics.family("circuits", state.circuits);
  metrics.family("credentials", state.credentials);
  metrics.family("retailFaults", state.retailFaults);
  metrics.quota(quota);
  metrics.family("prices", () => ({
    sold: prices.size,
    known: prices.facts().length,
    doubtful: prices.facts().filter(({ isDoubtful }) => isDoubtful).length,
  }));
  metrics.family("promises", () => {
    const { inForce: in_force, belowFloor: below_floor } = inForce();
    return { in_force, below_floor };
  });
  metrics.family("saved", () => savedCalls(saved()));
  metrics.replicas(() => fleet.members().length);
  metrics.family("rateLimited", () => {
    const { requests, cold } = refusals();
    return { requests, cold };
  });
  metrics.family("unexpected", upstream.unexpected.totals);
  metrics.family("redis", () => redis?.refusals() ?? {});

  function overview() {
    const { requests, cold } = refusals();
    const now = quota();
    if (now === null)
      throw new ServiceError("quota_exhausted", "The service is starting.", { retryAfterMs: 1000 });
    return presentOverview({
      ...saved(),
      mode,
      credentials,
      upstream,
      recentCalls: engine.recentCalls,
      quota: now,
      redis: redisState(),
      prices,
      epochs,
      retailFile: policies.state(),
      promises: inForce(),
      rateLimited: { requests, cold },
      members: fleet.members(),
    });
  }
  const history = createHistory({ source: overview, redis, clock });

  return {
    overview,
    history: history.present,
    keepHistory: history.keep,
    checks,
    close: fleet.close,
  };
}

/** A fingerprint of what all replicas must have in common: upstream, credential, quota, client limits, and the price rules in effect. */
function agreedSettings({ config, mode, upstreamUrl, engine }: MonitoringSettings): string {
  const { quota, clientPerMinute, clientColdPerMinute } = config;
  // How the ledger starts is a matter of one start.
  const { coldStart: _coldStart, ...shared } = quota;
  const where = mode === "sandbox" ? mode : upstreamUrl;
  const rules = engine.policies.config();
  const agreed = [where, engine.credentialInUse(), shared, rules, clientPerMinute, clientColdPerMinute];
  return createHash("sha256").update(JSON.stringify(agreed)).digest("hex").slice(0, 12);
}
