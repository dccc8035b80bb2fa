/** Why a request can be rejected, with its status, or the setting that decides it, and its code. */
type StatusSwitch = "credentialStatus" | "accessStatus" | "inputStatus" | "limitStatus";

/** The position of a reason is its numeric code, so add new ones at the end. */
export const FAILURES = {
  missing_credentials: { status: "credentialStatus", code: "missing_credentials" },
  invalid_credentials: { status: "credentialStatus", code: "invalid_credentials" },
  revoked_credentials: { status: "credentialStatus", code: "credentials_revoked" },
  api_access_disabled: { status: "accessStatus", code: "api_access_disabled" },
  ip_not_allowed: { status: "accessStatus", code: "ip_not_allowed" },
  rate_limited: { status: "limitStatus", code: "rate_limit_exceeded" },
  route_not_found: { status: 404, code: "not_found" },
  domain_not_found: { status: 404, code: "domain_not_found" },
  method_not_allowed: { status: 405, code: "method_not_allowed" },
  malformed_request: { status: 400, code: "bad_request" },
  malformed_json: { status: 400, code: "invalid_json" },
  payload_too_large: { status: 413, code: "payload_too_large" },
  unsupported_media_type: { status: 415, code: "unsupported_media_type" },
  invalid_field: { status: "inputStatus", code: "validation_failed" },
  invalid_domain: { status: "inputStatus", code: "invalid_domain" },
  tld_not_supported: { status: "inputStatus", code: "tld_not_supported" },
  term_not_offered: { status: "inputStatus", code: "term_not_offered" },
  internal: { status: 500, code: "internal_error" },
} as const satisfies Record<string, { readonly status: number | StatusSwitch; readonly code: string }>;

export type FailureReason = keyof typeof FAILURES;
