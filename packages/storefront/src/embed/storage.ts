/** What is stored in the browser, for the page's origin: language and, for each service, term, search and cart. None of it is in the address. */

/** A page opened within this time continues where the last one stopped. Later, what may have changed is forgotten. */
export const SAME_VISIT_MS = 600_000;

/** For private mode, full storage, and frames that may not store anything. */
const memory = new Map<string, unknown>();

/** The stored value; null if there is none or it can't be read. */
export function stored(key: string): unknown {
  try {
    const text = sessionStorage.getItem(nameOf(key)) ?? localStorage.getItem(nameOf(key));
    return text === null ? (memory.get(key) ?? null) : JSON.parse(text);
  } catch {
    return memory.get(key) ?? null;
  }
}

export function store(key: string, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(nameOf(key));
    else localStorage.setItem(nameOf(key), JSON.stringify(value));
  } catch {
    memory.set(key, value);
  }
}

/** The same for what each tab has of its own, so that a reload restores it whatever happens in other tabs. A new tab begins with the last of any. */
export function storeForTab(key: string, value: unknown): void {
  store(key, value);
  try {
    // Null is stored, too, so that after a reload an empty box isn't filled from another tab.
    sessionStorage.setItem(nameOf(key), JSON.stringify(value));
  } catch {
    memory.set(key, value);
  }
}

/** Calls `changed` when another tab changes the stored value. */
export function onStoredElsewhere(key: string, changed: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === nameOf(key) || event.key === null) changed();
  });
}

function nameOf(key: string): string {
  return `af-domain-search.${key}`;
}
