/**
 * The coming calls: those that this replica can make with its own slots, and those of all replicas together. Urgent requests may borrow slots, so
 * they are planned, and reservations made, with the calls of all.
 */
import type { Forecast } from "../ledger/ledger.js";
import { type Returns, returnsOf, withBorrowed } from "./forecast.js";
import { asSlotsReturn, type Pacer, type Plan, type Urgency } from "./pacer.js";
import { CHECKOUT_RESERVE, type Kind } from "./priority.js";

export interface View {
  readonly plan: (urgency: Urgency) => Plan;
  readonly slots: number;
  /** The part of all replicas' expected requests that these calls must serve. */
  readonly part: number;
}

export interface Views {
  /** The end of the pause that the upstream has asked for; past if it is over. */
  readonly pausedUntil: number;
  /** The ms until the next update from other replicas. */
  readonly updateInMs: number;
  readonly own: View;
  /** The calls of all replicas; the same as `own` if nothing can be borrowed. */
  readonly fleet: View;
  /** The urgent kinds. Carts are urgent only until they have used up their reserve. */
  readonly urgent: readonly Kind[];
  /** The calls that a request of this kind may have. */
  of(kind: Kind): View;
}

interface ViewsSettings {
  readonly now: number;
  readonly forecast: Forecast;
  readonly pausedUntil: number;
  readonly pacer: Pacer;
  /** The likely duration of a call, and how many slots are being taken. */
  readonly callMs: number;
  readonly taking: number;
  /** The known number of replicas, this one included. */
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
    pausedUntil: settings.pausedUntil,
    updateInMs: forecast.updateInMs,
    own,
    fleet,
    urgent,
    of: (kind) => (urgent.includes(kind) ? fleet : own),
  };
}

/** Visitors' calls aren't paced here, because each replica paces only its own. */
function fleetView(returns: Returns, pacer: Pacer, now: number): View {
  const paced = pacer.plan(returns, now);
  const unpaced = asSlotsReturn(returns, now);
  return {
    plan: (urgency) => (urgency === "urgent" ? paced(urgency) : unpaced),
    slots: returns.slots,
    part: 1,
  };
}
