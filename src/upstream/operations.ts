/** The upstream's six operations as typed calls. */
import type { DomainName } from "../domain-name.js";
import type { ServiceError } from "../errors.js";
import type { Wholesale } from "../money.js";
import type { Ask } from "../quota/quota.js";
import { type Answered, type CallerSettings, type CallHealth, type Trials, createCaller } from "./call.js";
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
  type DomainRecord,
  type Tier,
} from "./contract.js";
import { createReplyReader } from "./reply.js";
import { createUnexpected, type Unexpected } from "./unexpected.js";
import { createTransport, type UpstreamResponse } from "./transport.js";

export interface Upstream {
  /** Availability and the price of `years` of registration (POST /domains/check). */
  check(ask: Ask, name: DomainName, years: number): Promise<Answered<Check>>;
  /** The refusal if `check` would be rejected immediately for lack of quota; otherwise null. */
  refusal(ask: Ask, name: DomainName, years: number): ServiceError | null;
  /** POST /pricing */
  quote(ask: Ask, what: Combination): Promise<Answered<Wholesale>>;
  /** GET /domains: at most 100. */
  domains(ask: Ask): Promise<Answered<DomainRecord[]>>;
  /** GET /domains/{domain}. Null if the reseller doesn't manage it. */
  domain(ask: Ask, name: DomainName): Promise<Answered<DomainRecord | null>>;
  balance(ask: Ask): Promise<Answered<Balance>>;
  tier(ask: Ask): Promise<Answered<Tier>>;
  health(): CallHealth;
  readonly trials: Trials;
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
  const { call, refusal, health, trials } = createCaller({
    ...settings,
    transport: createTransport(settings),
    readReply: createReplyReader({ unexpected, nowMs: () => clock.now(), onAnswer }),
  });

  const checkOf = (name: DomainName, years: number) =>
    ({
      operation: "check",
      method: "POST",
      path: "/api/v1/domains/check",
      body: { domain: name.ascii, years },
      name,
      decode: (data: unknown) => decodeCheck(data, name, years, currencies?.()),
    }) as const;

  return {
    check: (ask, name, years) => call(ask, checkOf(name, years)),
    refusal: (ask, name, years) => refusal(ask, checkOf(name, years)),
    quote: (ask, { tld, action, years }) =>
      call(ask, {
        operation: "quote",
        method: "POST",
        path: "/api/v1/pricing",
        body: { tld, action, years },
        decode: (data) => decodeQuote(data, { tld, action, years }, currencies?.()),
      }),
    domains: (ask) =>
      call(ask, { operation: "domains", method: "GET", path: "/api/v1/domains", decode: decodeDomainList }),
    domain: (ask, name) =>
      call<DomainRecord | null>(ask, {
        operation: "domain",
        method: "GET",
        path: `/api/v1/domains/${name.ascii}`,
        name,
        decode: (data) => decodeDomain(data, name),
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
    health,
    trials,
    unexpected,
  };
}
