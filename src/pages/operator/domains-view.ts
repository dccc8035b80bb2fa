/** All domains, sorted by expiry at first, with search, and the calendar months in which some expire. */
import { byId, element } from "../element.js";
import type { Alarm } from "./alarm.js";
import type { Alarms } from "./alarms.js";
import { dayOf, expiring, type Expiring, type Month, monthsAhead } from "./expiry.js";
import type { DomainRecord, Domains } from "./staff-api.js";
import { type Column, table } from "./table.js";

export interface DomainsView {
  /** `active` is the number of domains in the account, or null if unknown. */
  show(domains: Domains, active: number | null): void;
  remove(): void;
}

/** Which domains are listed: those that expire within a number of days (with the expired ones), those of a day, or `ALL` or `EXPIRED`. */
type Choice = number | string;

const SPANS = [30, 60, 90] as const;
const EXPIRED = "expired";
const ALL = "all";
/** The registry lists at most this many (section 4 of its document). */
const LIST_CAP = 100;
/** A domain without auto-renewal raises an alarm this many days before it expires. */
const SOON_DAYS = 7;
const MAX_NAMED = 5;
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const count = new Intl.NumberFormat("en");
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const longDate = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const monthName = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const time = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const names = new Intl.ListFormat("en");

const domainsOf = (n: number): string => `${count.format(n)} ${n === 1 ? "domain" : "domains"}`;
const daysOf = (n: number): string => `${count.format(n)} ${n === 1 ? "day" : "days"}`;

interface Row {
  readonly record: DomainRecord;
  /** Null: the registry gives no date. */
  readonly expiry: Expiring<DomainRecord> | null;
}

/** The sort order of each column; unknown dates come last. */
const ORDERS = {
  Domain: (a: Row, b: Row) => a.record.domain.localeCompare(b.record.domain),
  Expires: (a: Row, b: Row) => (a.expiry?.inDays ?? 1e9) - (b.expiry?.inDays ?? 1e9),
  "Auto-renew": (a: Row, b: Row) => Number(a.record.autoRenew) - Number(b.record.autoRenew),
  Status: (a: Row, b: Row) => (a.record.status ?? "").localeCompare(b.record.status ?? ""),
} as const;
type Order = keyof typeof ORDERS;

