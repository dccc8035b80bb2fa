/** A button that downloads a list as a CSV file. */
import { element } from "../element.js";
import { type StaffApi, StaffProblem } from "./staff-api.js";

type List = Parameters<StaffApi["csv"]>[0];

export function csvButton(api: StaffApi, list: List, signal: AbortSignal): HTMLElement {
  const button = element("button", { type: "button", class: "button second small" }, "Download CSV");
  const said = element("span", { class: "quiet", role: "status" });
  button.addEventListener("click", () => {
    void save(api, list, signal, said);
  });
  return element("span", { class: "bar" }, button, said);
}

async function save(api: StaffApi, list: List, signal: AbortSignal, said: HTMLElement): Promise<void> {
  said.textContent = "";
  try {
    const address = URL.createObjectURL(await api.csv(list, signal));
    const link = element("a", { href: address, download: `${list}.csv` });
    link.click();
    // By then the browser has started the download.
    setTimeout(() => {
      URL.revokeObjectURL(address);
    }, 1_000);
    said.textContent = `Saved as ${list}.csv.`;
  } catch (error) {
    if (!signal.aborted)
      said.textContent = error instanceof StaffProblem ? error.message : "The download failed.";
  }
}
