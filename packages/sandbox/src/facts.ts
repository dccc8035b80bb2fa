/** The sandbox's own types. The operations produce them, and only `shapes.ts` decides how they are written in an answer. */
import type { Operation } from "./operations.js";

export const ACTIONS = ["registration", "renewal", "transfer", "restore"] as const;
export type Action = (typeof ACTIONS)[number];

export const DOMAIN_STATUSES = ["active", "expired", "redemption", "suspended", "pending_transfer"] as const;
export type DomainStatus = (typeof DOMAIN_STATUSES)[number];

/** Whole cents; money is never a fraction. */
export interface Money {
  readonly cents: number;
  readonly currency: string;
}

export interface Availability {
  readonly domain: string;
  /** The term that was checked. */
  readonly years: number;
  readonly available: boolean;
  /** The registration price, also for a taken name; null for a taken name whose term isn't offered. */
  readonly price: Money | null;
}

export interface Quote {
  readonly tld: string;
  readonly action: Action;
  readonly years: number;
  readonly price: Money;
}

export interface DomainRecord {
  readonly domain: string;
  readonly status: DomainStatus;
  readonly registeredAt: Date;
  readonly expiresAt: Date;
  readonly autoRenew: boolean;
  readonly nameservers: readonly string[];
}

export interface Balance {
  readonly accountNumber: string;
  readonly balance: Money;
  readonly creditLimit: Money;
  readonly activeDomains: number;
}

export interface TierStanding {
  readonly current: string;
  /** Null in the top tier. */
  readonly next: string | null;
  readonly domainsNeeded: number;
}

/** What each operation answers. */
export interface Facts {
  readonly check: Availability;
  readonly quote: Quote;
  readonly domains: readonly DomainRecord[];
  readonly domain: DomainRecord;
  readonly balance: Balance;
  readonly tier: TierStanding;
}

/** One answer, including the name or term that it is about. */
export type AnsweredFact<Name extends Operation = Operation> = {
  readonly [One in Name]: { readonly operation: One; readonly fact: Facts[One] };
}[Name];

/** The setting of an open point that decides a status. */
type StatusSwitch = "credentialStatus" | "accessStatus" | "inputStatus" | "limitStatus";

/** Why a request can be rejected. The position of a reason is its numeric code, so add new ones at the end. */
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

interface FailureExtras {
  readonly retryAfterSeconds?: number;
  readonly allow?: string;
}

/** A rejected request, with a sentence that may be shown to the caller. */
export class Failure extends Error {
  readonly reason: FailureReason;
  readonly extras: FailureExtras;

  constructor(reason: FailureReason, message: string, extras: FailureExtras = {}) {
    super(message);
    this.name = "Failure";
    this.reason = reason;
    this.extras = extras;
  }
}

/** A request that the portal rejects, with a sentence for the developer. */
export class PortalError extends Error {
  readonly status: 404 | 409 | 422;

  constructor(status: 404 | 409 | 422, message: string) {
    super(message);
    this.name = "PortalError";
    this.status = status;
  }
}
