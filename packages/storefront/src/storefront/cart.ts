/**
 * The cart: up to twenty names, each with a term, stored in the browser. On request the service confirms the prices and holds them for a while. Any
 * change to the names discards the confirmation.
 */
import { heldUntilMs, MOST_ITEMS } from "../../../client/src/cart.js";
import type { Money, QuoteLine, Quotes, StorefrontClient } from "../../../client/src/client.js";
import { aheadMs, now } from "../../../client/src/clock.js";
import { asProblem, StorefrontProblem } from "../../../client/src/problem.js";
import { sumOf } from "./money.js";
import type { Prices } from "./prices.js";
import type { CartControl, Wanted } from "./results.js";
import { onStoredElsewhere, SAME_VISIT_MS, store, stored } from "./session.js";

/** The signed prices hold until `untilMs`, a time of `now()`; null if nothing was signed. `isChanged`: a price isn't the one shown before. */
interface ConfirmedPrices {
  readonly quotes: Quotes;
  /** By the device's clock. */
  readonly confirmedMs: number;
  readonly untilMs: number | null;
  readonly isChanged: boolean;
}

/** How the last request to confirm the prices is going; `none` if there is none for these names, or it has succeeded. */
type Confirmation =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "waiting"; readonly problem: StorefrontProblem; readonly untilMs: number }
  | { readonly kind: "refused"; readonly problem: StorefrontProblem };

/** What changed in the cart. `names`: other terms, or a change in another tab. `prices`: they are confirmed. */
export type Change =
  | { readonly kind: "added" | "removed"; readonly item: Wanted }
  | { readonly kind: "names" | "confirmation" | "prices" };

/** A name, its place in the cart, and the list prices from when its price was learned. */
interface Removed {
  readonly item: Wanted;
  readonly at: number;
  readonly listedThen: ListPrices;
}

/**
 * What the browser keeps. When the form of the prices changes, so must the name `confirmedPrices`: those that another version of the page stored are
 * then ignored, and the names stay. Stored prices end at a time of the device's clock, because each tab has its own `now()`.
 */
interface Stored {
  readonly items: readonly Wanted[];
  readonly confirmedPrices?: ConfirmedPrices | null;
  readonly listed?: ListPrices;
}

/** The amount in the price list, by domain, when the price in the cart was learned. A different amount now is newer than that price. */
type ListPrices = Readonly<Record<string, string>>;

const FIELDS = Object.keys({
  domain: true,
  unicodeName: true,
  tld: true,
  premium: true,
  years: true,
  price: true,
} satisfies Record<keyof Wanted, true>);

/**
 * The problem of an answer about the same lines that has no price for any in `held`, whose prices then still hold. Null if the answer replaces them:
 * also if one of these names is taken.
 */
function problemDespite(held: Quotes, { items, promise }: Quotes): StorefrontProblem | null {
  const problem = items.find((line) => line.problem)?.problem;
  return problem && !promise && held.items.every(({ price }, at) => !price || items[at]?.problem)
    ? new StorefrontProblem(problem.code, problem.detail, { ...problem, status: 200 })
    : null;
}

export class Cart implements CartControl {
  readonly #client: StorefrontClient;
  readonly #prices: Prices;
  readonly #changed: (change: Change) => void;
  #items: readonly Wanted[] = [];
  #confirmation: Confirmation = { kind: "none" };
  #confirmed: ConfirmedPrices | null = null;
  #listedThen: ListPrices = {};
  #removed: Removed | null = null;
  #asking = new AbortController();

