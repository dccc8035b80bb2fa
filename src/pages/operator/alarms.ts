/** What staff must see first, from all parts of the page. Each part replaces its own alarms. */
import { byId, element } from "../element.js";

export interface Alarm {
  readonly level: "bad" | "warn";
  readonly text: string;
}

export interface Alarms {
  set(part: string, alarms: readonly Alarm[]): void;
  clear(): void;
}

export function alarmList(): Alarms {
  const list = byId("alarms", HTMLUListElement);
  const parts = new Map<string, readonly Alarm[]>();
  let shown = "";

  function show(): void {
    const all = [...parts.values()].flat();
    // Rewritten only when it changes, so that screen readers aren't interrupted by every poll.
    const next = JSON.stringify(all);
    if (next === shown) return;
    shown = next;
    list.replaceChildren(
      ...all.map(({ level, text }) =>
        element(
          "li",
          { class: `notice ${level}` },
          element("strong", {}, level === "bad" ? "Alarm: " : "Note: "),
          text,
        ),
      ),
    );
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
