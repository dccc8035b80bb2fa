/** Renders the cart: its lines with their terms and problems, the total, how long the price holds, and the next step. */
import { MOST_ITEMS } from "../../../client/src/cart.js";
import type { QuoteLine } from "../../../client/src/client.js";
import { aheadMs } from "../../../client/src/clock.js";
import { Countdown } from "../countdown.js";
import { button, byId, element, refill } from "../element.js";
import { type Cart, type Change, isHeld } from "./cart.js";
import { SOLD } from "./identity.js";
import { amount, clock, count, seconds, timeWithDay, years } from "./language.js";
import type { Prices } from "./prices.js";
import { listedRenewal, type Wanted } from "./results.js";
import { say } from "./say.js";
import type { Texts } from "./texts/en.js";
import { isolated } from "./texts/isolates.js";
import { adviceFor, causeOf, reasonFor, wordsFor } from "./texts/texts.js";

export class CartView {
  readonly #cart: Cart;
  readonly #prices: Prices;
  #texts: Texts;
  /** The whole seconds left of a wait, and of the time for which the prices are held. */
  #waitLeft = 0;
  #heldLeft = 0;
  readonly #waiting = new Countdown();
  readonly #holding = new Countdown();
  readonly #section = byId("cart", HTMLElement);
  readonly #heading = byId("cart-heading", HTMLElement);
  readonly #list = byId("cart-list", HTMLElement);
  readonly #order = byId("cart-order", HTMLElement);
  readonly #empty = byId("cart-empty", HTMLElement);
  readonly #note = byId("cart-note", HTMLElement);
  readonly #undo = byId("cart-undo", HTMLButtonElement);
  readonly #total = byId("cart-total", HTMLElement);
  readonly #statusLine = byId("cart-status", HTMLElement);
  readonly #confirm = byId("cart-confirm", HTMLButtonElement);
  readonly #checkout = byId("cart-checkout", HTMLFormElement);
  readonly #goOn = byId("cart-go-on", HTMLButtonElement);
  readonly #promise = byId("cart-promise", HTMLInputElement);
  readonly #bar = byId("cart-bar", HTMLElement);
  readonly #barTotal = byId("cart-bar-total", HTMLElement);

