/**
 * The cart: at most twenty names, each for a term, kept from one view to the next; on request their prices, confirmed by the service and
 * held for a while. Any change to the names ends what was confirmed.
 */
import {
  type Money,
  type QuoteLine,
  type Quotes,
  StorefrontProblem,
  type StorefrontClient,
} from "../../../client/src/client.js";
import { sumOf } from "./money.js";
import type { Prices } from "./prices.js";
import type { Basket, Wanted } from "./results.js";
import { keep, kept, onKeptElsewhere } from "./session.js";

export const MOST_NAMES = 20;

export type Confirmed =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "waiting"; readonly problem: StorefrontProblem; readonly untilMs: number }
  | { readonly kind: "refused"; readonly problem: StorefrontProblem }
  | { readonly kind: "confirmed"; readonly quotes: Quotes };

/** What has happened to the cart. `names`: other terms, or another tab. `prices`: news of what was asked. */
export type Change =
  { readonly kind: "added" | "removed"; readonly item: Wanted } | { readonly kind: "names" | "prices" };

interface Removed {
  readonly item: Wanted;
  readonly at: number;
}

export class Cart implements Basket {
  readonly #client: StorefrontClient;
  readonly #prices: Prices;
  readonly #changed: (change: Change) => void;
  #items: readonly Wanted[] = [];
  #confirmed: Confirmed = { kind: "none" };
  #removed: Removed | null = null;
  #asking = new AbortController();

  constructor(parts: {
    readonly client: StorefrontClient;
    readonly prices: Prices;
    readonly changed: (change: Change) => void;
  }) {
    this.#client = parts.client;
    this.#prices = parts.prices;
    this.#changed = parts.changed;
    this.#restore();
    addEventListener("online", () => {
      if (this.#confirmed.kind === "refused" && this.#confirmed.problem.code === "unreachable")
        void this.confirm();
    });
    onKeptElsewhere("cart", () => {
      this.#asking.abort();
      this.#restore();
      this.#changed({ kind: "names" });
    });
  }

  get items(): readonly Wanted[] {
    return this.#items;
  }

  get confirmed(): Confirmed {
    return this.#confirmed;
  }

  /** The name that was removed last and can be put back. */
  get removed(): Wanted | null {
    return this.#removed?.item ?? null;
  }

  has(domain: string): boolean {
    return this.#items.some((item) => item.domain === domain);
  }

  isFull(): boolean {
    return this.#items.length >= MOST_NAMES;
  }

  add(wanted: Wanted): void {
    if (this.has(wanted.domain) || this.isFull()) return;
    this.#become([...this.#items, wanted], { kind: "added", item: wanted });
  }

  remove(domain: string): void {
    const at = this.#items.findIndex((item) => item.domain === domain);
    const item = this.#items[at];
    if (item === undefined) return;
    const rest = this.#items.filter((other) => other !== item);
    this.#become(rest, { kind: "removed", item }, { item, at });
  }

  /** Puts the name that was removed last back into its place. */
  undo(): void {
    if (this.#removed === null || this.isFull() || this.has(this.#removed.item.domain)) return;
    const { item, at } = this.#removed;
    this.#become([...this.#items.slice(0, at), item, ...this.#items.slice(at)], { kind: "added", item });
  }

  setTerm(domain: string, years: number): void {
    this.#become(
      this.#items.map((item) =>
        item.domain === domain ? { ...item, years, price: this.#listed(item, years) } : item,
      ),
      { kind: "names" },
    );
  }

  line(domain: string): QuoteLine | undefined {
    if (this.#confirmed.kind !== "confirmed") return undefined;
    return this.#confirmed.quotes.items.find((line) => line.domain === domain);
  }

  /** The names that somebody else had registered when the cart was confirmed. */
  get taken(): readonly string[] {
    if (this.#confirmed.kind !== "confirmed") return [];
    return this.#confirmed.quotes.items.flatMap(({ status, domain }) => (status === "taken" ? domain : []));
  }

  /** Confirmed amounts; else the sum of what the list says, or nothing where a price is not known. */
  total(): readonly Money[] {
    if (this.#confirmed.kind === "confirmed") return this.#confirmed.quotes.total;
    const prices = this.#items.flatMap(({ price }) => price ?? []);
    return prices.length === this.#items.length ? sumOf(prices) : [];
  }

  /** The signed prices and until when they hold; null before they are confirmed and afterwards. */
  promise(): { readonly text: string; readonly untilMs: number } | null {
    if (this.#confirmed.kind !== "confirmed") return null;
    const { promise, validUntil } = this.#confirmed.quotes;
    return promise === null || validUntil === null
      ? null
      : { text: promise, untilMs: Date.parse(validUntil) };
  }

  async confirm(): Promise<void> {
    this.#asking.abort();
    const { signal } = (this.#asking = new AbortController());
    this.#learn({ kind: "asking" });
    const items = this.#items.map(({ domain, years }) => ({
      domain,
      action: "registration" as const,
      years,
    }));
    try {
      const quotes = await this.#client.cart(items, {
        signal,
        onWait: (problem, waitMs) => {
          this.#learn({ kind: "waiting", problem, untilMs: Date.now() + waitMs });
        },
      });
      if (!signal.aborted) this.#learn({ kind: "confirmed", quotes });
    } catch (error) {
      if (signal.aborted) return;
      const problem = error instanceof StorefrontProblem ? error : new StorefrontProblem("unreadable", "");
      this.#learn({ kind: "refused", problem });
    }
  }

  #learn(confirmed: Confirmed): void {
    this.#confirmed = confirmed;
    this.#keep();
    this.#changed({ kind: "prices" });
  }

  #become(items: readonly Wanted[], change: Change, removed: Removed | null = null): void {
    this.#asking.abort();
    this.#items = items;
    this.#removed = removed;
    this.#confirmed = { kind: "none" };
    this.#keep();
    this.#changed(change);
  }

  #keep(): void {
    const quotes = this.#confirmed.kind === "confirmed" ? this.#confirmed.quotes : null;
    keep("cart", this.#items.length === 0 ? null : { items: this.#items, quotes });
  }

  #restore(): void {
    const before = kept("cart");
    const { items, quotes } = isKept(before) ? before : { items: [], quotes: null };
    this.#items = items;
    this.#removed = null;
    this.#confirmed = quotes === null ? { kind: "none" } : { kind: "confirmed", quotes };
  }

  /** The list has no price of a premium name, which is learned for the term when the cart is confirmed. */
  #listed({ tld, premium }: Wanted, years: number): Money | null {
    return premium ? null : (this.#prices.price(tld, "registration", years)?.price ?? null);
  }
}

/** What this page wrote; a release with another form forgets it. */
function isKept(value: unknown): value is { items: readonly Wanted[]; quotes: Quotes | null } {
  if (typeof value !== "object" || value === null || !("items" in value && "quotes" in value)) return false;
  return (
    Array.isArray(value.items) &&
    value.items.every((item: unknown) => typeof item === "object" && item !== null && "premium" in item)
  );
}
