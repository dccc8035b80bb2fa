/** The notices that were posted to staff, with their delivery. */
import { byId, element, refill } from "../../storefront/src/element.js";
import { count, counted, timeOf } from "./figures.js";
import type { Overview } from "./staff-api.js";
import { table, words } from "./table.js";

type Notice = Overview["notices"]["last"][number];

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
