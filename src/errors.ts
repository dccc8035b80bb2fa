/** The one error class of the service and the closed list of codes that the outside may see (contract section 3). */
export const PROBLEMS = {
  invalid_request: { status: 400, title: "The request is not valid" },
  unauthenticated: { status: 401, title: "A valid token is needed" },
  forbidden: { status: 403, title: "The token does not allow this" },
  not_found: { status: 404, title: "There is nothing here" },
  method_not_allowed: { status: 405, title: "The method is not allowed here" },
  not_acceptable: { status: 406, title: "No acceptable representation" },
  payload_too_large: { status: 413, title: "The body is too large" },
  unsupported_media_type: { status: 415, title: "The body's type is not supported" },
  rate_limited: { status: 429, title: "Too many requests from this client" },
  internal: { status: 500, title: "Our own fault" },
  upstream_failed: { status: 502, title: "The registry service failed" },
  upstream_contract: { status: 502, title: "The registry service's answer was not understood" },
  quota_exhausted: { status: 503, title: "The registry service cannot be asked in time" },
  shutting_down: { status: 503, title: "The service is shutting down" },
  upstream_timeout: { status: 504, title: "The registry service was too slow" },
} as const;

export type ErrorCode = keyof typeof PROBLEMS;

export interface FieldError {
  readonly field: string;
  readonly message: string;
}

export interface ErrorExtras {
  readonly errors?: readonly FieldError[];
  /** How long from now a retry is pointless, in ms. */
  readonly retryAfterMs?: number;
  /** Of `quota_exhausted`: whether a call is reserved for then. */
  readonly kept?: boolean;
  /** Extra answer headers that belong to the error, such as Allow. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Whatever goes wrong, told in our own words: `detail` may be shown to anyone, so nothing of the upstream's goes in. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  readonly retryAfterMs: number | undefined;
  readonly kept: boolean | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    const { stackTraceLimit } = Error;
    // A refusal is an answer: nobody reads its stack, which would be a fifth of what it costs.
    if (code !== "internal") Error.stackTraceLimit = 0;
    super(`${code}: ${detail}`);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "ServiceError";
    this.code = code;
    this.detail = detail;
    this.errors = extras.errors ?? [];
    this.retryAfterMs = extras.retryAfterMs;
    this.kept = extras.kept;
    this.headers = extras.headers ?? {};
  }
}

/** A request refused for one field, which the answer names. */
export function invalidField(field: string, message: string): ServiceError {
  return new ServiceError("invalid_request", `${field}: ${message}`, { errors: [{ field, message }] });
}
