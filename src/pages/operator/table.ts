/** A table that can be scrolled by keyboard on a narrow page. */
import { element } from "../element.js";

export type Cell = Node | string;

export interface Column {
  readonly title: string;
  /** Numbers are aligned at the end. */
  readonly number?: boolean;
}

/** The first cell of each row is its heading. */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const kind = (index: number): { readonly class?: string } =>
    columns[index]?.number === true ? { class: "number" } : {};
  return element(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", { class: "heard" }, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ...columns.map(({ title }, index) => element("th", { scope: "col", ...kind(index) }, title)),
        ),
      ),
      element(
        "tbody",
        {},
        ...rows.map((cells) =>
          element(
            "tr",
            {},
            ...cells.map((cell, index) =>
              index === 0
                ? element("th", { scope: "row", ...kind(index) }, cell)
                : element("td", kind(index), cell),
            ),
          ),
        ),
      ),
    ),
  );
}
