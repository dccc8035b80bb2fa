/**
 * The queue in front of a ledger. A request that can be served in time waits, any other is refused immediately. The queue is bounded, and requests
 * that nobody waits for spend nothing. No call stays unused while a request that may use it waits.
 */
import type { Clock } from "../../clock.js";
import { ServiceError, shuttingDown } from "../../errors.js";
import type { Outcome, Ledger, SlotId, Taken, TakenSlot } from "../ledger/ledger.js";
import { isBackground } from "../lane.js";
import type { Permit, Quota, QuotaRequest, QuotaSnapshot } from "../quota.js";
import { Admission, NOW_MS, urgencyOf } from "./admission.js";
import { CallTimes, returnsOf } from "./forecast.js";
import { IdleCalls, LaneStats } from "./lane-stats.js";
import { Pacer } from "./pacer.js";
import { FIRST_TURNS, type Kind, KINDS, nextKind, turnsAfter } from "./priority.js";
import { type Entry, GONE, Queue, type Waiter } from "./queue.js";
import { type Reservation, Reservations, type SharedReservations } from "./reservations.js";
import { type Views, viewsOf } from "./views.js";

export interface SchedulerSettings {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Called when the ledger fails; nothing is sent then. */
  readonly onFault: (what: string, error: unknown) => void;
  /** The maximum number of waiting requests: in total, and for one client while others want calls too. */
  readonly maxQueued?: number;
  readonly maxQueuedPerClient?: number;
  /** Shares reservations with other replicas, or hands them to the next process. */
  readonly share?: (own: OwnReservations) => SharedReservations;
}

export interface OwnReservations {
  /** The cart calls of this replica. */
  cartsPerWindow(): number;
  /** The reservations made by this replica. */
  all(): readonly Reservation[];
  /** Takes over a reservation of another replica; null: it is over. */
  learn(key: string, reservation: Reservation | null): void;
  /** Takes over a reservation of the process before this one. */
  adopt(reservation: Reservation): void;
}

/** The quota of one credential, whose reservations can move to that of another one. */
export interface CredentialQuota extends Quota {
  /** Takes over the reservations that this process has made in another quota. */
  takeOver(from: CredentialQuota): void;
  /** Returns the reservations that this process has made, and ends them here. */
  handOver(): readonly Reservation[];
}

/** The part of the budget that must be free before background work takes any. */
const LEFT_FREE = 0.4;

/** Refusals share a plan for this part of a window, unless a slot is taken or returned in the meantime. */
const PLAN_LASTS = 1 / 600;

class Scheduler implements CredentialQuota {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #onFault: SchedulerSettings["onFault"];
  readonly #queue: Queue;
  readonly #admission: Admission;
  readonly #reservations: Reservations;
  readonly #shared: SharedReservations | null;
  readonly #stats: LaneStats;
  readonly #idle = new IdleCalls();
  readonly #pacer: Pacer;
  readonly #callTimes = new CallTimes();
  #turns = FIRST_TURNS;
  /** The end of the upstream's last pause. */
  #pausedUntil = -Infinity;
  /** The plan of the next calls. */
  #plan: (Views & { readonly madeAt: number }) | null = null;
  /** What must end before the ledger may be closed. */
  readonly #running = new Set<Promise<unknown>>();
  /** Slots that are being taken for waiting requests. */
  #taking = 0;
  #pumping = false;
  #pumpAgain = false;
  #closed = false;
  #cancelTimer: () => void = () => {};

