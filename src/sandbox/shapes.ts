/**
 * The only place that decides how an answer is written: field names, statuses, codes, date formats. Everything that the document leaves open
 * ("not shown") follows the settings of `open-points.ts`, so another choice doesn't change behaviour.
 */
import type { DomainRecord, DomainStatus, Facts, Failure, Money, Quote, TierStanding } from "./facts.js";
import { type Answer, failureAnswer } from "./failures.js";
import { RECORD_NAMES, type ShapeSettings } from "./open-points.js";
import type { Operation } from "./operations.js";
import { shapeSettings } from "./presets.js";

export type { Answer } from "./failures.js";

/** How the successes of each operation are written. */
export type Successes = { readonly [Name in Operation]: (fact: Facts[Name]) => Answer };

export interface Shapes extends Successes {
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
    check: ({ domain, available, years, price }) =>
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

function takenPricing(price: Money | null, settings: ShapeSettings): object {
  return {
    null: { pricing: null },
    absent: {},
    empty: { pricing: {} },
    zero: { pricing: { amount: "0.00", currency: null } },
    price: { pricing: price && pricing(price) },
  }[settings.takenPricing];
}

function amountOf(cents: number, { quoteAmount }: ShapeSettings): string | number {
  const text = decimal(cents);
  return { text, number: Number(text), "padded-number": `#${text}#`, "minor-units": cents }[quoteAmount];
}

function quoteFields({ tld, action, years, price }: Quote, settings: ShapeSettings): object {
  const echo = settings.quoteEcho === "all" ? { tld, action, years } : {};
  const { currency } = price;
  const amount = amountOf(price.cents, settings);
  const unit = amountOf(Math.round(price.cents / years), settings);
  return {
    nested: { ...echo, pricing: { amount, currency } },
    flat: { ...echo, amount, currency },
    wrapped: { quote: { ...echo, price: { amount, currency } } },
    "unit-and-total": { ...echo, unit_price: unit, total_price: amount, currency },
    unit: { ...echo, unit_price: unit, currency },
    "per-year": { ...echo, amount: unit, per: "year", currency },
  }[settings.quoteFields];
}

const KABUL_OFFSET_MS = 4.5 * 3_600_000;

function moment(date: Date, { dates }: ShapeSettings): string | number {
  const iso = date.toISOString();
  const inKabul = new Date(date.getTime() + KABUL_OFFSET_MS).toISOString();
  return {
    rfc3339: `${iso.slice(0, 19)}Z`,
    fraction: iso,
    offset: `${inKabul.slice(0, 19)}+04:30`,
    day: iso.slice(0, 10),
    space: iso.slice(0, 19).replace("T", " "),
    seconds: date.getTime() / 1000,
    milliseconds: date.getTime(),
    "month-name": date.toUTCString().slice(5, 16).replaceAll(" ", "-"),
  }[dates];
}

const EPP_STATUSES: Readonly<Record<DomainStatus, string>> = {
  active: "ok",
  expired: "autoRenewPeriod",
  redemption: "redemptionPeriod",
  suspended: "serverHold",
  pending_transfer: "pendingTransfer",
};

function statusWord(status: DomainStatus, { statusWords }: ShapeSettings): string | string[] {
  return {
    lower: status,
    upper: status.toUpperCase(),
    title: status.charAt(0).toUpperCase() + status.slice(1).replaceAll("_", " "),
    epp: [EPP_STATUSES[status]],
  }[statusWords];
}

function autoRenewFlag(on: boolean, { autoRenew }: ShapeSettings): boolean | number | string {
  return { boolean: on, number: on ? 1 : 0, word: on ? "on" : "off", text: String(on) }[autoRenew];
}

function nameserverList(hosts: readonly string[], { nameservers }: ShapeSettings): unknown {
  return {
    list: hosts,
    objects: hosts.map((hostname) => ({ hostname })),
    numbered: Object.fromEntries(hosts.map((host, index) => [`ns${index + 1}`, host])),
    text: hosts.join(", "),
  }[nameservers];
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
  const record = recordFields(domain, settings);
  // Name, status and expiry.
  const brief = Object.fromEntries(Object.entries(record).slice(0, 3));
  return { records: record, wrapped: { domain: record }, brief, names: domain.domain }[settings.listItems];
}

function ordered(records: readonly DomainRecord[], { listOrder }: ShapeSettings): readonly DomainRecord[] {
  if (listOrder === "given") return records;
  return records.toSorted(
    listOrder === "name"
      ? (a, b) => (a.domain < b.domain ? -1 : 1)
      : (a, b) => b.registeredAt.getTime() - a.registeredAt.getTime(),
  );
}

function domainList(records: readonly DomainRecord[], settings: ShapeSettings): object {
  const list = ordered(records, settings).map((one) => listItem(one, settings));
  const paging = {
    none: {},
    counts: { page: 1, per_page: 100, count: list.length },
    links: { links: { first: "/api/v1/domains", prev: null, next: null } },
    cursor: { next_cursor: null, has_more: false },
  }[settings.listPaging];
  return settings.listWrapper === "nested"
    ? { result: { ...paging, records: list } }
    : { ...paging, [settings.listWrapper]: list };
}

function tierFields({ current, next, domainsNeeded }: TierStanding, settings: ShapeSettings): object {
  const upcoming = (name: string, some: unknown = next): object => {
    if (next !== null) return { [name]: some };
    return { null: { [name]: null }, absent: {}, empty: { [name]: "" } }[settings.topTier];
  };
  return {
    flat: { current_tier: current, ...upcoming("next_tier"), domains_needed: domainsNeeded },
    camel: { currentTier: current, ...upcoming("nextTier"), domainsToNextTier: domainsNeeded },
    nested: {
      current: { name: current },
      ...upcoming("next", { name: next, domains_needed: domainsNeeded }),
    },
    wrapped: { tier: { current, ...upcoming("next"), remaining: domainsNeeded } },
    counted: { tier: current, ...upcoming("next"), domains_to_advance: domainsNeeded },
  }[settings.tierFields];
}
