/**
 * The line in front of the ledger. A request that can be served in time waits, any other is refused with the second at which to come back. Served
 * in this order: carts, until they have had half of the calls of the window; places; then the client that has used least lately, and among these
 * whoever asked first; refreshes; suggestions. A free call is used at once if a request may use it.
 */
import type { Clock } from "../clock.js";
import { ServiceError, shuttingDown, unavailable } from "../errors.js";
import { QuotaFigures, type Told } from "./figures.js";
import { isBackground, perLane } from "./lane.js";
import type { Ledger, Outcome } from "./ledger.js";
import { isPaced, Pace, type Plan, type Urgency } from "./pace.js";
import type { Note, Permit, Quota, QuotaRequest, QuotaSnapshot } from "./quota.js";
import type { SlotId } from "./slot-table.js";
import { type Outlook, type Ticket, Tickets } from "./tickets.js";
import { Usage } from "./usage.js";

export interface LineSettings {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Called when the ledger fails; nothing is sent then. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Shared by the quotas of all credentials, because a place belongs to a visitor. */
  readonly tickets?: Tickets;
  /** The maximum number of waiting requests: in total, and for one client while others want calls too. */
  readonly maxWaiting?: number;
  readonly maxWaitingPerClient?: number;
}

/** The reason if a call wasn't made because nobody waited for it any more. */
export const GONE = new Error("nobody waits for this call any more");

/** The part of the calls for which carts have priority, and how many carts go before a place that waits. */
const CHECKOUT_PART = 1 / 2;
const CARTS_BEFORE_PLACE = 2;
/** A waiting refresh gets every tenth call at least. */
const CALLS_BEFORE_REFRESH = 9;
/** A refusal counts as this part of a call until its client comes back on time, so that clients that ask for much rank behind others. */
const REFUSED_COUNTS = 0.25;
/** A client above this level is busy: about one recent call. */
const BUSY_LEVEL = 1;
/** The part of the budget that must be free before background work takes any. */
const LEFT_FREE = 0.4;
/** Times within this tolerance count as now, because they are floating-point sums. */
const NOW_MS = 1e-6;
/** Refusals within this part of a window share a plan of the coming calls. */
const PLAN_LASTS = 1 / 600;

interface Waiter {
  readonly request: QuotaRequest;
  readonly ticket: Ticket;
  readonly since: number;
  readonly usage: readonly [number, number];
  /** Whether it has come back after a refusal. */
  readonly isReturned: boolean;
  /** The place that it claims: its own, or that of somebody who waits for the same answer. */
  place: Ticket | null;
  leave(): void;
  start(slot: SlotId): void;
  fail(error: Error): void;
}

type Kind = "cart" | "place" | "visitor" | "refresh" | "suggestion";

export class Line implements Quota {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #settings: LineSettings;
  readonly #tickets: Tickets;
  readonly #figures: QuotaFigures;
  readonly #usage: Usage;
  readonly #pace: Pace;
  /** In the order in which they joined. */
  readonly #waiting = new Set<Waiter>();
  readonly #pausedUntilAt = new Map<string, number>();
  /** When a client was refused last, and when another one was. */
  readonly #asked = new LatestOfTwo();
  readonly #refusals = new LatestOfTwo();
  readonly #plans = new Map<Urgency, Plan>();
  #plannedAt = -Infinity;
  #cartsSincePlace = 0;
  #callsSinceRefresh = 0;
  /** Newcomers minus returned visitors served lately: they take turns. */
  #newcomersLead = 0;
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;
  #cancelTimer = (): void => {};

  constructor(settings: LineSettings) {
    const { ledger } = settings;
    this.#settings = settings;
    this.#ledger = ledger;
    this.#clock = settings.clock;
    this.#tickets = settings.tickets ?? new Tickets();
    this.#figures = new QuotaFigures(ledger.windowMs);
    this.#usage = new Usage(ledger.windowMs);
    this.#pace = new Pace(ledger);
  }

