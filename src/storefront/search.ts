/** One label under every TLD asked for: the exact name first, and what cannot be had in time is honestly unknown. */
import { type DomainName, domainNameUnder, type SearchTerm } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { Availability, AvailabilityDesk, VisitorAsk } from "./availability.js";

export interface Unknown {
  readonly name: DomainName;
  readonly years: number;
  readonly status: "unknown";
  readonly retryAfterMs: number;
}

export interface SearchResult {
  readonly results: readonly (Availability | Unknown)[];
  readonly complete: boolean;
}

export interface SearchWish {
  readonly term: SearchTerm;
  readonly tlds: readonly string[];
  /** Undefined: the shortest term sold under each TLD. */
  readonly years: number | undefined;
}

/** Where a refusal names no time: soon enough for a person, late enough for what failed. */
const RETRY_MS = 5_000;

/** The names that a wish stands for, the exact one first, each with its term; TLDs that do not sell the term are left out. */
export function namesFor(wish: SearchWish, policy: RetailPolicy): { name: DomainName; years: number }[] {
  const { term } = wish;
  const names = wish.tlds.flatMap((tld) => domainNameUnder(term.label, tld) ?? []);
  const exact = term.exact ?? names[0];
  const ordered = exact ? [exact, ...names.filter(({ ascii }) => ascii !== exact.ascii)] : [];
  return ordered.flatMap((name) => {
    const sold = policy.yearsSold(name.tld, "registration");
    const years = wish.years ?? sold[0];
    return years !== undefined && sold.includes(years) ? [{ name, years }] : [];
  });
}

/**
 * Looks all names up at once; `askFor` gives each its place in the quota. Rejects only when this client has asked too much and nothing
 * at all could be had.
 */
export async function search(
  names: readonly { name: DomainName; years: number }[],
  desk: AvailabilityDesk,
  askFor: (position: number) => VisitorAsk,
): Promise<SearchResult> {
  const outcomes = await Promise.allSettled(
    names.map(({ name, years }, position) => desk.lookUp(askFor(position), name, years)),
  );
  let limited: ServiceError | null = null;
  const results = outcomes.map((outcome, position): Availability | Unknown => {
    if (outcome.status === "fulfilled") return outcome.value;
    const reason: unknown = outcome.reason;
    if (!(reason instanceof ServiceError) || reason.code === "internal") throw reason;
    if (reason.code === "rate_limited") limited = reason;
    const asked = names[position];
    if (asked === undefined) throw reason;
    return { ...asked, status: "unknown", retryAfterMs: reason.retryAfterMs ?? RETRY_MS };
  });
  const known = results.filter(({ status }) => status !== "unknown").length;
  if (limited !== null && known === 0) throw limited as ServiceError;
  return { results, complete: known === results.length };
}
