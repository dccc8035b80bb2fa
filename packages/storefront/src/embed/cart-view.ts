/** Draws the cart: its lines with their terms and problems, the total, how long the price holds, and the next step. */
import { html, nothing } from "lit-html";
import { repeat } from "lit-html/directives/repeat.js";
import { MOST_ITEMS } from "../../../client/src/cart.js";
import type { QuoteLine } from "../../../client/src/client.js";
import { aheadMs, now } from "../../../client/src/clock.js";
import { lineOf, type Wanted } from "./cart.js";
import { amount, clock, count, seconds, timeWithDay, years } from "./language.js";
import { listedRenewal } from "./offers.js";
import type { Scene } from "./scene.js";
import { isolated } from "./texts/isolates.js";
import { adviceFor, causeOf, reasonFor, wordsFor } from "./texts/texts.js";

/** The whole seconds from now to that time of `now()`. */
export function secondsTo(timeMs: number | null): number {
  return Math.max(0, Math.ceil(((timeMs ?? 0) - now()) / 1000));
}

export function drawCart(scene: Scene) {
  const { texts, shop, checkout } = scene;
  const { cart } = shop;
  const { items, quotes, removed, state } = cart;
  const isHeld = state.heldUntilMs !== null;
  const goesOn = isHeld && checkout !== "";
  // If every line is priced, only one button is shown.
  const isWhole = quotes !== null && quotes.items.every(({ price }) => price !== null);
  const note = cart.isFull
    ? texts.cartFullWhy(count(texts, MOST_ITEMS))
    : removed && texts.removed(removed.unicodeName);
  return html`<section
    id="cart"
    class="cart card"
    part="card cart"
    aria-labelledby="cart-heading"
    data-state=${items.length === 0 ? "empty" : "full"}
  >
    <h2 id="cart-heading" tabindex="-1" part="heading">
      ${texts.cart} <span class="count">${count(texts, items.length)}</span>
    </h2>
    <p class="quiet" ?hidden=${items.length > 0}>${texts.cartEmpty}</p>
    <ul id="cart-list">
      ${repeat(
        items,
        ({ domain }) => domain,
        (item, at) => drawItem(scene, item, at),
      )}
    </ul>
    <p class="note">
      <span>${note}</span>
      <button id="cart-undo" type="button" class="link" ?hidden=${removed === null} @click=${scene.undo}>
        ${texts.undo}
      </button>
    </p>
    <div id="cart-order" ?hidden=${items.length === 0}>
      <p id="cart-total" class="total">${totalText(scene)}</p>
      <p id="cart-status" class="message" data-kind=${kindOf(scene, isWhole)}>${cartText(scene)}</p>
      <form id="cart-checkout" method="post" action=${checkout} ?hidden=${!goesOn}>
        <input
          id="cart-promise"
          type="hidden"
          name="promise"
          .value=${(goesOn ? quotes?.promise : null) ?? ""}
        />
        <button
          id="cart-go-on"
          class="button"
          part="button checkout"
          @click=${(event: MouseEvent) => {
            // At the second click of a double click on "Confirm", this button has taken its place.
            if (event.detail > 1) event.preventDefault();
          }}
        >
          ${texts.checkout}
        </button>
      </form>
      <button
        id="cart-confirm"
        type="button"
        class=${goesOn ? "button second" : "button"}
        part="button confirm"
        ?hidden=${goesOn && isWhole}
        aria-disabled=${state.phase === "confirming"}
        @click=${() => {
          if (state.phase !== "confirming") scene.confirm();
        }}
      >
        ${
          state.phase === "waiting"
            ? texts.tryNow
            : quotes || cart.hasExpired
              ? texts.confirmAgain
              : texts.confirm
        }
      </button>
    </div>
  </section>`;
}

/** The total and how it stands, for screen readers. */
export function summaryOf(scene: Scene): string {
  return scene.shop.cart.items.length === 0 ? "" : `${totalText(scene)} ${cartText(scene)}`;
}

export function totalOf({ texts, shop }: Scene): string {
  return shop.cart.total.map((money) => amount(texts, money)).join(" + ");
}

function totalText(scene: Scene): string {
  return scene.texts.total(totalOf(scene) || "–");
}

/** How the message looks, and which state the cart is in. */
function kindOf({ shop: { cart } }: Scene, isWhole: boolean): string {
  const { phase } = cart.state;
  if (phase === "confirming") return "asking";
  if (phase === "waiting") return "waiting";
  if (phase === "failed") return "refused";
  if (cart.hasExpired) return "problem";
  if (cart.quotes === null) return "none";
  return isWhole && !cart.isChanged ? "confirmed" : "problem";
}

