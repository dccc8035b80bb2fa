/**
 * `<af-domain-search>`: search, prices and cart of a storefront service on any page. It lives in a shadow root with a constructed stylesheet, so it needs
 * no inline style or script. Elements of a page that use the same service share its cart.
 */
import { html, render } from "lit-html";
import { now } from "../../../client/src/clock.js";
import { drawBox, statusText } from "./box.js";
import type { Wanted } from "./cart.js";
import { cartText, drawCart, summaryOf, totalOf } from "./cart-view.js";
import css from "./embed.css";
import { count, tagOf, textsIn } from "./language.js";
import { nearest } from "./offers.js";
import { drawResults, spokenResult } from "./results.js";
import { knownExact } from "./rows.js";
import type { Scene } from "./scene.js";
import { type Found, Search } from "./search.js";
import { type News, type Shop, shopAt } from "./shop.js";
import { store, stored } from "./storage.js";

/** Events for the page. `af-search` and `af-cart` are sent before the change, `af-confirmed` before the checkout is offered; each is cancelable. */
interface Events {
  readonly "af-search": { readonly q: string };
  readonly "af-cart": { readonly items: readonly Pick<Wanted, "domain" | "action" | "years">[] };
  readonly "af-confirmed": Pick<NonNullable<Shop["cart"]["quotes"]>, "promise" | "validUntil" | "total">;
}

/** Where the focus goes, by the part in which something disappeared that had it: a pressed button, or a line that another tab removed. */
const FOCUS: Readonly<Record<string, readonly string[]>> = {
  "cart-order": ["#cart-go-on", "#cart-confirm", "#cart-heading"],
  cart: ["#cart-heading"],
  root: ["#results-heading", "#query"],
};

const SHEET = new CSSStyleSheet();
SHEET.replaceSync(css);

export class DomainSearch extends HTMLElement {
  static readonly observedAttributes = ["lang", "tlds", "years", "q", "checkout", "service"];
  readonly #root = this.attachShadow({ mode: "open" });
  #shop: Shop | null = null;
  #search: Search | null = null;
  #unfollow = (): unknown => undefined;
  #before: Found | null = null;
  /** Announced to screen readers. */
  #said = "";
  /** The element that is focused next. */
  #next = "";
  /** Whether the prices were confirmed in this element, and the promise that the page has taken over. */
  #hasConfirmed = false;
  #takenOver: string | null = null;
  #isDue = false;
  #tick: ReturnType<typeof setTimeout> | undefined;

