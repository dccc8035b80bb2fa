/** Every problem that the service can answer with: what it means, as a response of the document with an example per code. */
import { type ErrorCode, PROBLEMS } from "../../errors.js";
import * as fields from "./headers.js";
import { type JsonObject, schemaRef } from "./schemas.js";

/** What a code means and what its reader can do. */
export const PROBLEM_MEANINGS = {
  invalid_request:
    "A parameter, a name, a TLD or a term is malformed or unknown. Each fault is named in errors; a retry without a change fails too.",
  unauthenticated: "There is no bearer token, or not a valid one. Send a valid token.",
  forbidden: "The token is valid but lacks the scope that this needs. Use a token that has it.",
  not_found: "There is no such path or resource.",
  method_not_allowed: "This path exists, but not for this method. The Allow field names those that it has.",
  not_acceptable: "The answer cannot be given in any form that the Accept field names.",
  payload_too_large: "The body is larger than what can be asked in one request. Ask for less at once.",
  unsupported_media_type: "The body must be JSON, sent as application/json.",
  rate_limited:
    "This client has asked more than it may in a minute. It is served again after the seconds given.",
  internal: "A fault of the service itself. It is recorded under the request id.",
  upstream_failed: "The registry service refused or broke, and nothing known may be shown instead.",
  upstream_contract:
    "The registry service answered something that cannot be trusted, and nothing known may be shown instead.",
  quota_exhausted:
    "The registry service cannot be asked in time, and nothing known may be shown. With kept, a call is reserved and a retry at the second given succeeds; without, it is very busy and nothing is reserved.",
  shutting_down: "This process is about to stop. A retry reaches another one, or this one after its restart.",
  upstream_timeout: "The registry service did not answer in time, and nothing known may be shown instead.",
} as const satisfies Record<ErrorCode, string>;

const RESPONSES = {
  InvalidRequest: ["invalid_request"],
  Unauthenticated: ["unauthenticated"],
  Forbidden: ["forbidden"],
  NotFound: ["not_found"],
  MethodNotAllowed: ["method_not_allowed"],
  NotAcceptable: ["not_acceptable"],
  PayloadTooLarge: ["payload_too_large"],
  UnsupportedMediaType: ["unsupported_media_type"],
  RateLimited: ["rate_limited"],
  Internal: ["internal"],
  UpstreamFailed: ["upstream_failed", "upstream_contract"],
  Unavailable: ["quota_exhausted", "shutting_down"],
  ShuttingDown: ["shutting_down"],
  UpstreamTimeout: ["upstream_timeout"],
} as const satisfies Record<string, readonly [ErrorCode, ...ErrorCode[]]>;

export type ProblemResponse = keyof typeof RESPONSES;

/** Only these name a time: for the others nobody knows when a retry helps. */
const RETRY_SECONDS: Partial<Record<ErrorCode, number>> = { rate_limited: 17, quota_exhausted: 9 };

export function problemKind(code: ErrorCode): JsonObject {
  const { status, title } = PROBLEMS[code];
  return { code, status, title, explanation: PROBLEM_MEANINGS[code] };
}

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
      detail: "years: not sold for this TLD",
      errors: [{ field: "years", message: "not sold for this TLD" }],
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

/** The responses of an operation under their status codes. */
export function problemRefs(names: readonly ProblemResponse[]): JsonObject {
  return Object.fromEntries(
    names.map((name) => [
      String(PROBLEMS[RESPONSES[name][0]].status),
      { $ref: `#/components/responses/${name}` },
    ]),
  );
}
