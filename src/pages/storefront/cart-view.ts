/** Renders the cart: its lines with their terms and problems, the total, how long the price holds, and the next step. */
import { MOST_ITEMS } from "../../../client/src/cart.js";
import type { QuoteLine } from "../../../client/src/client.js";
import { aheadMs } from "../../../client/src/clock.js";
import { Countdown } from "../countdown.js";
import { button, byId, element, refill } from "../element.js";
import type { Cart, Change } from "./cart.js";
import { amount, clock, count, seconds, timeOfDay, timeWithDay, years } from "./language.js";
import type { Prices } from "./prices.js";
import { listedRenewal, type Wanted } from "./results.js";
import { say } from "./say.js";
import type { Texts } from "./texts/en.js";
import { wordsFor } from "./texts/texts.js";

export class CartView {
  readonly #cart: Cart;
  readonly #prices: Prices;
  #texts: Texts;
  #left = 0;
  readonly #countdown = new Countdown();
  readonly #section = byId("cart", HTMLElement);
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
      if (this.#cart.confirmed.kind !== "asking") void this.#cart.confirm();
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
    this.#watch();
    this.#draw();
    if (change.kind === "added") say(this.#texts.added(change.item.unicodeName));
    if (change.kind === "removed") {
      say(this.#texts.removed(change.item.unicodeName));
      this.#undo.focus();
    }
    if (change.kind === "prices") {
      const total = this.#cart.confirmed.kind === "confirmed" ? `${this.#total.textContent} ` : "";
      say(total + this.#statusText());
    }
  }

  /** Counts down to the end of the promise, or of a wait. */
  #watch(): void {
    const { confirmed } = this.#cart;
    const untilMs = confirmed.kind === "waiting" ? confirmed.untilMs : this.#cart.promise()?.untilMs;
    this.#countdown.stop();
    this.#left = 0;
    if (untilMs === undefined) return;
    let isFirst = true;
    this.#countdown.start(untilMs, (left) => {
      this.#left = left;
      this.#drawOrder();
      if (left === 0 && !isFirst && this.#cart.promise()) say(this.#texts.runOut);
      isFirst = false;
    });
  }

  #statusText(): string {
    const texts = this.#texts;
    const { confirmed, items } = this.#cart;
    if (confirmed.kind === "none") return texts.notAsked;
    if (confirmed.kind === "asking") return texts.checking;
    if (confirmed.kind === "refused")
      return navigator.onLine || confirmed.problem.code !== "unreachable"
        ? wordsFor(texts, confirmed.problem)
        : texts.offline;
    if (confirmed.kind === "waiting") {
      const again = texts.again(seconds(texts, Math.max(1, this.#left)));
      return `${wordsFor(texts, confirmed.problem)} ${again}`;
    }
    const promise = this.#cart.promise();
    if (promise !== null && this.#left === 0) return texts.runOut;
    const priced = confirmed.quotes.items.filter(({ price }) => price !== null).length;
    if (priced === 0) return texts.nonePriced;
    const held =
      promise === null
        ? texts.notHeld(timeWithDay(texts, earliest(confirmed.quotes.items)))
        : `${texts.heldUntil(timeOfDay(texts, promise.untilMs - aheadMs()))} (${texts.left(clock(texts, this.#left))}).`;
    const partly = texts.partly(count(texts, priced), count(texts, items.length));
    return [
      ...(priced < items.length ? [partly] : []),
      ...(confirmed.isChanged ? [texts.priceChanged] : []),
      held,
    ].join(" ");
  }

  #drawOrder(): void {
    const texts = this.#texts;
    const { confirmed } = this.#cart;
    const promise = this.#cart.promise();
    const isHeld = promise !== null && this.#left > 0;
    const isOver = promise !== null && !isHeld;
    const total = this.#cart
      .total()
      .map((money) => amount(texts, money))
      .join(" + ");
    this.#total.textContent = texts.total(total === "" ? "–" : total);
    this.#barTotal.textContent = total;
    this.#statusLine.textContent = this.#statusText();
    // If every line is priced, only one button is shown.
    const isWhole =
      confirmed.kind === "confirmed" && confirmed.quotes.items.every(({ price }) => price !== null);
    this.#statusLine.dataset["kind"] =
      isOver || (confirmed.kind === "confirmed" && (!isWhole || confirmed.isChanged))
        ? "problem"
        : confirmed.kind;
    const goesOn = isHeld && this.#checkout.getAttribute("action") !== "";
    const isFocused = this.#order.contains(document.activeElement);
    this.#checkout.hidden = !goesOn;
    this.#promise.value = isHeld ? promise.text : "";
    this.#confirm.hidden = goesOn && isWhole;
    this.#confirm.classList.toggle("second", goesOn);
    const { confirm, confirmAgain, tryNow } = texts.page;
    this.#confirm.textContent =
      confirmed.kind === "confirmed" ? confirmAgain : confirmed.kind === "waiting" ? tryNow : confirm;
    this.#confirm.setAttribute("aria-disabled", String(confirmed.kind === "asking"));
    // The pressed button may have been hidden.
    if (isFocused) (goesOn ? this.#goOn : this.#confirm).focus();
  }

  #draw(): void {
    const { items, removed } = this.#cart;
    this.#section.dataset["state"] = items.length === 0 ? "empty" : "full";
    refill(this.#list, ...items.map((item) => this.#item(item)));
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

  #item(item: Wanted): HTMLElement {
    const texts = this.#texts;
    const line = this.#cart.line(item.domain);
    const problem = line === undefined ? "" : this.#problem(line);
    const remove = button(
      {
        class: "remove",
        id: `remove-${item.domain}`,
        "data-remove": item.domain,
        "aria-label": texts.removeNamed(item.unicodeName),
      },
      () => this.#cart.remove(item.domain),
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
    const known = Object.entries(this.#texts.problems).find(([code]) => code === problem?.code);
    return known?.[1] ?? this.#texts.noPrice;
  }

  #termChoice(item: Wanted): HTMLElement {
    const texts = this.#texts;
    const terms = this.#prices.terms(item.tld);
    const choice = element(
      "select",
      { id: `term-${item.domain}`, "aria-label": texts.termOf(item.unicodeName) },
      ...(terms.length === 0 ? [item.years] : terms).map((term) =>
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
