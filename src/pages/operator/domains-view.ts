/** Domains that expire within 30, 60 and 90 days, as counts, a calendar and a list, with an alarm if the registry's list is cut off. */
import { byId, element } from "../element.js";
import type { Alarms } from "./alarms.js";
import { dayOf, expiring, type Expiring, type Month, monthsAhead } from "./expiry.js";
import type { DomainRecord, Domains } from "./staff-api.js";
import { table } from "./table.js";

export interface DomainsView {
  /** `active` is the number of domains in the account, or null if unknown. */
  show(domains: Domains, active: number | null): void;
  remove(): void;
}

const SPANS = [30, 60, 90] as const;
/** The registry lists at most this many (its document, section 4). */
const LIST_CAP = 100;
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const count = new Intl.NumberFormat("en");
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeZone: "UTC" });
const longDate = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const monthName = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
const time = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });

const domainsOf = (n: number): string => `${count.format(n)} ${n === 1 ? "domain" : "domains"}`;

export function domainsView(alarms: Alarms): DomainsView {
  const host = byId("domains", HTMLDivElement);
  let shown: { readonly domains: Domains; readonly active: number | null } | null = null;
  /** A number of days from now, or a day. */
  let chosen: number | string = 90;

  function choose(what: number | string): void {
    chosen = what;
    draw();
    // Drawing replaced the button that was pressed.
    host.querySelector<HTMLElement>(`[data-choice="${what}"]`)?.focus();
  }

  function choice(what: number | string, attributes: Record<string, string>, ...children: (Node | string)[]) {
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

  function draw(): void {
    if (shown === null) return;
    const { domains, active } = shown;
    const nowMs = Date.now();
    const all = expiring(domains.domains, nowMs);
    const ahead = all.filter(({ inDays }) => inDays >= 0);
    const past = all.filter(({ inDays }) => inDays < 0);
    const within = (days: number) => ahead.filter(({ inDays }) => inDays <= days);
    const listed = typeof chosen === "number" ? within(chosen) : ahead.filter(({ day }) => day === chosen);
    const unknown = domains.domains.length - all.length;

    const tiles = element(
      "div",
      { class: "tiles", role: "group", "aria-label": "Which domains to list" },
      ...SPANS.map((days) =>
        choice(
          days,
          { class: "card tile" },
          element("span", { class: "figure" }, count.format(within(days).length)),
          element("span", { class: "quiet" }, `within ${days} days`),
        ),
      ),
    );
    const months = element(
      "div",
      { class: "card panel months" },
      ...monthsAhead(nowMs, 90).map((month) => calendar(month, within(90), nowMs)),
    );
    const title = typeof chosen === "number" ? `Within ${chosen} days` : longDate.format(Date.parse(chosen));
    const list =
      listed.length === 0
        ? element("p", { class: "quiet" }, "None.")
        : table(
            title,
            [
              { title: "Domain" },
              { title: "Expires" },
              { title: "In days", number: true },
              { title: "Auto-renew" },
              { title: "Status" },
            ],
            listed.map(rowOf),
          );
    host.replaceChildren(
      tiles,
      element(
        "div",
        { class: "expiry" },
        months,
        element(
          "div",
          { class: "card panel" },
          element("h3", {}, title),
          list,
          element("p", { class: "quiet" }, notes(domains, past.length, unknown)),
        ),
      ),
    );
    alarms.set("domains", truncation(domains, active));
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
      const focused = host.contains(document.activeElement) ? document.activeElement : null;
      const kept = focused instanceof HTMLElement ? focused.dataset["choice"] : undefined;
      draw();
      if (kept !== undefined) host.querySelector<HTMLElement>(`[data-choice="${kept}"]`)?.focus();
    },
    remove() {
      shown = null;
      host.replaceChildren();
    },
  };
}

function rowOf({ record, day, inDays }: Expiring<DomainRecord>): (Node | string)[] {
  const { domain, autoRenew, status } = record;
  const renewal =
    autoRenew === null
      ? "unknown"
      : element("span", { class: `state ${autoRenew ? "good" : "bad"}` }, autoRenew ? "on" : "off");
  return [domain, date.format(Date.parse(day)), count.format(inDays), renewal, status ?? "unknown"];
}

function notes({ domains, asOf, source }: Domains, past: number, unknown: number): string {
  const parts = [
    `${domainsOf(domains.length)} listed as of ${time.format(Date.parse(asOf))}`,
    ...(past > 0 ? [`${count.format(past)} already expired`] : []),
    ...(unknown > 0 ? [`${count.format(unknown)} without a known date`] : []),
    "days are in UTC",
    ...(source === "stale" ? ["the registry can't be asked at the moment"] : []),
  ];
  return `${parts.join("; ")}.`;
}

function truncation({ domains, truncated }: Domains, active: number | null) {
  if (truncated === true) {
    const all =
      active === null || active <= domains.length
        ? "the account has more"
        : `the account has ${count.format(active)}`;
    return [
      {
        level: "bad" as const,
        text: `The registry lists only ${count.format(domains.length)} domains, but ${all}. Check the reseller portal for when the others expire.`,
      },
    ];
  }
  if (domains.length < LIST_CAP) return [];
  return [
    {
      level: "warn" as const,
      text: `The registry's list is full (${count.format(domains.length)} domains). Further domains and their expiry won't be shown here.`,
    },
  ];
}
