/**
 * What the probe is given: the answer to each of its six calls, and how the service interpreted it. The service makes the calls and fills this in;
 * this package only reads it.
 */
import { isFields } from "./json.js";

/** A success, or the kind of error. */
export type Kind = "success" | "limit" | "credential" | "access" | "absent" | "input" | "failure";

export interface Answer {
  readonly kind: Kind;
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Undefined if the body isn't JSON. */
  readonly json: unknown;
}

/** One call: the answer, and how the service interprets it. */
export interface CallResult<T> {
  readonly operation: "check" | "quote" | "domains" | "domain" | "balance" | "tier";
  readonly request: string;
  /** What was asked, without names. */
  readonly asked: string;
  /** Null if there was no answer, or none that could be read. */
  readonly answer: Answer | null;
  readonly outcome: { readonly value: T } | { readonly code: string; readonly detail: string };
}

/** What the service read of a domain record; null where it found nothing that it understands. */
export interface ReadRecord {
  readonly status: unknown;
  readonly expiresAt: unknown;
  readonly registeredAt: unknown;
  readonly autoRenew: boolean | null;
  readonly nameservers: readonly string[];
}

/** What the service read of the tier. */
export interface ReadTier {
  readonly nextTier: string | null;
  readonly domainsNeeded: number | null;
}

export interface Contact {
  readonly domains: CallResult<readonly ReadRecord[]>;
  /** What the service noticed in the answers without understanding it, in words that contain no data. */
  readonly unexpected: readonly { readonly operation: string; readonly what: string }[];
  readonly domain: CallResult<ReadRecord | null>;
  /** Whether `domain` asked for one of the account's domains. */
  readonly isOwn: boolean;
  readonly check: CallResult<unknown>;
  readonly checkYears: number;
  readonly quote: CallResult<unknown>;
  readonly balance: CallResult<unknown>;
  readonly tier: CallResult<ReadTier>;
}

/** All calls, in the order in which they were made. */
export function all({ domains, domain, check, quote, balance, tier }: Contact): CallResult<unknown>[] {
  return [domains, domain, check, quote, balance, tier];
}

export function isUnderstood<T>(
  call: CallResult<T>,
): call is CallResult<T> & { readonly outcome: { readonly value: T } } {
  return "value" in call.outcome;
}

/** The `data` of a success, otherwise undefined. */
export function dataOf(answer: Answer | null): unknown {
  return answer?.kind === "success" && isFields(answer.json) ? answer.json["data"] : undefined;
}
