/** Paths for operators and tools: metrics, health, keys, error codes, this document. */
import { answer, inPath, operation, repeatable } from "./operation.js";
import { type JsonObject, schemaRef } from "./schemas.js";
import { ERROR_CODES } from "../../errors.js";
import { problemKind } from "../problem-kinds.js";

const UNLIMITED = ["InvalidRequest", "Internal"] as const;
const LIMITED = [...UNLIMITED, "RateLimited", "ShuttingDown"] as const;

const HEALTH = {
  status: "pass",
  version: "1.0.0",
  description: "Live upstream.",
  checks: {
    upstream: [{ status: "pass" }],
    quota: [{ status: "pass" }],
    redis: [{ status: "pass" }],
    prices: [{ status: "pass" }],
    owner: [{ status: "pass", output: "Without replicas." }],
    proxy: [{ status: "pass" }],
  },
};

function state(description: string, word: string): JsonObject {
  return answer({ description, content: { schema: "Status", example: { status: word } } });
}

function health(description: string, statuses: readonly string[], example: unknown): JsonObject {
  const schema = {
    type: "object",
    allOf: [schemaRef("Health")],
    properties: { status: { enum: statuses } },
  };
  return answer({ description, content: { type: "application/health+json", schema, example } });
}

const metrics = operation({
  id: "getMetrics",
  tag: "service",
  summary: "Prometheus metrics.",
  scope: "metrics",
  answers: {
    200: answer({
      description: "The Prometheus text format.",
      content: {
        type: "text/plain",
        schema: { type: "string" },
        example: "# TYPE process_uptime_seconds gauge\nprocess_uptime_seconds 42\n",
      },
    }),
  },
  problems: [...LIMITED, "Unauthenticated", "Forbidden"],
});

const live = operation({
  id: "getLiveness",
  tag: "service",
  summary: "Whether the process is running.",
  answers: { 200: state("The process is running.", "live") },
  problems: UNLIMITED,
});

const ready = operation({
  id: "getReadiness",
  tag: "service",
  summary: "Whether the service can answer requests.",
  description: "Uses no quota.",
  answers: {
    200: state("The service is ready.", "ready"),
    503: state("The service is starting or stopping.", "draining"),
  },
  problems: UNLIMITED,
});

const healthy = operation({
  id: "getHealth",
  tag: "service",
  summary: "Health of the service and its dependencies.",
  description: "Uses no quota.",
  answers: {
    200: health("The service answers requests, possibly with limitations.", ["pass", "warn"], HEALTH),
    503: health("Every credential is refused.", ["fail"], {
      ...HEALTH,
      status: "fail",
      checks: { ...HEALTH.checks, upstream: [{ status: "fail", output: "Every credential is refused." }] },
    }),
  },
  problems: UNLIMITED,
});

const problem = operation({
  id: "getProblemKind",
  tag: "service",
  summary: "Explanation of an error code.",
  parameters: [inPath("code", "The error code.", { type: "string", enum: ERROR_CODES }, "quota_exhausted")],
  answers: repeatable(answer, {
    description: "The explanation.",
    content: { schema: "ProblemKind", example: problemKind("quota_exhausted") },
  }),
  problems: [...LIMITED, "NotFound"],
});

const keys = operation({
  id: "getPromiseKeys",
  tag: "service",
  summary: "Public keys that verify signed carts.",
  description: "A signed cart names its key by `kid`. The keys of all valid signed carts are included.",
  answers: repeatable(answer, {
    description: "A JWK set. It is empty if the service has no signing key.",
    content: {
      schema: "KeySet",
      example: {
        keys: [
          {
            kty: "OKP",
            crv: "Ed25519",
            x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            kid: "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
            use: "sig",
            alg: "EdDSA",
          },
        ],
      },
    },
  }),
  problems: LIMITED,
});

const document = operation({
  id: "getOpenApiDocument",
  tag: "service",
  summary: "This document.",
  answers: repeatable(answer, {
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
  }),
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
