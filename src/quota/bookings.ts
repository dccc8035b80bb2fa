/** Places kept for those who were refused, so that a retry at the second they were told succeeds. One for each client and lane, bounded. */
import { type Lane, LANES } from "./quota.js";

/** Told in whole seconds, so a retry comes up to a second late. */
const SECOND_MS = 1000;

export interface Booking {
  readonly client: string;
  readonly lane: Lane;
  /** Monotonic: the told second. */
  readonly dueAt: number;
  /** The place in the queue that it keeps. */
  readonly place: number;
}

export class Bookings {
  readonly #most: number;
  readonly #toleranceMs: number;
  readonly #byKey = new Map<string, Booking>();
  /** By dueAt, ascending. */
  #byDue: Booking[] = [];

  /** `toleranceMs`: how late a booked client may be served, or may come, without harm. */
  constructor(most: number, toleranceMs: number) {
    this.#most = most;
    this.#toleranceMs = toleranceMs;
  }

  /** Keeps a place for a client refused at `now` with `retryAfterMs`; nothing is kept past the bound. */
  keep(client: string, lane: Lane, now: number, retryAfterMs: number, place: number): void {
    if (this.#byDue.length >= this.#most || !Number.isFinite(retryAfterMs)) return;
    const dueAt = now + Math.ceil(retryAfterMs / SECOND_MS) * SECOND_MS;
    const booking = { client, lane, dueAt, place };
    this.drop(this.#byKey.get(keyOf(client, lane)));
    this.#byKey.set(keyOf(client, lane), booking);
    const index = this.#byDue.findLastIndex((other) => other.dueAt <= dueAt) + 1;
    this.#byDue.splice(index, 0, booking);
  }

  of(client: string, lane: Lane, now: number): Booking | undefined {
    this.#expire(now);
    return this.#byKey.get(keyOf(client, lane));
  }

  /** When slots are needed for kept places that go before a newcomer to `lane`, as ms from now, ascending. */
  dues(lane: Lane, now: number): number[] {
    this.#expire(now);
    const mine = LANES.indexOf(lane);
    return this.#byDue
      .filter((booking) => LANES.indexOf(booking.lane) <= mine)
      .map((booking) => booking.dueAt + this.#toleranceMs - now);
  }

  drop(booking: Booking | undefined): void {
    if (booking === undefined) return;
    this.#byKey.delete(keyOf(booking.client, booking.lane));
    this.#byDue = this.#byDue.filter((other) => other !== booking);
  }

  #expire(now: number): void {
    let first = this.#byDue[0];
    while (first !== undefined && first.dueAt + SECOND_MS + this.#toleranceMs < now) {
      this.#byKey.delete(keyOf(first.client, first.lane));
      this.#byDue.shift();
      first = this.#byDue[0];
    }
  }
}

function keyOf(client: string, lane: Lane): string {
  return `${lane} ${client}`;
}
