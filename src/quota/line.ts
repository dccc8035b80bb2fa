/**
 * The line in front of the slot table of one credential. A request that can be served in time waits, any other is refused with the second at which to
 * come back. A free call is used at once if a request may use it.
 */
import type { Clock } from "../clock.js";
import { ServiceError, shuttingDown, unavailable } from "../errors.js";
import { Figures, type RefusalCause } from "./figures.js";
import { isBackground, perLane } from "./lane.js";
import type { Note } from "./note.js";
import { BURST, isPaced, type Plan, planOf } from "./pace.js";
import { type Kind, Order, type Waiting } from "./order.js";
import type { Ask, Permit, QuotaRequest } from "./quota.js";
import type { Outcome, SlotId, SlotTable } from "./slot-table.js";
import type { Ticket, Tickets } from "./tickets.js";
import { Usage } from "./usage.js";

interface LineSettings {
  readonly table: SlotTable;
  readonly clock: Clock;
  /** Called when a call can't be recorded; nothing is sent then. */
  readonly onFault: (what: string, error: unknown) => void;
  /** Shared by the lines of all credentials, because a place belongs to a visitor. */
  readonly tickets: Tickets;
  /** Whether this process may send calls now. */
  readonly mayCall: () => boolean;
}

/** The reasons if a call wasn't made because nobody waited for it any more, or it had become useless. */
const GONE = new Error("nobody waits for this call any more");
export const WITHDRAWN = new Error("this call has become useless");

/** The part of the budget that must be free before background work takes any. */
const LEFT_FREE = 0.4;
/** Times within this tolerance count as now, because they are floating-point sums. */
const NOW_MS = 1e-6;

interface Waiter extends Waiting {
  readonly request: QuotaRequest;
  readonly since: number;
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
  readonly #order: Order;
  /** In the order in which they joined. */
  readonly #waiting = new Set<Waiter>();
  readonly #running = new Set<Promise<unknown>>();
  #lastCallAt = -Infinity;
  #closed = false;
  #cancelTimer = (): void => {};

