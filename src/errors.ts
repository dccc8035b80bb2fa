/** The error class of the service and the closed list of codes in its answers. */
export const PROBLEMS = {
  invalid_request: { status: 400, title: "Invalid request" },
  unauthenticated: { status: 401, title: "Authentication required" },
  forbidden: { status: 403, title: "Insufficient scope" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  not_acceptable: { status: 406, title: "Not acceptable" },
  payload_too_large: { status: 413, title: "Body too large" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  expectation_failed: { status: 417, title: "Expectation failed" },
  rate_limited: { status: 429, title: "Too many requests" },
  headers_too_large: { status: 431, title: "Header fields too large" },
  internal: { status: 500, title: "Internal error" },
  upstream_failed: { status: 502, title: "The registry service failed" },
  upstream_contract: { status: 502, title: "The registry service's answer wasn't understood" },
  quota_exhausted: { status: 503, title: "The registry service can't be asked in time" },
  shutting_down: { status: 503, title: "The service is shutting down" },
  unavailable: { status: 503, title: "The service can't be reached in full at the moment" },
  upstream_timeout: { status: 504, title: "The registry service timed out" },
} as const;

export type ErrorCode = keyof typeof PROBLEMS;

export const ERROR_CODES = Object.keys(PROBLEMS).filter((code): code is ErrorCode => code in PROBLEMS);

/** Why a field is invalid, for programs; the message is for people. */
export const REASONS = [
  "required",
  "unknown",
  "malformed",
  "out_of_range",
  "too_long",
  "too_short",
  "too_many",
  "duplicate",
  "not_sold",
  "not_a_name",
  "character",
  "script",
  "contradiction",
] as const;
export type Reason = (typeof REASONS)[number];

export interface FieldError {
  readonly field: string;
  readonly reason: Reason;
  readonly message: string;
}

interface ErrorExtras {
  readonly errors?: readonly FieldError[];
  /** How long to wait before a retry, in ms. */
  readonly retryAfterMs?: number;
  /** For `quota_exhausted`: whether a call is reserved for that time. */
  readonly kept?: boolean;
  /** Response headers that belong to the error, such as Allow. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Every error of the service. `detail` may be shown to anyone, so it never contains text from the upstream. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly errors: readonly FieldError[];
  readonly retryAfterMs: number | undefined;
  readonly kept: boolean | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    super(`${code}: ${detail}`);
    this.name = "ServiceError";
    this.code = code;
    this.detail = detail;
    this.errors = extras.errors ?? [];
    this.retryAfterMs = extras.retryAfterMs;
    this.kept = extras.kept;
    this.headers = extras.headers ?? {};
  }

  /** The same refusal `ms` later: the wait is shorter, and a reservation whose time has passed is no longer promised. */
  after(ms: number): ServiceError {
    const { code, detail, errors, retryAfterMs, kept, headers } = this;
    if (retryAfterMs === undefined || ms <= 0) return this;
    const leftMs = Math.max(1, retryAfterMs - ms);
    const reservation = kept === undefined ? {} : { kept: kept && ms < retryAfterMs };
    return new ServiceError(code, detail, { errors, headers, retryAfterMs: leftMs, ...reservation });
  }
}

/** Whether the error is one that the service expects, as opposed to a bug or a caller that has left. */
export function isExpected(error: unknown): error is ServiceError {
  return error instanceof ServiceError && error.code !== "internal";
}

/** A fault of our own as log fields: its message and stack, but no properties, such as the header fields of a request to the upstream. */
export function detailsOf(error: unknown): { readonly reason: string; readonly stack?: string } {
  return error instanceof Error
    ? { reason: error.message, stack: error.stack ?? "" }
    : { reason: "not an Error" };
}

/** A refusal that asks for another bearer token (RFC 6750, section 3). */
export function challenge(
  code: "unauthenticated" | "forbidden",
  detail: string,
  parameters: string,
): ServiceError {
  return new ServiceError(code, detail, { headers: { "WWW-Authenticate": `Bearer ${parameters}` } });
}

export function shuttingDown(): ServiceError {
  return new ServiceError("shutting_down", "This process is stopping.", { retryAfterMs: 1000 });
}

/** With several replicas: which of them may call the registry service is unknown, or that one can't be reached. */
export function unavailable(retryAfterMs = 2000): ServiceError {
  return new ServiceError("unavailable", "This can't be answered at the moment.", { retryAfterMs });
}

/** An `invalid_request` caused by one field, which the answer names. */
export function invalidField(field: string, reason: Reason, message: string): ServiceError {
  return new ServiceError("invalid_request", `${field}: ${message}`, {
    errors: [{ field, reason, message }],
  });
}
