/**
 * The only place that decides how an answer is written: field names, statuses, codes, date formats. Everything that the document leaves open
 * ("not shown") follows the settings of `open-points.ts`, so another choice doesn't change behaviour.
 */
import type { DomainRecord, DomainStatus, Facts, Failure, Money, Quote, TierStanding } from "./facts.js";
import { type Answer, failureAnswer } from "./failures.js";
import { type BySetting, RECORD_NAMES, type ShapeSettings } from "./open-points.js";
import type { Operation } from "./operations.js";
import { type ShapeChoice, shapeSettings } from "./presets.js";

/** How each operation writes a success. */
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
        ...(available && price !== null
          ? { pricing: pricing(price) }
          : TAKEN_PRICING[settings.takenPricing](price)),
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

/** The shapes that the sandbox currently plays: chosen at startup, and changed while it runs. */
export class Personality {
  settings: ShapeSettings;
  shapes: Shapes;

  /** Custom shapes are played until others are chosen. */
  constructor(chosen: ShapeChoice | Shapes) {
    const own = "failure" in chosen;
    this.settings = shapeSettings(own ? {} : chosen);
    this.shapes = own ? chosen : createShapes(this.settings);
  }

  /** Open points that the choice doesn't name return to the preset's setting. If it throws a ShapeFault, nothing changes. */
  choose(choice: unknown): ShapeSettings {
    this.settings = shapeSettings(choice);
    this.shapes = createShapes(this.settings);
    return this.settings;
  }
}

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

const TAKEN_PRICING: BySetting<"takenPricing", (price: Money | null) => object> = {
  null: () => ({ pricing: null }),
  absent: () => ({}),
  empty: () => ({ pricing: {} }),
  zero: () => ({ pricing: { amount: "0.00", currency: null } }),
  price: (price) => ({ pricing: price && pricing(price) }),
};

const AMOUNTS: BySetting<"quoteAmount", (cents: number) => string | number> = {
  text: decimal,
  number: (cents) => Number(decimal(cents)),
  "padded-number": (cents) => `#${decimal(cents)}#`,
  "minor-units": (cents) => cents,
};

interface QuoteParts {
  readonly echo: object;
  /** For the term, and for one year. */
  readonly amount: string | number;
  readonly unit: string | number;
  readonly currency: string;
}

const QUOTES: BySetting<"quoteFields", (parts: QuoteParts) => object> = {
  nested: ({ echo, amount, currency }) => ({ ...echo, pricing: { amount, currency } }),
  flat: ({ echo, amount, currency }) => ({ ...echo, amount, currency }),
  wrapped: ({ echo, amount, currency }) => ({ quote: { ...echo, price: { amount, currency } } }),
  "unit-and-total": ({ echo, amount, unit, currency }) => ({
    ...echo,
    unit_price: unit,
    total_price: amount,
    currency,
  }),
  unit: ({ echo, unit, currency }) => ({ ...echo, unit_price: unit, currency }),
  "per-year": ({ echo, unit, currency }) => ({ ...echo, amount: unit, per: "year", currency }),
};

function quoteFields({ tld, action, years, price }: Quote, settings: ShapeSettings): object {
  const write = AMOUNTS[settings.quoteAmount];
  return QUOTES[settings.quoteFields]({
    echo: settings.quoteEcho === "all" ? { tld, action, years } : {},
    amount: write(price.cents),
    unit: write(Math.round(price.cents / years)),
    currency: price.currency,
  });
}

const KABUL_OFFSET_MS = 4.5 * 3_600_000;

const DATES: BySetting<"dates", (date: Date) => string | number> = {
  rfc3339: (date) => `${date.toISOString().slice(0, 19)}Z`,
  fraction: (date) => date.toISOString(),
  offset: (date) => `${new Date(date.getTime() + KABUL_OFFSET_MS).toISOString().slice(0, 19)}+04:30`,
  day: (date) => date.toISOString().slice(0, 10),
  space: (date) => date.toISOString().slice(0, 19).replace("T", " "),
  seconds: (date) => date.getTime() / 1000,
  milliseconds: (date) => date.getTime(),
  "month-name": (date) => date.toUTCString().slice(5, 16).replaceAll(" ", "-"),
};

const EPP_STATUSES: Readonly<Record<DomainStatus, string>> = {
  active: "ok",
  expired: "autoRenewPeriod",
  redemption: "redemptionPeriod",
  suspended: "serverHold",
  pending_transfer: "pendingTransfer",
};

const STATUS_WORDS: BySetting<"statusWords", (status: DomainStatus) => string | string[]> = {
  lower: (status) => status,
  upper: (status) => status.toUpperCase(),
  title: (status) => status.charAt(0).toUpperCase() + status.slice(1).replaceAll("_", " "),
  epp: (status) => [EPP_STATUSES[status]],
};

const AUTO_RENEW: BySetting<"autoRenew", (on: boolean) => boolean | number | string> = {
  boolean: (on) => on,
  number: (on) => (on ? 1 : 0),
  word: (on) => (on ? "on" : "off"),
  text: String,
};

const NAMESERVERS: BySetting<"nameservers", (hosts: readonly string[]) => unknown> = {
  list: (hosts) => hosts,
  objects: (hosts) => hosts.map((hostname) => ({ hostname })),
  numbered: (hosts) => Object.fromEntries(hosts.map((host, index) => [`ns${index + 1}`, host])),
  text: (hosts) => hosts.join(", "),
};

function recordFields(domain: DomainRecord, settings: ShapeSettings): object {
  const [name, status, expiry, registered, autoRenew, nameservers] = RECORD_NAMES[settings.recordFields];
  const date = DATES[settings.dates];
  return {
    [name]: domain.domain,
    [status]: STATUS_WORDS[settings.statusWords](domain.status),
    [expiry]: date(domain.expiresAt),
    [registered]: date(domain.registeredAt),
    [autoRenew]: AUTO_RENEW[settings.autoRenew](domain.autoRenew),
    [nameservers]: NAMESERVERS[settings.nameservers](domain.nameservers),
  };
}

const LIST_ITEMS: BySetting<"listItems", (record: object, domain: string) => unknown> = {
  records: (record) => record,
  wrapped: (record) => ({ domain: record }),
  // Name, status and expiry.
  brief: (record) => Object.fromEntries(Object.entries(record).slice(0, 3)),
  names: (_record, domain) => domain,
};

function ordered(records: readonly DomainRecord[], { listOrder }: ShapeSettings): readonly DomainRecord[] {
  if (listOrder === "given") return records;
  return records.toSorted(
    listOrder === "name"
      ? (a, b) => (a.domain < b.domain ? -1 : 1)
      : (a, b) => b.registeredAt.getTime() - a.registeredAt.getTime(),
  );
}

function domainList(records: readonly DomainRecord[], settings: ShapeSettings): object {
  const list = ordered(records, settings).map((one) =>
    LIST_ITEMS[settings.listItems](recordFields(one, settings), one.domain),
  );
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
