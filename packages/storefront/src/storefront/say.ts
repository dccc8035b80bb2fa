import { byId } from "../element.js";

const live = byId("live", HTMLElement);

/** Announces to screen readers. */
export function say(text: string): void {
  live.textContent = text;
}