  async run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    const work = this.#run(request, call);
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  isContested(client: string): boolean {
    if (this.#visitors().length === 0 || this.#tickets.isDue(client, this.#now)) return false;
    return this.#othersWant(client);
  }

  pause(operation: string, forMs: number): void {
    const now = this.#now;
    const others = [...this.#pausedUntilAt].filter(([other, until]) => other !== operation && until > now);
    this.#pausedUntilAt.set(operation, Math.max(this.#pausedFor(operation), now + forMs));
    if (others.length > 0) this.#ledger.pause(Math.max(forMs, ...others.map(([, until]) => until - now)));
    this.#plannedAt = -Infinity;
    for (const waiter of this.#waiting) {
      const { request, since } = waiter;
      if (since + request.maxWaitMs < this.#pausedFor(request.operation)) this.#refuseLate(waiter);
    }
    this.#serve();
  }

  snapshot(): QuotaSnapshot {
    const { limit, budget, windowMs } = this.#ledger;
    const now = this.#now;
    const queued = perLane(() => 0);
    for (const { request } of this.#waiting) queued[request.lane] += 1;
    return {
      ...this.#ledger.usage(),
      budget,
      limit,
      windowMs,
      pausedForMs: Math.max(
        0,
        this.#ledger.pausedUntilAt - now,
        ...[...this.#pausedUntilAt.values()].map((at) => at - now),
      ),
      lanes: this.#figures.lanes(queued),
      waits: this.#figures.waits(now, this.#tickets.unclaimed(now)),
    };
  }

  roomInMs(): number {
    if (!this.#ledger.mayCall()) return this.#ledger.windowMs;
    const { budget } = this.#ledger;
    return Math.max(0, this.#ledger.freeAt(Math.max(0, Math.ceil(budget * LEFT_FREE) - 1)) - this.#now);
  }

  hasSpare(): boolean {
    const now = this.#now;
    return (
      this.#waiting.size === 0 && this.roomInMs() <= 0 && this.#plan("background", now).at(0) <= now + NOW_MS
    );
  }

  async close(): Promise<Note> {
    this.#closed = true;
    for (const waiter of this.#waiting) {
      this.#leaves(waiter);
      this.#tickets.left(waiter.place ?? waiter.ticket, this.#now);
      waiter.fail(shuttingDown());
    }
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    this.#cancelTimer();
    const note = { ...this.#ledger.rests(), places: this.#tickets.handOver(this.#now) };
    await this.#ledger.close();
    return note;
  }

  get #now(): number {
    return this.#clock.monotonic();
  }

  async #run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    const { slot, ticket } = await this.#slotFor(request);
    const startedAt = this.#now;
    const end = (outcome: Outcome): void => {
      this.#ledger.settle(slot, outcome, this.#now - startedAt);
      this.#plannedAt = -Infinity;
      this.#serve();
    };
    if (request.signal.aborted || !this.#ledger.mayCall()) {
      end("unsent");
      throw request.signal.aborted ? GONE : unavailable();
    }
    try {
      const value = await call({
        isValid: () => this.#ledger.mayCall(),
        answered: () => {
          end("answered");
        },
        refusal: () => this.#refuse(request, ticket, { isOwed: ticket.kept, isLate: true }),
      });
      end("answered");
      return value;
    } finally {
      // Only has an effect if the call rejected without an answer: the request may still arrive.
      end("abandoned");
    }
  }

  async #slotFor(request: QuotaRequest): Promise<{ readonly slot: SlotId; readonly ticket: Ticket }> {
    if (this.#closed) throw shuttingDown();
    if (request.signal.aborted) throw GONE;
    if (!this.#ledger.mayCall()) throw unavailable();
    const now = this.#now;
    const { lane, client, queryKey, maxWaitMs } = request;
    if (!isBackground(lane)) this.#asked.note(client, now);
    const ticket = this.#tickets.of(client, queryKey, maxWaitMs, now);
    const standing = this.#tickets.standing(ticket, now);
    const isBack = standing === "placed" || standing === "returned";
    if (isBack && ticket.dueAt !== null) this.#usage.add(request, ticket.askedAt, -REFUSED_COUNTS);
    const isPaused = this.#pausedFor(request.operation) > now + maxWaitMs + NOW_MS;
    if (standing === "placed") {
      if (isPaused) throw this.#refuse(request, ticket, { isOwed: true });
    } else {
      const mayWait = standing !== "early" || this.#visitors().length === 0;
      const hasRoom = mayWait && !isPaused && this.#hasRoom(client) && this.#isInTime(request, ticket, now);
      if (!hasRoom)
        throw standing === "early" && !isPaused
          ? this.#refuseEarly(request, ticket)
          : this.#refuse(request, ticket, {});
    }
    const turn = this.#join(request, ticket, isBack);
    this.#refuseOvertaken(now);
    this.#serve();
    return { slot: await turn, ticket };
  }

  /** Resolves with a slot when it's the request's turn. */
  #join(request: QuotaRequest, ticket: Ticket, isReturned: boolean): Promise<SlotId> {
    const since = this.#now;
    const usage = this.#usage.levels(request, since);
    this.#usage.add(request, since, 1);
    ticket.waits = true;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(waiter);
        request.signal.removeEventListener("abort", onAbort);
        cancelDeadline();
      };
      const waiter: Waiter = {
        request,
        ticket,
        since,
        usage,
        isReturned,
        place: null,
        leave,
        start: (slot) => {
          leave();
          resolve(slot);
        },
        fail: (error) => {
          leave();
          reject(error);
        },
      };
      const onAbort = (): void => {
        this.#leaves(waiter);
        this.#figures.left(request.lane, waiter.place !== null);
        this.#tickets.left(waiter.place ?? ticket, this.#now);
        waiter.fail(GONE);
        this.#changed();
      };
      const cancelDeadline = Number.isFinite(request.maxWaitMs)
        ? this.#clock.after(request.maxWaitMs, () => {
            this.#refuseLate(waiter);
          })
        : (): void => {};
      request.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiter);
      this.#claimPlace(waiter, since);
    });
  }

