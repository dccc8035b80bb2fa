/**
 * Who goes next. Carts within their reserve go first, and every third time a reservation does; then visitors, of whom the client that had
 * least of late goes first and otherwise newcomers and returners take turns. Price renewal uses what is left, but at least every tenth
 * call; suggestions go when nobody else waits.
 */
import { compareShares, type Share } from "./fair-share.js";

/** What somebody waits as. */
export const KINDS = ["cart", "reserved", "newcomer", "returner", "refresh", "suggestion"] as const;
export type Kind = (typeof KINDS)[number];

/** The first in line of each kind that waits and may go now. */
export type Heads = Readonly<Partial<Record<Kind, Share>>>;

/** Carts that go before a reservation that waits, and calls that go before a renewal that waits. */
const CARTS_BEFORE_RESERVED = 2;
const CALLS_BEFORE_REFRESH = 9;

/** So many turns are made up for when newcomers were not there to take theirs. */
const MOST_BEHIND = 10;

/** The part of the calls for which carts go before all others. */
export const CHECKOUT_RESERVE = 1 / 2;

/** The part of the calls that may be reserved: every third, less those that renew prices. */
export const RESERVABLE = 0.3;

/** Whose turn it is where two kinds take turns. */
export interface Turns {
  readonly cartsBeforeReserved: number;
  readonly callsBeforeRefresh: number;
  /** Newcomers less returners served of late: it is a returner's turn when newcomers are ahead, so newcomers have at least half. */
  readonly newcomersLead: number;
}

export const FIRST_TURNS: Turns = { cartsBeforeReserved: 0, callsBeforeRefresh: 0, newcomersLead: 0 };

/** Who gets the next call; `reserveLeft`: carts have not used up their reserve. */
export function nextKind(heads: Heads, turns: Turns, reserveLeft: boolean): Kind | undefined {
  if (heads.refresh && turns.callsBeforeRefresh >= CALLS_BEFORE_REFRESH) return "refresh";
  if (heads.reserved) {
    const isCartsTurn = turns.cartsBeforeReserved < CARTS_BEFORE_RESERVED;
    return heads.cart && reserveLeft && isCartsTurn ? "cart" : "reserved";
  }
  if (heads.cart && reserveLeft) return "cart";
  return nextVisitor(heads, turns) ?? (heads.refresh ? "refresh" : heads.suggestion && "suggestion");
}

/** Carts beyond their reserve stand behind the newcomers who had as little. */
function nextVisitor({ cart, newcomer, returner }: Heads, turns: Turns): Kind | undefined {
  const cartIsFirst = cart && (!newcomer || compareShares(cart, newcomer) < 0);
  const first = cartIsFirst ? cart : newcomer;
  const firstKind = cartIsFirst ? "cart" : "newcomer";
  if (!first) return returner && "returner";
  if (!returner) return firstKind;
  const difference = compareShares(first, returner);
  if (difference !== 0) return difference < 0 ? firstKind : "returner";
  return turns.newcomersLead > 0 ? "returner" : firstKind;
}

/** The turns once `kind` has had a call while `heads` waited. */
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
  return kind === "returner" ? Math.max(lead - 1, -MOST_BEHIND) : lead;
}

/** How many wait as each kind, as somebody new sees them. */
export interface Ahead {
  readonly carts: number;
  /** Those back at their reservation, and those expected while the new one waits. */
  readonly reserved: number;
  readonly refresh: number;
  /** Of the new one's own kind: those who had less or as much. */
  readonly own: number;
  /** Of these, those who had as much. */
  readonly ownEquals: number;
  /** Newcomers to a returner, returners to a newcomer. */
  readonly othersWithLess: number;
  readonly othersEqual: number;
}

/** How many calls go to others before somebody new of this kind has one. */
export function callsBefore(kind: "cart" | "newcomer" | "returner", ahead: Ahead): number {
  const { carts, reserved, refresh, own, ownEquals, othersWithLess, othersEqual } = ahead;
  const before =
    kind === "cart"
      ? own + Math.min(reserved, Math.ceil((own + 1) / CARTS_BEFORE_RESERVED))
      : carts + reserved + own + othersWithLess + Math.min(othersEqual, ownEquals + 1);
  return before + Math.min(refresh, Math.floor(before / CALLS_BEFORE_REFRESH));
}
