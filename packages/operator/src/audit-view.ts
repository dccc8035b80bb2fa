/** The audit log, newest first. */
import { byId, element } from "../../storefront/src/element.js";
import { count } from "./figures.js";
import type { Audit } from "./staff-api.js";
import { table, words } from "./table.js";

const MAX_SHOWN = 20;
const time = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

const WORDS: Readonly<Record<string, string>> = {
  purge: "purged the cache",
  preview: "tried a price change",
  promise: "looked up a promise",
  order: "said of a promise",
  token: "was refused",
  retail_config: "price file changed",
};

export function showAudit({ acts }: Audit, csv: HTMLElement): void {
  const host = byId("audit", HTMLDivElement);
  // Doesn't disturb someone who is using the table; the next poll updates it.
  if (host.contains(document.activeElement)) return;
  const rows = acts
    .slice(0, MAX_SHOWN)
    .map(({ when, who, what, subject, outcome, times }) => [
      time.format(Date.parse(when)),
      who ?? "–",
      WORDS[what] ?? what,
      subject ?? "–",
      times > 1 ? `${outcome} (${count(times)}×)` : outcome,
    ]);
  const more = acts.length - rows.length;
  host.replaceChildren(
    element(
      "div",
      { class: "card panel" },
      rows.length === 0
        ? element("p", { class: "quiet" }, "None yet.")
        : table("Staff actions", words("When", "Who", "What", "About", "Outcome"), rows),
      element(
        "p",
        { class: "bar" },
        csv,
        more > 0 && element("span", { class: "quiet" }, `${count(more)} more in the file.`),
      ),
    ),
  );
}
