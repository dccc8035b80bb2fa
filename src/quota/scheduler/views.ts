/**
 * The coming calls, as this replica can make them with its own slots, and as all replicas can together: requests that go before all others
 * may borrow slots, so they are planned, and reservations are made, with the calls of all.
 */
import type { Forecast } from "../ledger/ledger.js";
import { type Returns, returnsOf, withBorrowed } from "./forecast.js";
import { asSlotsReturn, type Pacer, type Plan, type Urgency } from "./pacer.js";
import { CHECKOUT_RESERVE, type Kind } from "./priority.js";

export interface View {
  readonly plan: (urgency: Urgency) => Plan;
  readonly slots: number;
  /** The part of what is expected of all replicas that these calls must serve. */
  readonly part: number;
}

export interface Views {
  readonly pausedUntil: number;
  /** How long until it is known what other replicas have done meanwhile. */
  readonly newsInMs: number;
  readonly own: View;
  /** The same as `own` where nothing can be borrowed. */
  readonly fleet: View;
  /** What goes before all others: carts only while they have not used up their reserve. */
  readonly urgent: readonly Kind[];
  /** The calls that a request of this kind may have. */
  of(kind: Kind): View;
}

export interface ViewsSettings {
  readonly now: number;
  readonly forecast: Forecast;
  readonly pacer: Pacer;
  /** How long calls take, and how many slots are being taken. */
  readonly callMs: number;
  readonly taking: number;
  /** As far as known, this one included. */
  readonly replicas: number;
  /** Cart calls per window, here and elsewhere. */
  readonly carts: number;
  readonly cartsElsewhere: number;
}

export function viewsOf(settings: ViewsSettings): Views {
  const { now, forecast, pacer, callMs, taking, replicas } = settings;
  const borrows = forecast.borrowableInMs.length > 0;
  const ownReturns = returnsOf(forecast, callMs, taking);
  const own = { plan: pacer.plan(ownReturns, now), slots: ownReturns.slots, part: 1 / replicas };
  const fleet = borrows ? fleetView(returnsOf(withBorrowed(forecast), callMs, taking), pacer, now) : own;
  const carts = settings.carts + (borrows ? settings.cartsElsewhere : 0);
  const hasReserve = carts < Math.max(1, CHECKOUT_RESERVE * fleet.slots);
  const urgent: readonly Kind[] = hasReserve ? ["cart", "reserved"] : ["reserved"];
  return {
    pausedUntil: now + forecast.pausedForMs,
    newsInMs: forecast.newsInMs,
    own,
    fleet,
    urgent,
    of: (kind) => (urgent.includes(kind) ? fleet : own),
  };
}

/** Visitors' calls go as slots return: each replica paces only its own. */
function fleetView(returns: Returns, pacer: Pacer, now: number): View {
  const paced = pacer.plan(returns, now);
  const unpaced = asSlotsReturn(returns, now);
  return {
    plan: (urgency) => (urgency === "urgent" ? paced(urgency) : unpaced),
    slots: returns.slots,
    part: 1,
  };
}