export function domainsView(alarms: Alarms, csv: HTMLElement): DomainsView {
  const host = byId("domains", HTMLDivElement);
  const tiles = element("div", { class: "tiles", role: "group", "aria-label": "Which domains to list" });
  const months = element("div", { class: "card panel months" });
  const title = element("h3");
  const list = element("div");
  const note = element("p", { class: "quiet" });
  const search = element("input", { id: "domain-search", type: "search", autocomplete: "off" });
  const tools = element(
    "p",
    { class: "bar" },
    element("label", { for: "domain-search" }, "Search all domains"),
    search,
    csv,
  );
  const card = element("div", { class: "card panel" }, title, tools, list, note);
  let shown: { readonly domains: Domains; readonly active: number | null } | null = null;
  let chosen: Choice = 90;
  let sorting: { readonly order: Order; readonly isDown: boolean } = { order: "Expires", isDown: false };

  function choose(what: Choice): void {
    chosen = what;
    search.value = "";
    draw();
  }
  search.addEventListener("input", () => {
    chosen = ALL;
    draw();
  });

  function choice(what: Choice, attributes: Record<string, string>, ...children: (Node | string)[]) {
    const made = element(
      "button",
      { type: "button", "data-choice": String(what), "aria-pressed": String(chosen === what), ...attributes },
      ...children,
    );
    made.addEventListener("click", () => {
      choose(what);
    });
    return made;
  }

  function tile(what: Choice, figure: number, words: string): HTMLElement {
    return choice(
      what,
      { class: what === EXPIRED && figure > 0 ? "card tile bad" : "card tile" },
      element("span", { class: "figure" }, count.format(figure)),
      element("span", { class: "quiet" }, words),
    );
  }

  function column(order: Order): Column {
    const by = sorting.order === order ? (sorting.isDown ? "descending" : "ascending") : "none";
    return {
      title: order,
      sort: {
        by,
        press: () => {
          sorting = { order, isDown: by === "ascending" };
          draw();
        },
      },
    };
  }

  /** Keeps the focus in place when the view is redrawn. */
  function draw(): void {
    if (shown === null) return;
    const focused = host.contains(document.activeElement) ? document.activeElement : null;
    const kept = focused instanceof HTMLElement ? focused.dataset["choice"] : undefined;
    redraw(shown.domains);
    if (kept !== undefined)
      [...host.querySelectorAll<HTMLElement>("[data-choice]")]
        .find((one) => one.dataset["choice"] === kept)
        ?.focus();
  }

  function redraw(domains: Domains): void {
    const nowMs = Date.now();
    const dated = expiring(domains.domains, nowMs);
    const past = dated.filter(({ inDays }) => inDays < 0);
    const within = (days: number) => dated.filter(({ inDays }) => inDays >= 0 && inDays <= days);
    tiles.replaceChildren(
      tile(EXPIRED, past.length, "expired"),
      ...SPANS.map((days) => tile(days, within(days).length, `within ${days} days`)),
      tile(ALL, domains.domains.length, "all domains"),
    );
    const rows = rowsOf(domains, dated).filter((row) => isChosen(row, chosen));
    const text = search.value.trim().toLowerCase();
    const found = text === "" ? rows : rows.filter(({ record }) => record.domain.includes(text));
    const order = ORDERS[sorting.order];
    const sorted = [...found].sort((a, b) => (sorting.isDown ? order(b, a) : order(a, b)));
    const words = titleOf(chosen, text);
    title.textContent = `${words}: ${count.format(found.length)}`;
    list.replaceChildren(
      found.length === 0
        ? element("p", { class: "quiet" }, "None.")
        : table(
            words,
            [column("Domain"), column("Expires"), { title: "When" }, column("Auto-renew"), column("Status")],
            sorted.map(cellsOf),
          ),
    );
    note.textContent = notes(domains, domains.domains.length - dated.length);
    months.replaceChildren(...calendars(monthsAhead(nowMs, 90), within(90), nowMs));
  }

  function calendars(
    all: readonly Month[],
    soon: readonly Expiring<DomainRecord>[],
    nowMs: number,
  ): HTMLElement[] {
    const isIn = ({ first }: Month) => soon.some(({ day }) => day.slice(0, 7) === first.slice(0, 7));
    const empty = all.filter((month) => !isIn(month)).map(({ first }) => monthName.format(Date.parse(first)));
    return [
      ...all.filter(isIn).map((month) => calendar(month, soon, nowMs)),
      ...(empty.length === 0
        ? []
        : [element("p", { class: "quiet" }, `No domain expires in ${names.format(empty)}.`)]),
    ];
  }

  function calendar(
    { first, weeks }: Month,
    soon: readonly Expiring<DomainRecord>[],
    nowMs: number,
  ): HTMLElement {
    const today = dayOf(nowMs);
    const cell = (day: string | null): HTMLElement => {
      if (day === null) return element("td");
      const here = soon.filter((one) => one.day === day);
      const digits = String(Number(day.slice(8)));
      const isToday: Record<string, string> = day === today ? { "aria-current": "date" } : {};
      if (here.length === 0) return element("td", isToday, digits);
      const lapses = here.some(({ record }) => record.autoRenew === false);
      const label = `${longDate.format(Date.parse(day))}: ${here.length === 1 ? "1 domain expires" : `${here.length} domains expire`}`;
      return element(
        "td",
        isToday,
        choice(day, { class: lapses ? "day lapses" : "day", "aria-label": label }, digits),
      );
    };
    return element(
      "table",
      { class: "month" },
      element("caption", {}, monthName.format(Date.parse(first))),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ...WEEKDAYS.map((name) => element("th", { scope: "col", abbr: name }, name.slice(0, 2))),
        ),
      ),
      element("tbody", {}, ...weeks.map((week) => element("tr", {}, ...week.map(cell)))),
    );
  }

  return {
    show(domains, active) {
      shown = { domains, active };
      if (!host.contains(card))
        host.replaceChildren(tiles, element("div", { class: "expiry" }, card, months));
      draw();
      alarms.set("domains", [
        ...expiryAlarms(expiring(domains.domains, Date.now())),
        ...truncation(domains, active),
      ]);
    },
    remove() {
      shown = null;
      host.replaceChildren();
    },
  };
}

