/** One label under every TLD asked for: the exact name first, and what cannot be had in time is honestly unknown. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Clock, pause } from "../clock.js";
import { type DomainName, domainNameUnder, type SearchTerm } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { RetailPolicy } from "../retail/policy.js";
import type { Availability, AvailabilityService, VisitorAsk } from "./availability.js";

export interface SearchedName {
  readonly name: DomainName;
  readonly years: number;
}

export interface Unknown extends SearchedName {
  readonly status: "unknown";
  readonly retryAfterMs: number;
  /** Whether a call is reserved for then. */
  readonly kept: boolean;
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
/** Times to retry are told, and places kept, in whole seconds. */
const SECOND_MS = 1_000;

/** The names that a wish stands for, the exact one first, each with its term; TLDs that do not sell the term are left out. */
export function namesFor(wish: SearchWish, policy: RetailPolicy): SearchedName[] {
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
  names: readonly SearchedName[],
  desk: Pick<AvailabilityService, "lookUp">,
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
    return unknown(asked, reason);
  });
  const known = results.filter(({ status }) => status !== "unknown").length;
  if (limited !== null && known === 0) throw limited as ServiceError;
  return { results, complete: known === results.length };
}

export interface PatientSearch {
  readonly desk: Pick<AvailabilityService, "lookUp">;
  readonly askFor: (asked: SearchedName) => VisitorAsk;
  /** How long the whole search may wait for quota. */
  readonly patienceMs: number;
  /** What is not known when it is aborted is told as unknown. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/**
 * Looks all names up, the exact one first, and tells each as soon as it is known. Who is refused for want of quota asks again at the told
 * second, for which a place is kept, unless the patience is over by then. Resolves when every name has been told; rejects then with our
 * own fault, if there was one.
 */
export async function searchPatiently(
  names: readonly SearchedName[],
  { desk, askFor, patienceMs, signal, clock }: PatientSearch,
  tell: (asked: SearchedName, result: Availability | Unknown) => void,
): Promise<void> {
  const endsAt = clock.monotonic() + patienceMs;
  const faults: unknown[] = [];

  async function lookUp(asked: SearchedName): Promise<Availability | Unknown> {
    for (;;) {
      const ask = askFor(asked);
      try {
        const maxWaitMs = Math.min(ask.maxWaitMs, endsAt - clock.monotonic());
        return await desk.lookUp({ ...ask, maxWaitMs }, asked.name, asked.years);
      } catch (error) {
        if (signal.aborted) return unknown(asked);
        if (!(error instanceof ServiceError) || error.code === "internal") {
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

  async function tellWhenKnown(asked: SearchedName): Promise<void> {
    tell(asked, await lookUp(asked));
  }

  const [exact, ...others] = names;
  const told = exact === undefined ? [] : [tellWhenKnown(exact)];
  // What is in memory is known within this turn of the event loop, however much there is to work out: so the exact name comes first.
  await nextTurn();
  await Promise.all([...told, ...others.map(tellWhenKnown)]);
  if (faults.length > 0) throw faults[0];
}

function unknown(
  asked: SearchedName,
  refusal: Pick<Partial<ServiceError>, "retryAfterMs" | "kept"> = {},
): Unknown {
  const { retryAfterMs = RETRY_MS, kept = false } = refusal;
  return { ...asked, status: "unknown", retryAfterMs, kept };
}
