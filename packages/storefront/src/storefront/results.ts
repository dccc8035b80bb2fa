/** Renders the names of a search: the exact one large, the others below it, and similar names. Makes no decisions. */
import type { Availability, Money } from "../../../client/src/client.js";
import { now } from "../../../client/src/clock.js";
import { button, byId, element, refill } from "../element.js";
import { amount, timeWithDay, years } from "./language.js";
import { perYear } from "./money.js";
import type { Prices } from "./prices.js";
import { type Row, rowOf } from "./rows.js";
import type { Texts } from "./texts/en.js";

export interface Wanted {
  readonly domain: string;
  readonly unicodeName: string;
  readonly tld: string;
  /** A premium name has its own price, for the requested term. */
  readonly premium: boolean;
  readonly years: number;
  readonly price: Money | null;
}

/** The part of the cart that the results need. */
export interface CartControl {
  has(domain: string): boolean;
  /** Whether no more names fit. */
  isFull(): boolean;
  add(wanted: Wanted): void;
}

/** A price and its term, as shown. `regular` is the price without the promotion; null if there is none, or the price isn't from the price list. */
interface Offer {
  readonly price: Money;
  readonly years: number;
  readonly regular: Money | null;
}

/** An answer "available" that has been shown for longer also says when the registry was asked: the name may have been registered since. */
const RECENT_MS = 60_000;

