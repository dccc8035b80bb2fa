/** A table that can be scrolled by keyboard on a narrow page. */
import { button, element } from "../../storefront/src/element.js";

type Cell = Node | string;

export interface Column {
  readonly title: string;
  /** Numbers are aligned at the end. */
  readonly number?: boolean;
  /** Makes the title a button that sorts by this column. */
  readonly sort?: { readonly by: "ascending" | "descending" | "none"; readonly press: () => void };
}

/** Columns of text. */
export function words(...titles: readonly string[]): Column[] {
  return titles.map((title) => ({ title }));
}

/** Columns of numbers. */
export function numbers(...titles: readonly string[]): Column[] {
  return titles.map((title) => ({ title, number: true }));
}

function heading({ title, number = false, sort }: Column): HTMLElement {
  const attributes = { scope: "col", class: number && "number" };
  if (sort === undefined) return element("th", attributes, title);
  const arrow = { ascending: " ↑", descending: " ↓", none: "" }[sort.by];
  return element(
    "th",
    { ...attributes, "aria-sort": sort.by },
    button(
      { class: "sort", id: `sort-${title}` },
      sort.press,
      title,
      element("span", { "aria-hidden": "true" }, arrow),
    ),
  );
}

/** The first cell of each row is its heading. */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
): HTMLElement {
  const body = rows.map((cells) =>
    element(
      "tr",
      {},
      ...cells.map((cell, index) => {
        const kind = { class: columns[index]?.number === true && "number" };
        return index === 0 ? element("th", { scope: "row", ...kind }, cell) : element("td", kind, cell);
      }),
    ),
  );
  return element(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    element(
      "table",
      {},
      element("caption", { class: "visually-hidden" }, caption),
      element("thead", {}, element("tr", {}, ...columns.map(heading))),
      element("tbody", {}, ...body),
    ),
  );
}
