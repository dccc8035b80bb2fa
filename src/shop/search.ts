/** Searches for one label under several TLDs: the exact name first, and `unknown` for names without an answer in time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, pause } from "../clock.js";
import { type DomainName, domainNameUnder, type SearchTerm } from "../domain-name.js";
import { isExpected, ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { VisitorAsk } from "./names.js";
import type { Availability, AvailabilityService } from "./availability.js";

export interface SearchedName {
  readonly name: DomainName;
  readonly years: number;
}

export interface Unknown extends SearchedName {
  readonly status: "unknown";
  readonly retryAfterMs: number;
  /** Whether a call is reserved for that time. */
  readonly kept: boolean;
}

interface SearchResult {
  readonly results: readonly (Availability | Unknown)[];
  readonly complete: boolean;
}

interface SearchRequest {
  readonly term: SearchTerm;
  readonly tlds: readonly string[];
  /** Undefined: the shortest term sold under each TLD. */
  readonly years: number | undefined;
}

/** For refusals without a retry time: soon enough for people, late enough for the failure to pass. */
const RETRY_MS = 5_000;
/** Retry times and reservations are in whole seconds. */
const SECOND_MS = 1_000;

/** The names to look up, each with its term, the exact name first; TLDs that don't sell the term are left out. */
export function namesFor(request: SearchRequest, policy: RetailPolicy): SearchedName[] {
  const { term } = request;
  const names = request.tlds.flatMap((tld) => domainNameUnder(term.label, tld) ?? []);
  const exact = term.exact ?? names[0];
  const ordered = exact ? [exact, ...names.filter(({ ascii }) => ascii !== exact.ascii)] : [];
  return ordered.filter(policy.takes).flatMap((name) => {
    const sold = policy.yearsSold(name.tld, "registration");
    const years = request.years ?? sold[0];
    return years !== undefined && sold.includes(years) ? [{ name, years }] : [];
  });
}

/**
 * Looks up all names at the same time; `askFor` returns the quota request for each. Waits and answers are brought up to date once the last
 * name has settled. Rejects only if the client is over its limit and no name has an answer.
 */
export async function search(
  names: readonly SearchedName[],
  availability: Pick<AvailabilityService, "lookUp" | "asOfNow">,
  askFor: (asked: SearchedName) => VisitorAsk,
  clock: Clock,
): Promise<SearchResult> {
  const outcomes = await Promise.all(
    names.map(async (asked) => {
      try {
        return { asked, answer: await availability.lookUp(askFor(asked), asked.name, asked.years) };
      } catch (error) {
        if (!isExpected(error)) throw error;
        return { asked, refusal: error, refusedAt: clock.monotonic() };
      }
    }),
  );
  const nowMs = clock.monotonic();
  const refusals: ServiceError[] = [];
  const results = outcomes.map(({ asked, ...outcome }): Availability | Unknown => {
    if ("answer" in outcome) return availability.asOfNow(outcome.answer) ?? unknown(asked);
    const refusal = outcome.refusal.after(nowMs - outcome.refusedAt);
    refusals.push(refusal);
    return unknown(asked, refusal);
  });
  const known = results.filter(({ status }) => status !== "unknown").length;
  const limited = refusals.find(({ code }) => code === "rate_limited");
  if (limited !== undefined && known === 0) throw limited;
  return { results, complete: known === results.length };
}

interface RetryingSearch {
  readonly availability: Pick<AvailabilityService, "lookUp">;
  readonly askFor: (asked: SearchedName) => VisitorAsk;
  /** How long the whole search may wait for quota. */
  readonly retryForMs: number;
  /** When aborted, names still without an answer are reported as unknown. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/**
 * Looks up all names, the exact one first, and reports each result as soon as it is known. A name refused for lack of quota is retried at
 * the second of its `Retry-After` unless `retryForMs` is over by then. Settles when every name has been reported, and rejects on an
 * internal error.
 */
export async function searchWithRetries(
  names: readonly SearchedName[],
  { availability, askFor, retryForMs, signal, clock }: RetryingSearch,
  onResult: (asked: SearchedName, result: Availability | Unknown) => void,
): Promise<void> {
  const endsAt = clock.monotonic() + retryForMs;
  const faults: unknown[] = [];

  async function lookUp(asked: SearchedName): Promise<Availability | Unknown> {
    for (;;) {
      const ask = askFor(asked);
      try {
        const waitUntilAt = Math.min(ask.waitUntilAt, endsAt);
        return await availability.lookUp({ ...ask, waitUntilAt }, asked.name, asked.years);
      } catch (error) {
        if (signal.aborted) return unknown(asked);
        if (!isExpected(error)) {
          faults.push(error);
          return unknown(asked);
        }
        const { code, retryAfterMs = RETRY_MS } = error;
        const againInMs = Math.ceil(retryAfterMs / SECOND_MS) * SECOND_MS;
        const againAt = clock.monotonic() + againInMs;
        if (code !== "quota_exhausted" || againAt >= endsAt) return unknown(asked, error);
        await pause(clock, againInMs, signal);
        if (signal.aborted)
          return unknown(asked, { retryAfterMs: Math.max(1, againAt - clock.monotonic()), kept: error.kept });
      }
    }
  }

  async function report(asked: SearchedName): Promise<void> {
    onResult(asked, await lookUp(asked));
  }

  const [exact, ...others] = names;
  const first = exact === undefined ? [] : [report(exact)];
  // Answers from memory arrive within this turn of the event loop, so the exact name is reported before the others.
  await nextTurn();
  await Promise.all([...first, ...others.map(report)]);
  if (faults.length > 0) throw faults[0];
}

function unknown(
  asked: SearchedName,
  refusal: Pick<Partial<ServiceError>, "retryAfterMs" | "kept"> = {},
): Unknown {
  const { retryAfterMs = RETRY_MS, kept = false } = refusal;
  return { ...asked, status: "unknown", retryAfterMs, kept };
}
