/** What the page stores in the browser: language, term, search and cart. None of it is in the address. */

/** Each has its own key, so that two tabs overwrite only what they change. */
type Key = "language" | "term" | "search" | "cart" | "hideTaken";

/** A page opened within this time continues where the last one stopped. Later, what may have changed is forgotten. */
export const SAME_VISIT_MS = 600_000;

/** Each tab has its own search, so that a reload restores it whatever happens in other tabs. A new tab begins with the last search of any. */
function isPerTab(key: Key): boolean {
  return key === "search";
}

/** The stored value; null if there is none, it can't be read, or the browser stores nothing. */
export function stored(key: Key): unknown {
  try {
    const own = isPerTab(key) ? sessionStorage.getItem(keyOf(key)) : null;
    return JSON.parse(own ?? localStorage.getItem(keyOf(key)) ?? "null");
  } catch {
    return null;
  }
}

export function store(key: Key, value: unknown): void {
  try {
    // Null is stored, too, so that after a reload an empty box isn't filled from another tab.
    if (isPerTab(key)) sessionStorage.setItem(keyOf(key), JSON.stringify(value));
    if (value === null) localStorage.removeItem(keyOf(key));
    else localStorage.setItem(keyOf(key), JSON.stringify(value));
  } catch {
    // Private mode or full storage: the page works without it.
  }
}

/** Calls `changed` when another tab changes the stored value. */
export function onStoredElsewhere(key: Key, changed: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === keyOf(key) || event.key === null) changed();
  });
}

/** Reads parameters of the address and removes them from it. */
export function takeFromAddress(...names: readonly string[]): (string | null)[] {
  const address = new URL(location.href);
  const values = names.map((name) => address.searchParams.get(name));
  for (const name of names) address.searchParams.delete(name);
  if (address.href !== location.href) history.replaceState(null, "", address);
  return values;
}

function keyOf(key: Key): string {
  return `storefront.${key}`;
}
