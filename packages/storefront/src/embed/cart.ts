/** The client's cart as visitors see it: each name with the price shown for it, the last removed name, and a copy in the browser for other tabs. */
import { type CartState, createCart, heldUntilMs, MOST_ITEMS } from "../../../client/src/cart.js";
import type { Money, Price, QuoteLine, Quotes, StorefrontClient } from "../../../client/src/client.js";
import { aheadMs, now } from "../../../client/src/clock.js";
import { sumOf } from "../money.js";
import { onStoredElsewhere, SAME_VISIT_MS, store, stored } from "./storage.js";

/** A name that somebody wants to register. */
export interface Wanted {
  readonly domain: string;
  readonly action: "registration";
  readonly years: number;
  readonly unicodeName: string;
  readonly tld: string;
  /** A premium name has its own price, for the requested term. */
  readonly premium: boolean;
  readonly price: Money | null;
  /** The amount in the price list when the price was learned. If the list has another one now, that is newer. */
  readonly listed: string | null;
}

/** Where its names are sold. */
interface Seller {
  readonly service: string;
  readonly client: StorefrontClient;
  price(tld: string, action: "registration", term: number): Price | undefined;
  /** Is called with confirmed prices, which may be newer than the list. */
  compare(lines: readonly QuoteLine[]): void;
}

/** What changed. `names`: other terms, or a change in another tab. `prices`: they are confirmed. `expired`: they are no longer held. */
export type Change =
  | { readonly kind: "added" | "removed"; readonly item: Wanted }
  | { readonly kind: "names" | "confirmation" | "prices" | "expired" };

/** Asked before the names change to these; if it returns false, they stay as they are. */
type Ask = (items: readonly Wanted[]) => boolean;

/** A name, and its place in the cart. */
interface Removed {
  readonly item: Wanted;
  readonly at: number;
}

/** Times are of the device's clock, because each tab has its own `now()`. `untilMs` is null if nothing was signed. */
interface Stored {
  readonly items: readonly Wanted[];
  readonly confirmed?: {
    readonly quotes: Quotes;
    readonly atMs: number;
    readonly untilMs: number | null;
  } | null;
}

const FIELDS = Object.keys({
  domain: true,
  action: true,
  years: true,
  unicodeName: true,
  tld: true,
  premium: true,
  price: true,
  listed: true,
} satisfies Record<keyof Wanted, true>);

export class Cart {
  readonly #shop: Seller;
  readonly #changed: (change: Change) => void;
  readonly #cart;
  readonly #key: string;
  /** The state that was followed last, and the prices that were shown when its confirmation began. */
  #before: CartState<Wanted>;
  #shown: readonly (Money | null)[] = [];
  #removed: Removed | null = null;
  /** Names for which the list has had a newer price. */
  readonly #outdated = new WeakSet<Wanted>();
  #confirmedAt = 0;
  /** Whether a confirmed price isn't the one that was shown before. */
  isChanged = false;
  /** Whether prices that were held for these names have expired. */
  hasExpired = false;

