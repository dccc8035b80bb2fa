/**
 * The only place that decides how an answer looks: field names, statuses, codes, date formats. Whatever the document
 * leaves open ("not shown") is chosen here, so that another choice is another `Shapes` and no change of behaviour.
 */
import type {
  Availability,
  Balance,
  DomainRecord,
  Failure,
  FailureReason,
  Money,
  Quote,
  TierStanding,
} from "./facts.js";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface Shapes {
  availability(result: Availability): Answer;
  quote(quote: Quote): Answer;
  domains(records: readonly DomainRecord[]): Answer;
  domain(record: DomainRecord): Answer;
  balance(balance: Balance): Answer;
  tier(standing: TierStanding): Answer;
  failure(failure: Failure): Answer;
}

const FAILURES: Readonly<Record<FailureReason, { readonly status: number; readonly code: string }>> = {
  missing_credentials: { status: 401, code: "missing_credentials" },
  invalid_credentials: { status: 401, code: "invalid_credentials" },
  revoked_credentials: { status: 401, code: "credentials_revoked" },
  api_access_disabled: { status: 403, code: "api_access_disabled" },
  ip_not_allowed: { status: 403, code: "ip_not_allowed" },
  rate_limited: { status: 429, code: "rate_limit_exceeded" },
  route_not_found: { status: 404, code: "not_found" },
  domain_not_found: { status: 404, code: "domain_not_found" },
  method_not_allowed: { status: 405, code: "method_not_allowed" },
  malformed_request: { status: 400, code: "bad_request" },
  malformed_json: { status: 400, code: "invalid_json" },
  payload_too_large: { status: 413, code: "payload_too_large" },
  unsupported_media_type: { status: 415, code: "unsupported_media_type" },
  invalid_field: { status: 422, code: "validation_failed" },
  invalid_domain: { status: 422, code: "invalid_domain" },
  tld_not_supported: { status: 422, code: "tld_not_supported" },
  term_not_offered: { status: 422, code: "term_not_offered" },
  internal: { status: 500, code: "internal_error" },
};

export function decimal(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, "0");
  return `${cents < 0 ? "-" : ""}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

function pricing(price: Money): { amount: string; currency: string } {
  return { amount: decimal(price.cents), currency: price.currency };
}

function moment(date: Date): string {
  return date.toISOString().replace(/\.\d{3}Z$/, "Z");
}

function record(domain: DomainRecord): unknown {
  return {
    domain: domain.domain,
    status: domain.status,
    expires_at: moment(domain.expiresAt),
    registered_at: moment(domain.registeredAt),
    auto_renew: domain.autoRenew,
    nameservers: [...domain.nameservers],
  };
}

function success(data: unknown): Answer {
  return { status: 200, headers: {}, body: { success: true, data } };
}

/** The plainest reading of the document. */
export const plainShapes: Shapes = {
  availability: ({ domain, available, price }) =>
    success({
      domain,
      status: available ? "available" : "taken",
      available,
      pricing: price === null ? null : pricing(price),
    }),
  quote: ({ tld, action, years, price }) => success({ tld, action, years, pricing: pricing(price) }),
  domains: (records) => success({ domains: records.map(record) }),
  domain: (one) => success(record(one)),
  balance: ({ accountNumber, balance, creditLimit, activeDomains }) =>
    success({
      account_number: accountNumber,
      balance: decimal(balance.cents),
      currency: balance.currency,
      credit_limit: decimal(creditLimit.cents),
      active_domains: activeDomains,
    }),
  tier: ({ current, next, domainsNeeded }) =>
    success({ current_tier: current, next_tier: next, domains_needed: domainsNeeded }),
  failure: ({ reason, message, extras }) => {
    const { status, code } = FAILURES[reason];
    const headers: Record<string, string> = {};
    if (extras.allow !== undefined) headers["Allow"] = extras.allow;
    if (extras.retryAfterSeconds !== undefined) headers["Retry-After"] = String(extras.retryAfterSeconds);
    return { status, headers, body: { success: false, error: { code, message } } };
  },
};
