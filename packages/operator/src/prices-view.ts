/** Every price sold, with wholesale, margin and rule, and notes on what changed or is wrong. */
import type { Money } from "../../client/src/client.js";
import { byId, element } from "../../storefront/src/element.js";
import { shareOf, signed, written } from "./amounts.js";
import { counted, dateAndTimeOf } from "./figures.js";
import type { Price, Prices } from "./staff-api.js";
import { numbers, table, words } from "./table.js";

/** Returns a function that shows the prices. */
export function pricesView(csv: HTMLElement): (list: Prices) => void {
  const host = byId("prices", HTMLDivElement);
  let chosen = "";

  return ({ prices, asOf }) => {
    // Doesn't disturb someone who is using the table; the next poll updates it.
    if (host.contains(document.activeElement)) return;
    const tlds = [...new Set(prices.map(({ tld }) => tld))];
    const select = element(
      "select",
      { id: "tld" },
      element("option", { value: "" }, "all TLDs"),
      ...tlds.map((tld) => element("option", { value: tld, selected: tld === chosen }, tld)),
    );
    const rows = element("div");
    const draw = (): void => {
      chosen = select.value;
      rows.replaceChildren(
        table(
          "Retail and wholesale prices",
          [
            ...words("TLD", "Action", "Term"),
            ...numbers("Wholesale", "Retail", "Margin", "% of retail"),
            ...words("Rule", "Notes"),
          ],
          prices.filter(({ tld }) => chosen === "" || tld === chosen).map(cellsOf),
        ),
      );
    };
    select.addEventListener("change", draw);
    draw();
    const age = element("span", { class: "quiet" }, `the oldest is from ${dateAndTimeOf(asOf)}`);
    const tools = element("p", { class: "bar" }, element("label", { for: "tld" }, "Show"), select, csv, age);
    host.replaceChildren(element("div", { class: "card panel" }, tools, rows));
  };
}

function cellsOf({
  tld,
  action,
  years,
  wholesale,
  retail,
  margin,
  rule,
  changed,
  promotion,
  warning,
}: Price) {
  const was =
    changed &&
    `wholesale was ${written(changed.from)}${changed.by ? ` (${signed(changed.by)})` : ""} until ${dateAndTimeOf(changed.at)}`;
  const notes = element(
    "span",
    { class: "notes" },
    warning !== undefined && element("span", { class: "bad" }, warning),
    was !== undefined && element("span", { class: "warn" }, was),
    promotion !== undefined &&
      element("span", {}, `promotion ${promotion.id}, regular price ${written(promotion.regular)}`),
  );
  return [
    tld,
    action,
    counted(years, "year"),
    written(wholesale),
    retail ? written(retail) : "none",
    margin ? marginOf(margin) : "–",
    (margin && retail && shareOf(margin, retail)) ?? "–",
    rule ?? "–",
    notes,
  ];
}

/** The margin, which stands out if it is a loss. */
export function marginOf(margin: Money): HTMLElement {
  return element("span", { class: margin.amount.startsWith("-") && "bad" }, written(margin));
}
