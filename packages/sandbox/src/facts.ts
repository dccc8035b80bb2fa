/** The sandbox's own types. The operations produce them, and only `shapes.ts` decides how they are written in an answer. */
import type { FailureReason } from "./failure-table.js";
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
