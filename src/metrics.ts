/** The Prometheus metrics: counts and durations by route, operation and lane. They never contain names, amounts or clients. */
import { type Lane, perLane } from "./quota/lane.js";
import type { QuotaSnapshot } from "./quota/line.js";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  request(route: string, method: string, status: number, durationMs: number): void;
  /** Counts a finished answer of the route that was sent again. */
  sentAgain(route: string): void;
  upstreamCall(operation: string, outcome: string, durationMs: number): void;
  /** Registers gauges and counters that read the quota on each scrape: calls, and the figures of each lane. */
  quota(read: () => QuotaSnapshot | null): void;
  /** Registers a metric with one label that is read on each scrape. */
  family(name: keyof typeof FAMILIES, read: Figures): void;
  /** The Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

type Figures = () => Readonly<Record<string, number>>;
type Kind = typeof Gauge | typeof Counter;

const FAMILIES = {
  health: [Gauge, "health_check", "check", "State of each health check: 0 pass, 1 warn, 2 fail."],
  circuits: [Gauge, "upstream_circuit_open", "operation", "1 while the circuit of the operation is open."],
  credentials: [
    Gauge,
    "upstream_credential_refused",
    "role",
    "1 while the upstream refuses the credential, by role.",
  ],
  retailFaults: [
    Gauge,
    "retail_config_faults",
    "fingerprint",
    "Faults of a changed RETAIL_CONFIG that isn't used, by the fingerprint of the file in effect.",
  ],
  prices: [
    Gauge,
    "price_list_prices",
    "what",
    "Prices that are sold, known, and doubtful until they have been refreshed.",
  ],
  promises: [Gauge, "promises", "what", "Valid price promises, and those below their floor."],
  saved: [Counter, "upstream_calls_saved_total", "by", "Upstream calls that were avoided, by reason."],
  rateLimited: [
    Counter,
    "client_rate_limited_total",
    "limit",
    "Requests refused by a client limit, by limit.",
  ],
  unexpected: [
    Counter,
    "upstream_unexpected_total",
    "operation",
    "Unknown fields, status words and error codes in answers of the upstream, by operation.",
  ],
  role: [
    Gauge,
    "storefront_role",
    "role",
    "1 for the part that this replica has: alone, owner, follower or none.",
  ],
} as const satisfies Record<string, readonly [Kind, name: string, label: string, help: string]>;

type LaneFigures = QuotaSnapshot["lanes"][Lane];
type LaneMetric = readonly [name: string, help: string, of: (figures: LaneFigures) => number];

const LANE_GAUGES: readonly LaneMetric[] = [
  ["quota_lane_queued", "Requests that are waiting for a call, by lane.", ({ queued }) => queued],
  [
    "quota_lane_longest_wait_seconds",
    "Longest wait of a served request since startup, by lane.",
    ({ longestWaitMs }) => longestWaitMs / 1000,
  ],
];
const LANE_COUNTERS: readonly LaneMetric[] = [
  ["quota_lane_served_total", "Requests that got a call, by lane.", ({ served }) => served],
  ["quota_lane_refused_total", "Requests refused because of the quota, by lane.", ({ refused }) => refused],
  ["quota_lane_abandoned_total", "Requests abandoned before their turn, by lane.", ({ left }) => left],
  [
    "quota_lane_retried_total",
    "Refused requests that came back to claim their reservation, by lane.",
    ({ retried }) => retried,
  ],
  [
    "quota_lane_retried_served_total",
    "Requests that claimed their reservation and got a call, by lane.",
    ({ retriedServed }) => retriedServed,
  ],
  [
    "quota_lane_wait_seconds_total",
    "Total time that served requests waited, by lane.",
    ({ waitedMsTotal }) => waitedMsTotal / 1000,
  ],
];

const QUOTA_METRICS: readonly (readonly [
  Kind,
  name: string,
  label: string,
  help: string,
  of: (now: QuotaSnapshot) => Readonly<Record<string, number>>,
])[] = [
  [
    Gauge,
    "quota_calls",
    "what",
    "Calls of the active credential: used in the current window, the budget, and the largest window today.",
    ({ used, budget, largestWindowToday }) => ({ used, budget, largest_window_today: largestWindowToday }),
  ],
  [
    Gauge,
    "quota_retry_after_seconds",
    "percentile",
    "Recent Retry-After values of refused visitors, by percentile.",
    ({ waits: { retryAfter } }) => ({
      0.5: retryAfter.p50Seconds,
      0.99: retryAfter.p99Seconds,
      1: retryAfter.maxSeconds,
    }),
  ],
  [
    Counter,
    "quota_reservations_total",
    "what",
    "Calls reserved for refused visitors, by `what`: made, claimed (in time), honoured (served), unclaimed.",
    ({ waits }) => ({ ...waits.reservations }),
  ],
  [
    Counter,
    "quota_refused_total",
    "cause",
    "Requests refused for lack of quota, by cause.",
    ({ waits }) => waits.refused,
  ],
  [
    Counter,
    "quota_idle_calls_total",
    "while",
    "Calls that were possible while requests waited but weren't made.",
    ({ waits }) => ({ waited_for: waits.idleCalls }),
  ],
];

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: "http_request_duration_seconds",
    help: "Duration of requests, by route, method and status (499: the client left).",
    labelNames: ["route", "method", "status"],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  // Without labels, so it exists before the first error, which an alert on a new series would miss.
  const internalErrors = new Counter({
    name: "http_internal_errors_total",
    help: "Requests answered with 500.",
    registers: [registry],
  });
  const sentAgain = new Map<string, number>();
  register(Counter, "http_sent_again_total", "route", "Finished answers sent again, by route.", () =>
    Object.fromEntries(sentAgain),
  );
  const calls = new Histogram({
    name: "upstream_call_duration_seconds",
    help: "Duration of upstream calls, by operation and outcome.",
    labelNames: ["operation", "outcome"],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  const scrapes = new Counter({
    name: "metrics_scrapes_total",
    help: "Scrapes of these metrics.",
    registers: [registry],
  });
  function register(Kind: Kind, name: string, label: string, help: string, read: Figures): void {
    const made: Gauge | Counter = new Kind({
      name,
      help,
      labelNames: [label],
      registers: [registry],
      collect() {
        made.reset();
        for (const [value, number] of Object.entries(read())) made.inc({ [label]: value }, number);
      },
    });
  }
  return {
    contentType: registry.contentType,
    request: (route, method, status, durationMs) => {
      requests.observe({ route, method, status }, durationMs / 1000);
      if (status === 500) internalErrors.inc();
    },
    sentAgain: (route) => void sentAgain.set(route, (sentAgain.get(route) ?? 0) + 1),
    upstreamCall: (operation, outcome, durationMs) => {
      calls.observe({ operation, outcome }, durationMs / 1000);
    },
    quota(read) {
      const known = (of: (now: QuotaSnapshot) => Readonly<Record<string, number>>) => () => {
        const now = read();
        return now === null ? {} : of(now);
      };
      const byLane = (of: (figures: LaneFigures) => number) =>
        known(({ lanes }) => perLane((lane) => of(lanes[lane])));
      for (const [Kind, name, label, help, of] of QUOTA_METRICS) register(Kind, name, label, help, known(of));
      for (const [name, help, of] of LANE_GAUGES) register(Gauge, name, "lane", help, byLane(of));
      for (const [name, help, of] of LANE_COUNTERS) register(Counter, name, "lane", help, byLane(of));
    },
    family(name, read) {
      const [Kind, metric, label, help] = FAMILIES[name];
      register(Kind, metric, label, help, read);
    },
    text: () => {
      scrapes.inc();
      return registry.metrics();
    },
  };
}
