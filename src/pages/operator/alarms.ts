/** The alarms from all parts of the page, each with what to do about it: in a list, as a count at the top of the page, and in the tab's title. */
import { byId, element } from "../element.js";
import type { Alarm } from "./alarm.js";

export interface Alarms {
  /** Replaces the alarms of one part of the page. */
  set(part: string, alarms: readonly Alarm[]): void;
  clear(): void;
}

const TITLE = document.title;

export function alarmList(): Alarms {
  const list = byId("alarms", HTMLUListElement);
  const top = byId("alarm-count", HTMLAnchorElement);
  const parts = new Map<string, readonly Alarm[]>();
  let shown = "";

  function show(): void {
    const all = [...parts.values()].flat();
    const bad = all.filter(({ level }) => level === "bad");
    const sorted = [...bad, ...all.filter(({ level }) => level === "warn")];
    // Rewritten only when it changes, so that screen readers aren't interrupted by every poll.
    const next = JSON.stringify(sorted);
    if (next === shown) return;
    shown = next;
    list.replaceChildren(
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
    const words = [numbered(bad.length, "alarm"), numbered(all.length - bad.length, "note")];
    top.textContent = words.filter((text) => text !== "").join(", ");
    top.className = `badge ${bad.length > 0 ? "bad" : "warn"}`;
    top.hidden = all.length === 0;
    document.title = all.length === 0 ? TITLE : `(${all.length}) ${TITLE}`;
  }

  return {
    set(part, alarms) {
      parts.set(part, alarms);
      show();
    },
    clear() {
      parts.clear();
      show();
    },
  };
}

function numbered(count: number, noun: string): string {
  if (count === 0) return "";
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