function rowsOf({ domains }: Domains, dated: readonly Expiring<DomainRecord>[]): Row[] {
  return domains.map((record) => ({
    record,
    expiry: dated.find((one) => one.record === record) ?? null,
  }));
}

function isChosen({ expiry }: Row, chosen: Choice): boolean {
  if (chosen === ALL) return true;
  if (expiry === null) return false;
  if (chosen === EXPIRED) return expiry.inDays < 0;
  return typeof chosen === "number" ? expiry.inDays <= chosen : expiry.day === chosen;
}

function titleOf(chosen: Choice, text: string): string {
  if (text !== "") return `Domains with “${text}”`;
  if (chosen === ALL) return "All domains";
  if (chosen === EXPIRED) return "Expired";
  return typeof chosen === "number"
    ? `Expired, or expiring within ${chosen} days`
    : longDate.format(Date.parse(chosen));
}

function cellsOf({ record, expiry }: Row): (Node | string)[] {
  const { domain, autoRenew, status } = record;
  const renewal =
    autoRenew === null
      ? "unknown"
      : element("span", { class: `state ${autoRenew ? "good" : "bad"}` }, autoRenew ? "on" : "off");
  return [
    domain,
    expiry === null ? "unknown" : date.format(Date.parse(expiry.day)),
    expiry === null
      ? "–"
      : expiry.inDays < 0
        ? element("span", { class: "bad" }, `${daysOf(-expiry.inDays)} ago`)
        : expiry.inDays === 0
          ? "today"
          : `in ${daysOf(expiry.inDays)}`,
    renewal,
    status ?? "unknown",
  ];
}

function notes({ domains, asOf, source }: Domains, unknown: number): string {
  const parts = [
    `${domainsOf(domains.length)} listed as of ${time.format(Date.parse(asOf))}`,
    ...(unknown > 0 ? [`${count.format(unknown)} without a known date`] : []),
    "days are in UTC",
    ...(source === "stale" ? ["the registry can't be asked at the moment"] : []),
  ];
  return `${parts.join("; ")}.`;
}

function expiryAlarms(dated: readonly Expiring<DomainRecord>[]): Alarm[] {
  const past = dated.filter(({ inDays }) => inDays < 0);
  const lapsing = dated.filter(
    ({ inDays, record }) => inDays >= 0 && inDays <= SOON_DAYS && record.autoRenew === false,
  );
  return [
    ...(past.length === 0
      ? []
      : [
          {
            level: "bad" as const,
            text: `${past.length === 1 ? "A domain has" : `${domainsOf(past.length)} have`} expired: ${named(past, ({ inDays }) => `${daysOf(-inDays)} ago`)}.`,
            todo: "Renew it in the reseller portal, or restore it at the price in the list below, before somebody else registers it.",
          },
        ]),
    ...(lapsing.length === 0
      ? []
      : [
          {
            level: "warn" as const,
            text: `${lapsing.length === 1 ? "A domain expires" : `${domainsOf(lapsing.length)} expire`} within ${daysOf(SOON_DAYS)} without auto-renewal: ${named(lapsing, ({ inDays }) => (inDays === 0 ? "today" : `in ${daysOf(inDays)}`))}.`,
            todo: "Ask the customer, or switch on auto-renew in the reseller portal.",
          },
        ]),
  ];
}

function named(
  list: readonly Expiring<DomainRecord>[],
  when: (one: Expiring<DomainRecord>) => string,
): string {
  const named = list.slice(0, MAX_NAMED).map((one) => `${one.record.domain} (${when(one)})`);
  const rest = list.length - named.length;
  return names.format(rest === 0 ? named : [...named, `${count.format(rest)} more`]);
}

function truncation({ domains, truncated }: Domains, active: number | null): Alarm[] {
  const todo = "Check the reseller portal for when the others expire.";
  if (truncated === true) {
    const all =
      active === null || active <= domains.length
        ? "the account has more"
        : `the account has ${count.format(active)}`;
    return [
      {
        level: "bad",
        text: `The registry lists only ${count.format(domains.length)} domains, but ${all}.`,
        todo,
      },
    ];
  }
  if (domains.length < LIST_CAP) return [];
  return [
    {
      level: "warn",
      text: `The registry's list is full (${count.format(domains.length)} domains). Further domains and their expiry won't be shown here.`,
      todo,
    },
  ];
}