  constructor(client: StorefrontClient, prices: Prices, changed: (change: Change) => void) {
    this.#client = client;
    this.#prices = prices;
    this.#changed = changed;
    this.#restore();
    addEventListener("online", () => {
      if (this.#confirmation.kind === "refused" && this.#confirmation.problem.code === "unreachable")
        void this.confirm();
    });
    onStoredElsewhere("cart", () => {
      this.#asking.abort();
      this.#restore();
      this.#changed({ kind: "names" });
    });
  }

  get items(): readonly Wanted[] {
    return this.#items;
  }

  get confirmation(): Confirmation {
    return this.#confirmation;
  }

  /** Held prices stay while they are confirmed again, and if that is refused or gives no price. */
  get confirmed(): ConfirmedPrices | null {
    return this.#confirmed;
  }

  /** The last removed name, if it can be put back. */
  get removed(): Wanted | null {
    return this.#removed?.item ?? null;
  }

  has(domain: string): boolean {
    return this.#items.some((item) => item.domain === domain);
  }

  isFull(): boolean {
    return this.#items.length >= MOST_ITEMS;
  }

  add(wanted: Wanted): void {
    if (this.has(wanted.domain) || this.isFull()) return;
    this.#setItems([...this.#items, wanted], { kind: "added", item: wanted });
  }

  remove(domain: string): void {
    const at = this.#items.findIndex((item) => item.domain === domain);
    const item = this.#items[at];
    if (item === undefined) return;
    const rest = this.#items.filter((other) => other !== item);
    this.#setItems(rest, { kind: "removed", item }, { item, at, listedThen: this.#listedThen });
  }

  /** Puts the last removed name back in its place. */
  undo(): void {
    if (this.#removed === null || this.isFull() || this.has(this.#removed.item.domain)) return;
    const { item, at, listedThen } = this.#removed;
    this.#listedThen = { ...listedThen, ...this.#listedThen };
    this.#setItems([...this.#items.slice(0, at), item, ...this.#items.slice(at)], { kind: "added", item });
  }

  setTerm(domain: string, years: number): void {
    this.#setItems(
      this.#items.map((item) =>
        item.domain === domain ? { ...item, years, price: this.#listed(item, years) } : item,
      ),
      { kind: "names" },
    );
  }

  /**
   * Call when the price list has changed. Signed prices stay until the names change or are confirmed again. Nothing is stored: that would end a
   * confirmation in another tab.
   */
  listChanged(): void {
    if (this.promise() !== null) return;
    const before = this.#items;
    this.#relist();
    const isNew = this.#items.some(({ price }, at) => price?.amount !== before[at]?.price?.amount);
    if (isNew) this.#confirmed = null;
  }

  line(domain: string): QuoteLine | undefined {
    return this.#confirmed?.quotes.items.find((line) => line.domain === domain);
  }

  /** The confirmed total; before that, the sum of the known list prices. */
  total(): readonly Money[] {
    if (this.#confirmed !== null) return this.#confirmed.quotes.total;
    const prices = this.#items.flatMap(({ price }) => price ?? []);
    return prices.length === this.#items.length ? sumOf(prices) : [];
  }

  /** The signed prices and until when they hold, even if that time has passed; null if no prices are confirmed. */
  promise(): { readonly text: string; readonly untilMs: number } | null {
    if (this.#confirmed === null) return null;
    const { quotes, untilMs } = this.#confirmed;
    return quotes.promise === null || untilMs === null ? null : { text: quotes.promise, untilMs };
  }

  async confirm(): Promise<void> {
    this.#asking.abort();
    const { signal } = (this.#asking = new AbortController());
    const before = this.#items;
    if (this.#confirmed && !isHeld(this.#confirmed)) {
      this.#confirmed = null;
      this.#relist();
    }
    this.#become({ kind: "asking" });
    const items = before.map(({ domain, years }) => ({
      domain,
      action: "registration" as const,
      years,
    }));
    let sentMs = now();
    try {
      const quotes = await this.#client.cart(items, {
        signal,
        onWait: (problem, waitMs) => {
          this.#become({ kind: "waiting", problem, untilMs: now() + waitMs });
        },
        onRetry: () => {
          sentMs = now();
          this.#become({ kind: "asking" });
        },
      });
      if (signal.aborted) return;
      const held = this.#confirmed;
      const problem = held && isHeld(held) ? problemDespite(held.quotes, quotes) : null;
      if (problem) throw problem;
      this.#prices.compare(quotes.items);
      const untilMs = heldUntilMs(quotes, sentMs);
      this.#confirmed = {
        quotes,
        confirmedMs: Date.now(),
        untilMs,
        isChanged: this.#takePrices(quotes, before),
      };
      this.#store();
      this.#become({ kind: "none" }, "prices");
    } catch (error) {
      if (!signal.aborted) this.#become({ kind: "refused", problem: asProblem(error) });
    }
  }

  /** Replaces the prices in the cart by confirmed ones; returns whether one of these differs from the price that was shown before. */
  #takePrices({ items: lines }: Quotes, before: readonly Wanted[]): boolean {
    this.#items = this.#items.map((item) => {
      const line = lines.find(({ domain }) => domain === item.domain);
      return line?.price ? { ...item, premium: line.premium, price: line.price } : item;
    });
    this.#listedThen = {};
    this.#relist();
    return lines.some(({ price }, at) => {
      const shown = before[at]?.price;
      return price && shown && price.amount !== shown.amount;
    });
  }

  /** Stores nothing: that would end a confirmation in another tab. */
  #become(confirmation: Confirmation, kind: "confirmation" | "prices" = "confirmation"): void {
    this.#confirmation = confirmation;
    this.#changed({ kind });
  }

  #setItems(items: readonly Wanted[], change: Change, removed: Removed | null = null): void {
    this.#asking.abort();
    this.#items = items;
    this.#removed = removed;
    this.#confirmation = { kind: "none" };
    this.#confirmed = null;
    this.#relist();
    this.#store();
    this.#changed(change);
  }

  #store(): void {
    const prices = this.#confirmed;
    const untilMs = prices && prices.untilMs !== null ? prices.untilMs - aheadMs() : null;
    const kept: Stored = {
      items: this.#items,
      confirmedPrices: prices && { ...prices, untilMs },
      listed: this.#listedThen,
    };
    store("cart", this.#items.length === 0 ? null : kept);
  }

  #restore(): void {
    const before = stored("cart");
    const { items, confirmedPrices = null, listed = {} }: Stored = isStored(before) ? before : { items: [] };
    this.#items = items;
    this.#listedThen = listed;
    this.#removed = null;
    this.#confirmation = { kind: "none" };
    this.#confirmed = confirmedPrices && restored(confirmedPrices);
    this.listChanged();
  }

  /** Replaces the prices that are older than the list. */
  #relist(): void {
    const then = this.#listedThen;
    const listed = this.#items.map((item) => this.#listed(item, item.years));
    this.#items = this.#items.map((item, at) => {
      const [amountThen, price] = [then[item.domain], listed[at]];
      return price && amountThen !== undefined && amountThen !== price.amount ? { ...item, price } : item;
    });
    this.#listedThen = Object.fromEntries(
      this.#items.flatMap(({ domain }, at) => {
        const amount = listed[at]?.amount ?? then[domain];
        return amount === undefined ? [] : [[domain, amount] as const];
      }),
    );
  }

  /** Null for a premium name: its price isn't listed and becomes known when the cart is confirmed. */
  #listed({ tld, premium }: Wanted, years: number): Money | null {
    return premium ? null : (this.#prices.price(tld, "registration", years)?.price ?? null);
  }
}

