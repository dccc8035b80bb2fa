/** The gauges and counters that are read from the parts of the service on each scrape. */
import type { Metrics } from "../metrics.js";
import { type Lane, perLane } from "../quota/lane.js";
import type { QuotaSnapshot } from "../quota/line.js";
import { OPERATIONS } from "../upstream/vocabulary.js";
import {
  type HealthChecks,
  priceCounts,
  quotaOf,
  rateLimited,
  savedCalls,
  type ServiceParts,
  validPromises,
} from "./overview.js";

const GRADES = { pass: 0, warn: 1, fail: 2 };

export function registerGauges(
  { gauge, counter }: Metrics,
  parts: ServiceParts,
  checks: () => HealthChecks,
): void {
  const { upstream, credentials, policies } = parts.engine;

  gauge("health_check", "check", "State of each health check: 0 pass, 1 warn, 2 fail.", () =>
    Object.fromEntries(Object.entries(checks()).map(([name, { status }]) => [name, GRADES[status]])),
  );
  gauge("upstream_circuit_open", "operation", "1 while the circuit of the operation is open.", () => {
    const { openCircuits } = upstream.health();
    return Object.fromEntries(OPERATIONS.map((one) => [one, Number(openCircuits.includes(one))]));
  });
  gauge("upstream_credential_refused", "role", "1 while the upstream refuses the credential, by role.", () =>
    Object.fromEntries(credentials.states().map(({ role, refused }) => [role, Number(refused)])),
  );
  gauge(
    "retail_config_faults",
    "fingerprint",
    "Faults of a changed RETAIL_CONFIG that isn't used, by the fingerprint of the file in effect.",
    () => {
      const { fingerprint, faults } = policies.state();
      return { [fingerprint]: faults.length };
    },
  );
  gauge(
    "price_list_prices",
    "what",
    "Prices that are sold, known, and doubtful until they have been refreshed.",
    // Only the owner asks for prices, so another replica's would seem to be missing.
    () => (parts.owner().role === "follower" ? {} : priceCounts(parts)),
  );
  gauge("promises", "what", "Valid price promises, and those below their floor.", () => {
    const { inForce, belowFloor } = validPromises(parts);
    return { in_force: inForce, below_floor: belowFloor };
  });
  gauge(
    "storefront_role",
    "role",
    "1 for the part that this replica has: alone, owner, follower or none.",
    () => ({ [parts.owner().role]: 1 }),
  );
  counter("upstream_calls_saved_total", "by", "Upstream calls that were avoided, by reason.", () =>
    savedCalls(parts),
  );
  counter("client_rate_limited_total", "limit", "Requests refused by a client limit, by limit.", () =>
    rateLimited(parts),
  );
  counter(
    "upstream_unexpected_total",
    "operation",
    "Unknown fields, status words and error codes in answers of the upstream, by operation.",
    upstream.unexpected.totals,
  );
  registerQuota({ gauge, counter }, parts);
}

/** Calls, and the figures of each lane. */
function registerQuota({ gauge, counter }: Pick<Metrics, "gauge" | "counter">, parts: ServiceParts): void {
  const read = (of: (now: QuotaSnapshot) => Readonly<Record<string, number>>) => () => {
    const now = quotaOf(parts);
    return now === null ? {} : of(now);
  };
  const byLane = (of: (figures: QuotaSnapshot["lanes"][Lane]) => number) =>
    read(({ lanes }) => perLane((lane) => of(lanes[lane])));

  gauge(
    "quota_calls",
    "what",
    "Calls of the active credential: used in the current window, the budget, and the largest window today.",
    read(({ used, budget, largestWindowToday }) => ({
      used,
      budget,
      largest_window_today: largestWindowToday,
    })),
  );
  gauge(
    "quota_retry_after_seconds",
    "percentile",
    "Recent Retry-After values of refused visitors, by percentile.",
    read(({ waits: { retryAfter } }) => ({
      0.5: retryAfter.p50Seconds,
      0.99: retryAfter.p99Seconds,
      1: retryAfter.maxSeconds,
    })),
  );
  counter(
    "quota_reservations_total",
    "what",
    "Calls reserved for refused visitors, by `what`: made, claimed (in time), honoured (served), unclaimed.",
    read(({ waits }) => ({ ...waits.reservations })),
  );
  counter(
    "quota_refused_total",
    "cause",
    "Requests refused for lack of quota, by cause.",
    read(({ waits }) => waits.refused),
  );
  counter(
    "quota_idle_calls_total",
    "while",
    "Calls that were possible while requests waited but weren't made.",
    read(({ waits }) => ({ waited_for: waits.idleCalls })),
  );

  const lane = (register: Metrics["gauge"], name: string, help: string, of: Parameters<typeof byLane>[0]) => {
    register(`quota_lane_${name}`, "lane", `${help}, by lane.`, byLane(of));
  };
  lane(gauge, "queued", "Requests that are waiting for a call", ({ queued }) => queued);
  lane(
    gauge,
    "longest_wait_seconds",
    "Longest wait of a served request since startup",
    ({ longestWaitMs }) => longestWaitMs / 1000,
  );
  lane(counter, "served_total", "Requests that got a call", ({ served }) => served);
  lane(counter, "refused_total", "Requests refused because of the quota", ({ refused }) => refused);
  lane(counter, "abandoned_total", "Requests abandoned before their turn", ({ left }) => left);
  lane(
    counter,
    "retried_total",
    "Refused requests that came back to claim their reservation",
    ({ retried }) => retried,
  );
  lane(
    counter,
    "retried_served_total",
    "Requests that claimed their reservation and got a call",
    ({ retriedServed }) => retriedServed,
  );
  lane(
    counter,
    "wait_seconds_total",
    "Total time that served requests waited",
    ({ waitedMsTotal }) => waitedMsTotal / 1000,
  );
}