  constructor(settings: LineSettings) {
    const { table, tickets, clock } = settings;
    this.#settings = settings;
    this.#table = table;
    this.#clock = clock;
    this.#tickets = tickets;
    this.#figures = new Figures(table.windowMs);
    this.#usage = new Usage(table.windowMs);
    this.#order = new Order(table, tickets);
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
    const now = this.#now;
    const clients = this.#visitors().map(({ request }) => request.ask.client);
    if (clients.length === 0 || this.#tickets.isDue(client, now)) return false;
    return clients.some((one) => one !== client) || this.#usage.othersRefused(client, now);
  }

  /** Calls this operation no more for this long, because the upstream reported that its limit is exceeded. */
  pause(operation: string, forMs: number): void {
    this.#table.pause(operation, forMs);
    for (const waiter of this.#waiting) {
      const { request, since } = waiter;
      if (since + request.maxWaitMs < this.#table.pausedUntilAt(request.operation))
        this.#refuseWaiting(waiter);
    }
    this.#serve();
  }

  /** Removes the requests that have become useless, because they would use up the slots of others. They reject with `WITHDRAWN`. */
  withdrawUseless(): void {
    for (const waiter of this.#waiting) if (!waiter.request.isUseful()) this.#leave(waiter, WITHDRAWN);
  }

  snapshot() {
    const { limit, budget, windowMs } = this.#table;
    const now = this.#now;
    const queued = perLane(() => 0);
    for (const { request } of this.#waiting) queued[request.ask.lane] += 1;
    return {
      ...this.#table.usage(),
      budget,
      limit,
      windowMs,
      pausedForMs: Math.max(now, this.#table.pausedUntilAt()) - now,
      lanes: this.#figures.lanes(queued),
      waits: this.#figures.waits(now, this.#tickets.unclaimed(now)),
    };
  }

  /** The ms until there is room for background work; 0 = now. Part of the budget is left for requests that people wait for. */
  backgroundRoomInMs(): number {
    const { budget, windowMs } = this.#table;
    if (!this.#settings.mayCall()) return windowMs;
    return Math.max(0, this.#table.freeAt(Math.max(0, Math.ceil(budget * LEFT_FREE) - 1)) - this.#now);
  }

  /** Whether a suggestion could be called immediately: there is room, nobody waits, and the pace isn't exceeded. */
  hasSpare(): boolean {
    const now = this.#now;
    return (
      this.#waiting.size === 0 && this.backgroundRoomInMs() <= 0 && this.#planFor("suggestion", now)(0) <= now
    );
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

  async #run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T> {
    if (this.#closed) throw shuttingDown();
    const obstacle = this.#obstacle(request);
    if (obstacle !== null) throw obstacle;
    const ticket = this.#tickets.of(request.ask.client, request.queryKey, request.maxWaitMs, this.#now);
    const slot = await this.#slotFor(request, ticket);
    const end = (outcome: Outcome): void => {
      this.#table.settle(slot, outcome);
      this.#serve();
    };
    // A call that is started in the same turn may have made this one useless.
    const late = this.#obstacle(request);
    if (late !== null) {
      end("unsent");
      throw late;
    }
    try {
      const value = await call({
        isValid: this.#settings.mayCall,
        answered: () => {
          end("answered");
        },
        refusal: () => this.#refuse(request, { ...ticket, dueAt: null }, "late"),
      });
      end("answered");
      return value;
    } finally {
      // Only has an effect if the call rejected without an answer: the request may still arrive.
      end("abandoned");
    }
  }

  /** Why the call can't be made now, whatever the quota. */
  #obstacle({ ask, isUseful }: QuotaRequest): Error | null {
    if (ask.signal.aborted) return GONE;
    if (!this.#settings.mayCall()) return unavailable();
    return isUseful() ? null : WITHDRAWN;
  }

  /** Resolves with a slot when it's the request's turn. */
  async #slotFor(request: QuotaRequest, ticket: Ticket): Promise<SlotId> {
    const { ask, maxWaitMs } = request;
    const since = this.#now;
    const isEarly = this.#tickets.isEarly(ticket, since);
    if (isEarly && this.#visitors().length > 0) throw this.#refuse(request, ticket, "busy");
    if (ticket.dueAt !== null && !isEarly) this.#usage.cameBack(ask, since);
    const used = this.#usage.joined(ask, since);
    ticket.waits = true;
    return await new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#leave(waiter, GONE);
      };
      const onDeadline = (): void => {
        this.#refuseWaiting(waiter);
      };
      const cancelDeadline = maxWaitMs === Infinity ? null : this.#clock.after(maxWaitMs, onDeadline);
      const end = (result: SlotId | Error): void => {
        ask.signal.removeEventListener("abort", onAbort);
        cancelDeadline?.();
        if (typeof result === "number") resolve(result);
        else reject(result);
      };
      const waiter: Waiter = { request, ticket, since, used, end };
      ask.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.add(waiter);
      this.#refuseHopeless(waiter, since);
      this.#serve();
    });
  }

  #leave(waiter: Waiter, why: Error): void {
    this.#figures.left(waiter.request.ask.lane);
    this.#fail(waiter, () => why);
  }

  /** A waiting request leaves without a call: it has spent nothing, and a place stays for its holder for a moment. */
  #fail(waiter: Waiter, reason: () => Error): void {
    this.#waiting.delete(waiter);
    waiter.ticket.waits = false;
    this.#usage.leftUnserved(waiter.request.ask, this.#now);
    waiter.end(reason());
    this.#noteIdle();
  }

  #failAll(reason: (waiter: Waiter) => Error): void {
    for (const waiter of this.#waiting) this.#fail(waiter, () => reason(waiter));
  }

  /** Starts waiting calls until none may go, and schedules itself for when one may. */
  #serve(): void {
    this.#cancelTimer();
    while (this.#waiting.size > 0 && !this.#closed) {
      const now = this.#now;
      if (!this.#settings.mayCall()) return this.#failAll(() => unavailable());
      const { waiter, retryAt } = this.#choose(now);
      let slot: SlotId | null = null;
      try {
        slot = waiter && this.#table.take();
      } catch (error) {
        this.#settings.onFault("a call could not be recorded in the quota ledger, so none is sent", error);
        const inMs = this.#table.windowMs / 60;
        return this.#failAll(({ request }) => this.#refusal(request.ask, "fault", inMs));
      }
      if (waiter === null || slot === null) {
        const inMs = Math.max(Number(waiter !== null), retryAt - now);
        this.#cancelTimer = this.#clock.after(Math.min(inMs, this.#table.windowMs), () => {
          this.#serve();
        });
        break;
      }
      this.#waiting.delete(waiter);
      this.#order.served(waiter, [...this.#waiting], now);
      const { request, ticket, since } = waiter;
      this.#figures.served(request.ask.lane, now - since, this.#tickets.canClaim(ticket, now));
      this.#tickets.forget(ticket);
      this.#lastCallAt = now;
      waiter.end(slot);
    }
    this.#noteIdle();
  }

  /** The request that gets the next call, or when one may. */
  #choose(now: number): { readonly waiter: Waiter | null; readonly retryAt: number } {
    const urgentAt = this.#planFor("cart", now)(0);
    const plan = this.#planFor("visitor", now);
    const heldUntilAt = (isPaced(this.#table) ? null : this.#tickets.heldUntil(now, plan)) ?? now;
    let retryAt = Infinity;
    for (const waiter of this.#order.sorted(this.#waiting, now)) {
      const kind = this.#order.kindOf(waiter, now);
      const goesAt = Math.max(
        kind === "cart" || kind === "place" ? urgentAt : plan(0),
        kind === "place" ? now : heldUntilAt,
        this.#table.pausedUntilAt(waiter.request.operation),
      );
      if (goesAt <= now + NOW_MS) return { waiter, retryAt: now };
      retryAt = Math.min(retryAt, goesAt);
    }
    return { waiter: null, retryAt };
  }

  /** Refuses the one that can't be served in time now: the newcomer, or the last visitor, whom it has overtaken. */
  #refuseHopeless(newcomer: Waiter, now: number): void {
    const line = this.#order.sorted(this.#waiting, now);
    const last = line.findLast((one) => this.#order.kindOf(one, now) === "visitor") ?? newcomer;
    const hopeless = [newcomer, last].find((waiter) => {
      const { request, since } = waiter;
      const kind = this.#order.kindOf(waiter, now);
      const untilAt = since + request.maxWaitMs + NOW_MS;
      const pausedUntilAt = this.#table.pausedUntilAt(request.operation);
      if (kind === "place") return pausedUntilAt > untilAt;
      // While nobody else waits, places that are due are no reason to leave a call unused.
      const yieldsToPlaces = waiter === newcomer && kind !== "cart" && this.#visitors().length > 1;
      const before = line.indexOf(waiter) + (yieldsToPlaces ? this.#tickets.dueBy(untilAt, now) : 0);
      return this.#planFor(kind, Math.max(now, pausedUntilAt))(before) > untilAt;
    });
    if (hopeless !== undefined) this.#refuseWaiting(hopeless);
  }

  /** Refuses a waiting request that can't be served in time. */
  #refuseWaiting(waiter: Waiter): void {
    const { request, ticket, since } = waiter;
    if (this.#tickets.canClaim(ticket, this.#now)) this.#figures.claimed(request.ask.lane);
    this.#fail(waiter, () => this.#refuse(request, ticket, since < this.#now ? "late" : "busy"));
  }

  /** Refuses a request, and gives the second at which to come back. */
  #refuse({ ask, operation }: QuotaRequest, ticket: Ticket, why: "late" | "busy"): ServiceError {
    const now = this.#now;
    const { windowMs } = this.#table;
    const soonestMs = this.#table.pausedUntilAt(operation) - now;
    // Background work doesn't come back at a given second, so it gets no place.
    if (isBackground(ask.lane)) return this.#refusal(ask, "busy", soonestMs > 0 ? soonestMs : windowMs);
    const plan = this.#planFor("visitor", now + Math.max(0, soonestMs), BURST.none);
    const waiting = this.#visitors().filter((one) => !this.#tickets.canClaim(one.ticket, now)).length;
    const share = this.#usage.share(ask, now);
    const outlook = { now, windowMs, plan, soonestMs, waiting, share };
    const isEarly = this.#tickets.refuse(ticket, ask.lane, outlook);
    if (!isEarly) this.#usage.refused(ask, now);
    const { kept, dueAt } = ticket;
    return this.#refusal(ask, isEarly ? "early" : why, (dueAt ?? now) - now, kept);
  }

  #refusal(ask: Ask, why: RefusalCause, inMs: number, kept = false): ServiceError {
    const now = this.#now;
    const cause = why === "busy" && kept ? "reserved" : why;
    this.#figures.refused(ask.lane, { cause, inMs, kept }, now);
    if (ask.lane !== "suggestion") this.#usage.noteRefused(ask, now);
    return new ServiceError("quota_exhausted", "The registry service can't be asked in time.", {
      retryAfterMs: Math.max(1, Math.ceil(inMs - NOW_MS)),
      kept,
    });
  }

  /** The coming calls of one kind. A burst of visitors is for those who find nobody waiting, and no place promised. */
  #planFor(kind: Kind, now: number, burst?: number): Plan {
    const isUrgent = kind === "cart" || kind === "place";
    const isFree =
      this.#visitors().length <= 1 && this.#tickets.dueBy(now + this.#table.windowMs, this.#now) === 0;
    const most = burst ?? (isUrgent ? BURST.urgent : isFree ? BURST.visitor : BURST.none);
    return planOf(this.#table, now, this.#lastCallAt, most);
  }

  #visitors(): Waiter[] {
    return [...this.#waiting].filter(({ request }) => !isBackground(request.ask.lane));
  }

  #noteIdle(): void {
    const now = this.#now;
    const { budget, awayMs } = this.#table;
    const isIdle =
      this.#visitors().length > 0 && this.#settings.mayCall() && this.#planFor("visitor", now)(0) <= now;
    this.#figures.isIdle(now, isIdle, budget / awayMs);
  }
}
