/** The price list: a row per TLD, for the term chosen on the page. Also gives the other parts of the page the prices they need. */
import {
  createClient,
  type Price,
  type QuoteLine,
  type StorefrontClient,
} from "../../../client/src/client.js";
import { byId, element } from "../element.js";
import { RESTORE_INCLUDES_RENEWAL } from "./identity.js";
import { amount, timeWithDay, years } from "./language.js";
import { store, stored } from "./session.js";
import type { Texts } from "./texts/en.js";

const ACTIONS = ["registration", "renewal", "transfer", "restore"] as const;
type Action = (typeof ACTIONS)[number];

/** How often the client is asked for the list. It asks the service only when its copy is too old, or was incomplete. */
const AGAIN_MS = 5_000;

export class Prices {
  #list: readonly Price[] = [];
  #texts: Texts;
  #term: number;
  #client: StorefrontClient;
  readonly #changed: () => void;
  readonly #table = byId("prices-table", HTMLTableElement);
  readonly #choices = byId("terms", HTMLElement);
  readonly #coming = byId("prices-coming", HTMLElement);

  /** `changed` is called when the list has changed and when another term is chosen. */
  constructor(client: StorefrontClient, texts: Texts, changed: () => void) {
    this.#client = client;
    this.#texts = texts;
    this.#changed = changed;
    const before = stored("term");
    this.#term = typeof before === "number" ? before : 1;
  }

  /** Loads the list and replaces it when it changes: a service that has just started doesn't know every price yet. */
  async keepCurrent(): Promise<never> {
    for (;;) {
      try {
        const list = (await this.#client.prices()).prices.map(current);
        const isNew = JSON.stringify(list) !== JSON.stringify(this.#list);
        this.#list = list;
        if (isNew) this.#changed();
      } catch {
        // Without the list, searches still work.
      }
      await new Promise((later) => setTimeout(later, AGAIN_MS));
    }
  }

  /** Call with confirmed prices. If the list has another one, it is older: a new client has no copy of it, and the browser's is revalidated. */
  compare(lines: readonly QuoteLine[]): void {
    const isOld = lines.some(({ tld, years: term, premium, price }) => {
      const listed = this.price(tld, "registration", term)?.price;
      return !premium && price !== null && listed !== undefined && listed.amount !== price.amount;
    });
    if (isOld)
      this.#client = createClient({ fetch: (url, init) => fetch(url, { ...init, cache: "no-cache" }) });
  }

  /** The terms for which a name can be registered, shortest first. */
  terms(tld: string): readonly number[] {
    return this.#of("registration")
      .filter((price) => price.tld === tld)
      .map((price) => price.years)
      .sort((a, b) => a - b);
  }

  /** The chosen term if it is sold under this TLD; otherwise the next shorter one, or the shortest. */
  termFor(tld: string): number {
    return this.#nearest(this.terms(tld));
  }

  price(tld: string, action: Action, term: number): Price | undefined {
    return this.#of(action).find((price) => price.tld === tld && price.years === term);
  }

  shortest(tld: string, action: Action): Price | undefined {
    return this.#of(action)
      .filter((price) => price.tld === tld)
      .sort((a, b) => a.years - b.years)[0];
  }

  render(texts: Texts): void {
    this.#texts = texts;
    if (this.#list.length === 0) return;
    const terms = [...new Set(this.#of("registration").map((price) => price.years))].sort((a, b) => a - b);
    const shown = this.#nearest(terms);
    const isFocused = this.#choices.contains(document.activeElement);
    this.#choices.replaceChildren(...terms.map((term) => this.#choice(term, term === shown)));
    if (isFocused) this.#choices.querySelector<HTMLInputElement>("input:checked")?.focus();
    const column = (title: string): HTMLElement => element("th", { scope: "col" }, title);
    const { page } = texts;
    const head = element("tr", {}, column(page.ending), ...ACTIONS.map((action) => column(page[action])));
    const tlds = [...new Set(this.#list.map(({ tld }) => tld))];
    const rows = tlds.map((tld) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, tld)),
        ...ACTIONS.map((action) => this.#cell(tld, action, shown)),
      ),
    );
    this.#table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
    const restore = this.#of("restore").length > 0 ? ` ${texts.restores(RESTORE_INCLUDES_RENEWAL)}` : "";
    this.#coming.textContent = texts.pricesFor(years(texts, shown)) + restore;
  }

  #of(action: Action): Price[] {
    return this.#list.filter((price) => price.action === action);
  }

  /** The chosen term if it is one of these, which are sorted; otherwise the next shorter one, or the shortest. */
  #nearest(terms: readonly number[]): number {
    return [...terms].reverse().find((term) => term <= this.#term) ?? terms[0] ?? this.#term;
  }

  #choice(term: number, isShown: boolean): HTMLElement {
    const choice = element("input", { type: "radio", name: "term", value: String(term) });
    choice.checked = isShown;
    choice.addEventListener("change", () => {
      this.#term = term;
      store("term", term);
      this.#changed();
    });
    return element("label", {}, choice, element("span", {}, years(this.#texts, term)));
  }

  /** Nobody chooses the term of a transfer or restore, so it is the shortest one. A term that isn't the chosen one is shown. */
  #cell(tld: string, action: Action, chosen: number): HTMLTableCellElement {
    const texts = this.#texts;
    const hasChoice = action === "registration" || action === "renewal";
    const found = hasChoice ? this.price(tld, action, chosen) : this.shortest(tld, action);
    // Either it isn't sold or its price isn't known yet: the list doesn't say which.
    if (found === undefined)
      return element(
        "td",
        { class: "quiet" },
        element("span", { "aria-hidden": "true" }, "–"),
        element("span", { class: "visually-hidden" }, texts.withoutPrice),
      );
    const { price, promotion } = found;
    const cell = element("td", {}, amount(texts, price));
    if (found.years !== chosen) cell.append(element("small", {}, years(texts, found.years)));
    if (promotion) {
      const label = element("span", { class: "visually-hidden" }, texts.regular);
      cell.append(
        element("s", {}, label, amount(texts, promotion.regular)),
        element("small", {}, texts.until(timeWithDay(texts, promotion.until))),
      );
    }
    return cell;
  }
}

/** The price as it is now: a promotion can end while the list is still fresh. */
function current({ promotion, ...price }: Price): Price {
  if (promotion === undefined) return price;
  const isOver = Date.parse(promotion.until) <= Date.now();
  return isOver ? { ...price, price: promotion.regular } : { ...price, promotion };
}