/** Null if nothing is held and a name had a problem in an earlier visit, because the problem may be over. */
function restored(before: ConfirmedPrices): ConfirmedPrices | null {
  const prices = { ...before, untilMs: restoredUntilMs(before) };
  const hasProblem = prices.quotes.items.some(({ price }) => price === null);
  const isOld = Date.now() - prices.confirmedMs > SAME_VISIT_MS;
  return isOld && hasProblem && !isHeld(prices) ? null : prices;
}

/** Whether signed prices still hold. */
export function isHeld({ untilMs }: Pick<ConfirmedPrices, "untilMs">): boolean {
  return untilMs !== null && untilMs > now();
}

/** Never later than if the prices had just been signed: the device's clock may have been set back since they were stored. */
function restoredUntilMs({ quotes, untilMs }: ConfirmedPrices): number | null {
  const latestMs = heldUntilMs(quotes, now());
  return untilMs === null || latestMs === null ? null : Math.min(untilMs + aheadMs(), latestMs);
}

/** Whether it is a cart whose names have every field. Anything else is ignored. */
function isStored(value: unknown): value is Stored {
  if (typeof value !== "object" || value === null || !("items" in value)) return false;
  return (
    Array.isArray(value.items) &&
    value.items.every((item: unknown) => {
      return typeof item === "object" && item !== null && FIELDS.every((field) => field in item);
    })
  );
}