  connectedCallback(): void {
    addEventListener("offline", this.#redraw);
    addEventListener("online", this.#online);
    this.#root.adoptedStyleSheets = [SHEET];
    this.#open();
  }

  disconnectedCallback(): void {
    removeEventListener("offline", this.#redraw);
    removeEventListener("online", this.#online);
    this.#close();
  }

  attributeChangedCallback(name: string, before: string | null, value: string | null): void {
    if (this.#shop === null || value === before) return;
    // What was announced is in the other language.
    if (name === "lang") this.#said = "";
    if (name === "service") this.#open();
    if (name === "q" && value !== null) this.#search?.search(value);
    this.#redraw();
  }

  /** What is in the search box. */
  get text(): string {
    return this.#search?.text ?? "";
  }

  /** Focuses the search box. */
  override focus(options?: FocusOptions): void {
    this.#find("#query")?.focus(options);
  }

  #open(): void {
    this.#close();
    const service = (this.getAttribute("service") ?? new URL(".", import.meta.url).href).replace(/\/$/, "");
    const shop = shopAt(service);
    const place = this.id || [...document.querySelectorAll(this.localName)].indexOf(this);
    const search = new Search({
      shop,
      key: `${service}.search.${place}`,
      tlds: () => this.#tlds ?? shop.tlds,
      chosenTlds: () => this.#tlds,
      onChange: () => this.#follow(),
      onBegin: (q) => this.#send("af-search", { q }),
    });
    this.#shop = shop;
    this.#search = search;
    this.#unfollow = shop.follow((news) => this.#hear(news));
    search.begin(this.getAttribute("q"));
    this.#redraw();
  }

  #close(): void {
    this.#unfollow();
    this.#search?.stop();
    this.#shop = this.#search = null;
    clearTimeout(this.#tick);
  }

  /** With or without their dots, separated by commas or spaces. */
  get #tlds(): readonly string[] | undefined {
    const tlds = (this.getAttribute("tlds") ?? "").toLowerCase().match(/[^\s,.][^\s,]*/g);
    return tlds?.map((tld) => `.${tld}`);
  }

  /** Draws everything once what runs now has finished. */
  readonly #redraw = (): void => {
    if (!this.#isDue) queueMicrotask(() => this.#draw());
    this.#isDue = true;
  };

  readonly #online = (): void => {
    const { phase, problem } = this.#search?.found ?? {};
    if (phase === "failed" && problem?.code === "unreachable") this.#search?.retry();
    this.#redraw();
  };

  /** Draws the search, and announces its turns. */
  #follow(): void {
    this.#redraw();
    const scene = this.#scene();
    if (scene === null) return;
    const { found } = scene;
    const before = this.#before;
    this.#before = found;
    const isNews = found.phase !== before?.phase || found.untilMs !== before.untilMs;
    const exact = knownExact(found.rows);
    if (isNews && ["done", "waiting", "failed"].includes(found.phase)) this.#said = statusText(scene);
    else if (found.phase === "searching" && exact && !(before && knownExact(before.rows)))
      this.#said = spokenResult(scene, exact);
  }

  /** Draws the cart and the prices, and announces what has changed. */
  #hear(news: News): void {
    this.#redraw();
    const scene = this.#scene();
    if (scene === null) return;
    const { texts, shop } = scene;
    const { quotes } = shop.cart;
    const isNew = news.kind === "prices" || news.kind === "names";
    if (isNew) this.#search?.learn(quotes?.items ?? []);
    if (news.kind === "prices" && this.#hasConfirmed && quotes?.promise) {
      const { promise, validUntil, total } = quotes;
      this.#hasConfirmed = false;
      this.#takenOver = this.#send("af-confirmed", { promise, validUntil, total }) ? null : promise;
    }
    if (isNew) this.#said = summaryOf(scene);
    if (news.kind === "added") this.#said = texts.added(news.item.unicodeName);
    if (news.kind === "removed") this.#said = texts.removed(news.item.unicodeName);
    if (news.kind === "confirmation") this.#said = cartText(scene);
    if (news.kind === "expired") this.#said = texts.runOut;
  }

