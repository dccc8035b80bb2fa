/**
 * The six calls of a first contact: at most one to each endpoint, each a question that the service asks as well, and each through the
 * service's own client, so inside the quota, its deadline and its caps. Nothing is asked that is meant to be refused.
 */
import { AF_TLDS, type DomainName, parseDomainName } from "../domain-name.js";
import { type ErrorCode, ServiceError } from "../errors.js";
import type { Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import {
  type Answered,
  createUpstream,
  type Operation,
  type RawAnswer,
  type UpstreamSettings,
} from "../upstream/client.js";
import type { Balance, Check, DomainRecord, Term, Tier } from "../upstream/contract.js";
import { meaningOf } from "../upstream/refusal.js";
import { isWhole, listIn, recordIn } from "./records.js";
import { isFields } from "./shapes.js";

/** What an answer is: a success, or the kind of its refusal. */
export type Kind = "success" | "limit" | "credential" | "access" | "absent" | "input" | "failure";

export interface Answer {
  readonly kind: Kind;
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Undefined where the body is no JSON. */
  readonly json: unknown;
}

/** One call: what came, and what the service makes of it. */
export interface Heard<T> {
  readonly operation: Operation;
  readonly request: string;
  /** What it asked about, without names. */
  readonly asked: string;
  /** Null where none came, or none that could be read at all. */
  readonly answer: Answer | null;
  readonly outcome: { readonly value: T } | { readonly code: ErrorCode; readonly detail: string };
}

export interface Contact {
  readonly domains: Heard<readonly DomainRecord[]>;
  readonly domain: Heard<DomainRecord | null>;
  /** Whether the record asked for was one of the account's. */
  readonly isOwn: boolean;
  readonly check: Heard<Check>;
  readonly checkYears: number;
  readonly quote: Heard<Wholesale>;
  readonly term: Term;
  readonly balance: Heard<Balance>;
  readonly tier: Heard<Tier>;
}

export interface ContactSettings {
  readonly upstream: Omit<UpstreamSettings, "onAnswer">;
  /** What is sold; what is asked of prices is taken from it. */
  readonly sold: readonly Term[];
  readonly ask: Ask;
}

/** Makes the calls, one after the other, and goes on where one fails. */
export async function contact({ upstream: settings, sold, ask }: ContactSettings): Promise<Contact> {
  const answers: RawAnswer[] = [];
  const upstream = createUpstream({
    ...settings,
    onAnswer: (answer) => {
      answers.push(answer);
    },
  });

  async function hear<T>(
    operation: Operation,
    request: string,
    asked: string,
    call: () => Promise<Answered<T>>,
    name: DomainName | null = null,
  ): Promise<Heard<T>> {
    const outcome = await outcomeOf(call().then(({ value }) => value));
    const [answer] = answers.splice(0);
    return { operation, request, asked, answer: answer ? answerOf(answer, operation, name) : null, outcome };
  }

  const domains = await hear("domains", "GET /api/v1/domains", "the account's domains", () =>
    upstream.domains(ask),
  );
  const own = "value" in domains.outcome ? domains.outcome.value.map(({ domain }) => domain) : [];
  const ownName = firstName(own);
  const foreign = nameBeside(own);
  // Where the list tells whole records, one of them would show little more; a name that is not ours shows how a refusal looks.
  const isOwn = ownName !== null && !listsWholeRecords(domains.answer);
  const name = isOwn ? ownName : foreign;
  const domain = await hear(
    "domain",
    "GET /api/v1/domains/{domain}",
    isOwn ? "one of the account's domains" : "a name that is not the account's",
    () => upstream.domain(ask, name),
    name,
  );

  const term = termToAsk(sold);
  const checkYears = term.action === "registration" ? term.years : 1;
  // What is the account's own is certainly taken; the registry's own name nearly so.
  const taken = ownName ?? parseDomainName("nic.af", AF_TLDS, "domain");
  const check = await hear(
    "check",
    "POST /api/v1/domains/check",
    `a name that is taken, ${years(checkYears)}`,
    () => upstream.check(ask, taken, checkYears),
    taken,
  );
  const quote = await hear("quote", "POST /api/v1/pricing", `${term.action}, ${years(term.years)}`, () =>
    upstream.quote(ask, term),
  );
  const balance = await hear("balance", "GET /api/v1/account/balance", "the balance", () =>
    upstream.balance(ask),
  );
  const tier = await hear("tier", "GET /api/v1/account/tier", "the tier", () => upstream.tier(ask));
  return { domains, domain, isOwn, check, checkYears, quote, term, balance, tier };
}

/** `data` of a success; undefined of anything else. */
export function dataOf(answer: Answer | null): unknown {
  return answer?.kind === "success" && isFields(answer.json) ? answer.json["data"] : undefined;
}

async function outcomeOf<T>(work: Promise<T>): Promise<Heard<T>["outcome"]> {
  try {
    return { value: await work };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { code: error.code, detail: error.detail };
  }
}

/** A registration of more than one year if one is sold: only that tells the price of a year from that of the term. */
function termToAsk(sold: readonly Term[]): Term {
  const several = sold.filter(({ years }) => years > 1);
  return (
    several.find(({ action }) => action === "registration") ??
    several[0] ??
    sold[0] ?? { tld: ".af", action: "registration", years: 1 }
  );
}

function years(count: number): string {
  return count === 1 ? "1 year" : `${count} years`;
}

/** The first by name, so that another order of the list asks for the same. */
function firstName(own: readonly string[]): DomainName | null {
  for (const name of own.toSorted()) {
    try {
      return parseDomainName(name, AF_TLDS, "domain");
    } catch {
      // A name under another ending cannot be asked for; the next one may.
    }
  }
  return null;
}

/** A name that is not in the list. */
function nameBeside(own: readonly string[]): DomainName {
  let name = "storefront-probe.af";
  while (own.includes(name)) name = `x-${name}`;
  return parseDomainName(name, AF_TLDS, "domain");
}

function listsWholeRecords(answer: Answer | null): boolean {
  const record = recordIn(listIn(dataOf(answer))?.items[0]);
  return record !== null && isWhole(record);
}

const SHUT_OUT =
  /(?:api|account).{0,4}access|access.{0,24}(?:enabled|allowed)|address|allow.?list|white.?list|(?:^|[^a-z])ip(?:[^a-z]|$)/i;

function answerOf(
  { status, headers, body }: RawAnswer,
  operation: Operation,
  asked: DomainName | null,
): Answer {
  const json = "json" in body ? body.json : undefined;
  const said: unknown = "json" in body ? body.json : body.text;
  const kindOf = (): Kind => {
    if (status === 200 && isFields(json) && json["success"] === true) return "success";
    const hasRetryAfter = headers["retry-after"] !== undefined;
    const meaning = meaningOf({ status, hasRetryAfter, body: said, isRecord: operation === "domain", asked });
    if (meaning === "credential") return SHUT_OUT.test(JSON.stringify(said)) ? "access" : "credential";
    if (meaning !== "failure") return meaning;
    const isQuestion = operation === "check" || operation === "quote";
    return isQuestion && [200, 400, 422].includes(status) ? "input" : "failure";
  };
  return { kind: kindOf(), status, headers, json };
}
