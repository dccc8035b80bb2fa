/** The few ways in which the pages touch their document. Text is always text, never markup. */

/** A new element; an attribute that is false is left out, one that is true is empty. */
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

/** The element of the page with this id and of this kind; throws where the page has none. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`the page has no such element: ${id}`);
}
