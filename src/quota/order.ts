/**
 * Who is served next: carts, until they have had half of the calls of the window; places; then the client that has used least lately, and among these
 * the earliest request; refreshes; suggestions.
 */
import { isBackground } from "./lane.js";
import type { Ask } from "./quota.js";
import type { SlotTable } from "./slot-table.js";
import type { Ticket, Tickets } from "./tickets.js";

/** The part of the calls for which carts have priority, and how many carts go before a place that waits. */
const CHECKOUT_PART = 1 / 2;
const CARTS_BEFORE_PLACE = 2;
/** A waiting refresh gets every tenth call at least. */
const CALLS_BEFORE_REFRESH = 9;

export type Kind = "cart" | "place" | "visitor" | "refresh" | "suggestion";

export interface Waiting {
  readonly request: { readonly ask: Pick<Ask, "lane" | "completes"> };
  readonly ticket: Ticket;
  /** How much its client had used when it joined. */
  readonly used: number;
}

export class Order {
  readonly #table: Pick<SlotTable, "budget" | "windowMs">;
  readonly #tickets: Pick<Tickets, "canClaim">;
  /** The times of the cart calls of the last window, oldest first. */
  #cartsAt: readonly number[] = [];
  #cartsSincePlace = 0;
  #callsSinceRefresh = 0;

  constructor(table: Pick<SlotTable, "budget" | "windowMs">, tickets: Pick<Tickets, "canClaim">) {
    this.#table = table;
    this.#tickets = tickets;
  }

  /** Carts beyond their part are visitors like others. */
  kindOf({ request, ticket }: Waiting, now: number): Kind {
    const { lane, completes } = request.ask;
    if (this.#tickets.canClaim(ticket, now)) return "place";
    if (lane === "checkout" ? this.#cartsGoFirst(now) : completes === true) return "cart";
    return isBackground(lane) ? lane : "visitor";
  }

  /** Those who wait, given in the order in which they came, in the order in which they are served. */
  sorted<W extends Waiting>(waiting: Iterable<W>, now: number): W[] {
    const kinds: readonly Kind[] = [
      ...(this.#callsSinceRefresh >= CALLS_BEFORE_REFRESH ? (["refresh"] as const) : []),
      ...(this.#cartsSincePlace >= CARTS_BEFORE_PLACE ? (["place"] as const) : []),
      ...(["cart", "place", "visitor", "refresh", "suggestion"] as const),
    ];
    return Array.from(waiting, (waiter) => ({ waiter, rank: kinds.indexOf(this.kindOf(waiter, now)) }))
      .sort((a, b) => {
        const [first, second] = [a.waiter, b.waiter];
        if (a.rank !== b.rank) return a.rank - b.rank;
        if (kinds[a.rank] === "place") return (first.ticket.dueAt ?? 0) - (second.ticket.dueAt ?? 0);
        return first.used - second.used || first.ticket.askedAt - second.ticket.askedAt;
      })
      .map(({ waiter }) => waiter);
  }

  /** One has got its call, and these still wait. */
  served(waiter: Waiting, others: readonly Waiting[], now: number): void {
    const { lane } = waiter.request.ask;
    const kind = this.kindOf(waiter, now);
    const waits = (of: Kind): number => Number(others.some((other) => this.kindOf(other, now) === of));
    if (kind === "place") this.#cartsSincePlace = 0;
    else if (kind === "cart") this.#cartsSincePlace += waits("place");
    this.#callsSinceRefresh = kind === "refresh" ? 0 : this.#callsSinceRefresh + waits("refresh");
    if (lane === "checkout") this.#cartsAt = [...this.#cartsAt, now];
  }

  #cartsGoFirst(now: number): boolean {
    this.#cartsAt = this.#cartsAt.filter((at) => at > now - this.#table.windowMs);
    return this.#cartsAt.length < Math.max(1, CHECKOUT_PART * this.#table.budget);
  }
}
