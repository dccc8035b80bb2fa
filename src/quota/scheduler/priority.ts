/**
 * Decides which kind of request goes next. Carts within their reserve go first, but a waiting reservation gets every third call. Then come
 * reservations, then other visitors: the client with the least recent usage first; newcomers and returners alternate among equals. Price refreshes
 * use the remaining calls, but at least every tenth; suggestions go only if nobody else waits.
 */
import { compareUsage, type UsageLevel } from "./fair-share.js";

/** The kinds of waiting requests. */
export const KINDS = ["cart", "reserved", "newcomer", "returner", "refresh", "suggestion"] as const;
export type Kind = (typeof KINDS)[number];

/** The usage level of the first request in line of each kind that may go now. */
export type Heads = Readonly<Partial<Record<Kind, UsageLevel>>>;

/** How many carts go before a waiting reservation, and how many calls before a waiting refresh. */
const CARTS_BEFORE_RESERVED = 2;
const CALLS_BEFORE_REFRESH = 9;

/** Newcomers make up for at most this many turns that they didn't take. */
const MAX_BEHIND = 10;

/** The part of the calls for which carts have priority. */
export const CHECKOUT_RESERVE = 1 / 2;

/** The part of the calls that may be reserved: a third, minus those for price refreshes. */
export const RESERVABLE = 0.3;

/** Whose turn it is if two kinds alternate. */
export interface Turns {
  readonly cartsBeforeReserved: number;
  readonly callsBeforeRefresh: number;
  /** Newcomers minus returners served recently. If positive, it's a returner's turn, so newcomers get at least half of the calls. */
  readonly newcomersLead: number;
}

export const FIRST_TURNS: Turns = { cartsBeforeReserved: 0, callsBeforeRefresh: 0, newcomersLead: 0 };

/** The kind that gets the next call. `reserveLeft`: carts haven't used up their reserve. */
export function nextKind(heads: Heads, turns: Turns, reserveLeft: boolean): Kind | undefined {
  if (heads.refresh && turns.callsBeforeRefresh >= CALLS_BEFORE_REFRESH) return "refresh";
  if (heads.reserved) {
    const isCartsTurn = turns.cartsBeforeReserved < CARTS_BEFORE_RESERVED;
    return heads.cart && reserveLeft && isCartsTurn ? "cart" : "reserved";
  }
  if (heads.cart && reserveLeft) return "cart";
  return nextVisitor(heads, turns) ?? (heads.refresh ? "refresh" : heads.suggestion && "suggestion");
}

/** Carts beyond their reserve go after newcomers with the same usage. */
function nextVisitor({ cart, newcomer, returner }: Heads, turns: Turns): Kind | undefined {
  const cartIsFirst = cart && (!newcomer || compareUsage(cart, newcomer) < 0);
  const first = cartIsFirst ? cart : newcomer;
  const firstKind = cartIsFirst ? "cart" : "newcomer";
  if (!first) return returner && "returner";
  if (!returner) return firstKind;
  const difference = compareUsage(first, returner);
  if (difference !== 0) return difference < 0 ? firstKind : "returner";
  return turns.newcomersLead > 0 ? "returner" : firstKind;
}

/** The turns after a call for `kind` while `heads` waited. */
export function turnsAfter(turns: Turns, kind: Kind, heads: Heads): Turns {
  const { cartsBeforeReserved, callsBeforeRefresh, newcomersLead } = turns;
  return {
    cartsBeforeReserved:
      kind === "reserved" ? 0 : cartsBeforeReserved + (kind === "cart" && heads.reserved ? 1 : 0),
    callsBeforeRefresh: kind === "refresh" ? 0 : callsBeforeRefresh + (heads.refresh ? 1 : 0),
    newcomersLead: leadAfter(newcomersLead, kind),
  };
}

function leadAfter(lead: number, kind: Kind): number {
  if (kind === "newcomer") return Math.min(lead + 1, 1);
  return kind === "returner" ? Math.max(lead - 1, -MAX_BEHIND) : lead;
}

/** The number of requests ahead of a new one, by kind. */
export interface Ahead {
  readonly carts: number;
  /** Claimed reservations, and those expected to be claimed while the new request waits. */
  readonly reserved: number;
  readonly refresh: number;
  /** Of the new request's kind: those with less usage or the same. */
  readonly own: number;
  /** Of these, those with the same usage. */
  readonly ownEquals: number;
  /** Returners if the new request is a newcomer, and vice versa: those with less usage. */
  readonly othersWithLess: number;
  readonly othersEqual: number;
}

/** How many calls others get before a new request of this kind. */
export function callsBefore(kind: "cart" | "newcomer" | "returner", ahead: Ahead): number {
  const { carts, reserved, refresh, own, ownEquals, othersWithLess, othersEqual } = ahead;
  const before =
    kind === "cart"
      ? own + Math.min(reserved, Math.ceil((own + 1) / CARTS_BEFORE_RESERVED))
      : carts + reserved + own + othersWithLess + Math.min(othersEqual, ownEquals + 1);
  return before + Math.min(refresh, Math.floor(before / CALLS_BEFORE_REFRESH));
}
