/** What the next tier would have saved on the last 30 days' orders, at the prices of that tier that the operator enters. */
import { byId, element } from "../element.js";
import { type Amount, saved, typed, written } from "./amounts.js";
import { type Ordered, orderedLately } from "./lately.js";
import type { Domains, Price, Prices, Tier } from "./staff-api.js";
import { table } from "./table.js";

export interface SavingsView {
  show(tier: Tier, domains: Domains, prices: Prices): void;
  remove(): void;
}

interface Line extends Ordered {
  readonly wholesale: Amount;
}

export function savingsView(): SavingsView {
  const host = byId("savings", HTMLDivElement);
  /** The entered prices, by TLD and action. */
  const entered = new Map<string, string>();
  const result = element("p", { role: "status" });

  function showSavings(lines: readonly Line[], next: string): void {
    const known = lines.flatMap(({ tld, action, domains, wholesale }) => {
      const nextPrice = typed(entered.get(`${tld} ${action}`) ?? "", wholesale.currency);
      return nextPrice === null ? [] : [{ count: domains, price: wholesale, nextPrice }];
    });
    const amounts = saved(known);
    const words = amounts.map((one) =>
      one.amount.startsWith("-")
        ? `cost ${written({ ...one, amount: one.amount.slice(1) })} more`
        : `saved ${written(one)}`,
    );
    result.textContent =
      words.length === 0
        ? `Enter ${next}'s wholesale prices to see the difference.`
        : `In the last 30 days, ${next} would have ${words.join(" and ")}.`;
  }

  function inputOf(line: Line, lines: readonly Line[], next: string): HTMLElement {
    const key = `${line.tld} ${line.action}`;
    const input = element("input", {
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      size: "6",
      "aria-label": `${line.tld} ${line.action} at ${next}`,
    });
    input.value = entered.get(key) ?? "";
    input.addEventListener("input", () => {
      entered.set(key, input.value.trim());
      const isRefused = input.value.trim() !== "" && typed(input.value.trim(), "") === null;
      input.setAttribute("aria-invalid", String(isRefused));
      showSavings(lines, next);
    });
    return input;
  }

  return {
    show({ nextTier }, { domains }, { prices }) {
      // Doesn't disturb someone who is typing; the next poll updates it.
      if (host.contains(document.activeElement)) return;
      const isOpen = host.querySelector("details")?.open === true;
      if (nextTier === null) {
        host.replaceChildren();
        return;
      }
      const tlds = [...new Set(prices.map(({ tld }) => tld))];
      const lines = orderedLately(domains, tlds, Date.now()).flatMap((ordered) => {
        const price = prices.find((one) => isFor(one, ordered));
        return price === undefined ? [] : [{ ...ordered, wholesale: price.wholesale }];
      });
      showSavings(lines, nextTier);
      const rows = lines.map((line) => [
        `${line.domains} × ${line.tld} ${line.action}`,
        written(line.wholesale),
        inputOf(line, lines, nextTier),
      ]);
      const columns = [
        { title: "Ordered" },
        { title: "Price now", number: true },
        { title: `At ${nextTier}`, number: true },
      ];
      host.replaceChildren(
        element(
          "details",
          { open: isOpen },
          element("summary", {}, `What would ${nextTier} save?`),
          ...(lines.length === 0
            ? [element("p", {}, "No domain was registered or renewed in the last 30 days.")]
            : [table("Orders of the last 30 days", columns, rows), result]),
          element("p", { class: "quiet" }, "Estimated from the domains' dates, each for one year."),
        ),
      );
    },
    remove() {
      entered.clear();
      host.replaceChildren();
    },
  };
}

function isFor({ tld, action, years }: Price, ordered: Ordered): boolean {
  return tld === ordered.tld && action === ordered.action && years === 1;
}
