/**
 * The queue in front of a ledger: whoever can be served in time waits, everyone else is refused at once with the true time, the queue is
 * bounded, and nobody who has gone spends anything.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import { Bookings } from "./bookings.js";
import { CallTimes, slotTimes, waitOf } from "./forecast.js";
import type { Ending, Forecast, Ledger, SlotId, Taken } from "./ledger.js";
import { aheadOf } from "./order.js";
import type { Ask, Lane, Quota, QuotaSnapshot } from "./quota.js";
import { Tally } from "./tally.js";
import { GONE, type Waiter, WaitingList } from "./waiting.js";

export interface LaneSettings {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Told when the ledger fails; nothing is sent then. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Most asks that wait at a time, over all, and for one client. */
  readonly maxQueued?: number;
  readonly maxQueuedPerClient?: number;
  /** Most places kept for refused clients. */
  readonly maxBookings?: number;
}

/** The part of the budget that must be free before background work takes any. */
const LEFT_FREE = 0.4;

class LaneQuota implements Quota {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #onFault: LaneSettings["onFault"];
  readonly #waiting: WaitingList;
  readonly #bookings: Bookings;
  readonly #tally: Tally;
  readonly #callTimes = new CallTimes();
  /** What must end before the ledger may be let go. */
  readonly #running = new Set<Promise<unknown>>();
  #places = 0;
  /** Slots that the ledger is recording for somebody who waits. */
  #inHand = 0;
  #pumping = false;
  #pumpAgain = false;
  #closed = false;
  #cancelTimer: () => void = () => {};

