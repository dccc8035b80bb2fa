/**
 * The six calls of the probe: at most one to each endpoint. Each is a call that the service itself makes, through the service's own client,
 * so it stays within the quota, the deadline and the size limits. No call is meant to fail.
 */
import { type Call, type Contact, dataOf, type Kind } from "af-storefront-probe/answers.js";
import { isWhole, listIn, recordIn } from "af-storefront-probe/records.js";
import { AF_TLDS, type DomainName, parseDomainName } from "../domain-name.js";
import { ServiceError } from "../errors.js";
import type { Ask } from "../quota/quota.js";
import type { Combination } from "../upstream/contract.js";
import { isFields } from "../upstream/fields.js";
import { createUpstream, type UpstreamSettings } from "../upstream/operations.js";
import { meaningOf } from "../upstream/refusal.js";
import type { UpstreamResponse } from "../upstream/transport.js";
import type { Operation } from "../upstream/vocabulary.js";

/** Makes the calls one after another, and continues if one fails. The quote is for something that is sold. */
export async function makeCalls(
  settings: Omit<UpstreamSettings, "onAnswer">,
  sold: readonly Combination[],
  ask: Ask,
): Promise<Contact> {
  let answers: UpstreamResponse[] = [];
  const upstream = createUpstream({ ...settings, onAnswer: (answer) => void answers.push(answer) });

  async function call<T>(
    operation: Operation,
    request: string,
    asked: string,
    name: DomainName | null,
    send: () => Promise<{ readonly value: T }>,
  ): Promise<Call<NonNullable<T>>> {
    answers = [];
    const result = await send().then(
      ({ value }) => ({ read: value ?? null, error: null }),
      (error: unknown) => {
        if (!(error instanceof ServiceError)) throw error;
        return { read: null, error: { code: error.code, detail: error.detail } };
      },
    );
    const [answer = null] = answers.map((response) => ({
      kind: kindOf(response, operation, name),
      status: response.status,
      headers: response.headers,
      json: "json" in response.body ? response.body.json : undefined,
    }));
    const noticed = upstream.unexpected.list().filter((one) => one.operation === operation);
    const unexpected = noticed.map(({ what }) => what);
    return { operation, request, asked, answer, unexpected, ...result };
  }

  const domains = await call("domains", "GET /api/v1/domains", "the account's domains", null, async () => ({
    value: (await upstream.domains(ask)).value.records,
  }));
  const ownName = firstName(domains.read?.map(({ domain }) => domain) ?? []);
  // If the list contains whole records, requesting one of them reveals little more, so a foreign name shows what an error looks like.
  const isOwn = ownName !== null && !isWhole(recordIn(listIn(dataOf(domains.answer))?.items[0]));
  const name = isOwn ? ownName : nameOf("storefront-probe.af");
  const recordAsked = isOwn ? "one of the account's domains" : "a name outside the account";
  const record = await call("domain", "GET /api/v1/domains/{domain}", recordAsked, name, () =>
    upstream.domain(ask, name),
  );
  const isLost = isOwn && record.error === null && record.read === null;
  const detail = "One of the account's own domains was read as not managed.";
  const domain = isLost ? { ...record, error: { code: "upstream_contract", detail } } : record;

  const term = termToAsk(sold);
  const checkYears = term.action === "registration" ? term.years : 1;
  // The account's own domain is certainly taken; the registry's own name almost certainly.
  const taken = ownName ?? nameOf("nic.af");
  const checkAsked = `a taken name, years: ${checkYears}`;
  const check = await call("check", "POST /api/v1/domains/check", checkAsked, taken, () =>
    upstream.check(ask, taken, checkYears),
  );
  const quoteAsked = `${term.action}, years: ${term.years}`;
  const quote = await call("quote", "POST /api/v1/pricing", quoteAsked, null, () =>
    upstream.quote(ask, term),
  );
  const balance = await call("balance", "GET /api/v1/account/balance", "the balance", null, () =>
    upstream.balance(ask),
  );
  const tier = await call("tier", "GET /api/v1/account/tier", "the tier", null, () => upstream.tier(ask));
  return { calls: { domains, domain, check, quote, balance, tier }, isOwn, checkYears };
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

const nameOf = (text: string): DomainName => parseDomainName(text, AF_TLDS, "domain");

/** The first in alphabetical order, so that the order of the list makes no difference. */
function firstName(own: readonly string[]): DomainName | null {
  for (const name of own.toSorted()) {
    try {
      return nameOf(name);
    } catch {
      // A name under another TLD can't be asked for; try the next one.
    }
  }
  return null;
}

const ACCESS_DENIED =
  /(?:api|account).{0,4}access|access.{0,24}(?:enabled|allowed)|address|allow.?list|white.?list|(?:^|[^a-z])ip(?:[^a-z]|$)/i;

function kindOf(
  { status, headers, body }: UpstreamResponse,
  operation: Operation,
  asked: DomainName | null,
): Kind {
  const said: unknown = "json" in body ? body.json : body.text;
  if (status === 200 && isFields(said) && said["success"] === true) return "success";
  const hasRetryAfter = headers["retry-after"] !== undefined;
  const meaning = meaningOf({ status, hasRetryAfter, body: said, isRecord: operation === "domain", asked });
  if (meaning === "credential" && ACCESS_DENIED.test(JSON.stringify(said))) return "access";
  const isQuestion = operation === "check" || operation === "quote";
  return meaning === "failure" && isQuestion && [200, 400, 422].includes(status) ? "input" : meaning;
}
