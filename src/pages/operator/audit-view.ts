/** The audit log, newest first. */
import { byId, element } from "../element.js";
import type { Audit } from "./staff-api.js";
import { table } from "./table.js";

export interface AuditView {
  show(audit: Audit): void;
  remove(): void;
}

const MAX_SHOWN = 20;
const time = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const count = new Intl.NumberFormat("en");

const WORDS: Readonly<Record<string, string>> = {
  purge: "purged the cache",
  preview: "tried a price change",
  promise: "looked up a promise",
  token: "was refused",
  retail_config: "price file changed",
};

export function auditView(csv: HTMLElement): AuditView {
  const host = byId("audit", HTMLDivElement);
  return {
    show({ acts }) {
      // Doesn't disturb someone who is using the table; the next poll updates it.
      if (host.contains(document.activeElement)) return;
      const rows = acts
        .slice(0, MAX_SHOWN)
        .map(({ when, who, what, subject, outcome, times }) => [
          time.format(Date.parse(when)),
          who ?? "–",
          WORDS[what] ?? what,
          subject ?? "–",
          times > 1 ? `${outcome} (${count.format(times)}×)` : outcome,
        ]);
      const columns = ["When", "Who", "What", "About", "Outcome"].map((title) => ({ title }));
      const more = acts.length - rows.length;
      host.replaceChildren(
        element(
          "div",
          { class: "card panel" },
          rows.length === 0
            ? element("p", { class: "quiet" }, "None yet.")
            : table("Staff actions", columns, rows),
          element(
            "p",
            { class: "bar" },
            csv,
            element(
              "span",
              { class: "quiet" },
              more > 0 ? `${count.format(more)} older ones are in the file.` : "",
            ),
          ),
        ),
      );
    },
    remove() {
      host.replaceChildren();
    },
  };
}
