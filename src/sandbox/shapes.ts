/**
 * The only place that decides how an answer is written: field names, statuses, codes, date formats. Everything that the document leaves open
 * ("not shown") follows the settings of `open-points.ts`, so another choice doesn't change behaviour.
 */
import type {
  Availability,
  Balance,
  DomainRecord,
  DomainStatus,
  Failure,
  Money,
  Quote,
  TierStanding,
} from "./facts.js";
import { type Answer, failureAnswer } from "./failures.js";
import { RECORD_NAMES, type ShapeSettings } from "./open-points.js";
import { shapeSettings } from "./presets.js";

export type { Answer } from "./failures.js";

export interface Shapes {
  availability(result: Availability): Answer;
  quote(quote: Quote): Answer;
  domains(records: readonly DomainRecord[]): Answer;
  domain(record: DomainRecord): Answer;
  balance(balance: Balance): Answer;
  tier(standing: TierStanding): Answer;
  failure(failure: Failure): Answer;
  /** The requirements for `years` in a request. */
  readonly years: {
    readonly check: ShapeSettings["checkYears"];
    readonly quote: ShapeSettings["quoteYears"];
  };
}

export function createShapes(settings: ShapeSettings): Shapes {
  const success = (data: unknown): Answer => successAnswer(data, settings);
  return {
    availability: ({ domain, available, years, price }) =>
      success({
        domain,
        status: available ? "available" : settings.takenStatus,
        available,
        ...(settings.checkEcho === "years" && { years }),
        ...(available && price !== null ? { pricing: pricing(price) } : takenPricing(price, settings)),
      }),
    quote: (quote) => success(quoteFields(quote, settings)),
    domains: (records) => success(domainList(records, settings)),
    domain: (one) => {
      const record = recordFields(one, settings);
      return success(settings.recordWrapper === "domain" ? { domain: record } : record);
    },
    balance: ({ accountNumber, balance, creditLimit, activeDomains }) =>
      success({
        account_number: accountNumber,
        balance: decimal(balance.cents),
        currency: balance.currency,
        credit_limit: decimal(creditLimit.cents),
        active_domains: activeDomains,
      }),
    tier: (standing) => success(tierFields(standing, settings)),
    failure: (failure) => failureAnswer(failure, settings),
    years: { check: settings.checkYears, quote: settings.quoteYears },
  };
}

/** The plainest reading of the document. */
export const plainShapes: Shapes = createShapes(shapeSettings({ preset: "documented" }));

function decimal(cents: number): string {
  const digits = String(Math.abs(cents)).padStart(3, "0");
  return `${cents < 0 ? "-" : ""}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

function pricing(price: Money): { amount: string; currency: string } {
  return { amount: decimal(price.cents), currency: price.currency };
}

/** JavaScript can't write a number with trailing zeros, so it is a marked text until the body is written. */
const PADDED = /"#(\d+\.\d\d)#"/g;

function successAnswer(data: unknown, { envelope, quoteAmount }: ShapeSettings): Answer {
  const meta = { message: "OK", meta: { version: "v1" } };
  const body = { success: true, data, ...(envelope === "meta" && meta) };
  if (quoteAmount !== "padded-number") return { status: 200, headers: {}, body };
  return {
    status: 200,
    headers: { "Content-Type": "application/json; charset=utf-8" },
    body: JSON.stringify(body).replaceAll(PADDED, "$1"),
  };
}

function takenPricing(price: Money | null, { takenPricing: form }: ShapeSettings): object {
  switch (form) {
    case "null":
      return { pricing: null };
    case "absent":
      return {};
    case "empty":
      return { pricing: {} };
    case "zero":
      return { pricing: { amount: "0.00", currency: null } };
    case "price":
      return { pricing: price && pricing(price) };
    default:
      return form satisfies never;
  }
}

function amount(cents: number, { quoteAmount }: ShapeSettings): string | number {
  switch (quoteAmount) {
    case "text":
      return decimal(cents);
    case "number":
      return Number(decimal(cents));
    case "padded-number":
      return `#${decimal(cents)}#`;
    case "minor-units":
      return cents;
    default:
      return quoteAmount satisfies never;
  }
}

