/** What the next tier would have saved on the last 30 days' orders, at the prices of that tier that the operator enters. */
import type { Money } from "../../client/src/client.js";
import { byId, element } from "../../storefront/src/element.js";
import { saved, typed, written } from "./amounts.js";
import { type Ordered, orderedLately } from "./dates.js";
import type { Domains, Prices, Tier } from "./staff-api.js";
import { numbers, table, words } from "./table.js";

interface Line extends Ordered {
  readonly wholesale: Money;
}

/** Returns a function that shows the orders. */
export function savingsView(): (tier: Tier, domains: Domains, prices: Prices) => void {
  const host = byId("savings", HTMLDivElement);
  /** The entered prices, by TLD and action. */
  const entered = new Map<string, string>();
  const result = element("p", { role: "status" });

  function showSavings(lines: readonly Line[], next: string): void {
    const known = lines.flatMap(({ tld, action, domains, wholesale }) => {
      const nextPrice = typed(entered.get(`${tld} ${action}`) ?? "", wholesale.currency);
      return nextPrice === null ? [] : [{ count: domains, price: wholesale, nextPrice }];
    });
    const differences = saved(known).map((one) =>
      one.amount.startsWith("-")
        ? `cost ${written({ ...one, amount: one.amount.slice(1) })} more`
        : `saved ${written(one)}`,
    );
    result.textContent =
      differences.length === 0
        ? `Enter ${next}'s wholesale prices to see the difference.`
        : `In the last 30 days, ${next} would have ${differences.join(" and ")}.`;
  }

  function inputOf({ tld, action }: Line, lines: readonly Line[], next: string): HTMLElement {
    const key = `${tld} ${action}`;
    const input = element("input", {
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      size: "6",
      "aria-label": `${key} at ${next}`,
    });
    input.value = entered.get(key) ?? "";
    input.addEventListener("input", () => {
      const text = input.value.trim();
      entered.set(key, text);
      input.setAttribute("aria-invalid", String(text !== "" && typed(text, "") === null));
      showSavings(lines, next);
    });
    return input;
  }

  return ({ nextTier }, { domains }, { prices }) => {
    // Doesn't disturb someone who is typing; the next poll updates it.
    if (host.contains(document.activeElement)) return;
    if (nextTier === null) return host.replaceChildren();
    const isOpen = host.querySelector("details")?.open === true;
    const tlds = [...new Set(prices.map(({ tld }) => tld))];
    const lines = orderedLately(domains, tlds, Date.now()).flatMap((ordered): Line[] => {
      const { tld, action } = ordered;
      const price = prices.find((one) => one.tld === tld && one.action === action && one.years === 1);
      return price === undefined ? [] : [{ ...ordered, wholesale: price.wholesale }];
    });
    showSavings(lines, nextTier);
    const rows = lines.map((line) => [
      `${line.domains} × ${line.tld} ${line.action}`,
      written(line.wholesale),
      inputOf(line, lines, nextTier),
    ]);
    const columns = [...words("Ordered"), ...numbers("Price now", `At ${nextTier}`)];
    const orders =
      lines.length === 0
        ? [element("p", {}, "No domain was registered or renewed in the last 30 days.")]
        : [table("Orders of the last 30 days", columns, rows), result];
    host.replaceChildren(
      element(
        "details",
        { open: isOpen },
        element("summary", {}, `What would ${nextTier} save?`),
        ...orders,
        element("p", { class: "quiet" }, "Estimated from the domains' dates, each for one year."),
      ),
    );
  };
}
