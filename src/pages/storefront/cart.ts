/**
 * The cart: what is wanted, for how long, and on request the confirmed price with its promise and the time that it holds. Amounts come
 * from the service alone; nothing is added up here.
 */
import {
  type QuoteLine,
  type Quotes,
  StorefrontProblem,
  type StorefrontClient,
} from "../../../client/src/client.js";
import { Countdown } from "../countdown.js";
import { byId, element } from "../element.js";
import { amount, clock, count, seconds, timeOfDay, years } from "./language.js";
import type { Prices } from "./prices.js";
import type { Basket, Wanted } from "./search.js";
import type { Texts } from "./texts/texts.js";

type Quoted =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "waiting"; readonly problem: StorefrontProblem; readonly left: number }
  | { readonly kind: "refused"; readonly problem: StorefrontProblem; readonly left: number }
  | {
      readonly kind: "told";
      readonly quotes: Quotes;
      readonly promise: PricePromise | null;
      readonly left: number;
    };

interface PricePromise {
  readonly text: string;
  readonly validUntil: string;
}

export class Cart implements Basket {
  readonly #client: StorefrontClient;
  readonly #prices: Prices;
  readonly #say: (text: string) => void;
  readonly #changed: () => void;
  #texts: Texts;
  #items: Wanted[] = [];
  #quoted: Quoted = { kind: "none" };
  #current = new AbortController();
  readonly #list = byId("cart-list", HTMLElement);
  readonly #empty = byId("cart-empty", HTMLElement);
  readonly #order = byId("cart-order", HTMLElement);
  readonly #total = byId("cart-total", HTMLElement);
  readonly #statusLine = byId("cart-status", HTMLElement);
  readonly #confirm = byId("cart-confirm", HTMLButtonElement);
  readonly #promise = byId("cart-promise", HTMLDetailsElement);
  readonly #promiseText = byId("cart-promise-text", HTMLElement);
  readonly #heading = byId("cart-heading", HTMLElement);
  readonly #count = byId("cart-count", HTMLElement);

  constructor(parts: {
    readonly client: StorefrontClient;
    readonly prices: Prices;
    readonly say: (text: string) => void;
    /** Told when something came in or went out. */
    readonly changed: () => void;
    readonly texts: Texts;
  }) {
    this.#client = parts.client;
    this.#prices = parts.prices;
    this.#say = parts.say;
    this.#changed = parts.changed;
    this.#texts = parts.texts;
    this.#confirm.addEventListener("click", () => void this.#ask());
  }

  has(domain: string): boolean {
    return this.#items.some((item) => item.domain === domain);
  }

  add({ domain, unicodeName, tld, years, price }: Wanted): void {
    this.#become([...this.#items, { domain, unicodeName, tld, years, price }]);
    this.#say(this.#texts.added(unicodeName));
  }

  render(texts: Texts): void {
    this.#texts = texts;
    this.#draw();
  }

