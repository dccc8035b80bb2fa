/** The shop's identity, which the service embeds in the page: name and logo at the top, contact and links at the bottom; and what it sells. */
import { byId, embedded } from "../element.js";
import type { Texts } from "./texts/en.js";

const identity = embedded("shop");

/** The TLDs under which names can be registered, the main one first. */
export const SOLD = identity.tlds;

/** Whether a restore includes a renewal; null if the shop doesn't say. */
export const RESTORE_INCLUDES_RENEWAL = identity.restoreIncludesRenewal;

/** Shows what is known about the shop and hides the rest. */
export function showIdentity(texts: Texts): void {
  const { name, logo, email, phone, terms, privacy, sells } = identity;
  const own = name?.[texts.language] ?? null;
  byId("brand", HTMLElement).textContent = own ?? texts.page.brand;
  document.title = own === null ? texts.page.title : `${texts.page.title} · ${own}`;
  document.querySelector('meta[name="description"]')?.setAttribute("content", texts.page.lead);
  if (logo !== null) byId("logo", HTMLImageElement).src = logo;
  byId("runs", HTMLElement).textContent = own === null ? "" : texts.runBy(own);
  byId("demo", HTMLElement).hidden = sells;
  link("email-link", email && `mailto:${email}`, email ?? undefined);
  link("phone-link", phone && `tel:${phone.replace(/[^+\d]/g, "")}`, phone ?? undefined);
  link("terms-link", terms);
  link("privacy-link", privacy);
}

function link(id: string, address: string | null, text?: string): void {
  const anchor = byId(id, HTMLAnchorElement);
  if (address !== null) anchor.href = address;
  if (text !== undefined) anchor.textContent = text;
  const item = anchor.closest("li");
  if (item !== null) item.hidden = address === null;
}
