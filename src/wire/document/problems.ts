/** The OpenAPI responses of the errors, with an example for each code. */
import { type ErrorCode, PROBLEMS } from "../../errors.js";
import { PROBLEM_MEANINGS } from "../problem-kinds.js";
import * as fields from "./headers.js";
import { type JsonObject, schemaRef } from "./schemas.js";

const RESPONSES = {
  InvalidRequest: ["invalid_request"],
  Unauthenticated: ["unauthenticated"],
  Forbidden: ["forbidden"],
  NotFound: ["not_found"],
  MethodNotAllowed: ["method_not_allowed"],
  NotAcceptable: ["not_acceptable"],
  PayloadTooLarge: ["payload_too_large"],
  UnsupportedMediaType: ["unsupported_media_type"],
  ExpectationFailed: ["expectation_failed"],
  RateLimited: ["rate_limited"],
  HeadersTooLarge: ["headers_too_large"],
  Internal: ["internal"],
  UpstreamFailed: ["upstream_failed", "upstream_contract"],
  Unavailable: ["quota_exhausted", "shutting_down", "unavailable"],
  ShuttingDown: ["shutting_down", "unavailable"],
  UpstreamTimeout: ["upstream_timeout"],
} as const satisfies Record<string, readonly [ErrorCode, ...ErrorCode[]]>;

export type ProblemResponse = keyof typeof RESPONSES;

/** The problems of every operation under /v1, and of those that may call the upstream. */
export const LOCAL = ["InvalidRequest", "NotAcceptable", "RateLimited", "Internal"] as const;
export const ASKING = [...LOCAL, "UpstreamFailed", "Unavailable", "UpstreamTimeout"] as const;

/** Example retry times of the errors that always have one. */
const RETRY_SECONDS: Partial<Record<ErrorCode, number>> = { rate_limited: 17, quota_exhausted: 9 };

function exampleOf(code: ErrorCode): JsonObject {
  const retryAfter = RETRY_SECONDS[code];
  const { status, title } = PROBLEMS[code];
  return {
    type: `/problems/${code}`,
    title,
    status,
    detail: PROBLEM_MEANINGS[code],
    code,
    requestId: "3f0c2a9e-5b1d-4c7e-9a53-2f6d8f1e0b44",
    ...(code === "invalid_request" && {
      detail: "years: must be one of 1, 2, 3 for registration under .af",
      errors: [
        { field: "years", reason: "not_sold", message: "must be one of 1, 2, 3 for registration under .af" },
      ],
    }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(code === "quota_exhausted" && { kept: true }),
  };
}

function headersOf(first: ErrorCode): JsonObject {
  const { status } = PROBLEMS[first];
  const limited = first === "rate_limited";
  return {
    "x-request-id": fields.REQUEST_ID,
    "Cache-Control": fields.NO_STORE,
    RateLimit: limited ? fields.RATE_LIMIT : fields.optional(fields.RATE_LIMIT),
    "RateLimit-Policy": limited ? fields.RATE_LIMIT_POLICY : fields.optional(fields.RATE_LIMIT_POLICY),
    ...(limited && { "Retry-After": fields.RETRY_AFTER }),
    ...(status >= 502 && { "Retry-After": fields.optional(fields.RETRY_AFTER) }),
    ...(first === "method_not_allowed" && { Allow: fields.ALLOW }),
    ...(first === "forbidden" && { "WWW-Authenticate": fields.optional(fields.AUTHENTICATE) }),
    ...(first === "unauthenticated" && { "WWW-Authenticate": fields.AUTHENTICATE }),
  };
}

function responseOf(codes: readonly [ErrorCode, ...ErrorCode[]]): JsonObject {
  const [first] = codes;
  return {
    description: codes.map((code) => PROBLEM_MEANINGS[code]).join(" Or: "),
    headers: headersOf(first),
    content: {
      "application/problem+json": {
        schema: {
          type: "object",
          allOf: [schemaRef("Problem")],
          properties: { status: { const: PROBLEMS[first].status }, code: { enum: codes } },
        },
        examples: Object.fromEntries(
          codes.map((code) => [code, { summary: PROBLEMS[code].title, value: exampleOf(code) }]),
        ),
      },
    },
  };
}

export function problemResponses(): JsonObject {
  return Object.fromEntries(Object.entries(RESPONSES).map(([name, codes]) => [name, responseOf(codes)]));
}

/** References to the responses of an operation, by status code. */
export function problemRefs(names: readonly ProblemResponse[]): JsonObject {
  return Object.fromEntries(
    names.map((name) => [
      String(PROBLEMS[RESPONSES[name][0]].status),
      { $ref: `#/components/responses/${name}` },
    ]),
  );
}
