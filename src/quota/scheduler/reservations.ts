/**
 * Places kept for those who were refused, so that a retry at the second they were told succeeds. Several people may share one client
 * key, so a client may have several, each its own; bounded over all and for each client, and none ever makes way for another.
 */
import { type Ask, type Lane, LANES } from "../quota.js";

/** Told in whole seconds, so a retry comes up to a second late. */
const SECOND_MS = 1000;

/** About so many of the last places tell whether those who are refused come back. */
const CLAIMS_COUNTED = 32;

export interface Booking {
  readonly client: string;
  readonly network: string | undefined;
  readonly lane: Lane;
  /** For how long the client waits once it is back. */
  readonly maxWaitMs: number;
  /** Monotonic: the told second. */
  readonly dueAt: number;
  /** The place in the queue that it keeps. */
  readonly place: number;
}

export interface BookingBounds {
  readonly most: number;
  readonly mostPerClient: number;
  /** How far from its second a booked client may come. */
  readonly toleranceMs: number;
}

export class Bookings {
  readonly #bounds: BookingBounds;
  /** By dueAt, ascending. */
  #byDue: Booking[] = [];
  #claimedShare = 1;

  constructor(bounds: BookingBounds) {
    this.#bounds = bounds;
  }

  /**
   * Keeps a place for an ask refused at `now` with `retryAfterMs`. Nothing is kept past the bounds, nor for a suggestion, for which nobody
   * comes back.
   */
  keep({ client, network, lane, maxWaitMs }: Ask, now: number, retryAfterMs: number, place: number): void {
    if (lane === "suggestion") return;
    const { most, mostPerClient } = this.#bounds;
    if (this.#byDue.length >= most || !Number.isFinite(retryAfterMs)) return;
    if (this.#byDue.filter((booking) => booking.client === client).length >= mostPerClient) return;
    const dueAt = now + Math.ceil(retryAfterMs / SECOND_MS) * SECOND_MS;
    const index = this.#byDue.findLastIndex((other) => other.dueAt <= dueAt) + 1;
    this.#byDue.splice(index, 0, { client, network, lane, maxWaitMs, dueAt, place });
  }

  /**
   * Takes out the client's place that is due, the earliest first. One whose second has not come stays: behind a shared address it is
   * probably somebody else's.
   */
  claim(client: string, lane: Lane, now: number): Booking | undefined {
    this.#expire(now);
    for (const [index, booking] of this.#byDue.entries()) {
      if (booking.dueAt - this.#bounds.toleranceMs > now) return undefined;
      if (booking.client !== client || booking.lane !== lane) continue;
      this.#byDue.splice(index, 1);
      this.#claimedShare += (1 - this.#claimedShare) / CLAIMS_COUNTED;
      return booking;
    }
    return undefined;
  }

  /** The share of kept places that were claimed, of late; 1 at the start. */
  claimedShare(now: number): number {
    this.#expire(now);
    return this.#claimedShare;
  }

  /** When the next kept place is due: monotonic, Infinity = none is kept. */
  firstDueAt(now: number): number {
    this.#expire(now);
    return this.#byDue[0]?.dueAt ?? Infinity;
  }

  /** The places kept in lanes at least as urgent, by when they are due. */
  keptBefore(lane: Lane, now: number): Booking[] {
    this.#expire(now);
    const mine = LANES.indexOf(lane);
    return this.#byDue.filter((booking) => LANES.indexOf(booking.lane) <= mine);
  }

  #expire(now: number): void {
    const lapsed = now - SECOND_MS - this.#bounds.toleranceMs;
    const kept = this.#byDue.findIndex((booking) => booking.dueAt >= lapsed);
    if (kept === 0) return;
    const gone = this.#byDue.splice(0, kept < 0 ? this.#byDue.length : kept);
    this.#claimedShare *= (1 - 1 / CLAIMS_COUNTED) ** gone.length;
  }
}
