/** Paths for operators and tools: metrics, health, keys, error codes, this document. */
import { ERROR_CODES } from "../../errors.js";
import { problemKind } from "../problem-kinds.js";
import { inPath, operation } from "./operation.js";
import { exampleOf, type JsonObject, schemaRef } from "./schemas.js";

const UNLIMITED = ["InvalidRequest", "Internal"] as const;
const LIMITED = [...UNLIMITED, "RateLimited", "ShuttingDown"] as const;

function state(description: string, word: string) {
  return { description, content: { schema: "Status", example: { status: word } } } as const;
}

function health(description: string, statuses: readonly string[]) {
  const schema = {
    type: "object",
    allOf: [schemaRef("Health")],
    properties: { status: { enum: statuses } },
  };
  const example = { ...exampleOf("Health"), status: statuses[0] };
  return { description, content: { type: "application/health+json", schema, example } };
}

const metrics = operation({
  id: "getMetrics",
  tag: "service",
  summary: "Prometheus metrics.",
  scope: "metrics",
  answer: {
    description: "The Prometheus text format.",
    content: {
      type: "text/plain",
      schema: { type: "string" },
      example: "# TYPE process_uptime_seconds gauge\nprocess_uptime_seconds 42\n",
    },
  },
  isRepeatable: false,
  problems: [...LIMITED, "Unauthenticated", "Forbidden"],
});

const live = operation({
  id: "getLiveness",
  tag: "service",
  summary: "Whether the process is running.",
  answer: state("The process is running.", "live"),
  isRepeatable: false,
  problems: UNLIMITED,
});

const ready = operation({
  id: "getReadiness",
  tag: "service",
  summary: "Whether the service can answer requests.",
  description: "Uses no quota.",
  answer: state("The service is ready.", "ready"),
  isRepeatable: false,
  unavailable: state("The service is starting or stopping.", "draining"),
  problems: UNLIMITED,
});

const healthy = operation({
  id: "getHealth",
  tag: "service",
  summary: "Health of the service and its dependencies.",
  description: "Uses no quota.",
  answer: health("The service answers requests, possibly with limitations.", ["pass", "warn"]),
  isRepeatable: false,
  unavailable: health("Every credential is refused.", ["fail"]),
  problems: UNLIMITED,
});

const problem = operation({
  id: "getProblemKind",
  tag: "service",
  summary: "Explanation of an error code.",
  parameters: [inPath("code", "The error code.", { type: "string", enum: ERROR_CODES }, "quota_exhausted")],
  answer: {
    description: "The explanation.",
    content: { schema: "ProblemKind", example: problemKind("quota_exhausted") },
  },
  problems: [...LIMITED, "NotFound"],
});

const keys = operation({
  id: "getPromiseKeys",
  tag: "service",
  summary: "Public keys that verify signed carts.",
  description: "A signed cart names its key by `kid`. The keys of all valid signed carts are included.",
  answer: {
    description: "A JWK set. It is empty if the service has no signing key.",
    content: { schema: "KeySet" },
  },
  problems: LIMITED,
});

const document = operation({
  id: "getOpenApiDocument",
  tag: "service",
  summary: "This document.",
  answer: {
    description: "An OpenAPI 3.1 document.",
    content: {
      schema: {
        type: "object",
        properties: {
          openapi: { type: "string" },
          info: { type: "object" },
          paths: { type: "object" },
        },
        required: ["openapi", "info", "paths"],
      },
    },
  },
  problems: LIMITED,
});

export const SERVICE_PATHS: JsonObject = {
  "/metrics": { get: metrics },
  "/livez": { get: live },
  "/readyz": { get: ready },
  "/health": { get: healthy },
  "/.well-known/jwks.json": { get: keys },
  "/problems/{code}": { get: problem },
  "/openapi.json": { get: document },
};