  constructor(settings: LaneSettings) {
    const { ledger, clock } = settings;
    this.#ledger = ledger;
    this.#clock = clock;
    this.#onFault = settings.onFault;
    this.#tally = new Tally(ledger.budget, ledger.windowMs);
    this.#bookings = new Bookings(settings.maxBookings ?? 1000, ledger.windowMs / 60);
    this.#waiting = new WaitingList({
      clock,
      most: settings.maxQueued ?? 1000,
      mostPerClient: settings.maxQueuedPerClient ?? 20,
      onLate: (waiter) => {
        this.#giveUp(waiter);
      },
      onGone: (waiter) => {
        this.#tally.left(waiter.lane);
      },
    });
  }

  run<T>(ask: Ask, call: (answered: () => void) => Promise<T>): Promise<T> {
    return this.#track(this.#run(ask, call));
  }

  async pause(forMs: number): Promise<void> {
    await this.#ledger.pause(forMs);
    const pausedUntil = this.#clock.monotonic() + this.#ledger.forecast().pausedForMs;
    for (const waiter of this.#waiting.all())
      if (waiter.since + waiter.ask.maxWaitMs < pausedUntil) this.#giveUp(waiter);
    this.#pumpSoon();
  }

  snapshot(): QuotaSnapshot {
    const { limit, budget, windowMs } = this.#ledger;
    return {
      ...this.#ledger.usage(),
      budget,
      limit,
      windowMs,
      pausedForMs: this.#ledger.forecast().pausedForMs,
      lanes: this.#tally.figures(this.#waiting.counts()),
    };
  }

  roomInMs(): number {
    const times = slotTimes(this.#ledger.forecast(), this.#callTimes.likelyMs);
    return times(Math.ceil(this.#ledger.budget * LEFT_FREE) - 1);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer();
    for (const waiter of this.#waiting.all()) waiter.fail(closing());
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    await this.#ledger.close();
  }

  async #run<T>(ask: Ask, call: (answered: () => void) => Promise<T>): Promise<T> {
    const slot = await this.#slotFor(ask);
    const startedAt = this.#clock.monotonic();
    let ended = false;
    const end = (ending: Ending): void => {
      if (ended) return;
      ended = true;
      if (ending !== "unsent") this.#callTimes.add(this.#clock.monotonic() - startedAt);
      void this.#track(this.#settle(slot, ending));
    };
    if (ask.signal.aborted) {
      end("unsent");
      throw GONE;
    }
    try {
      const value = await call(() => {
        end("answered");
      });
      end("answered");
      return value;
    } finally {
      // Reached first only by a call that rejected without an answer: the request may still be on its way.
      end("abandoned");
    }
  }

  async #slotFor(ask: Ask): Promise<SlotId> {
    if (this.#closed) throw closing();
    if (ask.signal.aborted) throw GONE;
    const now = this.#clock.monotonic();
    const { lane, client } = ask;
    const booking = this.#bookings.of(client, lane, now);
    const untilDueMs = booking === undefined ? Infinity : Math.max(0, booking.dueAt - now);
    const waitMs = Math.min(this.#predict(ask), untilDueMs);
    if (waitMs > ask.maxWaitMs || !this.#waiting.hasRoom(client)) {
      if (booking === undefined) this.#bookings.keep(client, lane, now, waitMs, this.#nextPlace());
      throw this.#refusal(lane, waitMs);
    }
    this.#bookings.drop(booking);
    const turn = this.#waiting.join(ask, booking?.place ?? this.#nextPlace());
    this.#pumpSoon();
    return turn;
  }

  #giveUp(waiter: Waiter): void {
    const { lane, client } = waiter.ask;
    // Out first, so that it is not counted among those ahead of its own retry.
    waiter.leave();
    const waitMs = this.#predict(waiter.ask);
    this.#bookings.keep(client, lane, this.#clock.monotonic(), waitMs, waiter.place);
    waiter.fail(this.#refusal(lane, waitMs));
  }

  #refusal(lane: Lane, waitMs: number): ServiceError {
    this.#tally.refused(lane);
    const retryAfterMs = Math.max(1, Math.ceil(Number.isFinite(waitMs) ? waitMs : this.#ledger.windowMs));
    return new ServiceError("quota_exhausted", "The registry service cannot be asked in time.", {
      retryAfterMs,
    });
  }

  #predict(ask: Ask): number {
    const now = this.#clock.monotonic();
    const times = slotTimes(this.#forecast(), this.#callTimes.likelyMs);
    const ahead = aheadOf(ask.lane, this.#waiting.counts(), this.#tally.owed(now));
    return waitOf(times, ahead, this.#bookings.dues(ask.lane, now));
  }

  /** A slot in hand is in flight for the ledger, but still to be had for those who wait. */
  #forecast(): Forecast {
    const forecast = this.#ledger.forecast();
    if (this.#inHand === 0) return forecast;
    const usableInMs = [...forecast.usableInMs, ...Array.from({ length: this.#inHand }, () => 0)];
    const inFlightForMs = [...forecast.inFlightForMs].sort((a, b) => a - b).slice(this.#inHand);
    return { ...forecast, usableInMs, inFlightForMs };
  }

  #nextPlace(): number {
    this.#places += 1;
    return this.#places;
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    const forget = (): void => {
      this.#running.delete(work);
    };
    work.then(forget, forget);
    return work;
  }

  async #settle(slot: SlotId, ending: Ending): Promise<void> {
    try {
      await this.#ledger.settle(slot, ending);
    } catch (error) {
      this.#onFault("a call could not be settled in the quota ledger", error);
    }
    this.#pumpSoon();
  }

  #pumpSoon(): void {
    this.#pumpAgain = true;
    if (!this.#pumping) void this.#pump();
  }

  async #pump(): Promise<void> {
    this.#pumping = true;
    try {
      while (this.#pumpAgain) {
        this.#pumpAgain = false;
        await this.#serve();
      }
    } catch (error) {
      this.#onFault("a call could not be recorded in the quota ledger, so none is sent", error);
      for (const waiter of this.#waiting.all())
        waiter.fail(this.#refusal(waiter.lane, this.#ledger.windowMs / 60));
    } finally {
      this.#pumping = false;
    }
  }

  async #take(): Promise<Taken> {
    const inFlight = this.#ledger.forecast().inFlightForMs.length;
    const taking = this.#ledger.take();
    this.#inHand = this.#ledger.forecast().inFlightForMs.length - inFlight;
    try {
      return await taking;
    } finally {
      this.#inHand = 0;
    }
  }

  /** Starts waiting calls until there is no slot, and comes back when there is one. */
  async #serve(): Promise<void> {
    this.#cancelTimer();
    while (this.#waiting.size > 0) {
      const taken = await this.#take();
      if ("retryInMs" in taken) {
        this.#cancelTimer = this.#clock.after(taken.retryInMs, () => {
          this.#pumpSoon();
        });
        return;
      }
      // Chosen only now: while the slot was taken, someone may have left, or become more urgent.
      const now = this.#clock.monotonic();
      const next = this.#waiting.next(this.#tally.owed(now));
      if (next === undefined) {
        await this.#ledger.settle(taken.slot, "unsent");
      } else {
        this.#tally.served(next.lane, now, now - next.since);
        next.start(taken.slot);
      }
    }
  }
}

function closing(): ServiceError {
  return new ServiceError("shutting_down", "The service is shutting down.");
}

/** A quota over any ledger, with a bounded queue that serves urgent lanes first. */
export function createQuota(settings: LaneSettings): Quota {
  return new LaneQuota(settings);
}