export function cartText(scene: Scene): string {
  const { texts, shop, tlds } = scene;
  const { cart } = shop;
  const { phase, problem, untilMs } = cart.state;
  if (phase === "confirming") return texts.checking;
  if (phase === "waiting") {
    const again = texts.again(seconds(texts, Math.max(1, secondsTo(untilMs))));
    return problem === null ? again : `${causeOf(texts, problem)} ${again}`;
  }
  if (phase !== "failed" || problem === null) return confirmedText(scene);
  const isOffline = !navigator.onLine && problem.code === "unreachable";
  const why = isOffline ? texts.offline : wordsFor(texts, problem, tlds);
  const rejected = cart.items.find((_, at) => rejectionOf(scene, at) !== null);
  const whose = rejected === undefined ? "" : `${isolated(rejected.unicodeName)}: `;
  return [whose + why, ...heldText(scene)].join(" ");
}

function confirmedText(scene: Scene): string {
  const { texts, shop } = scene;
  const { quotes, items, state, isChanged } = shop.cart;
  if (quotes === null) return heldText(scene)[0] ?? texts.notAsked;
  const lines = quotes.items;
  const priced = lines.filter(({ price }) => price !== null).length;
  if (priced === 0) return texts.nonePriced;
  const first = Math.min(...lines.map(({ asOf }) => Date.parse(asOf)));
  return [
    ...(priced < items.length ? [texts.partly(count(texts, priced), count(texts, items.length))] : []),
    ...(isChanged ? [texts.priceChanged] : []),
    ...(state.heldUntilMs === null ? [texts.notHeld(timeWithDay(texts, first))] : heldText(scene)),
  ].join(" ");
}

/** Until when the price is held, or that it no longer is; nothing if nothing was signed. */
function heldText({ texts, shop }: Scene): string[] {
  const { heldUntilMs } = shop.cart.state;
  if (heldUntilMs === null) return shop.cart.hasExpired ? [texts.runOut] : [];
  const until = texts.heldUntil(timeWithDay(texts, heldUntilMs - aheadMs()));
  return [`${until} (${texts.left(clock(texts, secondsTo(heldUntilMs)))}).`];
}

/** Why the service rejects a line, as it does if the name's ending or term is no longer sold; null if it doesn't. */
function rejectionOf({ texts, shop, tlds }: Scene, at: number): string | null {
  const error = shop.cart.state.problem?.errors.find(({ field }) => field.startsWith(`items[${at}].`));
  return error === undefined ? null : reasonFor(texts, error, tlds);
}

function drawItem(scene: Scene, item: Wanted, at: number) {
  const { texts, shop } = scene;
  const { domain, unicodeName, tld, premium } = item;
  const line = lineOf(shop.cart.quotes, domain);
  const problem = rejectionOf(scene, at) ?? (line ? problemOf(scene, line) : "");
  const price = line === undefined ? item.price : line.price;
  const renewal = premium ? texts.renewalUnknown : listedRenewal(texts, shop, tld);
  // Its own term may no longer be sold.
  const terms = [...new Set([...shop.terms(tld), item.years])].sort((a, b) => a - b);
  return html`<li
    class="item"
    part="item"
    data-domain=${domain}
    data-state=${problem === "" ? "wanted" : "problem"}
  >
    <p class="domain">
      <bdi dir="ltr">${unicodeName}</bdi>${
        premium ? html` <span class="badge premium">${texts.premium}</span>` : nothing
      }
    </p>
    <button
      type="button"
      class="remove"
      id=${`remove-${domain}`}
      data-remove=${domain}
      aria-label=${texts.removeNamed(unicodeName)}
      @click=${({ detail: clicks }: MouseEvent) => {
        // At the second click of a double click, the next name has moved under the pointer.
        if (clicks < 2) scene.remove(item);
      }}
    >
      ×
    </button>
    <select
      id=${`term-${domain}`}
      aria-label=${texts.termOf(unicodeName)}
      @change=${({ target }: Event) => {
        if (!(target instanceof HTMLSelectElement)) return;
        scene.setTerm(item, Number(target.value));
        // The page may have prevented it.
        target.value = String(shop.cart.items[at]?.years);
      }}
    >
      ${terms.map(
        (term) => html`<option value=${term} .selected=${term === item.years}>${years(texts, term)}</option>`,
      )}
    </select>
    <p class="price">${price ? amount(texts, price) : line ? "–" : texts.priceLater}</p>
    ${problem === "" ? html`<p class="renewal">${renewal}</p>` : html`<p class="problem">${problem}</p>`}
  </li>`;
}

/** What is wrong with a line and what to do about it; empty if it has a price. */
function problemOf({ texts }: Scene, { price, status, problem }: QuoteLine): string {
  if (price !== null) return "";
  if (status === "taken") return texts.justTaken;
  return (problem && adviceFor(texts, problem)) ?? texts.noPrice;
}
