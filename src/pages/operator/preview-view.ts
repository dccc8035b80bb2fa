/** Previews a changed `retail.yaml`, chosen or pasted. Nothing takes effect here. */
import { byId, element } from "../element.js";
import { yearsOf } from "./account-view.js";
import { written } from "./amounts.js";
import { type Preview, type StaffApi, StaffProblem } from "./staff-api.js";
import { table } from "./table.js";

type Side = Preview["prices"][number]["now"];

const count = new Intl.NumberFormat("en");

export function previewView(api: StaffApi, signal: AbortSignal): { remove(): void } {
  const form = byId("preview", HTMLFormElement);
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
  form.addEventListener(
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
    say(element("p", {}, "Calculating…"));
    try {
      const preview = await api.preview(text.value, own);
      if (!own.aborted) say(...described(preview));
    } catch (error) {
      if (own.aborted) return;
      const known = error instanceof StaffProblem ? error : new StaffProblem("Something went wrong.", 0);
      const words =
        known.status === 403
          ? "This token can't try prices: it doesn't have the operate scope."
          : known.message;
      say(element("p", { class: "problem" }, words));
    }
  }
  function say(...parts: readonly Node[]): void {
    result.replaceChildren(...parts);
  }

  return {
    remove() {
      form.reset();
      say();
    },
  };
}

function described({ faults, sections, prices, warnings }: Preview): HTMLElement[] {
  if (faults.length > 0)
    return [
      element(
        "p",
        { class: "notice bad" },
        `This file would not take effect: ${count.format(faults.length)} ${faults.length === 1 ? "fault" : "faults"}.`,
      ),
      listOf(faults),
    ];
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
      ? [element("p", {}, `No price changes; ${count.format(same)} stay the same.`)]
      : [
          table(
            "Prices that would change",
            [{ title: "Price" }, { title: "Retail", number: true }, { title: "Margin", number: true }],
            changed.map(({ tld, action, years, now, then }) => [
              element("span", { class: "notes" }, tld, element("span", {}, `${action}, ${yearsOf(years)}`)),
              element(
                "span",
                { class: "notes" },
                retailOf(now),
                element("strong", {}, `→ ${retailOf(then)}`),
              ),
              element("span", { class: "notes" }, marginOf(now), element("span", {}, "→ ", marginOf(then))),
            ]),
          ),
          element("p", { class: "quiet" }, `${count.format(same)} other prices stay the same.`),
        ]),
    ...(warnings.length === 0 ? [] : [element("h3", {}, "Warnings"), listOf(warnings)]),
  ];
}

function listOf(lines: readonly string[]): HTMLElement {
  return element("ul", { class: "lines" }, ...lines.map((line) => element("li", {}, line)));
}

function retailOf(side: Side): string {
  return side === null ? "not sold" : side.retail ? written(side.retail) : "none";
}

function marginOf(side: Side): Node | string {
  if (!side?.margin) return "–";
  const isLoss = side.margin.amount.startsWith("-");
  return element("span", isLoss ? { class: "bad" } : {}, written(side.margin));
}
