/** Every price sold, with wholesale, margin and rule, and notes on what changed or is wrong. */
import { byId, element } from "../element.js";
import { yearsOf } from "./account-view.js";
import type { Alarms } from "./alarms.js";
import { shareOf, signed, written } from "./amounts.js";
import type { Price, Prices } from "./staff-api.js";
import { table } from "./table.js";

export interface PricesView {
  show(prices: Prices): void;
  remove(): void;
}

const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export function pricesView(alarms: Alarms, csv: HTMLElement): PricesView {
  const host = byId("prices", HTMLDivElement);
  let chosen = "";

  return {
    show(list) {
      alarms.set(
        "prices",
        list.warnings.map((text) => ({
          level: "warn",
          text,
          todo: "See the price list below, and try another rule under “Try a price change”.",
        })),
      );
      const tlds = [...new Set(list.prices.map(({ tld }) => tld))];
      const select = element(
        "select",
        { id: "tld" },
        element("option", { value: "" }, "all TLDs"),
        ...tlds.map((tld) => element("option", { value: tld }, tld)),
      );
      if (!tlds.includes(chosen)) chosen = "";
      select.value = chosen;
      const rows = element("div");
      const draw = (): void => {
        const shown = list.prices.filter(({ tld }) => chosen === "" || tld === chosen);
        rows.replaceChildren(
          table(
            "Retail and wholesale prices",
            [
              { title: "TLD" },
              { title: "Action" },
              { title: "Term" },
              { title: "Wholesale", number: true },
              { title: "Retail", number: true },
              { title: "Margin", number: true },
              { title: "% of retail", number: true },
              { title: "Rule" },
              { title: "Notes" },
            ],
            shown.map(rowOf),
          ),
        );
      };
      select.addEventListener("change", () => {
        chosen = select.value;
        draw();
      });
      draw();
      // Doesn't disturb someone who is using the table; the next poll updates it.
      if (host.contains(document.activeElement)) return;
      host.replaceChildren(
        element(
          "div",
          { class: "card panel" },
          element(
            "p",
            { class: "bar" },
            element("label", { for: "tld" }, "Show"),
            select,
            csv,
            element("span", { class: "quiet" }, `the oldest is from ${date.format(Date.parse(list.asOf))}`),
          ),
          rows,
        ),
      );
    },
    remove() {
      host.replaceChildren();
    },
  };
}

function rowOf({ tld, action, years, wholesale, retail, margin, rule, changed, promotion, warning }: Price) {
  const share = margin && retail && shareOf(margin, retail);
  const isLoss = margin?.amount.startsWith("-") === true;
  const notes = [
    ...(warning === undefined ? [] : [element("span", { class: "bad" }, warning)]),
    ...(changed === undefined
      ? []
      : [
          element(
            "span",
            { class: "warn" },
            `wholesale was ${written(changed.from)}${changed.by ? ` (${signed(changed.by)})` : ""} until ${date.format(Date.parse(changed.at))}`,
          ),
        ]),
    ...(promotion === undefined
      ? []
      : [element("span", {}, `promotion ${promotion.id}, regular price ${written(promotion.regular)}`)]),
  ];
  return [
    tld,
    action,
    yearsOf(years),
    written(wholesale),
    retail ? written(retail) : "none",
    margin ? element("span", isLoss ? { class: "bad" } : {}, written(margin)) : "–",
    share ?? "–",
    rule ?? "–",
    element("span", { class: "notes" }, ...notes),
  ];
}
