/**
 * The line in front of the slot table of one credential. A request that can be served in time waits, any other is refused with the second at which to
 * come back. Served in this order: carts, until they have had half of the calls of the window; places; then the client that has used least lately, and
 * among these whoever asked first; refreshes; suggestions. A free call is used at once if a request may use it.
 */
import type { Clock } from "../clock.js";
import { ServiceError, shuttingDown, unavailable } from "../errors.js";
import { Figures, type RefusalCause, type Told } from "./figures.js";
import { isBackground, perLane } from "./lane.js";
import type { Note } from "./note.js";
import { BURST, isPaced, type Plan, planOf } from "./pace.js";
import type { Permit, QuotaRequest } from "./quota.js";
import type { Outcome, SlotId, SlotTable } from "./slot-table.js";
import { type Outlook, type Ticket, Tickets } from "./tickets.js";
import { Usage } from "./usage.js";

export interface LineSettings {
  readonly table: SlotTable;
  readonly clock: Clock;
  /** Called when a call can't be recorded; nothing is sent then. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Shared by the lines of all credentials, because a place belongs to a visitor. */
  readonly tickets?: Tickets;
  /** Whether this process may send calls now. Default: always. */
  readonly mayCall?: (() => boolean) | undefined;
  /** The maximum number of waiting requests: in total, and for one client while others want calls too. */
  readonly maxWaiting?: number;
  readonly maxWaitingPerClient?: number;
}

/** The reason if a call wasn't made because nobody waited for it any more. */
const GONE = new Error("nobody waits for this call any more");

/** The part of the calls for which carts have priority, and how many carts go before a place that waits. */
const CHECKOUT_PART = 1 / 2;
const CARTS_BEFORE_PLACE = 2;
/** A waiting refresh gets every tenth call at least. */
const CALLS_BEFORE_REFRESH = 9;
/** The part of the budget that must be free before background work takes any. */
const LEFT_FREE = 0.4;
/** The part of the calls up to any second that may be promised. */
const PROMISED = 1 / 2;
/** A refusal counts as this part of a call until its client comes back on time, so that clients that ask for much rank behind others. */
const REFUSED_COUNTS = 0.25;
/** A client with more recent calls than about one is promised less while others want calls: half for each level more. */
const BUSY_LEVEL = 1;
/** Times within this tolerance count as now, because they are floating-point sums. */
const NOW_MS = 1e-6;

type Kind = "cart" | "place" | "visitor" | "refresh" | "suggestion";
const ORDER: readonly Kind[] = ["cart", "place", "visitor", "refresh", "suggestion"];

interface Waiter {
  readonly request: QuotaRequest;
  readonly ticket: Ticket;
  readonly since: number;
  /** How much its client had used when it joined. */
  readonly used: number;
  /** The place that it claims: its own, or that of somebody who waits for the same answer. */
  place: Ticket | null;
  /** Ends the wait: with a slot, or the reason why there is none. */
  end(result: SlotId | Error): void;
}

/** The quota of one credential. */
export type Quota = Pick<Line, keyof Line>;
/** For staff, who find in `wire/overview.ts` what each figure means. */
export type QuotaSnapshot = ReturnType<Line["snapshot"]>;

export class Line {
  readonly #table: SlotTable;
  readonly #clock: Clock;
  readonly #settings: LineSettings;
  readonly #tickets: Tickets;
  readonly #figures: Figures;
  readonly #usage: Usage;
  /** In the order in which they joined. */
  readonly #waiting = new Set<Waiter>();
  readonly #running = new Set<Promise<unknown>>();
  /** Until when an operation must not be called. */
  readonly #pausedUntilAt = new Map<string, number>();
  readonly #asked = new LastTwo();
  readonly #refused = new LastTwo();
  /** The times of the cart calls of the last window, oldest first. */
  readonly #cartsAt: number[] = [];
  #lastCallAt = -Infinity;
  #cartsSincePlace = 0;
  #callsSinceRefresh = 0;
  #closed = false;
  #cancelTimer = (): void => {};

  constructor(settings: LineSettings) {
    const { table } = settings;
    this.#settings = settings;
    this.#table = table;
    this.#clock = settings.clock;
    this.#tickets = settings.tickets ?? new Tickets();
    this.#figures = new Figures(table.windowMs);
    this.#usage = new Usage(table.windowMs);
  }