  /** Another cart has another price. */
  #become(items: Wanted[]): void {
    this.#current.abort();
    this.#items = items;
    this.#quoted = { kind: "none" };
    this.#draw();
    this.#changed();
  }

  #remove(item: Wanted): void {
    this.#become(this.#items.filter(({ domain }) => domain !== item.domain));
    this.#say(this.#texts.removed(item.unicodeName));
    this.#heading.focus();
  }

  async #ask(): Promise<void> {
    this.#current.abort();
    const { signal } = (this.#current = new AbortController());
    const wait = new Countdown(signal);
    const show = (quoted: Quoted): void => {
      this.#quoted = quoted;
      this.#drawQuoted();
    };
    show({ kind: "asking" });
    this.#say(this.#texts.checking);
    try {
      const quotes = await this.#client.cart(
        this.#items.map(({ domain, years }) => ({ domain, action: "registration", years })),
        {
          signal,
          onWait: (problem, waitMs) => {
            wait.start(Date.now() + waitMs, (left) => {
              show(left > 0 ? { kind: "waiting", problem, left } : { kind: "asking" });
            });
            this.#say(this.#statusText());
          },
        },
      );
      wait.stop();
      const promise = promiseIn(quotes);
      if (promise === null) show({ kind: "told", quotes, promise, left: 0 });
      else {
        wait.start(Date.parse(promise.validUntil), (left) => {
          show({ kind: "told", quotes, promise, left });
          if (left === 0) this.#say(this.#texts.runOut);
        });
      }
      this.#draw();
      this.#say(`${this.#total.textContent} ${this.#statusText()}`);
    } catch (error) {
      if (signal.aborted) return;
      const problem = error instanceof StorefrontProblem ? error : new StorefrontProblem("unreadable", "");
      wait.start(Date.now() + 1000 * (problem.retryAfter ?? 0), (left) => {
        show({ kind: "refused", problem, left });
      });
      this.#say(this.#statusText());
    }
  }

  #statusText(): string {
    const texts = this.#texts;
    const quoted = this.#quoted;
    if (quoted.kind === "none") return texts.notAsked;
    if (quoted.kind === "asking") return texts.checking;
    if (quoted.kind === "refused") return this.#words(quoted.problem);
    if (quoted.kind === "waiting")
      return `${this.#words(quoted.problem)} ${texts.again(seconds(texts, quoted.left))}`;
    if (quoted.promise === null) return texts.notHeld;
    if (quoted.left === 0) return texts.runOut;
    const until = timeOfDay(texts, quoted.promise.validUntil);
    return `${texts.heldUntil(until)} (${texts.left(clock(texts, quoted.left))})`;
  }

  #words({ code }: StorefrontProblem): string {
    return this.#texts.problems[code] ?? this.#texts.problems.other;
  }

  #drawQuoted(): void {
    const texts = this.#texts;
    const quoted = this.#quoted;
    this.#statusLine.textContent = this.#statusText();
    this.#statusLine.dataset["kind"] =
      quoted.kind === "told" && quoted.promise && quoted.left === 0 ? "refused" : quoted.kind;
    const total =
      quoted.kind === "told" ? quoted.quotes.total.map((money) => amount(texts, money)).join(" + ") : "";
    this.#total.textContent = texts.total(total === "" ? "–" : total);
    const left = quoted.kind === "refused" ? quoted.left : 0;
    const word = texts.page.confirm;
    this.#confirm.textContent = left > 0 ? `${word} (${seconds(texts, left)})` : word;
    this.#confirm.disabled = left > 0 || quoted.kind === "asking" || quoted.kind === "waiting";
    const promise = quoted.kind === "told" && quoted.left > 0 ? quoted.promise : null;
    this.#promise.hidden = promise === null;
    this.#promiseText.textContent = promise?.text ?? "";
  }

  #draw(): void {
    const focused = document.activeElement?.id;
    const lines = this.#quoted.kind === "told" ? this.#quoted.quotes.items : [];
    this.#list.replaceChildren(
      ...this.#items.map((item) =>
        this.#drawnItem(
          item,
          lines.find(({ domain }) => domain === item.domain),
        ),
      ),
    );
    this.#empty.hidden = this.#items.length > 0;
    this.#order.hidden = this.#items.length === 0;
    this.#count.textContent = count(this.#texts, this.#items.length);
    this.#drawQuoted();
    if (focused !== undefined && focused !== "") document.getElementById(focused)?.focus();
  }

  #drawnItem(item: Wanted, line: QuoteLine | undefined): HTMLElement {
    const texts = this.#texts;
    const isGone = line?.status === "taken";
    const remove = element(
      "button",
      { type: "button", class: "remove", "aria-label": texts.removeNamed(item.unicodeName) },
      "×",
    );
    remove.addEventListener("click", () => {
      this.#remove(item);
    });
    const price = line === undefined ? item.price : line.price;
    return element(
      "li",
      { class: "item", "data-domain": item.domain, "data-state": isGone ? "taken" : "wanted" },
      element("p", { class: "domain" }, element("bdi", { dir: "ltr" }, item.unicodeName)),
      remove,
      this.#termChoice(item),
      element("p", { class: "price" }, isGone ? texts.justTaken : price ? amount(texts, price) : "–"),
    );
  }

  #termChoice(item: Wanted): HTMLElement {
    const texts = this.#texts;
    const choice = element("select", {
      id: `term-${item.domain}`,
      "aria-label": texts.termOf(item.unicodeName),
    });
    for (const term of this.#prices.terms(item.tld))
      choice.append(
        element("option", { value: String(term), selected: term === item.years }, years(texts, term)),
      );
    choice.addEventListener("change", () => {
      const term = Number(choice.value);
      this.#become(
        this.#items.map((other) =>
          other === item ? { ...item, years: term, price: this.#listed(item, term) } : other,
        ),
      );
    });
    return choice;
  }

  /** The list has no prices of premium names, whose price for the term is learned when the cart is confirmed. */
  #listed(item: Wanted, term: number): Wanted["price"] {
    const before = this.#prices.price(item.tld, "registration", item.years)?.price.amount;
    if (before !== item.price?.amount) return null;
    return this.#prices.price(item.tld, "registration", term)?.price ?? null;
  }
}

/** Null from a service that gives no promises. */
function promiseIn(quotes: object): PricePromise | null {
  if (!("promise" in quotes && "validUntil" in quotes)) return null;
  const { promise, validUntil } = quotes;
  return typeof promise === "string" && typeof validUntil === "string" ? { text: promise, validUntil } : null;
}
