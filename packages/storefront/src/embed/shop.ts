/** What all elements of a page share that sell for the same service: its client, its price list and its cart. */
import {
  createClient,
  type Price,
  type QuoteLine,
  type StorefrontClient,
} from "../../../client/src/client.js";
import { Cart, type Change } from "./cart.js";

/** `list`: the price list is another one, or it has turned out whether this page may read it. */
export type News = Change | { readonly kind: "list" };

/** How often the client is asked for the list. It asks the service only when its copy is too old, or was incomplete. */
const AGAIN_MS = 5_000;

const shops = new Map<string, Shop>();

export function shopAt(service: string): Shop {
  const shop = shops.get(service) ?? new Shop(service);
  shops.set(service, shop);
  return shop;
}

export class Shop {
  readonly service: string;
  readonly client: StorefrontClient;
  readonly cart: Cart;
  /** Resolves when the price list has arrived, or couldn't be loaded. */
  readonly loaded: Promise<void>;
  /** Whether the service answers, but doesn't let this page read its answers. */
  isClosed = false;
  #list: readonly Price[] = [];
  #lister: StorefrontClient;
  #isWatched = false;
  #loaded: () => void = () => {};
  readonly #listeners = new Set<(news: News) => void>();

  constructor(service: string) {
    this.service = service;
    this.#lister = this.client = createClient({ baseUrl: service });
    this.loaded = new Promise((loaded) => (this.#loaded = loaded));
    this.cart = new Cart(this, (change) => this.#tell(change));
  }

  /** Calls `listener` with all news until the returned function is called. */
  follow(listener: (news: News) => void): () => void {
    this.#listeners.add(listener);
    void this.#watch();
    return () => this.#listeners.delete(listener);
  }

  /** The prices as they are now: a promotion can end while the list is still fresh. */
  get list(): readonly Price[] {
    return this.#list.map(({ promotion, ...price }) => {
      if (promotion === undefined) return price;
      const isOver = Date.parse(promotion.until) <= Date.now();
      return isOver ? { ...price, price: promotion.regular } : { ...price, promotion };
    });
  }

  /** The TLDs under which names can be registered, the main one first; empty while they are unknown. */
  get tlds(): readonly string[] {
    return [...new Set(this.#of("registration").map(({ tld }) => tld))];
  }

  /** The terms for which names can be registered, under this TLD or under any, shortest first. */
  terms(tld?: string): readonly number[] {
    const prices = this.#of("registration").filter((price) => tld === undefined || price.tld === tld);
    return [...new Set(prices.map((price) => price.years))].sort((a, b) => a - b);
  }

  price(tld: string, action: Price["action"], term: number): Price | undefined {
    return this.#of(action).find((price) => price.tld === tld && price.years === term);
  }

  /** What the shortest renewal costs. */
  renewal(tld: string): Price | undefined {
    return this.#of("renewal")
      .filter((price) => price.tld === tld)
      .sort((a, b) => a.years - b.years)[0];
  }

  /** Call with confirmed prices. If the list has another one, it is older: a new client has no copy of it, and the browser's is revalidated. */
  compare(lines: readonly QuoteLine[]): void {
    const isOld = lines.some(({ tld, years: term, premium, price }) => {
      const listed = this.price(tld, "registration", term)?.price;
      return !premium && price !== null && listed !== undefined && listed.amount !== price.amount;
    });
    if (isOld)
      this.#lister = createClient({
        baseUrl: this.service,
        fetch: (url, init) => fetch(url, { ...init, cache: "no-cache" }),
      });
  }

  #of(action: Price["action"]): Price[] {
    return this.list.filter((price) => price.action === action);
  }

  #tell(news: News): void {
    for (const listener of this.#listeners) listener(news);
  }

  /** Keeps the list current while somebody listens: a service that has just started doesn't know every price yet. */
  async #watch(): Promise<void> {
    if (this.#isWatched) return;
    this.#isWatched = true;
    let before = "";
    while (this.#listeners.size > 0) {
      try {
        const { prices } = await this.#lister.prices({}, { onWait: () => void this.#findOutWhy() });
        this.#list = prices;
        this.isClosed = false;
      } catch {
        // Without the list, searches still work.
      }
      this.#loaded();
      const shown = JSON.stringify(this.list);
      if (shown !== before) this.#tell({ kind: "list" });
      before = shown;
      await new Promise((later) => setTimeout(later, AGAIN_MS));
    }
    this.#isWatched = false;
  }

  /** A browser doesn't tell scripts why a request failed, but it sends one whose answer they can't read. */
  async #findOutWhy(): Promise<void> {
    if (this.isClosed || new URL(this.service, location.href).origin === location.origin) return;
    try {
      await fetch(`${this.service}/livez`, { mode: "no-cors", cache: "no-store" });
    } catch {
      return;
    }
    this.isClosed = true;
    // oxlint-disable-next-line no-console -- for developers who embed the search
    console.error(
      `<af-domain-search>: ${this.service} doesn't let this page read its answers. Add ${location.origin} to its setting CORS_ORIGINS.`,
    );
    this.#tell({ kind: "list" });
  }
}