  /** Runs `call` in a slot, or rejects with `quota_exhausted`, with `retryAfterMs` and whether that is a place. */
  async run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    const work = this.#run(request, call);
    this.#running.add(work);
    try {
      return await work;
    } finally {
      this.#running.delete(work);
    }
  }

  /**
   * Whether a call for this client would be at the expense of others: requests are waiting, other clients want calls or were refused recently, and
   * no place is due that is, or may be, of this client.
   */
  isContested(client: string): boolean {
    const hasVisitors = this.#visitors().length > 0;
    return hasVisitors && !this.#tickets.isDue(client, this.#now) && this.#othersWant(client);
  }

  /**
   * Calls this operation no more for this long, because the upstream reported that its limit is exceeded; or none, if another operation was refused
   * too and its pause isn't over.
   */
  pause(operation: string, forMs: number): void {
    const now = this.#now;
    const others = [...this.#pausedUntilAt].filter(([other, until]) => other !== operation && until > now);
    this.#pausedUntilAt.set(operation, Math.max(this.#pausedFor(operation), now + forMs));
    if (others.length > 0) this.#table.pause(Math.max(forMs, ...others.map(([, until]) => until - now)));
    for (const waiter of this.#waiting) {
      const { request, since } = waiter;
      if (since + request.maxWaitMs < this.#pausedFor(request.operation)) this.#refuseLate(waiter);
    }
    this.#serve();
  }

  snapshot() {
    const { limit, budget, windowMs, pausedUntilAt } = this.#table;
    const now = this.#now;
    const queued = perLane(() => 0);
    for (const { request } of this.#waiting) queued[request.lane] += 1;
    return {
      ...this.#table.usage(),
      budget,
      limit,
      windowMs,
      pausedForMs: Math.max(now, pausedUntilAt, ...this.#pausedUntilAt.values()) - now,
      lanes: this.#figures.lanes(queued),
      waits: this.#figures.waits(now, this.#tickets.unclaimed(now)),
    };
  }

  /** The ms until there is room for background work; 0 = now. Part of the budget is left for requests that people wait for. */
  roomInMs(): number {
    const { budget, windowMs } = this.#table;
    if (!this.#mayCall()) return windowMs;
    return Math.max(0, this.#table.freeAt(Math.max(0, Math.ceil(budget * LEFT_FREE) - 1)) - this.#now);
  }

  /** Whether a suggestion could be called immediately: there is room, nobody waits, and the pace isn't exceeded. */
  hasSpare(): boolean {
    const now = this.#now;
    return this.#waiting.size === 0 && this.roomInMs() <= 0 && this.#planFor("suggestion", now)(0) <= now;
  }

  /** Refuses all waiting requests and waits for calls in flight. Returns what the next owner should know. */
  async close(): Promise<Note> {
    this.#closed = true;
    this.#failAll(shuttingDown);
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    this.#cancelTimer();
    return { ...this.#table.rests(), places: this.#tickets.handOver(this.#now) };
  }

  get #now(): number {
    return this.#clock.monotonic();
  }

  #mayCall(): boolean {
    return this.#settings.mayCall?.() ?? true;
  }

  async #run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    const { slot, ticket } = await this.#slotFor(request);
    const end = (outcome: Outcome): void => {
      this.#table.settle(slot, outcome);
      this.#serve();
    };
    if (request.signal.aborted || !this.#mayCall()) {
      end("unsent");
      throw request.signal.aborted ? GONE : unavailable();
    }
    try {
      const value = await call({
        isValid: () => this.#mayCall(),
        answered: () => {
          end("answered");
        },
        refusal: () => this.#refuse(request, ticket, "late", ticket.kept),
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
    if (!this.#mayCall()) throw unavailable();
    const now = this.#now;
    const { client, queryKey, maxWaitMs, operation } = request;
    if (!isBackground(request.lane)) this.#asked.note(client, now);
    const ticket = this.#tickets.of(client, queryKey, maxWaitMs, now);
    const isEarly = this.#tickets.isEarly(ticket, now);
    const isPlaced = ticket.kept && !isEarly;
    if (ticket.dueAt !== null && !isEarly) this.#usage.add(request, now, -REFUSED_COUNTS);
    if (ticket.kept && this.#pausedFor(operation) > Math.max(now, ticket.dueAt ?? now) + maxWaitMs)
      throw this.#refuse(request, ticket, "reserved", true);
    const mayWait = isPlaced || this.#hasRoom(client);
    if (isEarly && (!mayWait || this.#visitors().length > 0)) throw this.#refuseEarly(request, ticket);
    if (!mayWait) throw this.#refuse(request, ticket, "busy");
    return { slot: await this.#join(request, ticket), ticket };
  }

  /** Resolves with a slot when it's the request's turn. */
  #join(request: QuotaRequest, ticket: Ticket): Promise<SlotId> {
    const since = this.#now;
    const used = this.#usage.rank(request, since);
    this.#usage.add(request, since, 1);
    ticket.waits = true;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#figures.left(request.lane, waiter.place !== null);
        this.#fail(waiter, () => GONE);
      };
      const onDeadline = (): void => {
        this.#refuseLate(waiter);
      };
      const cancelDeadline =
        request.maxWaitMs === Infinity ? null : this.#clock.after(request.maxWaitMs, onDeadline);
      const end = (result: SlotId | Error): void => {
        request.signal.removeEventListener("abort", onAbort);
        cancelDeadline?.();
        if (typeof result === "number") resolve(result);
        else reject(result);
      };
      const waiter: Waiter = { request, ticket, since, used, place: null, end };
      request.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiter);
      this.#claimPlace(waiter, since);
      this.#refuseHopeless(waiter, since);
      this.#serve();
    });
  }

  /** A waiting request leaves without a call: it has spent nothing, and a place stays for its holder for a moment. */
  #fail(waiter: Waiter, reason: () => Error): void {
    const { request, ticket, place } = waiter;
    this.#waiting.delete(waiter);
    ticket.waits = false;
    if (place !== null) place.waits = false;
    this.#usage.add(request, this.#now, -1);
    waiter.end(reason());
    this.#noteIdle();
  }

  #failAll(reason: (waiter: Waiter) => Error): void {
    for (const waiter of this.#waiting) this.#fail(waiter, () => reason(waiter));
  }

  /** Gives a waiter the place that is due to it, or to somebody who waits for the same answer. */
  #claimPlace(waiter: Waiter, now: number): void {
    if (waiter.place !== null) return;
    const { ticket, request } = waiter;
    if (ticket.kept && !this.#tickets.isEarly(ticket, now)) waiter.place = ticket;
    else if ((request.sharedBy?.size ?? 0) > 1) {
      const clients = [...(request.sharedBy ?? [])].map(({ client }) => client);
      waiter.place = this.#tickets.dueFor(clients, request.queryKey, now);
    }
    if (waiter.place === null) return;
    waiter.place.waits = true;
    this.#figures.claimed(request.lane);
  }

  /** Starts waiting calls until none may go, and schedules itself for when one may. */
  #serve(): void {
    this.#cancelTimer();
    while (this.#waiting.size > 0 && !this.#closed) {
      const now = this.#now;
      if (!this.#mayCall()) return this.#failAll(() => unavailable());
      const { waiter, retryAt } = this.#choose(now);
      let slot: SlotId | null = null;
      try {
        slot = waiter && this.#table.take();
      } catch (error) {
        this.#settings.onFault("a call could not be recorded in the quota ledger, so none is sent", error);
        const inMs = this.#table.windowMs / 60;
        return this.#failAll(({ request }) => this.#refusal(request, { cause: "fault", inMs, kept: false }));
      }
      if (waiter === null || slot === null) {
        const inMs = Math.max(slot === null && waiter !== null ? 1 : 0, retryAt - now);
        this.#cancelTimer = this.#clock.after(Math.min(inMs, this.#table.windowMs), () => {
          this.#serve();
        });
        break;
      }
      this.#waiting.delete(waiter);
      this.#served(waiter, now);
      waiter.end(slot);
    }
    this.#noteIdle();
  }

  /** The request that gets the next call, or when one may. */
  #choose(now: number): { readonly waiter: Waiter | null; readonly retryAt: number } {
    for (const waiter of this.#waiting) this.#claimPlace(waiter, now);
    const urgentAt = this.#planFor("cart", now)(0);
    const plan = this.#planFor("visitor", now);
    const heldUntilAt = (isPaced(this.#table) ? null : this.#tickets.heldUntil(now, plan)) ?? now;
    const first: Partial<Record<Kind, Waiter>> = {};
    let retryAt = Infinity;
    for (const waiter of this.#waiting) {
      const kind = this.#kindOf(waiter, now);
      const goesAt = Math.max(
        kind === "cart" || kind === "place" ? urgentAt : plan(0),
        kind === "place" ? now : heldUntilAt,
        this.#pausedFor(waiter.request.operation),
      );
      if (goesAt > now + NOW_MS) retryAt = Math.min(retryAt, goesAt);
      else if (first[kind] === undefined || this.#isBefore(waiter, first[kind], now)) first[kind] = waiter;
    }
    const { cart, place, visitor, refresh, suggestion } = first;
    if (refresh !== undefined && this.#callsSinceRefresh >= CALLS_BEFORE_REFRESH)
      return { waiter: refresh, retryAt };
    const isPlacesTurn = cart === undefined || this.#cartsSincePlace >= CARTS_BEFORE_PLACE;
    const urgent = isPlacesTurn ? (place ?? cart) : cart;
    return { waiter: urgent ?? visitor ?? refresh ?? suggestion ?? null, retryAt };
  }

  /** Carts beyond their part are visitors like others. */
  #kindOf({ request, place }: Pick<Waiter, "request" | "place">, now: number): Kind {
    const { lane, completes } = request;
    if (place !== null) return "place";
    if (lane === "checkout" ? this.#cartsGoFirst(now) : completes === true) return "cart";
    return isBackground(lane) ? lane : "visitor";
  }

  #cartsGoFirst(now: number): boolean {
    const carts = this.#cartsAt;
    while (carts[0] !== undefined && carts[0] <= now - this.#table.windowMs) carts.shift();
    return carts.length < Math.max(1, CHECKOUT_PART * this.#table.budget);
  }

  #isBefore(a: Waiter, b: Waiter, now: number): boolean {
    const order = ORDER.indexOf(this.#kindOf(a, now)) - ORDER.indexOf(this.#kindOf(b, now));
    if (order !== 0) return order < 0;
    if (a.place !== null && b.place !== null) return (a.place.dueAt ?? 0) < (b.place.dueAt ?? 0);
    return a.used === b.used ? a.ticket.askedAt < b.ticket.askedAt : a.used < b.used;
  }

  #served({ request, ticket, place, since }: Waiter, now: number): void {
    const { lane, completes } = request;
    const others = [...this.#waiting];
    if (place !== null) this.#cartsSincePlace = 0;
    else if (lane === "checkout" || completes === true)
      this.#cartsSincePlace += Number(others.some((other) => other.place !== null));
    if (lane === "refresh") this.#callsSinceRefresh = 0;
    else this.#callsSinceRefresh += Number(others.some((other) => other.request.lane === "refresh"));
    if (lane === "checkout") this.#cartsAt.push(now);
    this.#lastCallAt = now;
    this.#figures.served(lane, now - since, place !== null);
    this.#tickets.forget(ticket);
    if (place !== null) this.#tickets.forget(place);
  }

  /** Refuses those who can't be served in time now: the newcomer, or the last visitor, whom it has overtaken. */
  #refuseHopeless(newcomer: Waiter, now: number): void {
    const visitors = [...this.#waiting].filter((one) => this.#kindOf(one, now) === "visitor");
    const last = visitors.sort((a, b) => (this.#isBefore(a, b, now) ? -1 : 1)).at(-1);
    for (const waiter of new Set([newcomer, last ?? newcomer])) {
      const { request, since, place } = waiter;
      if (place !== null || request.maxWaitMs === Infinity || !this.#waiting.has(waiter)) continue;
      const kind = this.#kindOf(waiter, now);
      const untilAt = since + request.maxWaitMs;
      // While nobody else waits, places that are due are no reason to leave a call unused.
      const isAhead = waiter === newcomer && kind !== "cart" && this.#visitors().length > 1;
      const before = this.#countBefore(waiter, now) + (isAhead ? this.#tickets.dueBy(untilAt, now) : 0);
      const plan = this.#planFor(kind, Math.max(now, this.#pausedFor(request.operation)));
      if (plan(before) > untilAt + NOW_MS) this.#refuseLate(waiter);
    }
  }

  /** How many of those who wait get a call first. */
  #countBefore(waiter: Waiter, now: number): number {
    return [...this.#waiting].filter((other) => other !== waiter && !this.#isBefore(waiter, other, now))
      .length;
  }

  /** Refuses a request that waited and can no longer be served in time. */
  #refuseLate(waiter: Waiter): void {
    const { request, ticket, place, since } = waiter;
    const now = this.#now;
    this.#fail(waiter, () =>
      this.#tickets.isEarly(ticket, now)
        ? this.#refuseEarly(request, ticket)
        : this.#refuse(request, ticket, since < now ? "late" : "busy", place === ticket),
    );
  }

  /** `isOwed`: it has a place, which can't be honoured. */
  #refuse(request: QuotaRequest, ticket: Ticket, why: RefusalCause, isOwed = false): ServiceError {
    const { lane, client, network = client } = request;
    const now = this.#now;
    const outlook = this.#outlook(request, now, isOwed);
    // Background work doesn't come back at a given second, so it gets no place.
    if (isBackground(lane)) {
      const pausedMs = this.#pausedFor(request.operation) - now;
      const inMs = pausedMs > 0 ? pausedMs : this.#table.windowMs;
      return this.#refusal(request, { cause: "busy", inMs, kept: false });
    }
    const level = Math.max(this.#usage.level(client, now), this.#usage.level(network, now));
    const fraction = this.#asked.isOther(client, now - this.#table.windowMs)
      ? 2 ** -Math.max(0, level - BUSY_LEVEL)
      : 1;
    this.#usage.add(request, now, REFUSED_COUNTS);
    this.#tickets.refuse(ticket, { ...outlook, part: isOwed ? 1 : PROMISED * fraction });
    const cause = why === "late" ? why : ticket.kept ? "reserved" : "busy";
    return this.#refusal(request, { cause, inMs: (ticket.dueAt ?? now) - now, kept: ticket.kept });
  }

  #refuseEarly(request: QuotaRequest, ticket: Ticket): ServiceError {
    const now = this.#now;
    // A search or cart asks for several names, each with its own second, and comes back at the first of them.
    this.#tickets.askedEarly(ticket, request.lane !== "exact", this.#outlook(request, now));
    const { dueAt, kept } = ticket;
    return this.#refusal(request, { cause: "early", inMs: (dueAt ?? now) - now, kept });
  }

  #refusal({ lane, client }: QuotaRequest, told: Told): ServiceError {
    const now = this.#now;
    this.#figures.refused(lane, told, now);
    if (lane !== "suggestion") this.#refused.note(client, now);
    return new ServiceError("quota_exhausted", "The registry service can't be asked in time.", {
      retryAfterMs: Math.max(1, Math.ceil(told.inMs - NOW_MS)),
      kept: told.kept,
    });
  }

  /** A place that falls into a pause may be up to a window later than it. */
  #outlook({ operation }: QuotaRequest, now: number, isOwed = false): Outlook {
    const pausedUntilAt = this.#pausedFor(operation);
    const plan = this.#planFor("visitor", Math.max(now, pausedUntilAt), BURST.none);
    const { windowMs } = this.#table;
    const soonestMs = pausedUntilAt - now;
    const horizonMs = Math.max(windowMs, plan(0) - now, isOwed ? soonestMs + windowMs : 0);
    const waiting = this.#visitors().filter(({ place }) => place === null).length;
    return { now, plan, soonestMs, horizonMs, waiting, part: PROMISED };
  }

  /** The coming calls of one kind. A burst of visitors is for those who find nobody waiting, and no place promised. */
  #planFor(kind: Kind, now: number, burst?: number): Plan {
    const isUrgent = kind === "cart" || kind === "place";
    const isFree =
      this.#visitors().length <= 1 && this.#tickets.dueBy(now + this.#table.windowMs, this.#now) === 0;
    const most = burst ?? (isUrgent ? BURST.urgent : isFree ? BURST.visitor : BURST.none);
    return planOf(this.#table, now, this.#lastCallAt, most);
  }

  /** Until when this operation, or all of them, must not be called. */
  #pausedFor(operation: string): number {
    return Math.max(this.#table.pausedUntilAt, this.#pausedUntilAt.get(operation) ?? -Infinity);
  }

  #visitors(): Waiter[] {
    return [...this.#waiting].filter(({ request }) => !isBackground(request.lane));
  }

  #othersWant(client: string): boolean {
    const since = this.#now - this.#table.windowMs;
    return (
      this.#visitors().some(({ request }) => request.client !== client) ||
      this.#refused.isOther(client, since)
    );
  }

  #hasRoom(client: string): boolean {
    const { maxWaiting = Math.max(1000, this.#table.budget), maxWaitingPerClient = 20 } = this.#settings;
    if (this.#waiting.size >= maxWaiting) return false;
    const own = this.#visitors().filter(({ request }) => request.client === client).length;
    return own < maxWaitingPerClient || !this.#othersWant(client);
  }

  #noteIdle(): void {
    const now = this.#now;
    const { budget, awayMs } = this.#table;
    const isIdle = this.#visitors().length > 0 && this.#mayCall() && this.#planFor("visitor", now)(0) <= now;
    this.#figures.isIdle(now, isIdle, budget / awayMs);
  }
}

/** The two clients to which something happened last. */
class LastTwo {
  readonly #at = new Map<string, number>();

  note(client: string, now: number): void {
    this.#at.delete(client);
    const [older] = this.#at.keys();
    if (older !== undefined && this.#at.size > 1) this.#at.delete(older);
    this.#at.set(client, now);
  }

  /** Whether it happened to any other client since then. */
  isOther(client: string, since: number): boolean {
    return [...this.#at].some(([other, at]) => other !== client && at > since);
  }
}
