/** The one home of the metrics library: counts and durations by route, operation and lane; no names, no amounts, no clients. */
import { type LaneFigures, LANES, type QuotaSnapshot, type WaitFigures } from "./quota/quota.js";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  request(route: string, method: string, status: number, durationMs: number): void;
  upstreamCall(operation: string, outcome: string, durationMs: number): void;
  /** Has the quota in use told at every scrape: calls, and what each lane waits for, gets and is refused. */
  quota(read: () => QuotaSnapshot | null): void;
  /** Has the upstream calls that were not needed told at every scrape, by what made them needless. */
  saved(read: () => Readonly<Record<string, number>>): void;
  /** Registers counters of clients refused by a limit, read on each scrape. */
  rateLimited(read: () => Readonly<Record<string, number>>): void;
  /** Has what the upstream said and nobody expected counted at every scrape, by operation. */
  surprises(read: () => Readonly<Record<string, number>>): void;
  /** Prometheus text. */
  text(): Promise<string>;
  readonly contentType: string;
}

type LaneMetric = readonly [name: string, help: string, of: (figures: LaneFigures) => number];

const LANE_GAUGES: readonly LaneMetric[] = [
  ["quota_lane_queued", "Asks that wait for a call.", ({ queued }) => queued],
  [
    "quota_lane_longest_wait_seconds",
    "The longest wait of a served ask since the start.",
    ({ longestWaitMs }) => longestWaitMs / 1000,
  ],
];
const LANE_COUNTERS: readonly LaneMetric[] = [
  ["quota_lane_served_total", "Asks that got a call.", ({ served }) => served],
  ["quota_lane_refused_total", "Asks refused for want of quota.", ({ refused }) => refused],
  ["quota_lane_left_total", "Asks that nobody waited for any more.", ({ left }) => left],
  [
    "quota_lane_retried_total",
    "Refused requests that came back to their reservation.",
    ({ retried }) => retried,
  ],
  [
    "quota_lane_retried_served_total",
    "Of these, asks that got a call.",
    ({ retriedServed }) => retriedServed,
  ],
  [
    "quota_lane_wait_seconds_total",
    "Time that served asks waited.",
    ({ waitedMsTotal }) => waitedMsTotal / 1000,
  ],
];

const WAIT_METRICS: readonly {
  readonly Kind: typeof Gauge | typeof Counter;
  readonly name: string;
  readonly help: string;
  readonly label: string;
  readonly of: (figures: WaitFigures) => Readonly<Record<string, number>>;
}[] = [
  {
    Kind: Gauge,
    name: "quota_told_wait_seconds",
    help: "What refused visitors were told to wait of late.",
    label: "quantile",
    of: ({ told }) => ({ 0.5: told.p50Seconds, 0.99: told.p99Seconds, 1: told.maxSeconds }),
  },
  {
    Kind: Counter,
    name: "quota_reservations_total",
    help: "Calls reserved for refused visitors: made, come back to in time, served, never come back to.",
    label: "what",
    of: ({ reservations }) => ({ ...reservations }),
  },
  {
    Kind: Counter,
    name: "quota_refused_total",
    help: "Requests refused for want of quota, by cause.",
    label: "cause",
    of: ({ refused }) => refused,
  },
  {
    Kind: Counter,
    name: "quota_idle_calls_total",
    help: "Calls that were due while somebody waited and were not made.",
    label: "while",
    of: ({ idleCalls }) => ({ waited_for: idleCalls }),
  },
];

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: "http_request_duration_seconds",
    help: "Answers by route, method and status.",
    labelNames: ["route", "method", "status"],
    buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  });
  const calls = new Histogram({
    name: "upstream_call_duration_seconds",
    help: "Calls to the upstream by operation and outcome.",
    labelNames: ["operation", "outcome"],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [registry],
  });
  const scrapes = new Counter({
    name: "metrics_scrapes_total",
    help: "Scrapes of this page.",
    registers: [registry],
  });
  /** A family that is read when somebody scrapes. */
  function family(
    Kind: typeof Gauge | typeof Counter,
    { name, help, label }: { name: string; help: string; label: string },
    read: () => Readonly<Record<string, number>>,
  ): void {
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
    },
    upstreamCall: (operation, outcome, durationMs) => {
      calls.observe({ operation, outcome }, durationMs / 1000);
    },
    quota(read) {
      family(
        Gauge,
        {
          name: "quota_calls",
          help: "Calls of the active credential in the current window, and the budget.",
          label: "what",
        },
        () => {
          const now = read();
          return now === null
            ? {}
            : { used: now.used, budget: now.budget, largest_window_today: now.largestWindowToday };
        },
      );
      const lanes = (of: (figures: LaneFigures) => number) => (): Record<string, number> => {
        const now = read();
        return now === null ? {} : Object.fromEntries(LANES.map((lane) => [lane, of(now.lanes[lane])]));
      };
      const label = "lane";
      const waits = (of: (figures: WaitFigures) => Readonly<Record<string, number>>) => () => {
        const now = read();
        return now === null ? {} : of(now.waits);
      };
      for (const { Kind, name, help, label, of } of WAIT_METRICS)
        family(Kind, { name, help, label }, waits(of));
      for (const [name, help, of] of LANE_GAUGES) family(Gauge, { name, help, label }, lanes(of));
      for (const [name, help, of] of LANE_COUNTERS) family(Counter, { name, help, label }, lanes(of));
    },
    saved: (read) => {
      const help = "Upstream calls that were not needed, by what made them needless.";
      family(Counter, { name: "upstream_calls_saved_total", help, label: "by" }, read);
    },
    rateLimited: (read) => {
      const help = "Requests refused because their client had asked too much, by the limit.";
      family(Counter, { name: "client_rate_limited_total", help, label: "limit" }, read);
    },
    surprises: (read) => {
      const help = "Fields, status words and error codes of the upstream that are not known.";
      family(Counter, { name: "upstream_surprises_total", help, label: "operation" }, read);
    },
    text: () => {
      scrapes.inc();
      return registry.metrics();
    },
  };
}
