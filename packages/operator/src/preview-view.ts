/** Previews a changed `retail.yaml`, chosen or pasted. Nothing takes effect here. */
import { byId, element } from "../../storefront/src/element.js";
import { written } from "./amounts.js";
import { counted } from "./figures.js";
import { marginOf } from "./prices-view.js";
import { type Preview, type StaffApi, staffProblem } from "./staff-api.js";
import { numbers, table, words } from "./table.js";

type Side = Preview["prices"][number]["now"];

export function previewView(api: StaffApi, signal: AbortSignal): void {
  const text = byId("preview-text", HTMLTextAreaElement);
  const file = byId("preview-file", HTMLInputElement);
  const result = byId("preview-result", HTMLDivElement);
  /** Aborted when another preview is requested. */
  let asking = new AbortController();

  file.addEventListener(
    "change",
    () => {
      const [chosen] = file.files ?? [];
      void chosen?.text().then((content) => {
        text.value = content;
      });
    },
    { signal },
  );
  byId("preview", HTMLFormElement).addEventListener(
    "submit",
    (event) => {
      event.preventDefault();
      asking.abort();
      asking = new AbortController();
      void ask(AbortSignal.any([signal, asking.signal]));
    },
    { signal },
  );

  async function ask(own: AbortSignal): Promise<void> {
    result.replaceChildren(element("p", {}, "Calculating…"));
    try {
      const preview = await api.preview(text.value, own);
      if (!own.aborted) result.replaceChildren(...described(preview));
    } catch (error) {
      if (own.aborted) return;
      const { status, message } = staffProblem(error);
      const words =
        status === 403 ? "This token can't try prices: it doesn't have the operate scope." : message;
      result.replaceChildren(element("p", { class: "problem" }, words));
    }
  }
}

function described({ faults, sections, prices, warnings }: Preview): HTMLElement[] {
  if (faults.length > 0) {
    const words = `This file would not take effect: ${counted(faults.length, "fault")}.`;
    return [element("p", { class: "notice bad" }, words), listOf(faults)];
  }
  const changed = prices.filter(({ change }) => change !== "same");
  const same = prices.length - changed.length;
  return [
    element(
      "p",
      { class: "notice good" },
      sections.length === 0
        ? "This file is the same as the one in effect."
        : `The file is valid. It changes ${sections.join(", ")}. Nothing has changed yet: save it as RETAIL_CONFIG, and it takes effect within two seconds.`,
    ),
    ...(changed.length === 0
      ? [element("p", {}, "No price changes.")]
      : [
          table(
            "Prices that would change",
            [...words("Price"), ...numbers("Retail", "Margin")],
            changed.map(({ tld, action, years, now, then }) => [
              twoLines(tld, element("span", {}, `${action}, ${counted(years, "year")}`)),
              twoLines(retailOf(now), element("strong", {}, `→ ${retailOf(then)}`)),
              twoLines(marginIn(now), element("span", {}, "→ ", marginIn(then))),
            ]),
          ),
          element(
            "p",
            { class: "quiet" },
            `${counted(same, "other price")} ${same === 1 ? "stays" : "stay"} the same.`,
          ),
        ]),
    ...(warnings.length === 0 ? [] : [element("h3", {}, "Warnings"), listOf(warnings)]),
  ];
}

function listOf(lines: readonly string[]): HTMLElement {
  return element("ul", { class: "lines" }, ...lines.map((line) => element("li", {}, line)));
}

function twoLines(first: Node | string, second: Node): HTMLElement {
  return element("span", { class: "notes" }, first, second);
}

function retailOf(side: Side): string {
  return side === null ? "not sold" : side.retail ? written(side.retail) : "none";
}

function marginIn(side: Side): Node | string {
  return side?.margin ? marginOf(side.margin) : "–";
}
