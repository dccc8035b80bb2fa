/**
 * The six calls of the probe: at most one to each endpoint. Each is a call that the service itself makes, through the service's own client,
 * so it stays within the quota, the deadline and the size limits. No call is meant to fail.
 */
import {
  type Answer,
  type CallResult,
  type Contact,
  dataOf,
  type Kind,
} from "af-storefront-probe/contact.js";
import { isWhole, listIn, recordIn } from "af-storefront-probe/records.js";
import { AF_TLDS, type DomainName, parseDomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Ask } from "../quota/quota.js";
import type { Answered } from "../clock.js";
import type { Combination } from "../upstream/contract.js";
import { isFields } from "../upstream/fields.js";
import { createUpstream, type UpstreamSettings } from "../upstream/operations.js";
import { meaningOf } from "../upstream/refusal.js";
import type { UpstreamResponse } from "../upstream/transport.js";
import type { Operation } from "../upstream/vocabulary.js";

interface ContactSettings {
  readonly upstream: Omit<UpstreamSettings, "onAnswer">;
  /** What is sold; the quote is for one of these. */
  readonly sold: readonly Combination[];
  readonly ask: Ask;
}

/** Makes the calls one after another, and continues if one fails. */
export async function contact({ upstream: settings, sold, ask }: ContactSettings): Promise<Contact> {
  const answers: UpstreamResponse[] = [];
  const upstream = createUpstream({
    ...settings,
    onAnswer: (answer) => {
      answers.push(answer);
    },
  });

  async function makeCall<T>(
    operation: Operation,
    request: string,
    asked: string,
    call: () => Promise<Answered<T>>,
    name: DomainName | null = null,
  ): Promise<CallResult<T>> {
    const outcome = await outcomeOf(call().then(({ value }) => value));
    const [answer] = answers.splice(0);
    return { operation, request, asked, answer: answer ? answerOf(answer, operation, name) : null, outcome };
  }

  const domains = await makeCall("domains", "GET /api/v1/domains", "the account's domains", async () => {
    const { value, ...times } = await upstream.domains(ask);
    return { ...times, value: value.records };
  });
  const own = "value" in domains.outcome ? domains.outcome.value.map(({ domain }) => domain) : [];
  const ownName = firstName(own);
  const foreign = foreignName(own);
  // If the list contains whole records, requesting one of them reveals little more, so a foreign name shows what an error looks like.
  const isOwn = ownName !== null && !listsWholeRecords(domains.answer);
  const name = isOwn ? ownName : foreign;
  const domain = await makeCall(
    "domain",
    "GET /api/v1/domains/{domain}",
    isOwn ? "one of the account's domains" : "a name outside the account",
    () => upstream.domain(ask, name),
    name,
  );

  const term = termToAsk(sold);
  const checkYears = term.action === "registration" ? term.years : 1;
  // The account's own domain is certainly taken; the registry's own name almost certainly.
  const taken = ownName ?? parseDomainName("nic.af", AF_TLDS, "domain");
  const check = await makeCall(
    "check",
    "POST /api/v1/domains/check",
    `a taken name, ${years(checkYears)}`,
    () => upstream.check(ask, taken, checkYears),
    taken,
  );
  const quote = await makeCall("quote", "POST /api/v1/pricing", `${term.action}, ${years(term.years)}`, () =>
    upstream.quote(ask, term),
  );
  const balance = await makeCall("balance", "GET /api/v1/account/balance", "the balance", () =>
    upstream.balance(ask),
  );
  const tier = await makeCall("tier", "GET /api/v1/account/tier", "the tier", () => upstream.tier(ask));
  const unexpected = upstream.unexpected.list();
  return { domains, unexpected, domain, isOwn, check, checkYears, quote, balance, tier };
}

async function outcomeOf<T>(work: Promise<T>): Promise<CallResult<T>["outcome"]> {
  try {
    return { value: await work };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { code: error.code, detail: error.detail };
  }
}

/** Prefers a registration of several years: only that distinguishes a yearly price from the price of the whole term. */
function termToAsk(sold: readonly Combination[]): Combination {
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

/** The first in alphabetical order, so that the order of the list makes no difference. */
function firstName(own: readonly string[]): DomainName | null {
  for (const name of own.toSorted()) {
    try {
      return parseDomainName(name, AF_TLDS, "domain");
    } catch {
      // A name under another TLD can't be asked for; try the next one.
    }
  }
  return null;
}

/** A name that isn't in the list. */
function foreignName(own: readonly string[]): DomainName {
  let name = "storefront-probe.af";
  while (own.includes(name)) name = `x-${name}`;
  return parseDomainName(name, AF_TLDS, "domain");
}

function listsWholeRecords(answer: Answer | null): boolean {
  const record = recordIn(listIn(dataOf(answer))?.items[0]);
  return record !== null && isWhole(record);
}

const ACCESS_DENIED =
  /(?:api|account).{0,4}access|access.{0,24}(?:enabled|allowed)|address|allow.?list|white.?list|(?:^|[^a-z])ip(?:[^a-z]|$)/i;

function answerOf(
  { status, headers, body }: UpstreamResponse,
  operation: Operation,
  asked: DomainName | null,
): Answer {
  const json = "json" in body ? body.json : undefined;
  const said: unknown = "json" in body ? body.json : body.text;
  const kindOf = (): Kind => {
    if (status === 200 && isFields(json) && json["success"] === true) return "success";
    const hasRetryAfter = headers["retry-after"] !== undefined;
    const meaning = meaningOf({ status, hasRetryAfter, body: said, isRecord: operation === "domain", asked });
    if (meaning === "credential") return ACCESS_DENIED.test(JSON.stringify(said)) ? "access" : "credential";
    if (meaning !== "failure") return meaning;
    const isQuestion = operation === "check" || operation === "quote";
    return isQuestion && [200, 400, 422].includes(status) ? "input" : "failure";
  };
  return { kind: kindOf(), status, headers, json };
}