  constructor(settings: SchedulerSettings) {
    const { ledger, clock } = settings;
    this.#ledger = ledger;
    this.#clock = clock;
    this.#onFault = settings.onFault;
    this.#reservations = new Reservations({
      changed: (key, reservation) => this.#shared?.changed(key, reservation),
      canPublish: () => this.#shared?.canPublish() !== false,
    });
    this.#shared =
      settings.share?.({
        cartsPerWindow: () => this.#stats.cartsPerWindow(clock.monotonic()),
        all: () => this.#reservations.own(),
        learn: (key, reservation) => {
          this.#reservations.learn(key, reservation, clock.monotonic());
        },
        adopt: (reservation) => {
          this.#reservations.adopt(reservation, clock.monotonic());
        },
      }) ?? null;
    this.#stats = new LaneStats(ledger.windowMs);
    this.#pacer = new Pacer(ledger.budget, ledger.windowMs);
    this.#queue = new Queue({
      clock,
      most: settings.maxQueued ?? Math.max(1000, ledger.budget),
      mostPerClient: settings.maxQueuedPerClient ?? 20,
      claim: (waiter) => this.#admission.claim(waiter),
      onLate: (waiter) => {
        this.#refuseLate(waiter);
      },
      onGone: (waiter) => {
        this.#admission.gone(waiter);
        this.#stats.left(waiter.request.lane, waiter.kind === "reserved");
        this.#changed();
      },
    });
    this.#admission = new Admission({
      clock,
      windowMs: ledger.windowMs,
      queue: this.#queue,
      reservations: this.#reservations,
      stats: this.#stats,
      planned: () => this.#planned(PLAN_LASTS * ledger.windowMs),
      onNoCallInTime: () => {
        this.#pacer.wanted(clock.monotonic(), this.#planned(PLAN_LASTS * ledger.windowMs).own.slots);
      },
    });
  }

  run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    return this.#track(this.#run(request, call));
  }

  refusal(request: QuotaRequest): ServiceError | null {
    if (this.#closed) return shuttingDown();
    const decided = this.#admission.decide(request);
    if (!(decided instanceof ServiceError)) return null;
    this.#wanted(request);
    return decided;
  }

  isContested(client: string): boolean {
    if (this.#queue.visitors === 0 || this.#reservations.isDue(client, this.#clock.monotonic())) return false;
    return this.#admission.othersWant(client);
  }

  takeOver(from: CredentialQuota): void {
    const now = this.#clock.monotonic();
    for (const reservation of from.handOver()) this.#reservations.adopt(reservation, now);
    this.#changed();
  }

  handOver(): readonly Reservation[] {
    return this.#reservations.handOver();
  }

  async pause(forMs: number): Promise<void> {
    await this.#ledger.pause(forMs);
    this.#plan = null;
    const pausedUntil = this.#clock.monotonic() + this.#ledger.forecast().pausedForMs;
    for (const waiter of this.#queue.all())
      if (waiter.since + waiter.request.maxWaitMs < pausedUntil) this.#refuseLate(waiter);
    this.#pumpSoon();
  }

  snapshot(): QuotaSnapshot {
    const { limit, budget, windowMs } = this.#ledger;
    const now = this.#clock.monotonic();
    return {
      ...this.#ledger.usage(),
      budget,
      limit,
      windowMs,
      pausedForMs: this.#ledger.forecast().pausedForMs,
      lanes: this.#stats.lanes(this.#queue.counts()),
      waits: this.#stats.waits(now, this.#reservations.lapsed(now), this.#idle.total),
    };
  }

  roomInMs(): number {
    const { slots, inMs } = returnsOf(this.#ledger.forecast(), this.#callTimes.likelyMs);
    return slots === 0 ? this.#ledger.windowMs : inMs(Math.max(0, Math.ceil(slots * LEFT_FREE) - 1));
  }

  hasSpare(): boolean {
    const goesAt = this.#planned(0).own.plan("background").timeAt(0);
    return this.#queue.size === 0 && this.roomInMs() === 0 && goesAt <= this.#clock.monotonic() + NOW_MS;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const waiter of this.#queue.all()) {
      this.#admission.gone(waiter);
      waiter.fail(shuttingDown());
    }
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    this.#cancelTimer();
    // After the last call: the upstream may still have asked for a pause, which puts off a reservation.
    await this.#shared?.close();
    await this.#ledger.close();
  }

  async #run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    const { entry, slot, mayBeSent = () => true } = await this.#slotFor(request);
    const startedAt = this.#clock.monotonic();
    let ended = false;
    const end = (outcome: Outcome): void => {
      if (ended) return;
      ended = true;
      if (outcome !== "unsent") this.#callTimes.add(this.#clock.monotonic() - startedAt);
      void this.#track(this.#settle(slot, outcome));
    };
    if (request.signal.aborted) {
      end("unsent");
      throw GONE;
    }
    try {
      const value = await call({
        isValid: mayBeSent,
        answered: () => {
          end("answered");
        },
        refusal: () => this.#admission.refuseForPause(request, entry),
      });
      end("answered");
      return value;
    } finally {
      // Only has an effect if the call rejected without an answer: the request may still arrive.
      end("abandoned");
    }
  }

  async #slotFor(request: QuotaRequest): Promise<TakenSlot & { readonly entry: Entry }> {
    if (this.#closed) throw shuttingDown();
    if (request.signal.aborted) throw GONE;
    this.#wanted(request);
    const entry = this.#admission.decide(request);
    if (entry instanceof ServiceError) throw entry;
    this.#admission.admitted(request, entry);
    const turn = this.#queue.join(request, entry);
    this.#queue.regroup();
    for (const waiter of this.#admission.overtaken()) this.#refuseLate(waiter);
    this.#changed();
    this.#pumpSoon();
    return { entry, ...(await turn) };
  }

  #wanted({ lane }: QuotaRequest): void {
    if (!isBackground(lane)) this.#ledger.wanted();
  }

  /** Refuses a request that can no longer be served in time. */
  #refuseLate(waiter: Waiter): void {
    this.#leaves(waiter);
    waiter.fail(this.#admission.refuseLate(waiter));
  }

  /** Call before a waiting request is refused, so that it doesn't count among those ahead of its own retry. */
  #leaves(waiter: Waiter): void {
    waiter.leave();
    this.#admission.left(waiter);
    this.#changed();
  }

  /** The plan of the next calls; at most this old if nothing has changed since. */
  #planned(mostAgeMs: number): Views {
    const now = this.#clock.monotonic();
    if (this.#plan !== null && now - this.#plan.madeAt <= mostAgeMs) return this.#plan;
    const forecast = this.#ledger.forecast();
    if (forecast.pausedForMs > 0) this.#pausedUntil = now + forecast.pausedForMs;
    const views = viewsOf({
      now,
      forecast,
      pausedUntil: this.#pausedUntil,
      pacer: this.#pacer,
      callMs: this.#callTimes.likelyMs,
      taking: this.#taking,
      replicas: Math.max(1, this.#shared?.replicas() ?? 1),
      carts: this.#stats.cartsPerWindow(now),
      cartsElsewhere: this.#shared?.cartsElsewhere() ?? 0,
    });
    this.#plan = { ...views, madeAt: now };
    return views;
  }

  /** Call when a request has joined or left. A visitor with a reservation within a window counts as waiting. */
  #changed(): void {
    const now = this.#clock.monotonic();
    const waits = this.#queue.visitors > 0;
    const dueAt = this.#reservations.firstDueAt(now);
    const expected = dueAt <= now + this.#ledger.windowMs ? dueAt : now;
    this.#pacer.awaited(now, waits ? Infinity : expected);
    const { urgent } = this.#planned(PLAN_LASTS * this.#ledger.windowMs);
    this.#ledger.urgent(urgent.flatMap((kind) => this.#queue.waitingSince(kind)));
    const { slots, awayMs, inMs } = returnsOf(this.#ledger.forecast(), this.#callTimes.likelyMs);
    this.#idle.update(now, slots / awayMs, waits, slots > 0 && inMs(0) === 0);
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work);
    const forget = (): void => {
      this.#running.delete(work);
    };
    work.then(forget, forget);
    return work;
  }

  async #settle(slot: SlotId, outcome: Outcome): Promise<void> {
    try {
      await this.#ledger.settle(slot, outcome);
    } catch (error) {
      this.#onFault("a call could not be settled in the quota ledger", error);
    }
    this.#plan = null;
    this.#pumpSoon();
  }

  #pumpSoon(): void {
    this.#pumpAgain = true;
    if (!this.#pumping) void this.#track(this.#pump());
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
      for (const waiter of this.#queue.all()) {
        this.#leaves(waiter);
        waiter.fail(this.#admission.refuseForFault(waiter));
      }
    } finally {
      this.#pumping = false;
    }
  }

  async #take(): Promise<Taken> {
    const inFlight = this.#ledger.forecast().inFlightForMs.length;
    const taking = this.#ledger.take();
    this.#taking = this.#ledger.forecast().inFlightForMs.length - inFlight;
    this.#plan = null;
    try {
      return await taking;
    } finally {
      this.#taking = 0;
      this.#plan = null;
    }
  }

  /** Starts waiting calls until none may go, and schedules itself for when one may. */
  async #serve(): Promise<void> {
    this.#cancelTimer();
    while (this.#queue.size > 0) {
      this.#queue.regroup();
      const planned = this.#planned(0);
      const { fleet, of, updateInMs } = planned;
      const now = this.#clock.monotonic();
      const { callsUntil } = fleet.plan("visitor");
      const heldUntil = this.#reservations.heldUntil(now, { callsUntil, part: fleet.part });
      const goesAt = (kind: Kind): number =>
        Math.max(of(kind).plan(urgencyOf(kind)).timeAt(0), kind === "reserved" ? now : (heldUntil ?? now));
      const waiting = KINDS.filter((kind) => this.#queue.waiting(kind) > 0);
      const may = waiting.filter((kind) => goesAt(kind) <= now + NOW_MS);
      if (may.length === 0) {
        this.#comeBack(Math.min(updateInMs, Math.min(...waiting.map(goesAt)) - now));
        return;
      }
      const taken = await this.#take();
      if ("retryInMs" in taken) {
        this.#comeBack(taken.retryInMs);
        return;
      }
      // Chosen only now: while the slot was being taken, requests may have left or become more urgent.
      const next = this.#next(taken.isBorrowed === true ? planned.urgent : may, planned);
      if (next === undefined) await this.#ledger.settle(taken.slot, "unsent");
      else next.start(taken);
      this.#changed();
    }
  }

  /** Chooses the request that gets the slot. */
  #next(may: readonly Kind[], { urgent, own }: Views): Waiter | undefined {
    this.#queue.regroup();
    const now = this.#clock.monotonic();
    const heads = this.#queue.heads(may);
    const kind = nextKind(heads, this.#turns, urgent.includes("cart"));
    if (kind === undefined) return undefined;
    this.#turns = turnsAfter(this.#turns, kind, heads);
    // Also with a borrowed slot: replicas borrow about as many as they lend.
    this.#pacer.went(now, own.slots, own.plan("visitor").spacingMs);
    this.#idle.went(own.slots);
    const next = this.#queue.first(kind);
    if (next !== undefined) {
      this.#admission.served(next);
      this.#stats.served(next.request.lane, now, now - next.since, next.kind === "reserved");
    }
    return next;
  }

  #comeBack(inMs: number): void {
    this.#cancelTimer = this.#clock.after(Math.min(inMs, this.#ledger.windowMs), () => {
      this.#pumpSoon();
    });
  }
}

/** A quota over any ledger, with a bounded queue that serves urgent lanes first. */
export function createQuota(settings: SchedulerSettings): CredentialQuota {
  return new Scheduler(settings);
}