  #send<K extends keyof Events>(name: K, detail: Events[K]): boolean {
    return this.dispatchEvent(
      new CustomEvent(name, { detail, bubbles: true, composed: true, cancelable: true }),
    );
  }

  #scene(): Scene | null {
    const [shop, search] = [this.#shop, this.#search];
    if (shop === null || search === null) return null;
    const { cart } = shop;
    const termKey = `${shop.service}.term`;
    const term = stored(termKey) ?? Number(this.getAttribute("years") ?? 1);
    const isTakenOver = this.#takenOver !== null && this.#takenOver === cart.quotes?.promise;
    const ask = (items: readonly Wanted[]): boolean =>
      this.#send("af-cart", {
        items: items.map(({ domain, action, years }) => ({ domain, action, years })),
      });
    return {
      texts: textsIn(this.lang, this.parentElement?.closest<HTMLElement>("[lang]")?.lang),
      shop,
      term: nearest(shop.terms(), Number(term) || 1),
      tlds: this.#tlds ?? shop.tlds,
      text: search.text,
      found: search.found,
      checkout: isTakenOver ? "" : (this.getAttribute("checkout") ?? ""),
      type: (text) => search.type(text),
      search: (text) => search.search(text),
      retry: () => search.retry(),
      chooseTerm: (years) => {
        store(termKey, years);
        this.#redraw();
      },
      add: (item) => cart.add(item, ask),
      remove: (item) => {
        cart.remove(item, ask);
        if (!cart.has(item.domain)) this.#next = "#cart-undo";
      },
      setTerm: (item, years) => cart.setTerm(item, years, ask),
      undo: () => {
        const { domain = "" } = cart.removed ?? {};
        cart.undo(ask);
        if (cart.has(domain)) this.#next = `[id="remove-${domain}"]`;
      },
      confirm: () => {
        this.#hasConfirmed = true;
        void cart.confirm();
      },
    };
  }

  #draw(): void {
    this.#isDue = false;
    const scene = this.#scene();
    if (scene === null) return;
    const focused = this.#root.activeElement;
    const part = focused?.closest("#cart-order, #cart, #root")?.id ?? "";
    render(this.#contents(scene), this.#root);
    if (this.#next !== "" || focused?.getClientRects().length === 0) {
      [this.#next, ...(FOCUS[part] ?? [])]
        .map((place) => (place === "" ? null : this.#find(place)))
        .find((one) => one !== null && one.getClientRects().length > 0)
        ?.focus({ preventScroll: true });
      this.#next = "";
    }
    // Again when the seconds left of a wait change, and otherwise every second while there are answers, because they grow old.
    clearTimeout(this.#tick);
    const { found, shop } = scene;
    const { untilMs, heldUntilMs } = shop.cart.state;
    const leftMs = [found.untilMs, untilMs, heldUntilMs].flatMap((endMs) =>
      endMs !== null && endMs > now() ? (endMs - now()) % 1000 || 1000 : [],
    );
    if (leftMs.length > 0 || found.rows.length > 0)
      this.#tick = setTimeout(this.#redraw, Math.min(1000, ...leftMs));
  }

  #contents(scene: Scene) {
    const { texts, shop, found } = scene;
    const { items, removed } = shop.cart;
    const hasRows = found.rows.length > 0;
    const hidesTaken = stored("hideTaken") === true;
    return html`<div
      id="root"
      lang=${tagOf(texts)}
      dir=${texts.direction}
      data-phase=${found.phase}
      @keydown=${(event: KeyboardEvent) => {
        // A key that is held down presses a button once: meanwhile the next step may have taken its place.
        if (event.key === "Enter" && event.repeat) event.preventDefault();
      }}
    >
      ${drawBox(scene)}
      <div class="columns" ?hidden=${!hasRows && items.length === 0 && removed === null}>
        <section
          id="results"
          class="card"
          part="card results"
          aria-labelledby="results-heading"
          ?hidden=${!hasRows}
        >
          <div class="results-head">
            <h2 id="results-heading" part="heading" tabindex="-1">${texts.results}</h2>
            <label class="toggle">
              <input
                id="hide-taken"
                type="checkbox"
                .checked=${hidesTaken}
                @change=${() => {
                  store("hideTaken", !hidesTaken);
                  this.#redraw();
                }}
              />
              <span>${texts.hideTaken}</span>
            </label>
          </div>
          ${drawResults(scene, found, hidesTaken)}
        </section>
        ${drawCart(scene)}
      </div>
      <button
        id="cart-bar"
        type="button"
        class="cart-bar"
        part="bar"
        ?hidden=${items.length === 0}
        @click=${() => {
          this.#find("#cart")?.scrollIntoView();
          this.#find("#cart-heading")?.focus({ preventScroll: true });
        }}
      >
        <span>${texts.cart} <span class="count">${count(texts, items.length)}</span></span>
        <strong id="cart-bar-total">${totalOf(scene)}</strong>
      </button>
      <div id="live" class="visually-hidden" aria-live="polite">${this.#said}</div>
    </div>`;
  }

  #find(selector: string): HTMLElement | null {
    return this.#root.querySelector<HTMLElement>(selector);
  }
}

if (!customElements.get("af-domain-search")) customElements.define("af-domain-search", DomainSearch);