  constructor(cart: Cart, prices: Prices, texts: Texts) {
    this.#cart = cart;
    this.#prices = prices;
    this.#texts = texts;
    this.#confirm.addEventListener("click", () => {
      if (this.#cart.confirmation.kind !== "asking") void this.#cart.confirm();
    });
    this.#goOn.addEventListener("click", (event) => {
      // At the second click of a double click on "Confirm", this button has taken its place.
      if (event.detail > 1) event.preventDefault();
    });
    this.#undo.addEventListener("click", () => {
      const item = this.#cart.removed;
      this.#cart.undo();
      document.getElementById(`remove-${item?.domain ?? ""}`)?.focus();
    });
  }

  render(texts: Texts): void {
    this.#texts = texts;
    this.#watch();
    this.#draw();
  }

  /** Draws a change and announces it to screen readers. */
  changed(change: Change): void {
    const hadFocus = this.#section.contains(document.activeElement);
    this.#watch();
    this.#draw();
    // Another tab may have removed the name, or a button may have been hidden.
    const focused = document.activeElement;
    const isGone = !this.#section.contains(focused) || focused?.closest("[hidden]") !== null;
    if (hadFocus && isGone) this.#heading.focus({ preventScroll: true });
    if (change.kind === "added") say(this.#texts.added(change.item.unicodeName));
    if (change.kind === "removed") {
      say(this.#texts.removed(change.item.unicodeName));
      this.#undo.focus();
    }
    if (change.kind === "confirmation") say(this.#statusText());
    if (change.kind === "prices" || change.kind === "names") say(this.#summary());
  }

  #summary(): string {
    return this.#cart.items.length === 0 ? "" : `${this.#total.textContent} ${this.#statusText()}`;
  }

  /** Counts down to the end of a wait and to that of the promise. */
  #watch(): void {
    const { confirmation } = this.#cart;
    this.#waiting.stop();
    if (confirmation.kind === "waiting")
      this.#waiting.start(confirmation.untilMs, (left) => {
        this.#waitLeft = left;
        this.#drawOrder();
      });
    const promise = this.#cart.promise();
    this.#holding.stop();
    if (promise === null) return;
    let isFirst = true;
    this.#holding.start(promise.untilMs, (left) => {
      this.#heldLeft = left;
      this.#drawOrder();
      if (left === 0 && !isFirst) say(this.#texts.runOut);
      isFirst = false;
    });
  }

  #statusText(): string {
    const texts = this.#texts;
    const { confirmation } = this.#cart;
    if (confirmation.kind === "asking") return texts.checking;
    if (confirmation.kind === "waiting") {
      const again = texts.again(seconds(texts, Math.max(1, this.#waitLeft)));
      return `${causeOf(texts, confirmation.problem)} ${again}`;
    }
    if (confirmation.kind === "none") return this.#confirmedText();
    const isOffline = !navigator.onLine && confirmation.problem.code === "unreachable";
    const why = isOffline ? texts.offline : wordsFor(texts, confirmation.problem, SOLD);
    const rejected = this.#cart.items.find((_, at) => this.#rejection(at) !== null);
    const whose = rejected === undefined ? "" : `${isolated(rejected.unicodeName)}: `;
    return [whose + why, ...this.#heldText()].join(" ");
  }

  /** Why the service rejects a line, as it does if the name's ending or term is no longer sold; null if it doesn't. */
  #rejection(at: number): string | null {
    const { confirmation } = this.#cart;
    const errors = confirmation.kind === "refused" ? confirmation.problem.errors : [];
    const error = errors.find(({ field }) => field.startsWith(`items[${at}].`));
    return error === undefined ? null : reasonFor(this.#texts, error, SOLD);
  }

  #confirmedText(): string {
    const texts = this.#texts;
    const { confirmed, items } = this.#cart;
    if (confirmed === null) return texts.notAsked;
    const promise = this.#cart.promise();
    if (promise !== null && !isHeld(promise)) return texts.runOut;
    const lines = confirmed.quotes.items;
    const priced = lines.filter(({ price }) => price !== null).length;
    if (priced === 0) return texts.nonePriced;
    const partly = texts.partly(count(texts, priced), count(texts, items.length));
    return [
      ...(priced < items.length ? [partly] : []),
      ...(confirmed.isChanged ? [texts.priceChanged] : []),
      ...(promise === null ? [texts.notHeld(timeWithDay(texts, earliest(lines)))] : this.#heldText()),
    ].join(" ");
  }

  /** Until when the price is held, or that it no longer is; nothing if nothing was signed. */
  #heldText(): string[] {
    const texts = this.#texts;
    const promise = this.#cart.promise();
    if (promise === null) return [];
    if (!isHeld(promise)) return [texts.runOut];
    const until = texts.heldUntil(timeWithDay(texts, promise.untilMs - aheadMs()));
    return [`${until} (${texts.left(clock(texts, this.#heldLeft))}).`];
  }

  #drawOrder(): void {
    const texts = this.#texts;
    const { confirmation, confirmed } = this.#cart;
    const promise = this.#cart.promise();
    const isOver = promise !== null && !isHeld(promise);
    const total = this.#cart
      .total()
      .map((money) => amount(texts, money))
      .join(" + ");
    this.#total.textContent = texts.total(total === "" ? "–" : total);
    this.#barTotal.textContent = total;
    this.#statusLine.textContent = this.#statusText();
    // If every line is priced, only one button is shown.
    const isWhole = confirmed !== null && confirmed.quotes.items.every(({ price }) => price !== null);
    const hasProblem = confirmed !== null && (isOver || !isWhole || confirmed.isChanged);
    this.#statusLine.dataset["kind"] =
      confirmation.kind !== "none" || confirmed === null
        ? confirmation.kind
        : hasProblem
          ? "problem"
          : "confirmed";
    const held = isOver ? null : promise;
    const goesOn = held !== null && this.#checkout.getAttribute("action") !== "";
    const focused = document.activeElement;
    this.#checkout.hidden = !goesOn;
    this.#promise.value = held?.text ?? "";
    this.#confirm.hidden = goesOn && isWhole;
    this.#confirm.classList.toggle("second", goesOn);
    const { confirm, confirmAgain, tryNow } = texts.page;
    this.#confirm.textContent =
      confirmation.kind === "waiting" ? tryNow : confirmed === null ? confirm : confirmAgain;
    this.#confirm.setAttribute("aria-disabled", String(confirmation.kind === "asking"));
    const isGone = this.#order.contains(focused) && focused?.closest("[hidden]") !== null;
    if (isGone) (goesOn ? this.#goOn : this.#confirm).focus();
  }

  #draw(): void {
    const { items, removed } = this.#cart;
    this.#section.dataset["state"] = items.length === 0 ? "empty" : "full";
    refill(this.#list, ...items.map((item, at) => this.#item(item, at)));
    this.#empty.hidden = items.length > 0;
    this.#order.hidden = items.length === 0;
    this.#bar.hidden = items.length === 0;
    for (const at of document.querySelectorAll(".count")) at.textContent = count(this.#texts, items.length);
    const removal = removed === null ? "" : this.#texts.removed(removed.unicodeName);
    this.#note.textContent = this.#cart.isFull()
      ? this.#texts.cartFullWhy(count(this.#texts, MOST_ITEMS))
      : removal;
    this.#undo.hidden = removed === null;
    this.#drawOrder();
  }

  #item(item: Wanted, at: number): HTMLElement {
    const texts = this.#texts;
    const line = this.#cart.line(item.domain);
    const problem = this.#rejection(at) ?? (line === undefined ? "" : this.#problem(line));
    const remove = button(
      {
        class: "remove",
        id: `remove-${item.domain}`,
        "data-remove": item.domain,
        "aria-label": texts.removeNamed(item.unicodeName),
      },
      ({ detail: clicks }) => {
        // At the second click of a double click, the next name has moved under the pointer.
        if (clicks < 2) this.#cart.remove(item.domain);
      },
      "×",
    );
    const price = line === undefined ? item.price : line.price;
    const renewal = item.premium ? texts.renewalUnknown : listedRenewal(texts, this.#prices, item.tld);
    const badge = item.premium && element("span", { class: "badge premium" }, texts.premium);
    return element(
      "li",
      { class: "item", "data-domain": item.domain, "data-state": problem === "" ? "wanted" : "problem" },
      element(
        "p",
        { class: "domain" },
        element("bdi", { dir: "ltr" }, item.unicodeName),
        badge && " ",
        badge,
      ),
      remove,
      this.#termChoice(item),
      element("p", { class: "price" }, price ? amount(texts, price) : line ? "–" : texts.priceLater),
      problem === ""
        ? element("p", { class: "renewal" }, renewal)
        : element("p", { class: "problem" }, problem),
    );
  }

  /** What is wrong with a line and what to do about it; empty if it has a price. */
  #problem({ price, status, problem }: QuoteLine): string {
    if (price !== null) return "";
    if (status === "taken") return this.#texts.justTaken;
    return (problem && adviceFor(this.#texts, problem)) ?? this.#texts.noPrice;
  }

  #termChoice(item: Wanted): HTMLElement {
    const texts = this.#texts;
    // Its own term may no longer be sold.
    const terms = [...new Set([...this.#prices.terms(item.tld), item.years])].sort((a, b) => a - b);
    const choice = element(
      "select",
      { id: `term-${item.domain}`, "aria-label": texts.termOf(item.unicodeName) },
      ...terms.map((term) =>
        element("option", { value: String(term), selected: term === item.years }, years(texts, term)),
      ),
    );
    choice.addEventListener("change", () => {
      this.#cart.setTerm(item.domain, Number(choice.value));
    });
    return choice;
  }
}

/** When the first of these lines was checked. */
function earliest(lines: readonly QuoteLine[]): number {
  return Math.min(...lines.map(({ asOf }) => Date.parse(asOf)));
}
