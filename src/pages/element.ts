/** Helpers to build and find DOM elements. Text is always inserted as text, never as markup. */

/** Creates an element. A false attribute is omitted; a true one is set to the empty string. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | boolean>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== false) made.setAttribute(name, value === true ? "" : value);
  made.append(...children);
  return made;
}

/** Returns the element with this id and type, or throws. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`the page has no such element: ${id}`);
}