function quoteFields({ tld, action, years, price }: Quote, settings: ShapeSettings): object {
  const echo = settings.quoteEcho === "all" ? { tld, action, years } : {};
  const { currency } = price;
  const total = amount(price.cents, settings);
  const unit = amount(Math.round(price.cents / years), settings);
  switch (settings.quoteFields) {
    case "nested":
      return { ...echo, pricing: { amount: total, currency } };
    case "flat":
      return { ...echo, amount: total, currency };
    case "wrapped":
      return { quote: { ...echo, price: { amount: total, currency } } };
    case "unit-and-total":
      return { ...echo, unit_price: unit, total_price: total, currency };
    case "unit":
      return { ...echo, unit_price: unit, currency };
    case "per-year":
      return { ...echo, amount: unit, per: "year", currency };
    default:
      return settings.quoteFields satisfies never;
  }
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
const KABUL_OFFSET_MS = 4.5 * 3_600_000;

function moment(date: Date, { dates }: ShapeSettings): string | number {
  const iso = date.toISOString();
  switch (dates) {
    case "rfc3339":
      return iso.replace(/\.\d{3}Z$/, "Z");
    case "fraction":
      return iso;
    case "offset":
      return new Date(date.getTime() + KABUL_OFFSET_MS).toISOString().replace(/\.\d{3}Z$/, "+04:30");
    case "day":
      return iso.slice(0, 10);
    case "space":
      return iso.slice(0, 19).replace("T", " ");
    case "seconds":
      return date.getTime() / 1000;
    case "milliseconds":
      return date.getTime();
    case "month-name":
      return `${iso.slice(8, 10)}-${MONTHS[date.getUTCMonth()]}-${iso.slice(0, 4)}`;
    default:
      return dates satisfies never;
  }
}

const EPP_STATUSES: Readonly<Record<DomainStatus, string>> = {
  active: "ok",
  expired: "autoRenewPeriod",
  redemption: "redemptionPeriod",
  suspended: "serverHold",
  pending_transfer: "pendingTransfer",
};

function statusWord(status: DomainStatus, { statusWords }: ShapeSettings): string | string[] {
  switch (statusWords) {
    case "lower":
      return status;
    case "upper":
      return status.toUpperCase();
    case "title":
      return status.charAt(0).toUpperCase() + status.slice(1).replaceAll("_", " ");
    case "epp":
      return [EPP_STATUSES[status]];
    default:
      return statusWords satisfies never;
  }
}

function autoRenewFlag(on: boolean, { autoRenew }: ShapeSettings): boolean | number | string {
  switch (autoRenew) {
    case "boolean":
      return on;
    case "number":
      return on ? 1 : 0;
    case "word":
      return on ? "on" : "off";
    case "text":
      return String(on);
    default:
      return autoRenew satisfies never;
  }
}

function nameserverList(hosts: readonly string[], { nameservers }: ShapeSettings): unknown {
  switch (nameservers) {
    case "list":
      return [...hosts];
    case "objects":
      return hosts.map((hostname) => ({ hostname }));
    case "numbered":
      return Object.fromEntries(hosts.map((host, index) => [`ns${index + 1}`, host]));
    case "text":
      return hosts.join(", ");
    default:
      return nameservers satisfies never;
  }
}

function recordFields(domain: DomainRecord, settings: ShapeSettings): object {
  const [name, status, expiry, registered, autoRenew, nameservers] = RECORD_NAMES[settings.recordFields];
  return {
    [name]: domain.domain,
    [status]: statusWord(domain.status, settings),
    [expiry]: moment(domain.expiresAt, settings),
    [registered]: moment(domain.registeredAt, settings),
    [autoRenew]: autoRenewFlag(domain.autoRenew, settings),
    [nameservers]: nameserverList(domain.nameservers, settings),
  };
}

function listItem(domain: DomainRecord, settings: ShapeSettings): unknown {
  const [name, status, expiry] = RECORD_NAMES[settings.recordFields];
  switch (settings.listItems) {
    case "records":
      return recordFields(domain, settings);
    case "wrapped":
      return { domain: recordFields(domain, settings) };
    case "brief":
      return {
        [name]: domain.domain,
        [status]: statusWord(domain.status, settings),
        [expiry]: moment(domain.expiresAt, settings),
      };
    case "names":
      return domain.domain;
    default:
      return settings.listItems satisfies never;
  }
}

function ordered(records: readonly DomainRecord[], { listOrder }: ShapeSettings): readonly DomainRecord[] {
  switch (listOrder) {
    case "given":
      return records;
    case "name":
      return records.toSorted((a, b) => (a.domain < b.domain ? -1 : 1));
    case "newest":
      return records.toSorted((a, b) => b.registeredAt.getTime() - a.registeredAt.getTime());
    default:
      return listOrder satisfies never;
  }
}

function paging(count: number, { listPaging }: ShapeSettings): object {
  switch (listPaging) {
    case "none":
      return {};
    case "counts":
      return { page: 1, per_page: 100, count };
    case "links":
      return { links: { first: "/api/v1/domains", prev: null, next: null } };
    case "cursor":
      return { next_cursor: null, has_more: false };
    default:
      return listPaging satisfies never;
  }
}

function domainList(records: readonly DomainRecord[], settings: ShapeSettings): object {
  const list = ordered(records, settings).map((one) => listItem(one, settings));
  const pages = paging(list.length, settings);
  return settings.listWrapper === "nested"
    ? { result: { ...pages, records: list } }
    : { ...pages, [settings.listWrapper]: list };
}

function tierFields({ current, next, domainsNeeded }: TierStanding, settings: ShapeSettings): object {
  const upcoming = (name: string, some: unknown): object => {
    if (next !== null) return { [name]: some };
    if (settings.topTier === "absent") return {};
    return { [name]: settings.topTier === "empty" ? "" : null };
  };
  switch (settings.tierFields) {
    case "flat":
      return { current_tier: current, ...upcoming("next_tier", next), domains_needed: domainsNeeded };
    case "camel":
      return { currentTier: current, ...upcoming("nextTier", next), domainsToNextTier: domainsNeeded };
    case "nested":
      return {
        current: { name: current },
        ...upcoming("next", { name: next, domains_needed: domainsNeeded }),
      };
    case "wrapped":
      return { tier: { current, ...upcoming("next", next), remaining: domainsNeeded } };
    case "counted":
      return { tier: current, ...upcoming("next", next), domains_to_advance: domainsNeeded };
    default:
      return settings.tierFields satisfies never;
  }
}