export class Results {
  readonly #prices: Prices;
  readonly #cart: CartControl;
  /** The amounts in the price list when an answer was first shown. */
  readonly #listedThen = {
    registration: new WeakMap<Availability, string>(),
    renewal: new WeakMap<Availability, string>(),
  };
  /** When an answer was first shown, by `now()`. */
  readonly #shownSinceMs = new WeakMap<Availability, number>();
  #texts: Texts | null = null;
  readonly #list = byId("results-list", HTMLElement);
  readonly #ideas = byId("ideas", HTMLElement);
  readonly #ideasList = byId("ideas-list", HTMLElement);
  readonly #ideasTime = byId("ideas-time", HTMLElement);

  constructor(prices: Prices, cart: CartControl) {
    this.#prices = prices;
    this.#cart = cart;
    setInterval(() => this.#showTimes(), 1000);
  }

  draw(
    texts: Texts,
    shown: {
      readonly rows: readonly Row[];
      readonly ideas: readonly Availability[];
      readonly busy: boolean;
      /** Whether names without an answer are being checked; if not, checking waits or has been interrupted. */
      readonly isChecking: boolean;
    },
  ): void {
    this.#texts = texts;
    this.#list.setAttribute("aria-busy", String(shown.busy));
    refill(this.#list, ...shown.rows.map((row) => this.#row(texts, row, shown.isChecking)));
    refill(this.#ideasList, ...shown.ideas.map((idea) => this.#idea(texts, idea)));
    this.#ideas.hidden = shown.ideas.length === 0;
    this.#ideasTime.replaceChildren(...this.#oldest(shown.ideas));
  }

  /** One result as text for screen readers. */
  spoken(texts: Texts, result: Availability): string {
    const offer = this.#offer(result);
    const price = offer === null ? "" : `${amount(texts, offer.price)}, ${years(texts, offer.years)}`;
    return texts.spoken(result.unicodeName, texts[result.status], price);
  }

  #row(texts: Texts, row: Row, isChecking: boolean): HTMLElement {
    const result = row.state === "known" && row.result.status !== "unknown" ? row.result : null;
    const state = row.state === "known" ? row.result.status : row.state;
    return element(
      "li",
      {
        class: row.isExact ? "name exact" : "name",
        "data-state": state,
        "data-domain": result?.domain ?? row.label + row.tld,
      },
      nameOf(row),
      result
        ? this.#state(texts, result)
        : element("p", { class: "state" }, this.#stateWithout(texts, row, isChecking)),
      result
        ? this.#price(texts, this.#offer(result))
        : this.#price(texts, state === "failed" ? null : this.#listed(row.tld)),
      result && this.#adder(texts, result),
    );
  }

  #stateWithout(texts: Texts, row: Row, isChecking: boolean): Node | string {
    if (row.state === "known") return element("span", { class: "badge" }, texts.unknown);
    if (row.state === "failed") return row.why(texts);
    if (row.state === "looking") return isChecking ? texts.looking : texts.unknown;
    return row.state === "idle" ? listedRenewal(texts, this.#prices, row.tld) : "";
  }

  #state(texts: Texts, result: Availability): HTMLElement {
    const state = element("p", { class: "state" }, element("span", { class: "badge" }, texts[result.status]));
    if (result.premium) state.append(" ", element("span", { class: "badge premium" }, texts.premium));
    if (result.asOf !== null && (result.stale || result.available))
      state.append(" ", this.#checkedAt(result, result.asOf));
    if (!result.available) return state;
    const note = result.price === null ? texts.noPrice : this.#renewal(texts, result);
    state.append(" ", element("span", { class: "renewal" }, note));
    return state;
  }

  /** When the registry was asked; hidden while the answer is recent. */
  #checkedAt(result: Availability, asOf: string): HTMLElement {
    const sinceMs = this.#shownSinceMs.get(result) ?? now();
    this.#shownSinceMs.set(result, sinceMs);
    const fromMs = result.stale ? sinceMs : sinceMs + RECENT_MS;
    const time = element("small", { "data-from": String(fromMs), "data-as-of": asOf });
    this.#showTime(time);
    return time;
  }

  /** One time for all similar names: the earliest. */
  #oldest(ideas: readonly Availability[]): HTMLElement[] {
    const times = ideas.flatMap((idea) => (idea.asOf === null ? [] : [{ idea, asOf: idea.asOf }]));
    const [first] = times.sort((one, other) => Date.parse(one.asOf) - Date.parse(other.asOf));
    return first === undefined ? [] : [this.#checkedAt(first.idea, first.asOf)];
  }

  /** Repeated, because answers grow old, and today becomes yesterday, while the page is open. */
  #showTimes(): void {
    for (const list of [this.#list, this.#ideasTime])
      for (const time of list.querySelectorAll<HTMLElement>("[data-from]")) this.#showTime(time);
  }

  #showTime(time: HTMLElement): void {
    const texts = this.#texts;
    if (texts === null) return;
    time.hidden = now() < Number(time.dataset["from"]);
    const text = time.hidden ? "" : texts.asOf(timeWithDay(texts, time.dataset["asOf"] ?? ""));
    if (time.textContent !== text) time.textContent = text;
  }

  #price(texts: Texts, offer: Offer | null): HTMLElement {
    if (offer === null) return element("p", { class: "price" });
    const { price, years: term, regular } = offer;
    const note = term > 1 ? ` · ${texts.aYear(amount(texts, perYear(price, term)))}` : "";
    return element(
      "p",
      { class: "price" },
      ...(regular ? [element("s", {}, amount(texts, regular)), " "] : []),
      // Isolated; otherwise its digits would run into those of the term in Arabic script.
      element("bdi", { dir: texts.direction }, amount(texts, price)),
      element("small", {}, years(texts, term) + note),
    );
  }

  /** The price list has an ordinary name's price for every term; a premium name has its own price, for the requested term. */
  #offer(result: Availability): Offer | null {
    if (!result.available || result.price === null) return null;
    if (result.premium) return { price: result.price, years: result.years, regular: null };
    const sameTerm = this.#prices.price(result.tld, "registration", result.years)?.price;
    const price = this.#newer("registration", result, result.price, sameTerm);
    const listed = this.#listed(result.tld);
    return listed !== null && sameTerm?.amount === price.amount
      ? listed
      : { price, years: result.years, regular: null };
  }

  /** The price in the answer, or the list price if that has changed since the answer was first shown. */
  #newer(
    action: "registration" | "renewal",
    result: Availability,
    answered: Money,
    listed: Money | undefined,
  ): Money {
    if (listed === undefined) return answered;
    const then = this.#listedThen[action];
    const amountThen = then.get(result) ?? listed.amount;
    then.set(result, amountThen);
    return amountThen === listed.amount ? answered : listed;
  }

  #listed(tld: string): Offer | null {
    const found = this.#prices.price(tld, "registration", this.#prices.termFor(tld));
    if (found === undefined) return null;
    const { price, years: term, promotion } = found;
    return { price, years: term, regular: promotion?.regular ?? null };
  }

  /** The renewal price as text; empty while that of an ordinary name isn't known. */
  #renewal(texts: Texts, result: Availability): string {
    const { tld, premium, renewal } = result;
    if (premium) return texts.renewalUnknown;
    const listed = this.#prices.shortest(tld, "renewal");
    if (renewal === null || listed === undefined) return "";
    return renewalText(texts, this.#newer("renewal", result, renewal, listed.price), listed.years);
  }

  #idea(texts: Texts, idea: Availability): HTMLElement {
    return element(
      "li",
      { class: "idea", "data-state": idea.status, "data-domain": idea.domain },
      nameOf(rowOf(idea)),
      this.#price(texts, this.#offer(idea)),
      this.#adder(texts, idea),
    );
  }

  #adder(texts: Texts, result: Availability): HTMLElement | null {
    const offer = this.#offer(result);
    if (offer === null) return null;
    const isIn = this.#cart.has(result.domain);
    const isFull = !isIn && this.#cart.isFull();
    const word = isIn ? texts.inCart : isFull ? texts.cartFull : texts.page.add;
    return button(
      {
        class: "button second",
        id: `add-${result.domain}`,
        "aria-label": `${word}: ${result.unicodeName}`,
        "aria-disabled": String(isIn || isFull),
        "data-in": isIn,
      },
      () => {
        const { domain, unicodeName, tld, premium } = result;
        const { price, years: term } = offer;
        this.#cart.add({ domain, unicodeName, tld, premium, price, years: term });
      },
      word,
    );
  }
}

/** The renewal price of an ordinary name under the TLD as text; empty while it isn't known. */
export function listedRenewal(texts: Texts, prices: Prices, tld: string): string {
  const listed = prices.shortest(tld, "renewal");
  return listed === undefined ? "" : renewalText(texts, listed.price, listed.years);
}

function renewalText(texts: Texts, price: Money, term: number): string {
  const whole = amount(texts, price);
  return texts.renewsAt(term === 1 ? texts.aYear(whole) : `${whole} · ${years(texts, term)}`);
}

/** Names are written from left to right in every language and script. */
function nameOf({ label, tld }: Row): HTMLElement {
  const whole = element(
    "bdi",
    { dir: "ltr" },
    element("bdi", {}, label),
    element("span", { class: "tld" }, tld),
  );
  return element("p", { class: "domain", title: label + tld }, whole);
}
