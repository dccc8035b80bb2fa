/**
 * The queue in front of a ledger: whoever can be served in time waits, everyone else is refused at once with the true time, the queue is
 * bounded, and nobody who has gone spends anything.
 */
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";
import { type Booking, Bookings } from "./reservations.js";
import {
  CallTimes,
  type Returns,
  returnsOf,
  type SlotTimes,
  waitBehindAll,
  waitBehindDue,
} from "./forecast.js";
import type { Ending, Forecast, Ledger, SlotId, Taken } from "../ledger/ledger.js";
import { aheadOf, nextOf, precedesInLane, type Waiting } from "./priority.js";
import { Pace } from "./pacer.js";
import { type Ask, type Lane, LANES, type Quota, type QuotaSnapshot } from "../quota.js";
import { Tally } from "./lane-stats.js";
import { Usages } from "./fair-share.js";
import { GONE, overtakesAt, type Waiter, WaitingList } from "./queue.js";

export interface LaneSettings {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Told when the ledger fails; nothing is sent then. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Most asks that wait at a time, over all, and for one client, which has at most as many places kept too. */
  readonly maxQueued?: number;
  readonly maxQueuedPerClient?: number;
  /** Most places kept for refused clients. */
  readonly maxBookings?: number;
}

/**
 * Every sixth call is promised to those who were refused: the others are for who comes meanwhile and had less of late. Where few come back
 * to their places, these lie closer together, up to two for a call.
 */
const PROMISED_STRIDE = 6;
const LEAST_STRIDE = 0.5;

/** What a refusal counts in calls: who asks again and again is behind those who ask seldom. */
const REFUSED_COUNTS = 0.25;

/** Clients whose usage is remembered. */
const MOST_CLIENTS = 10_000;

/** Nearer than this is now: times are sums of fractions. */
const NOW_MS = 1e-6;

/** A plan costs time in proportion to its slots, so one of n thousand slots is kept for n ms. */
const SLOTS_PLANNED_PER_MS = 1000;

