/** A table that can be scrolled by keyboard on a narrow page. */
import { element } from "../element.js";

export type Cell = Node | string;

export interface Column {
  readonly title: string;
  /** Numbers are aligned at the end. */
  readonly number?: boolean;
  /** Makes the title a button that sorts by this column. */
  readonly sort?: { readonly by: "ascending" | "descending" | "none"; readonly press: () => void };
}

function heading({ title, sort }: Column, attributes: Readonly<Record<string, string>>): HTMLElement {
  if (sort === undefined) return element("th", attributes, title);
  const arrow = { ascending: " ↑", descending: " ↓", none: "" }[sort.by];
  const button = element("button", { type: "button", class: "sort", "data-choice": `sort ${title}` }, title);
  button.append(element("span", { "aria-hidden": "true" }, arrow));
  button.addEventListener("click", sort.press);
  return element("th", { ...attributes, "aria-sort": sort.by }, button);
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
      element("caption", { class: "visually-hidden" }, caption),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ...columns.map((column, index) => heading(column, { scope: "col", ...kind(index) })),
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