  /** Call before a waiting request is refused or has left: it has spent nothing. */
  #leaves(waiter: Waiter): void {
    waiter.leave();
    waiter.ticket.waits = false;
    this.#usage.add(waiter.request, waiter.since, -1);
  }

  /** Gives a waiter the place that is due to it, or to somebody who waits for the same answer. */
  #claimPlace(waiter: Waiter, now: number): void {
    if (waiter.place !== null) return;
    const { ticket, request } = waiter;
    if (this.#tickets.standing(ticket, now) === "placed") waiter.place = ticket;
    else if ((request.sharedBy?.size ?? 0) > 1)
      for (const { client } of request.sharedBy ?? [])
        waiter.place ??= this.#tickets.dueFor(client, request.queryKey, now);
    if (waiter.place === null) return;
    this.#tickets.claim(waiter.place);
    this.#figures.claimed(request.lane);
  }

  /** Starts waiting calls until none may go, and schedules itself for when one may. */
  #serve(): void {
    this.#cancelTimer();
    while (this.#waiting.size > 0 && !this.#closed) {
      const now = this.#now;
      if (!this.#ledger.mayCall()) return this.#failAll(() => unavailable());
      for (const waiter of this.#waiting) this.#claimPlace(waiter, now);
      const { waiter, retryAt } = this.#choose(now);
      if (waiter === null) return this.#comeBack(retryAt - now);
      let slot: SlotId | null;
      try {
        slot = this.#ledger.take();
      } catch (error) {
        this.#settings.onFault("a call could not be recorded in the quota ledger, so none is sent", error);
        return this.#failAll((failed) => this.#refuseForFault(failed));
      }
      if (slot === null) return this.#comeBack(Math.max(1, this.#ledger.freeAt(0) - now));
      this.#pace.went(now, this.#plan("visitor", now).spacingMs);
      this.#served(waiter, now);
      waiter.start(slot);
    }
    this.#changed();
  }

  #comeBack(inMs: number): void {
    this.#changed();
    const now = this.#now;
    const due = [...this.#waiting].flatMap(({ place, ticket: { dueAt, kept } }) =>
      place === null && kept && dueAt !== null && dueAt > now ? [dueAt - now] : [],
    );
    this.#cancelTimer = this.#clock.after(Math.min(inMs, this.#ledger.windowMs, ...due), () => {
      this.#serve();
    });
  }

  /** The request that gets the next call, or when one may. */
  #choose(now: number): { readonly waiter: Waiter | null; readonly retryAt: number } {
    this.#planAt(now);
    const cartsGoFirst = this.#cartsGoFirst(now);
    const heldUntil = this.#tickets.heldUntil(now, (at) => this.#plan("visitor", now).callsUntil(at));
    const first: Partial<Record<Kind, Waiter>> = {};
    let retryAt = Infinity;
    for (const waiter of this.#waiting) {
      const kind = this.#kindOf(waiter, cartsGoFirst);
      const goesAt = Math.max(
        this.#plan(urgencyOf(kind), now).at(0),
        kind === "place" ? now : (heldUntil ?? now),
        this.#pausedFor(waiter.request.operation),
      );
      if (goesAt > now + NOW_MS) retryAt = Math.min(retryAt, goesAt);
      else if (first[kind] === undefined || this.#isBefore(waiter, first[kind])) first[kind] = waiter;
    }
    return { waiter: this.#firstOf(first), retryAt };
  }

  #firstOf({ cart, place, visitor, refresh, suggestion }: Partial<Record<Kind, Waiter>>): Waiter | null {
    if (refresh !== undefined && this.#callsSinceRefresh >= CALLS_BEFORE_REFRESH) return refresh;
    if (place !== undefined && (cart === undefined || this.#cartsSincePlace >= CARTS_BEFORE_PLACE))
      return place;
    return cart ?? place ?? visitor ?? refresh ?? suggestion ?? null;
  }

  /** Carts beyond their part are visitors like others. */
  #kindOf({ request, place }: Pick<Waiter, "request" | "place">, cartsGoFirst: boolean): Kind {
    const { lane, completes } = request;
    if (place !== null) return "place";
    if (lane === "checkout" ? cartsGoFirst : completes === true) return "cart";
    return isBackground(lane) ? lane : "visitor";
  }

  #cartsGoFirst(now: number): boolean {
    return this.#figures.carts(now) < Math.max(1, CHECKOUT_PART * this.#ledger.budget);
  }

  #isBefore(a: Waiter, b: Waiter): boolean {
    if (a.place !== null && b.place !== null) return (a.place.dueAt ?? 0) < (b.place.dueAt ?? 0);
    const less = a.usage[0] - b.usage[0] || a.usage[1] - b.usage[1];
    if (less !== 0) return less < 0;
    if (a.isReturned !== b.isReturned) return a.isReturned === this.#newcomersLead > 0;
    return a.ticket.askedAt < b.ticket.askedAt;
  }

  #served(waiter: Waiter, now: number): void {
    const { request, ticket, place, since, isReturned } = waiter;
    const isCart = (request.lane === "checkout" || request.completes === true) && place === null;
    const waits = (which: (other: Waiter) => boolean): boolean =>
      [...this.#waiting].some((other) => other !== waiter && which(other));
    if (place !== null) this.#cartsSincePlace = 0;
    else if (isCart && waits((other) => other.place !== null)) this.#cartsSincePlace += 1;
    if (request.lane === "refresh") this.#callsSinceRefresh = 0;
    else if (waits((other) => other.request.lane === "refresh")) this.#callsSinceRefresh += 1;
    if (place === null && !isCart)
      this.#newcomersLead = isReturned
        ? Math.max(-10, this.#newcomersLead - 1)
        : Math.min(1, this.#newcomersLead + 1);
    this.#figures.served(request.lane, now, now - since, place !== null);
    this.#tickets.forget(ticket);
    if (place !== null) this.#tickets.forget(place);
    this.#plannedAt = -Infinity;
  }

  /** Whether a new request would be served in time if no later one went before it. */
  #isInTime(request: QuotaRequest, ticket: Ticket, now: number): boolean {
    const { lane, maxWaitMs } = request;
    if (maxWaitMs === Infinity) return true;
    const kind = this.#kindOf({ request, place: null }, this.#cartsGoFirst(now));
    const position = {
      usage: this.#usage.levels(request, now),
      isReturned: ticket.dueAt !== null,
      untilAt: now + maxWaitMs,
    };
    const before = isBackground(lane)
      ? this.#waiting.size
      : this.#callsBefore(kind, position, now, this.#expected(position.untilAt, now));
    return this.#plan(urgencyOf(kind), now).at(before) <= position.untilAt + NOW_MS;
  }

  /** Refuses the last visitor now if others who joined after it keep it from being served in time. */
  #refuseOvertaken(now: number): void {
    const cartsGoFirst = this.#cartsGoFirst(now);
    for (const isReturned of [false, true]) {
      const last = [...this.#waiting]
        .filter((one) => one.isReturned === isReturned && this.#kindOf(one, cartsGoFirst) === "visitor")
        .reduce<Waiter | null>((worst, one) => (worst && !this.#isBefore(worst, one) ? worst : one), null);
      if (last === null) continue;
      const untilAt = last.since + last.request.maxWaitMs;
      const before = this.#callsBefore("visitor", last, now);
      if (this.#plan("visitor", now).at(before) > untilAt + NOW_MS) this.#refuseLate(last);
    }
  }

  /** How many get a call before one in this position: of those who wait, and of those who are expected. */
  #callsBefore(
    kind: Kind,
    position: Pick<Waiter, "usage" | "isReturned">,
    now: number,
    expected = { carts: 0, places: 0 },
  ): number {
    const cartsGoFirst = this.#cartsGoFirst(now);
    const count = { cart: 0, place: 0, visitor: 0, others: 0, refresh: 0, suggestion: 0 };
    for (const other of this.#waiting) {
      if (other === position) continue;
      const of = this.#kindOf(other, cartsGoFirst);
      const less = compareUsage(other.usage, position.usage);
      if (of !== "visitor") count[of] += 1;
      else if (less < 0 || (less === 0 && other.isReturned === position.isReturned)) count.visitor += 1;
      else if (less === 0) count.others += 1;
    }
    const places = count.place + expected.places;
    if (kind === "cart")
      return count.cart + Math.min(places, Math.ceil((count.cart + 1) / CARTS_BEFORE_PLACE));
    // Newcomers and returned visitors take turns.
    const visitors = count.visitor + Math.min(count.others, count.visitor + 1);
    const before = count.cart + expected.carts + places + visitors;
    return before + Math.min(count.refresh, Math.floor(before / CALLS_BEFORE_REFRESH));
  }

  /** Who will probably come by then and go first. Nobody while nobody waits; otherwise calls would stay unused. */
  #expected(untilAt: number, now: number): { readonly carts: number; readonly places: number } {
    if (this.#visitors().length === 0) return { carts: 0, places: 0 };
    const carts = Math.floor((this.#figures.carts(now) * (untilAt - now)) / this.#ledger.windowMs);
    return { carts, places: this.#tickets.dueBy(untilAt, now) };
  }

  /** Refuses a request that waited and can no longer be served in time. */
  #refuseLate(waiter: Waiter): void {
    const { request, ticket, place } = waiter;
    this.#leaves(waiter);
    const now = this.#now;
    const isOwed = place === ticket;
    // A place claimed for somebody else who waits for the same answer: that visitor now makes a request of its own.
    if (place !== null && place !== ticket) this.#tickets.left(Object.assign(place, { early: 0 }), now);
    const standing = this.#tickets.standing(ticket, now);
    waiter.fail(
      standing === "early"
        ? this.#refuseEarly(request, ticket)
        : this.#refuse(request, ticket, { isOwed, isLate: true }),
    );
    this.#changed();
  }

  /** `isOwed`: it came back to its place; `isLate`: it has waited. Both in vain. */
  #refuse(request: QuotaRequest, ticket: Ticket, { isOwed = false, isLate = false }): ServiceError {
    const now = this.#now;
    const { lane, client } = request;
    const outlook = this.#outlook(request, now);
    // Background work doesn't come back at a given second, so it gets no place.
    if (isBackground(lane)) {
      const inMs = outlook.pausedUntilAt > now ? outlook.pausedUntilAt - now : outlook.windowMs;
      return this.#refusal(request, { cause: "busy", inMs, kept: false });
    }
    if (outlook.nextAt > now + request.maxWaitMs) this.#pace.wanted(now);
    const hasOthers = this.#asked.atOfOthers(client) > now - this.#ledger.windowMs;
    const level = Math.max(...this.#usage.levels(request, now));
    const part = hasOthers ? 2 ** -Math.max(0, level - BUSY_LEVEL) : 1;
    this.#tickets.refuse(ticket, isOwed ? "owed" : part, outlook);
    this.#usage.add(request, ticket.askedAt, REFUSED_COUNTS);
    const { kept, dueAt } = ticket;
    const cause = isLate ? "late" : kept ? "reserved" : "busy";
    return this.#refusal(request, { cause, inMs: (dueAt ?? now) - now, kept });
  }

  #refuseEarly(request: QuotaRequest, ticket: Ticket): ServiceError {
    const now = this.#now;
    if (ticket.kept && this.#pausedFor(request.operation) > (ticket.dueAt ?? now) + request.maxWaitMs)
      return this.#refuse(request, ticket, { isOwed: true });
    // A search or cart asks for several names, each with its own second, and comes back at the first of them.
    const isForgiven = request.lane !== "exact";
    this.#tickets.askedEarly(ticket, isForgiven, this.#outlook(request, now));
    if (!isForgiven) this.#usage.add(request, now, REFUSED_COUNTS);
    const { dueAt, kept } = ticket;
    return this.#refusal(request, { cause: "early", inMs: (dueAt ?? now) - now, kept });
  }

  #refuseForFault({ request }: Waiter): ServiceError {
    return this.#refusal(request, { cause: "fault", inMs: this.#ledger.windowMs / 60, kept: false });
  }

  #refusal({ lane, client }: QuotaRequest, told: Told): ServiceError {
    const now = this.#now;
    this.#figures.refused(lane, told, now);
    if (lane !== "suggestion") this.#refusals.note(client, now);
    return new ServiceError("quota_exhausted", "The registry service can't be asked in time.", {
      retryAfterMs: Math.max(1, Math.ceil(told.inMs - NOW_MS)),
      kept: told.kept,
    });
  }

  #failAll(errorOf: (waiter: Waiter) => ServiceError): void {
    for (const waiter of this.#waiting) {
      this.#leaves(waiter);
      this.#tickets.left(waiter.place ?? waiter.ticket, this.#now);
      waiter.fail(errorOf(waiter));
    }
    this.#changed();
  }

  #outlook({ operation }: QuotaRequest, now: number): Outlook {
    const plan = this.#plan("visitor", now);
    const { budget, awayMs } = this.#ledger;
    const pausedUntilAt = this.#pausedFor(operation);
    const nextAt = Math.max(pausedUntilAt, plan.at(0));
    const waiting = this.#visitors();
    return {
      now,
      windowMs: this.#ledger.windowMs,
      pausedUntilAt,
      // Slots that return together, after a pause or a cold start, aren't used at once. While one operation is paused, other calls go on.
      callsUntil: (at) =>
        isPaced(budget) || pausedUntilAt > now
          ? Math.min(plan.callsUntil(at), 1 + Math.floor(((at - nextAt) * budget) / awayMs))
          : plan.callsUntil(at),
      nextAt,
      waiting: waiting.length,
      waitingPlaces: waiting.filter(({ place }) => place !== null).length,
    };
  }

  /** Until when this operation, or all of them, must not be called. */
  #pausedFor(operation: string): number {
    return Math.max(this.#ledger.pausedUntilAt, this.#pausedUntilAt.get(operation) ?? -Infinity);
  }

  /** The plan of the next calls; a little old at most, if nothing has changed since. */
  #plan(urgency: Urgency, now: number): Plan {
    if (now - this.#plannedAt > PLAN_LASTS * this.#ledger.windowMs) this.#planAt(now);
    const known = this.#plans.get(urgency);
    if (known !== undefined) return known;
    const plan = this.#pace.plan(urgency, now);
    this.#plans.set(urgency, plan);
    return plan;
  }

  #planAt(now: number): void {
    this.#plans.clear();
    this.#plannedAt = now;
  }

  #visitors(): Waiter[] {
    return [...this.#waiting].filter(({ request }) => !isBackground(request.lane));
  }

  #othersWant(client: string): boolean {
    return (
      this.#visitors().some(({ request }) => request.client !== client) ||
      this.#refusals.atOfOthers(client) > this.#now - this.#ledger.windowMs
    );
  }

  #hasRoom(client: string): boolean {
    const { maxWaiting = Math.max(1000, this.#ledger.budget), maxWaitingPerClient = 20 } = this.#settings;
    if (this.#waiting.size >= maxWaiting) return false;
    const own = this.#visitors().filter(({ request }) => request.client === client).length;
    return own < maxWaitingPerClient || !this.#othersWant(client);
  }

  /** Call when requests have joined or left: a burst is earned only while nobody waits or is expected back soon. */
  #changed(): void {
    const now = this.#now;
    const waits = this.#visitors().length > 0;
    const dueAt = this.#tickets.firstDueAt(now);
    const expected = dueAt <= now + this.#ledger.windowMs ? dueAt : now;
    this.#pace.awaited(now, waits ? Infinity : expected);
    const { budget, awayMs } = this.#ledger;
    this.#figures.isIdle(
      now,
      waits && this.#ledger.mayCall() && this.#plan("visitor", now).at(0) <= now,
      budget / awayMs,
    );
  }
}

function urgencyOf(kind: Kind): Urgency {
  if (kind === "cart" || kind === "place") return "urgent";
  return kind === "visitor" ? "visitor" : "background";
}

function compareUsage(a: Waiter["usage"], b: Waiter["usage"]): number {
  return a[0] - b[0] || a[1] - b[1];
}

/** Remembers when something last happened to any client other than a given one. */
class LatestOfTwo {
  #client = "";
  #at = -Infinity;
  #othersAt = -Infinity;

  note(client: string, at: number): void {
    if (client !== this.#client) this.#othersAt = this.#at;
    this.#client = client;
    this.#at = at;
  }

  atOfOthers(client: string): number {
    return client === this.#client ? this.#othersAt : this.#at;
  }
}