/** What is known of the next calls at a moment. */
interface Plan {
  readonly madeAt: number;
  /** For how long it may be used; 0 = only until something happens. */
  readonly lifeMs: number;
  readonly returns: Returns;
  readonly timesOf: (lane: Lane) => SlotTimes;
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
  readonly #usages: Usages;
  readonly #pace: Pace;
  readonly #callTimes = new CallTimes();
  #plan: Plan | null = null;
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
    this.#tally = new Tally(ledger.windowMs);
    this.#usages = new Usages(ledger.windowMs, MOST_CLIENTS);
    this.#pace = new Pace(ledger.budget, ledger.windowMs);
    const mostPerClient = settings.maxQueuedPerClient ?? 20;
    this.#bookings = new Bookings({
      most: settings.maxBookings ?? 1000,
      mostPerClient,
      toleranceMs: ledger.windowMs / 60,
    });
    this.#waiting = new WaitingList({
      clock,
      most: settings.maxQueued ?? 1000,
      mostPerClient,
      onLate: (waiter) => {
        this.#giveUp(waiter);
      },
      onGone: (waiter) => {
        waiter.refund();
        this.#tally.left(waiter.lane);
        this.#changed();
      },
    });
  }

  run<T>(ask: Ask, call: (answered: () => void) => Promise<T>): Promise<T> {
    return this.#track(this.#run(ask, call));
  }

  async pause(forMs: number): Promise<void> {
    await this.#ledger.pause(forMs);
    this.#plan = null;
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
    const { inMs } = returnsOf(this.#ledger.forecast(), this.#callTimes.likelyMs);
    return inMs[Math.ceil(inMs.length * LEFT_FREE) - 1] ?? this.#ledger.windowMs;
  }

  hasSpare(): boolean {
    const { timesOf } = this.#planned(this.#clock.monotonic());
    return this.#waiting.size === 0 && this.roomInMs() === 0 && timesOf("suggestion")(0) <= NOW_MS;
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
    const booking = this.#bookings.claim(client, lane, now);
    const place = booking?.place ?? this.#nextPlace();
    if (booking === undefined) {
      const { waitMs, promiseMs } = this.#foresee(ask, place);
      if (waitMs > ask.maxWaitMs || !this.#waiting.hasRoom(client)) throw this.#refuse(ask, place, promiseMs);
    } else {
      this.#tally.retried(lane);
    }
    const usage = this.#usages.of(ask);
    const refund = this.#usages.charge(ask, now, 1);
    const turn = this.#waiting.join(ask, { place, usage, promised: booking !== undefined, refund });
    this.#changed();
    this.#pumpSoon();
    return turn;
  }

  #giveUp(waiter: Waiter): void {
    // Out first, so that it is not counted among those ahead of its own retry.
    waiter.leave();
    waiter.refund();
    this.#changed();
    const { promiseMs } = this.#foresee(waiter.ask, waiter.place);
    waiter.fail(this.#refuse(waiter.ask, waiter.place, promiseMs));
  }

  /** The refusal of an ask whose place is kept until then. */
  #refuse(ask: Ask, place: number, promiseMs: number): ServiceError {
    const now = this.#clock.monotonic();
    this.#bookings.keep(ask, now, promiseMs, place);
    this.#usages.charge(ask, now, REFUSED_COUNTS);
    return this.#refusal(ask.lane, promiseMs);
  }

  #refusal(lane: Lane, waitMs: number): ServiceError {
    this.#tally.refused(lane);
    const retryAfterMs = Math.max(1, Math.ceil(Number.isFinite(waitMs) ? waitMs : this.#ledger.windowMs));
    return new ServiceError("quota_exhausted", "The registry service cannot be asked in time.", {
      retryAfterMs,
    });
  }

  /** How long a newcomer would wait, and the wait after which a place can be promised to it. */
  #foresee(ask: Ask, place: number): { readonly waitMs: number; readonly promiseMs: number } {
    const now = this.#clock.monotonic();
    const { lane } = ask;
    const newcomer: Waiting = { lane, first: false, usage: this.#usages.of(ask), place };
    const { returns, timesOf } = this.#planned(now);
    const times = timesOf(lane);
    const waiting = this.#waiting.all();
    const ahead = aheadOf(newcomer, waiting, this.#tally.owed(now, returns.inMs.length));
    const kept = this.#bookings.keptBefore(lane, now);
    const claimed = this.#bookings.claimedShare(now);
    /** Of the kept places, as many as will probably be claimed. */
    const likely = kept.filter((_, n) => Math.floor((n + 1) * claimed) > Math.floor(n * claimed));
    if (!this.#pace.spreads) {
      const wait = (places: readonly Booking[]): number =>
        waitBehindAll(
          times,
          ahead,
          places.map(({ dueAt }) => dueAt - now),
        );
      return { waitMs: wait(likely), promiseMs: wait(kept) };
    }
    const dues = waiting
      .filter((one) => one.promised && one.lane === lane && !precedesInLane(one, newcomer))
      .map((one) => overtakesAt(one.since, one.ask.maxWaitMs) - now);
    const promises = kept.length + dues.length;
    for (const booking of likely) {
      const { dueAt, maxWaitMs } = booking;
      if (dueAt - now >= ask.maxWaitMs) break;
      const back = { ...booking, first: false, usage: this.#usages.of(booking) };
      const overtaken = booking.lane === lane && precedesInLane(newcomer, back);
      dues.push((overtaken ? overtakesAt(dueAt, maxWaitMs) : dueAt) - now);
    }
    const waitMs = waitBehindDue(
      times,
      ahead,
      dues.sort((a, b) => a - b),
    );
    const stride = Math.max(LEAST_STRIDE, PROMISED_STRIDE * claimed);
    return { waitMs, promiseMs: Math.max(waitMs, times(ahead + Math.floor(stride * promises))) };
  }

  /** What is known of the next calls. */
  #planned(now: number): Plan {
    if (this.#plan !== null && now - this.#plan.madeAt < this.#plan.lifeMs) return this.#plan;
    const returns = returnsOf(this.#forecast(), this.#callTimes.likelyMs);
    const lifeMs = Math.floor(returns.inMs.length / SLOTS_PLANNED_PER_MS);
    return (this.#plan = { madeAt: now, lifeMs, returns, timesOf: this.#pace.plan(returns, now) });
  }

  /** Somebody came or went. Who was told to come back within a window counts as one who waits. */
  #changed(): void {
    const now = this.#clock.monotonic();
    const dueAt = this.#bookings.firstDueAt(now);
    const expected = dueAt <= now + this.#ledger.windowMs ? dueAt : now;
    this.#pace.awaited(now, this.#waiting.visitorWaits ? Infinity : expected);
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

  /** Starts waiting calls until none may go, and comes back when one may. */
  async #serve(): Promise<void> {
    this.#cancelTimer();
    while (this.#waiting.size > 0) {
      const { returns, lifeMs, timesOf } = this.#planned(this.#clock.monotonic());
      const inMs = (lane: Lane): number => timesOf(lane)(0);
      const soonestMs = Math.min(...this.#waiting.lanes().map(inMs));
      if (soonestMs > NOW_MS) {
        this.#comeBack(lifeMs === 0 ? soonestMs : Math.min(soonestMs, lifeMs));
        return;
      }
      const may = new Set(LANES.filter((lane) => inMs(lane) <= NOW_MS));
      const taken = await this.#take();
      if ("retryInMs" in taken) {
        this.#comeBack(taken.retryInMs);
        return;
      }
      // Chosen only now: while the slot was taken, someone may have left, or become more urgent.
      const now = this.#clock.monotonic();
      const slots = returns.inMs.length;
      const next = nextOf(
        this.#waiting.all().filter(({ lane }) => may.has(lane)),
        this.#tally.owed(now, slots),
      );
      if (next === undefined) {
        await this.#ledger.settle(taken.slot, "unsent");
      } else {
        this.#tally.served(next.lane, now, now - next.since, next.promised);
        this.#pace.went(now, slots);
        next.start(taken.slot);
        this.#changed();
      }
    }
  }

  #comeBack(inMs: number): void {
    this.#cancelTimer = this.#clock.after(Math.min(inMs, this.#ledger.windowMs), () => {
      this.#pumpSoon();
    });
  }
}

function closing(): ServiceError {
  return new ServiceError("shutting_down", "The service is shutting down.");
}

/** A quota over any ledger, with a bounded queue that serves urgent lanes first. */
export function createQuota(settings: LaneSettings): Quota {
  return new LaneQuota(settings);
}
