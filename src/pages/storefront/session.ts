/** What the page keeps in the browser for the next view: language, term, search and cart. Nothing of it is in the address. */

/** Under one key each, so that two tabs do not overwrite more than they change. */
type Key = "language" | "term" | "search" | "cart" | "hideTaken";

/** What was kept, or null: nothing, not readable, or a browser that keeps nothing. */
export function kept(key: Key): unknown {
  try {
    return JSON.parse(localStorage.getItem(keyOf(key)) ?? "null");
  } catch {
    return null;
  }
}

export function keep(key: Key, value: unknown): void {
  try {
    if (value === null) localStorage.removeItem(keyOf(key));
    else localStorage.setItem(keyOf(key), JSON.stringify(value));
  } catch {
    // A private window or a full store: the page works on without it.
  }
}

/** Calls back when another tab has changed what is kept. */
export function onKeptElsewhere(key: Key, changed: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === keyOf(key) || event.key === null) changed();
  });
}

/** Reads parameters of the address once and takes them out of it. */
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
