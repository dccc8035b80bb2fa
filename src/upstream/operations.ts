/** The upstream's six operations as typed calls. */
import type { Answered } from "../clock.js";
import type { DomainName } from "../domain-name.js";
import type { Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import { type Caller, type CallerSettings, createCaller } from "./call.js";
import {
  type Balance,
  type Check,
  type Combination,
  decodeBalance,
  decodeCheck,
  decodeDomain,
  decodeDomainList,
  decodeQuote,
  decodeTier,
  type DomainList,
  type DomainRecord,
  type Tier,
} from "./contract.js";
import { createReplyReader } from "./reply.js";
import { createUnexpected, type Unexpected } from "./unexpected.js";
import { createTransport, type UpstreamResponse } from "./transport.js";
import type { Operation } from "./vocabulary.js";

export interface Upstream extends Omit<Caller, "call"> {
  /** Availability and the price of `years` of registration (POST /domains/check). */
  check(ask: Ask, name: DomainName, years: number): Promise<Answered<Check>>;
  /** POST /pricing */
  quote(ask: Ask, what: Combination): Promise<Answered<Wholesale>>;
  /** GET /domains: at most 100. */
  domains(ask: Ask): Promise<Answered<DomainList>>;
  /** GET /domains/{domain}. Null if the reseller doesn't manage it. */
  domain(ask: Ask, name: DomainName): Promise<Answered<DomainRecord | null>>;
  balance(ask: Ask): Promise<Answered<Balance>>;
  tier(ask: Ask): Promise<Answered<Tier>>;
  readonly unexpected: Pick<Unexpected, "list" | "totals">;
}

export interface UpstreamSettings extends Omit<CallerSettings, "transport" | "readReply"> {
  readonly baseUrl: string;
  /** Prices in other currencies are refused. Default: any currency is accepted. */
  readonly currencies?: () => ReadonlySet<string>;
  /** Receives every response before it is interpreted. */
  readonly onAnswer?: (answer: UpstreamResponse) => void;
}

export function createUpstream(settings: UpstreamSettings): Upstream {
  const { currencies, clock, onAnswer } = settings;
  const unexpected = createUnexpected(clock, settings.log);
  const { call, ...rest } = createCaller({
    ...settings,
    transport: createTransport(settings),
    readReply: createReplyReader({ unexpected, nowMs: () => clock.now(), onAnswer }),
  });

  const noteOf = (operation: Operation) => (what: string) => unexpected.note(operation, what);

  return {
    check: (ask, name, years) =>
      call(ask, {
        operation: "check",
        method: "POST",
        path: "/api/v1/domains/check",
        body: { domain: name.ascii, years },
        name,
        decode: (data, beside) => decodeCheck(data, name, years, currencies?.(), noteOf("check"), beside),
      }),
    quote: (ask, { tld, action, years }) =>
      call(ask, {
        operation: "quote",
        method: "POST",
        path: "/api/v1/pricing",
        body: { tld, action, years },
        decode: (data, beside) => decodeQuote(data, { tld, action, years }, currencies?.(), beside),
      }),
    domains: (ask) =>
      call(ask, {
        operation: "domains",
        method: "GET",
        path: "/api/v1/domains",
        decode: (data) => decodeDomainList(data, noteOf("domains")),
      }),
    domain: (ask, name) =>
      call<DomainRecord | null>(ask, {
        operation: "domain",
        method: "GET",
        path: `/api/v1/domains/${name.ascii}`,
        name,
        decode: (data) => decodeDomain(data, name, noteOf("domain")),
        ifAbsent: null,
      }),
    balance: (ask) =>
      call(ask, {
        operation: "balance",
        method: "GET",
        path: "/api/v1/account/balance",
        decode: decodeBalance,
      }),
    tier: (ask) =>
      call(ask, { operation: "tier", method: "GET", path: "/api/v1/account/tier", decode: decodeTier }),
    ...rest,
    unexpected,
  };
}
