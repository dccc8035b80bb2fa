/**
 * What the probe is given: the answer to each of its six calls, and what the service read of it. The service makes the calls and fills this in;
 * this package only reads it.
 */
import { isFields } from "./shapes.js";

/** A success, or the kind of error. */
export type Kind = "success" | "limit" | "credential" | "access" | "absent" | "input" | "failure";

export interface Answer {
  readonly kind: Kind;
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Undefined if the body isn't JSON. */
  readonly json: unknown;
}

export interface Call<Read = unknown> {
  readonly operation: "check" | "quote" | "domains" | "domain" | "balance" | "tier";
  readonly request: string;
  /** What was asked, without names. */
  readonly asked: string;
  /** Null if there was no answer, or none that could be read. */
  readonly answer: Answer | null;
  /** What the service noticed in the answer without understanding it, in words that contain no data. */
  readonly unexpected: readonly string[];
  /** The service's error, or null if it understood the answer. */
  readonly error: { readonly code: string; readonly detail: string } | null;
  /** Null if there was an error, or no such domain. */
  readonly read: Read | null;
}

/** The fields of a domain record as the service calls them, in the order in which people and the sandbox's settings list them. */
export const ROLES = ["domain", "status", "expiresAt", "registeredAt", "autoRenew", "nameservers"] as const;
export type Role = (typeof ROLES)[number];

export interface Contact {
  /** In the order in which they were made. What the service didn't understand of a record is null or empty. */
  readonly calls: {
    readonly domains: Call<readonly Readonly<Record<Role, unknown>>[]>;
    readonly domain: Call<Readonly<Record<Role, unknown>>>;
    readonly check: Call;
    readonly quote: Call;
    readonly balance: Call;
    readonly tier: Call<{ readonly nextTier: string | null; readonly domainsNeeded: number | null }>;
  };
  /** Whether `domain` asked for one of the account's domains. */
  readonly isOwn: boolean;
  readonly checkYears: number;
}

/** The `data` of a success, otherwise undefined. */
export function dataOf(answer: Answer | null): unknown {
  return answer?.kind === "success" && isFields(answer.json) ? answer.json["data"] : undefined;
}
