/** The one home of the metrics library: counts and durations by route, operation and lane; no names, no amounts, no clients. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";

export interface Metrics {
  request(route: string, method: string, status: number, durationMs: number): void;
  upstreamCall(operation: string, outcome: string, durationMs: number): void;
  /** Adds a gauge family that is read when somebody scrapes. */
  gauge(name: string, help: string, label: string, read: () => Readonly<Record<string, number>>): void;
  /** Prometheus text. */
  text(): Promise<string>;
  readonly contentType: string;
}

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
  return {
    contentType: registry.contentType,
    request: (route, method, status, durationMs) => {
      requests.observe({ route, method, status }, durationMs / 1000);
    },
    upstreamCall: (operation, outcome, durationMs) => {
      calls.observe({ operation, outcome }, durationMs / 1000);
    },
    gauge: (name, help, label, read) => {
      const gauge = new Gauge({
        name,
        help,
        labelNames: [label],
        registers: [registry],
        collect() {
          for (const [value, number] of Object.entries(read())) gauge.set({ [label]: value }, number);
        },
      });
    },
    text: () => {
      scrapes.inc();
      return registry.metrics();
    },
  };
}
