/** The Prometheus metrics: counts and durations by route, operation and lane. They never contain names, amounts or clients. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  request(route: string, method: string, status: number, durationMs: number): void;
  /** Counts a finished answer of the route that was sent again. */
  sentAgain(route: string): void;
  upstreamCall(operation: string, outcome: string, durationMs: number): void;
  /** Registers a metric with one label, whose values are read on each scrape. */
  readonly gauge: Register;
  readonly counter: Register;
  /** The Prometheus text format. */
  text(): Promise<string>;
  readonly contentType: string;
}

type Figures = () => Readonly<Record<string, number>>;
type Register = (name: string, label: string, help: string, read: Figures) => void;

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
  const sentAgain = new Counter({
    name: "http_sent_again_total",
    help: "Finished answers sent again, by route.",
    labelNames: ["route"],
    registers: [registry],
  });
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
  function registerFor(Kind: typeof Gauge | typeof Counter): Register {
    return (name, label, help, read) => {
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
    };
  }
  return {
    contentType: registry.contentType,
    request: (route, method, status, durationMs) => {
      requests.observe({ route, method, status }, durationMs / 1000);
      if (status === 500) internalErrors.inc();
    },
    sentAgain: (route) => {
      sentAgain.inc({ route });
    },
    upstreamCall: (operation, outcome, durationMs) => {
      calls.observe({ operation, outcome }, durationMs / 1000);
    },
    gauge: registerFor(Gauge),
    counter: registerFor(Counter),
    text: () => {
      scrapes.inc();
      return registry.metrics();
    },
  };
}
