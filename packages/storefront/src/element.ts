/** Builds and finds DOM elements, and reads the data that the service embedded. Text is always inserted as text, never as markup. */
import { shaped } from "../../client/src/problem.js";
import type { PageData } from "../../../src/wire/pages.js";

type Attributes = Readonly<Record<string, string | boolean>>;
type Child = Node | string | false | null;

/** Creates an element. False attributes and children that are false or null are omitted; a true attribute is set to the empty string. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== false) made.setAttribute(name, value === true ? "" : value);
  made.append(...children.filter((child) => child !== false && child !== null));
  return made;
}

/** Creates a button that doesn't submit a form. */
export function button(
  attributes: Attributes,
  press: (event: MouseEvent) => void,
  ...children: readonly Child[]
): HTMLButtonElement {
  const made = element("button", { type: "button", ...attributes }, ...children);
  made.addEventListener("click", press);
  return made;
}

/**
 * Replaces the children that differ. The focus stays on the element with the same id. A child that has an equal stays with its listeners: a click on a
 * button that is replaced between press and release would be lost, a scrolled table would begin at its top, and a live list would be read out again.
 */
export function refill(parent: HTMLElement, ...children: readonly Node[]): void {
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const before = new Set<Node>(parent.childNodes);
  const after = children.map((child) => {
    const equal = [...before].find((old) => old.isEqualNode(child)) ?? child;
    before.delete(equal);
    return equal;
  });
  for (const old of before) parent.removeChild(old);
  for (const [at, child] of after.entries()) {
    const here = parent.childNodes[at] ?? null;
    if (here !== child) parent.insertBefore(child, here);
  }
  if (focused !== null && document.activeElement !== focused && focused.id !== "")
    document.getElementById(focused.id)?.focus();
}

/** Returns the element with this id and type, or throws. */
export function byId<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`the page has no such element: ${id}`);
}

/** Returns what the service embedded in the page under this id, with the type by which it was written. */
export function embedded<K extends keyof PageData>(id: K): PageData[K] {
  return shaped(byId(id, HTMLScriptElement).textContent);
}
