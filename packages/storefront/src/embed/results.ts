/** Draws the names of a search: the exact one large, the others below it, and similar names. Makes no decisions. */
import { html, nothing } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import type { Availability } from "../../../client/src/client.js";
import { now } from "../../../client/src/clock.js";
import { amount, timeWithDay, years } from "./language.js";
import { perYear } from "../money.js";
import { listedOffer, type Offer, offerFor, renewalOf } from "./offers.js";
import { type Row, rowOf } from "./rows.js";
import type { Found } from "./search.js";
import type { Scene } from "./scene.js";

/** An answer "available" that has been shown for longer also says when the registry was asked: the name may have been registered since. */
const RECENT_MS = 60_000;
/** When an answer was first shown, by `now()`. */
const shownSinceAt = new WeakMap<Availability, number>();

export function drawResults(scene: Scene, { rows, ideas, phase }: Found, hidesTaken: boolean) {
  const { texts } = scene;
  const shown = rows.filter(
    (row) => !hidesTaken || row.isExact || row.state !== "known" || row.result.status !== "taken",
  );
  const oldest = ideas
    .filter(({ asOf }) => asOf !== null)
    .sort((one, other) => Date.parse(one.asOf ?? "") - Date.parse(other.asOf ?? ""))[0];
  return html`
    <ol id="results-list" class="names" aria-busy=${phase === "searching" || phase === "waiting"}>
      ${repeat(
        shown,
        ({ label, tld }) => label + tld,
        (row) => drawRow(scene, row, phase === "searching"),
      )}
    </ol>
    <div id="ideas" ?hidden=${ideas.length === 0}>
      <h3>${texts.ideas}</h3>
      <ol class="ideas">
        ${repeat(
          ideas,
          ({ domain }) => domain,
          (idea) =>
            html`<li class="idea" part="name" data-state=${idea.status} data-domain=${idea.domain}>
              ${drawName(rowOf(idea))} ${drawPrice(scene, offerFor(scene.shop, idea, scene.term))}
              ${drawAdder(scene, idea)}
            </li>`,
        )}
      </ol>
      <p id="ideas-time" class="quiet">${oldest ? drawTime(scene, oldest) : nothing}</p>
    </div>
  `;
}

/** One result as text for screen readers. */
export function spokenResult({ texts, shop, term }: Scene, result: Availability): string {
  const offer = offerFor(shop, result, term);
  const price = offer === null ? "" : `${amount(texts, offer.price)}, ${years(texts, offer.years)}`;
  return texts.spoken(result.unicodeName, texts[result.status], price);
}

/** `isChecking`: names without an answer are being checked; otherwise checking waits or has been interrupted. */
function drawRow(scene: Scene, row: Row, isChecking: boolean) {
  const { shop, term } = scene;
  const result = row.state === "known" && row.result.status !== "unknown" ? row.result : null;
  const state = row.state === "known" ? row.result.status : row.state;
  const isOpen = row.state !== "failed" || row.isOpen;
  const listed = isOpen ? listedOffer(shop, row.tld, term) : null;
  return html`<li
    class=${row.isExact ? "name exact" : "name"}
    part="name"
    data-state=${state}
    data-domain=${result?.domain ?? row.label + row.tld}
  >
    ${drawName(row)}
    <p class="state">${result ? drawState(scene, result) : drawOpenState(scene, row, isChecking)}</p>
    ${drawPrice(scene, result ? offerFor(shop, result, term) : listed)}
    ${result ? drawAdder(scene, result) : nothing}
  </li>`;
}

function drawOpenState({ texts }: Scene, row: Row, isChecking: boolean) {
  if (row.state === "known") return html`<span class="badge">${texts.unknown}</span>`;
  if (row.state === "failed") return row.why(texts);
  if (row.state === "typing") return nothing;
  return isChecking ? texts.looking : texts.unknown;
}

function drawState(scene: Scene, result: Availability) {
  const { texts, shop } = scene;
  const { available, premium, price, status, stale } = result;
  return html`<span class="badge">${texts[status]}</span>
    ${premium ? html`<span class="badge premium">${texts.premium}</span>` : nothing}
    ${stale || available ? drawTime(scene, result) : nothing}
    ${
      available
        ? html`<span class="renewal"
            >${price === null ? texts.noPrice : renewalOf(texts, shop, result)}</span
          >`
        : nothing
    }`;
}

/** When the registry was asked, once the answer isn't recent. */
function drawTime({ texts }: Scene, result: Availability) {
  const { asOf, stale } = result;
  const sinceAt = shownSinceAt.get(result) ?? now();
  shownSinceAt.set(result, sinceAt);
  const isRecent = now() < (stale ? sinceAt : sinceAt + RECENT_MS);
  return asOf === null || isRecent ? nothing : html`<small>${texts.asOf(timeWithDay(texts, asOf))}</small>`;
}

function drawPrice({ texts }: Scene, offer: Offer | null) {
  if (offer === null) return html`<p class="price"></p>`;
  const { price, years: term, regular } = offer;
  const note = term > 1 ? ` · ${texts.aYear(amount(texts, perYear(price, term)))}` : "";
  // Isolated; otherwise its digits would run into those of the term in Arabic script.
  return html`<p class="price">
    ${regular ? html`<s>${amount(texts, regular)}</s> ` : nothing}<bdi dir=${texts.direction}
      >${amount(texts, price)}</bdi
    ><small>${years(texts, term) + note}</small>
  </p>`;
}

function drawAdder({ texts, shop, term, add }: Scene, result: Availability) {
  const offer = offerFor(shop, result, term);
  if (offer === null) return nothing;
  const { domain, unicodeName, tld, premium } = result;
  const isIn = shop.cart.has(domain);
  const isFull = !isIn && shop.cart.isFull;
  const word = isIn ? texts.inCart : isFull ? texts.cartFull : texts.add;
  const wanted = { domain, unicodeName, tld, premium, action: "registration", listed: null } as const;
  return html`<button
    type="button"
    class="button second"
    part="button add"
    id=${`add-${domain}`}
    aria-label=${`${word}: ${unicodeName}`}
    aria-disabled=${isIn || isFull}
    ?data-in=${isIn}
    @click=${() => add({ ...wanted, price: offer.price, years: offer.years })}
  >
    ${word}
  </button>`;
}

/** Names are written from left to right in every language and script. */
function drawName({ label, tld }: Row) {
  return html`<p class="domain" title=${label + tld}>
    <bdi dir="ltr"><bdi>${label}</bdi><span class="tld">${tld}</span></bdi>
  </p>`;
}
