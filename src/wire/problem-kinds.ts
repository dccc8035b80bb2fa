/** The explanation of every error code. */
import { type ErrorCode, PROBLEMS } from "../errors.js";

/** What each code means, and what a client can do about it. */
export const PROBLEM_MEANINGS = {
  invalid_request:
    "A parameter, name, TLD or term is malformed or unknown. `errors` names what is wrong. Change the request before a retry.",
  unauthenticated: "The bearer token is missing or invalid.",
  forbidden: "The token is valid, but doesn't have the scope that this request needs.",
  not_found: "There is no such path or resource, or it isn't visible with this token.",
  method_not_allowed:
    "The path exists, but not with this method. The `Allow` header lists the methods that it supports.",
  not_acceptable: "The service can't answer in any of the formats in the `Accept` header.",
  payload_too_large: "The body is larger than 32 kB, or than 64 kB for a price file.",
  unsupported_media_type:
    "The body must be sent as `application/json` in UTF-8, a price file as `application/yaml`.",
  expectation_failed:
    "The `Expect` header asks for something other than `100-continue`. Send the request without it.",
  rate_limited: "This client sent too many requests. It is served again after `retryAfter` seconds.",
  headers_too_large: "The request line and the headers together are larger than 16 kB.",
  internal: "The service itself failed. The error is logged with the request id.",
  upstream_failed:
    "The registry service refused the call or failed, and there is no known answer to show instead.",
  upstream_contract:
    "The registry service's answer can't be trusted, and there is no known answer to show instead.",
  quota_exhausted:
    "The registry service can't be asked in time, and there is no known answer to show. With `kept: true` a call is reserved, and a retry after `retryAfter` seconds succeeds. With `kept: false` nothing is reserved.",
  shutting_down: "This process is stopping. A retry reaches another process, or this one after its restart.",
  unavailable:
    "With several replicas: the one that may call the registry service can't be reached, and there is no known answer to show. Usually another one takes over within seconds.",
  upstream_timeout:
    "The registry service didn't answer in time, and there is no known answer to show instead.",
} as const satisfies Record<ErrorCode, string>;

/** The answer of `/problems/{code}`. */
export function problemKind(code: ErrorCode) {
  const { status, title } = PROBLEMS[code];
  return { code, status, title, explanation: PROBLEM_MEANINGS[code] };
}
