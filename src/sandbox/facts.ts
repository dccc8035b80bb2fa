/** The sandbox's own types. The operations produce them, and only `shapes.ts` decides how they are written in an answer. */
import type { FailureReason } from "./failure-table.js";

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

/** One answer, including the name or term that it is about. */
export type AnsweredFact =
  | { readonly operation: "check"; readonly fact: Availability }
  | { readonly operation: "quote"; readonly fact: Quote }
  | { readonly operation: "domains"; readonly fact: readonly DomainRecord[] }
  | { readonly operation: "domain"; readonly fact: DomainRecord }
  | { readonly operation: "balance"; readonly fact: Balance }
  | { readonly operation: "tier"; readonly fact: TierStanding };

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
