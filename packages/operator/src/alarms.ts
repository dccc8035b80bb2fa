/** The alarms, each with what to do about it: in a list, as a count at the top of the page, and in the tab's title. */
import { byId, element, refill } from "../../storefront/src/element.js";
import { counted } from "./figures.js";
import type { Overview } from "./staff-api.js";

export type Alarms = ReturnType<typeof alarmList>;

const TITLE = document.title;

export function alarmList() {
  const list = byId("alarms", HTMLUListElement);
  const top = byId("alarm-count", HTMLAnchorElement);

  function show(all: Overview["alarms"]): void {
    const bad = all.filter(({ level }) => level === "bad");
    const notes = all.filter(({ level }) => level === "warn");
    const sorted = [...bad, ...notes];
    // A screen reader reads out only those that are new or have changed.
    refill(
      list,
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
    top.textContent = [
      ...(bad.length > 0 ? [counted(bad.length, "alarm")] : []),
      ...(notes.length > 0 ? [counted(notes.length, "note")] : []),
    ].join(", ");
    top.className = `badge ${bad.length > 0 ? "bad" : "warn"}`;
    top.hidden = all.length === 0;
    document.title = all.length === 0 ? TITLE : `(${all.length}) ${TITLE}`;
  }

  return { show };
}
