/** All domains, sorted by expiry at first, with search, and the calendar months in which some expire. */
import { button, byId, element, refill } from "../../storefront/src/element.js";
import { dayOf, expiring, type Expiring, type Month, monthsAhead, whenOf } from "./dates.js";
import { count, counted, timeOf } from "./figures.js";
import type { DomainRecord, Domains } from "./staff-api.js";
import { type Column, table } from "./table.js";

/** Which domains are listed: those that expire within a number of days (with the expired ones), those of a day, or `ALL` or `EXPIRED`. */
type Choice = number | string;

const SPANS = [30, 60, 90] as const;
const EXPIRED = "expired";
const ALL = "all";
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const longDate = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const monthName = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const names = new Intl.ListFormat("en");

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

/** Returns a function that shows the domains. */
export function domainsView(csv: HTMLElement): (domains: Domains) => void {
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
  let chosen: Choice = 90;
  let sorting: { readonly order: Order; readonly isDown: boolean } = { order: "Expires", isDown: false };
  let shown: Domains | null = null;

  search.addEventListener("input", () => {
    chosen = ALL;
    draw();
  });

  function choice(what: Choice, attributes: Record<string, string>, ...children: (Node | string)[]) {
    return button(
      { id: `list-${what}`, "aria-pressed": String(chosen === what), ...attributes },
      () => {
        chosen = what;
        search.value = "";
        draw();
      },
      ...children,
    );
  }

  function tile(what: Choice, figure: number, words: string): HTMLElement {
    return choice(
      what,
      { class: what === EXPIRED && figure > 0 ? "card tile bad" : "card tile" },
      element("span", { class: "figure" }, count(figure)),
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

  function draw(): void {
    if (shown === null) return;
    const { domains } = shown;
    const nowMs = Date.now();
    const dated = expiring(domains, nowMs);
    const past = dated.filter(({ inDays }) => inDays < 0);
    const within = (days: number) => dated.filter(({ inDays }) => inDays >= 0 && inDays <= days);
    refill(
      tiles,
      tile(EXPIRED, past.length, "expired"),
      ...SPANS.map((days) => tile(days, within(days).length, `within ${days} days`)),
      tile(ALL, domains.length, "all domains"),
    );
    const rows = rowsOf(shown, dated).filter((row) => isChosen(row, chosen));
    const text = search.value.trim().toLowerCase();
    const found = text === "" ? rows : rows.filter(({ record }) => record.domain.includes(text));
    const order = ORDERS[sorting.order];
    const sorted = [...found].sort((a, b) => (sorting.isDown ? order(b, a) : order(a, b)));
    const words = titleOf(chosen, text);
    title.textContent = `${words}: ${count(found.length)}`;
    refill(
      list,
      found.length === 0
        ? element("p", { class: "quiet" }, "None.")
        : table(
            words,
            [column("Domain"), column("Expires"), { title: "When" }, column("Auto-renew"), column("Status")],
            sorted.map(cellsOf),
          ),
    );
    note.textContent = notes(shown, domains.length - dated.length);
    refill(months, ...calendars(within(90), nowMs));
  }

  function calendars(soon: readonly Expiring<DomainRecord>[], nowMs: number): HTMLElement[] {
    const all = monthsAhead(nowMs, 90);
    const isIn = ({ first }: Month) => soon.some(({ day }) => day.slice(0, 7) === first.slice(0, 7));
    const shown = all.filter(isIn).map((month) => calendar(month, soon, dayOf(nowMs)));
    const empty = all.filter((month) => !isIn(month)).map(({ first }) => monthName.format(Date.parse(first)));
    if (empty.length === 0) return shown;
    return [...shown, element("p", { class: "quiet" }, `No domain expires in ${names.format(empty)}.`)];
  }

  function calendar({ first, weeks }: Month, soon: readonly Expiring<DomainRecord>[], today: string) {
    const cell = (day: string | null): HTMLElement => {
      if (day === null) return element("td");
      const here = soon.filter((one) => one.day === day);
      const digits = String(Number(day.slice(8)));
      const isToday = { "aria-current": day === today && "date" };
      if (here.length === 0) return element("td", isToday, digits);
      const lapses = here.some(({ record }) => record.autoRenew === false);
      const label = `${longDate.format(Date.parse(day))}: ${counted(here.length, "domain")} ${here.length === 1 ? "expires" : "expire"}`;
      return element(
        "td",
        isToday,
        choice(day, { class: lapses ? "day lapses" : "day", "aria-label": label }, digits),
      );
    };
    const head = WEEKDAYS.map((name) => element("th", { scope: "col", abbr: name }, name.slice(0, 2)));
    return element(
      "table",
      { class: "month" },
      element("caption", {}, monthName.format(Date.parse(first))),
      element("thead", {}, element("tr", {}, ...head)),
      element("tbody", {}, ...weeks.map((week) => element("tr", {}, ...week.map(cell)))),
    );
  }

  return (domains) => {
    shown = domains;
    if (!host.contains(card)) host.replaceChildren(tiles, element("div", { class: "expiry" }, card, months));
    draw();
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

function cellsOf({ record: { domain, autoRenew, status }, expiry }: Row): (Node | string)[] {
  return [
    domain,
    expiry === null ? "unknown" : date.format(Date.parse(expiry.day)),
    expiry === null ? "–" : element("span", { class: expiry.inDays < 0 && "bad" }, whenOf(expiry)),
    autoRenew === null
      ? "unknown"
      : element("span", { class: `state ${autoRenew ? "good" : "bad"}` }, autoRenew ? "on" : "off"),
    status ?? "unknown",
  ];
}

function notes({ domains, asOf, source }: Domains, undated: number): string {
  const parts = [
    `${counted(domains.length, "domain")} listed as of ${timeOf(asOf)}`,
    ...(undated > 0 ? [`${count(undated)} without a known date`] : []),
    "days are in UTC",
    ...(source === "stale" ? ["the registry can't be asked at the moment"] : []),
  ];
  return `${parts.join("; ")}.`;
}