  constructor(shop: Seller, changed: (change: Change) => void) {
    this.#shop = shop;
    this.#changed = changed;
    this.#key = `${shop.service}.cart`;
    this.#cart = createCart<Wanted>(shop.client, (state) => this.#follow(state));
    this.#before = this.#cart.state;
    this.#restore();
    addEventListener("online", () => {
      if (this.state.problem?.code === "unreachable" && this.state.phase === "failed") void this.confirm();
    });
    onStoredElsewhere(this.#key, () => {
      this.#restore();
      changed({ kind: "names" });
    });
  }

  get state(): CartState<Wanted> {
    return this.#cart.state;
  }

  /** The names, each with the list's price if that is newer. */
  get items(): readonly Wanted[] {
    return this.state.items.map((item) => {
      const price = this.#listed(item);
      if (price && item.listed !== null && item.listed !== price.amount) this.#outdated.add(item);
      return price && this.#outdated.has(item) ? { ...item, price } : item;
    });
  }

  /** What was confirmed last, unless it isn't held and the list has newer prices. */
  get quotes(): Quotes | null {
    const { quotes, items, heldUntilMs: untilMs } = this.state;
    const isCurrent = untilMs !== null || this.items.every(({ price }, at) => price === items[at]?.price);
    return isCurrent ? quotes : null;
  }

  /** The last removed name, if it can be put back. */
  get removed(): Wanted | null {
    return this.#removed?.item ?? null;
  }

  get isFull(): boolean {
    return this.state.items.length >= MOST_ITEMS;
  }

  has(domain: string): boolean {
    return this.state.items.some((item) => item.domain === domain);
  }

  /** The confirmed total; before that, the sum of the prices if all are known. */
  get total(): readonly Money[] {
    if (this.quotes !== null) return this.quotes.total;
    const prices = this.items.flatMap(({ price }) => price ?? []);
    return prices.length === this.items.length ? sumOf(prices) : [];
  }

  add(item: Wanted, ask: Ask): void {
    if (this.has(item.domain) || this.isFull) return;
    const learned = { ...item, listed: this.#listed(item)?.amount ?? null };
    this.#set([...this.state.items, learned], { kind: "added", item }, ask);
  }

  remove(item: Wanted, ask: Ask): void {
    const at = this.state.items.findIndex(({ domain }) => domain === item.domain);
    const rest = this.state.items.filter(({ domain }) => domain !== item.domain);
    if (at >= 0) this.#set(rest, { kind: "removed", item }, ask, { item, at });
  }

  /** Puts the last removed name back in its place. */
  undo(ask: Ask): void {
    if (this.#removed === null || this.isFull || this.has(this.#removed.item.domain)) return;
    const { item, at } = this.#removed;
    const { items } = this.state;
    this.#set([...items.slice(0, at), item, ...items.slice(at)], { kind: "added", item }, ask);
  }

  setTerm({ domain }: Wanted, years: number, ask: Ask): void {
    const items = this.state.items.map((item) => {
      if (item.domain !== domain) return item;
      const price = this.#listed({ ...item, years });
      return { ...item, years, price, listed: price?.amount ?? null };
    });
    this.#set(items, { kind: "names" }, ask);
  }

  async confirm(): Promise<void> {
    this.#shown = this.items.map(({ price }) => price);
    this.hasExpired = false;
    await this.#cart.confirm();
  }

  #set(items: readonly Wanted[], change: Change, ask: Ask, removed: Removed | null = null): void {
    if (!ask(items)) return;
    this.#removed = removed;
    this.#replace(items, null, null);
    this.#store();
    this.#changed(change);
  }

  #replace(items: readonly Wanted[], quotes: Quotes | null, untilMs: number | null): void {
    this.hasExpired = false;
    this.isChanged = false;
    this.#before = {
      ...this.state,
      items,
      quotes,
      heldUntilMs: untilMs,
      phase: quotes ? "confirmed" : "open",
    };
    this.#cart.restore({ items, quotes, heldUntilMs: untilMs });
  }

  /** Nothing is stored while prices are being confirmed: that would end a confirmation in another tab. */
  #follow(state: CartState<Wanted>): void {
    const before = this.#before;
    this.#before = state;
    if (state.phase === before.phase && state.quotes === before.quotes && state.untilMs === before.untilMs)
      return;
    if (state.phase === "confirmed" && state.quotes !== null && state.quotes !== before.quotes)
      return this.#take(state.quotes, state.heldUntilMs);
    this.hasExpired ||= before.heldUntilMs !== null && state.heldUntilMs === null;
    this.#changed({ kind: this.hasExpired && before.heldUntilMs !== null ? "expired" : "confirmation" });
  }

  /** Takes confirmed prices into the cart, where they stay when they are no longer held. */
  #take(quotes: Quotes, untilMs: number | null): void {
    this.#shop.compare(quotes.items);
    const items = this.state.items.map((item, at) => {
      const { price = null, premium = false } = quotes.items[at] ?? {};
      const next = { ...item, premium, price };
      return price === null ? item : { ...next, listed: this.#listed(next)?.amount ?? null };
    });
    this.#confirmedAt = Date.now();
    this.#replace(items, quotes, untilMs);
    this.isChanged = quotes.items.some(({ price }, at) => {
      const shown = this.#shown[at];
      return price && shown && price.amount !== shown.amount;
    });
    this.#store();
    this.#changed({ kind: "prices" });
  }

  #store(): void {
    const { items, quotes, heldUntilMs: endMs } = this.state;
    const untilMs = endMs === null ? null : endMs - aheadMs();
    const confirmed = quotes && { quotes, atMs: this.#confirmedAt, untilMs };
    store(this.#key, items.length === 0 ? null : ({ items, confirmed } satisfies Stored));
  }

  /** What was wrong with a name in an earlier visit is forgotten, because it may be over. */
  #restore(): void {
    const before = stored(this.#key);
    const { items, confirmed }: Stored = isStored(before) ? before : { items: [], confirmed: null };
    this.#removed = null;
    this.#replace(items, null, null);
    if (!confirmed) return;
    const { quotes, atMs } = confirmed;
    // Never longer than if the prices had just been signed: the device's clock may have been set back since they were stored.
    const latestMs = heldUntilMs(quotes, now()) ?? 0;
    const untilMs = confirmed.untilMs === null ? null : Math.min(confirmed.untilMs + aheadMs(), latestMs);
    this.#confirmedAt = atMs;
    this.hasExpired = untilMs !== null && untilMs <= now();
    if (untilMs === null ? Date.now() - atMs < SAME_VISIT_MS : !this.hasExpired)
      this.#replace(items, quotes, untilMs);
  }

  /** Null for a premium name: its price isn't listed and becomes known when the cart is confirmed. */
  #listed({ tld, premium, years }: Wanted): Money | null {
    return premium ? null : (this.#shop.price(tld, "registration", years)?.price ?? null);
  }
}

export function lineOf(quotes: Quotes | null, domain: string): QuoteLine | undefined {
  return quotes?.items.find((line) => line.domain === domain);
}

/** Whether it is a cart whose names have every field. Anything else, such as another version's, is ignored. */
function isStored(value: unknown): value is Stored {
  if (typeof value !== "object" || value === null || !("items" in value)) return false;
  return (
    Array.isArray(value.items) &&
    value.items.every((item: unknown) => {
      return typeof item === "object" && item !== null && FIELDS.every((field) => field in item);
    })
  );
}
