/** Purging the cache: shows the cost in calls, asks for confirmation, then shows how much was purged. */
import { byId } from "../../storefront/src/element.js";
import { count, counted } from "./figures.js";
import { type Overview, type Purge, type StaffApi, staffProblem } from "./staff-api.js";

/** The nouns for what was purged, by kind. */
const NOUNS: Readonly<Record<string, string>> = {
  prices: "price",
  availability: "checked name",
  account: "account answer",
};
const TITLES: Readonly<Record<Purge, string>> = {
  prices: "Purge all prices?",
  availability: "Purge all checked names?",
  account: "Purge the account's data?",
  all: "Purge everything?",
};
const PURGES: readonly Purge[] = ["prices", "availability", "account", "all"];

const list = new Intl.ListFormat("en");

/** The number of calls until all purged data is known again, and what that means for visitors. */
function purgeCost(what: Purge, { quota, prices, caches }: Overview): string {
  const entries = {
    prices: prices.known,
    availability: caches.availability.entries,
    account: caches.account.entries + caches.tier.entries,
  };
  const all = what === "all" ? entries.prices + entries.availability + entries.account : entries[what];
  const windows = Math.ceil(all / Math.max(1, quota.budget));
  const share =
    all === 0
      ? "Nothing is cached, so this costs no calls."
      : `This costs up to ${counted(all, "call")}; the budget is ${count(quota.budget)} in ${count(quota.windowMs / 1000)} s${windows > 1 ? `, so ${count(windows)} of these windows` : ""}.`;
  const when = {
    prices: "Prices are refreshed immediately. Until then they are shown as stale and not signed.",
    availability: "A name is checked again when somebody searches for it.",
    account: "Domains, balance and tier are refreshed when this page shows them.",
    all: "Prices are refreshed immediately and not signed until then; names are checked again when somebody searches for them.",
  }[what];
  return `${share} ${when}`;
}

/** `overview` returns the latest; `purged` is called after a purge. */
export function purgeView(
  api: StaffApi,
  overview: () => Overview,
  purged: () => void,
  signal: AbortSignal,
): void {
  const dialog = byId("purge-dialog", HTMLDialogElement);
  let what: Purge | null = null;

  // The open dialog would leave the rest of the page inert, the sign-in form too.
  signal.addEventListener("abort", () => {
    dialog.close();
  });

  byId("purges", HTMLDivElement).addEventListener(
    "click",
    ({ target }) => {
      what = target instanceof HTMLButtonElement ? purgeOf(target.dataset["what"]) : null;
      if (what === null) return;
      byId("purge-title", HTMLElement).textContent = TITLES[what];
      byId("purge-cost", HTMLElement).textContent = purgeCost(what, overview());
      dialog.returnValue = "";
      dialog.showModal();
    },
    { signal },
  );
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue !== "purge" || what === null) return;
      void purge(api, what, signal).then((done) => {
        if (done) purged();
      });
    },
    { signal },
  );
}

function purgeOf(text: string | undefined): Purge | null {
  return PURGES.find((what) => what === text) ?? null;
}

async function purge(api: StaffApi, what: Purge, signal: AbortSignal): Promise<boolean> {
  const result = byId("purged", HTMLParagraphElement);
  result.className = "";
  result.textContent = "Purging…";
  try {
    const { purged } = await api.purge(what, signal);
    const counts = Object.entries(purged).map(([kind, n]) => counted(n, NOUNS[kind] ?? kind));
    result.textContent = `${list.format(counts)} will be refreshed.`;
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    const { status, message, retryAfter } = staffProblem(error);
    const again = retryAfter === null ? "" : ` Try again in ${retryAfter} s.`;
    result.className = "problem";
    result.textContent =
      status === 403 ? "This token can't purge: it doesn't have the operate scope." : `${message}${again}`;
    return false;
  }
}
