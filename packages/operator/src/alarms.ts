/** What staff see of trouble: the alarms, each with what to do about it, and the notices that were posted to them, with their delivery. */
import { byId, element, refill } from "../../storefront/src/element.js";
import { count, counted, timeOf } from "./figures.js";
import type { Overview } from "./staff-api.js";
import { table, words } from "./table.js";

type Notice = Overview["notices"]["last"][number];

const TITLE = document.title;

/** In a list, as a count at the top of the page, and in the tab's title. */
export function showAlarms(all: Overview["alarms"]): void {
  const bad = all.filter(({ level }) => level === "bad");
  const notes = all.filter(({ level }) => level === "warn");
  const sorted = [...bad, ...notes];
  // A screen reader reads out only those that are new or have changed.
  refill(
    byId("alarms", HTMLUListElement),
    ...sorted.map(({ level, text, todo }) =>
      element(
        "li",
        { class: `notice ${level}` },
        element("strong", {}, level === "bad" ? "Alarm: " : "Note: "),
        text,
        " ",
        element("span", { class: "todo" }, todo),
      ),
    ),
  );
  const top = byId("alarm-count", HTMLAnchorElement);
  top.textContent = [
    ...(bad.length > 0 ? [counted(bad.length, "alarm")] : []),
    ...(notes.length > 0 ? [counted(notes.length, "note")] : []),
  ].join(", ");
  top.className = `badge ${bad.length > 0 ? "bad" : "warn"}`;
  top.hidden = all.length === 0;
  document.title = all.length === 0 ? TITLE : `(${all.length}) ${TITLE}`;
}

export function showNotices({ on, waiting, last }: Overview["notices"]): void {
  const host = byId("notices", HTMLDivElement);
  if (!on)
    return refill(host, element("p", { class: "quiet" }, "No notices are sent: NOTIFY_URL isn't set."));
  const state = waiting > 0 ? `${counted(waiting, "notice")} waiting` : "all delivered";
  const isOpen = host.querySelector("details")?.open === true;
  refill(
    host,
    element(
      "details",
      { open: isOpen },
      element("summary", {}, `Notices: ${last.length === 0 ? "none yet" : state}`),
      last.length > 0 &&
        table(
          "Notices",
          words("When", "What", "Delivery"),
          last.map((one) => [timeOf(one.at), `${one.kind} ${one.state}: ${one.text}`, deliveryOf(one)]),
        ),
    ),
  );
}

function deliveryOf({ delivery, deliveryAt, attempts, problem }: Notice): string {
  if (delivery === "delivered") return `delivered ${timeOf(deliveryAt)}`;
  const tried = `${problem ?? "not tried yet"}, ${count(attempts)}×`;
  return delivery === "failed" ? `given up: ${tried}` : `again ${timeOf(deliveryAt)}: ${tried}`;
}
