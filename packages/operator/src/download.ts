/** A button that downloads a list as a CSV file. */
import { button, element } from "../../storefront/src/element.js";
import { type StaffApi, staffProblem } from "./staff-api.js";

type List = Parameters<StaffApi["csv"]>[0];

export function csvButton(api: StaffApi, list: List, signal: AbortSignal): HTMLElement {
  const said = element("span", { class: "quiet", role: "status" });

  async function save(): Promise<void> {
    said.textContent = "";
    try {
      const address = URL.createObjectURL(await api.csv(list, signal));
      element("a", { href: address, download: `${list}.csv` }).click();
      // By then the browser has started the download.
      setTimeout(() => {
        URL.revokeObjectURL(address);
      }, 1_000);
      said.textContent = `Saved as ${list}.csv.`;
    } catch (error) {
      if (!signal.aborted) said.textContent = staffProblem(error, "The download failed.").message;
    }
  }

  return element(
    "span",
    { class: "bar" },
    button({ class: "button second small" }, () => void save(), "Download CSV"),
    said,
  );
}
