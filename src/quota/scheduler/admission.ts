/**
 * Decides which requests may wait. One that can be served in time may; any other is refused with a retry time, and with whether a call is reserved
 * for then.
 */
import type { Clock } from "../../clock.js";
import { ServiceError } from "../../errors.js";
import { isBackground } from "../lane.js";
import type { QuotaRequest } from "../quota.js";
import { FairShare, NO_USAGE } from "./fair-share.js";
import type { LaneStats, Wait } from "./lane-stats.js";
import type { Urgency } from "./pacer.js";
import { callsBefore, type Kind } from "./priority.js";
import { type Entry, kindOf, type Queue, type Waiter } from "./queue.js";
import { type Outlook, type Reservations, type Ticket, ticketKey } from "./reservations.js";
import type { Views } from "./views.js";

interface AdmissionSettings {
  readonly clock: Clock;
  readonly windowMs: number;
  readonly queue: Queue;
  readonly reservations: Reservations;
  readonly stats: LaneStats;
  /** The plan of the next calls; refusals in quick succession share one. */
  readonly planned: () => Views;
  /** Called for each visitor who is refused because no call at all is possible in time. */
  readonly onNoCallInTime: () => void;
}

/** A refusal counts as this part of a call until its client returns on time. So clients that make many requests rank behind those that make few. */
const REFUSED_COUNTS = 0.25;

/** The number of clients whose usage is kept. */
const MAX_CLIENTS = 10_000;

const NOBODY = { carts: 0, reserved: 0 };

/** A client above this level is busy: about four recent calls. */
const BUSY_LEVEL = 3;

/** Times within this tolerance count as now, because they are floating-point sums. */
export const NOW_MS = 1e-6;

export class Admission {
  readonly #settings: AdmissionSettings;
  readonly #fairShare: FairShare;
  readonly #asked = new LatestOfTwo();
  readonly #refused = new LatestOfTwo();
  /** The reservations that requests have claimed, for their own clients or for others who share them. */
  readonly #claims = new WeakMap<QuotaRequest, Ticket>();

  constructor(settings: AdmissionSettings) {
    this.#settings = settings;
    this.#fairShare = new FairShare(settings.windowMs, MAX_CLIENTS);
  }

  /** How the request may wait, or its refusal. Calling it again before a refusal gives the same result. */
  decide(request: QuotaRequest): Entry | ServiceError {
    const { queue, reservations } = this.#settings;
    const now = this.#settings.clock.monotonic();
    const { lane, client } = request;
    if (!isBackground(lane)) this.#asked.note(client, now);
    const key = ticketKey(client, request.queryKey);
    const standing = reservations.standing(key, now);
    const isEarly = standing.kind === "early";
    const isBack = standing.kind === "returner";
    if (isBack || standing.kind === "reserved") this.#forgive(request, standing.ticket);
    if (standing.kind === "reserved") {
      const { ticket } = standing;
      if (this.#isPaused(request, now)) return this.#refuse(request, ticket, now, { isOwed: true });
      // Holders are served in the order of their due times, regardless of client.
      return { kind: "reserved", usage: NO_USAGE, rank: ticket.dueAt, askedAt: ticket.askedAt, key };
    }
    if (isEarly && queue.visitors > 0) return this.#refuseEarly(request, standing.ticket, now);
    const askedAt = isBack ? standing.ticket.askedAt : now;
    const kind = kindOf(lane, isBack ? "returner" : "newcomer");
    const entry: Entry = { kind, usage: this.#fairShare.of(request, now), rank: askedAt, askedAt, key };
    const hasRoom = queue.hasRoom(client, this.othersWant(client));
    if (hasRoom && this.#servedAt(request, entry, now) <= now + request.maxWaitMs + NOW_MS) return entry;
    return isEarly ? this.#refuseEarly(request, standing.ticket, now) : this.#refuse(request, entry, now);
  }

  /** Call when the request joins the queue. */
  admitted(request: QuotaRequest, { kind, key }: Entry): void {
    const { reservations, clock } = this.#settings;
    const now = clock.monotonic();
    const hasClaimed = kind === "reserved" && this.#claimed(key, request) !== null;
    // One who asks too early keeps its reservation until it has a call: others may yet go before it, or its connection may be lost.
    if (!hasClaimed && reservations.standing(key, now).kind !== "early") reservations.forget(key);
    this.#fairShare.charge(request, now, 1);
  }

  /** Claims a reservation that has become due, or whose holder now shares the request, and returns when it was due; null if there is none. */
  claim({ key, request }: Waiter): number | null {
    const { reservations } = this.#settings;
    if (reservations.size === 0) return null;
    const own = this.#claimed(key, request);
    if (own !== null) return own.dueAt;
    const { sharedBy, queryKey } = request;
    if (sharedBy === undefined || sharedBy.size < 2) return null;
    for (const { client } of sharedBy) {
      const ticket = this.#claimed(ticketKey(client, queryKey), request);
      if (ticket !== null) return ticket.dueAt;
    }
    return null;
  }

  /** Call when the request gets its call. */
  served({ key, request }: Waiter): void {
    const { reservations } = this.#settings;
    const claimed = this.#claims.get(request);
    if (claimed !== undefined) reservations.forget(claimed.key);
    reservations.forget(key);
  }

  /** Call when the request has left the queue without a call. */
  left({ request, since }: Waiter): void {
    this.#fairShare.refund(request, since, 1);
  }

  /** Call when nobody waits for the request any more. */
  gone(waiter: Waiter): void {
    this.left(waiter);
    this.#unclaim(waiter);
  }

  /** The waiting requests that can no longer be served in time, because others went before them. */
  overtaken(): Waiter[] {
    const { queue, planned } = this.#settings;
    return (["newcomer", "returner"] as const).flatMap((kind) => {
      const last = queue.last(kind);
      if (last === undefined) return [];
      const ahead = queue.ahead(kind, last.usage, NOBODY);
      const others = { ...ahead, own: ahead.own - 1, ownEquals: ahead.ownEquals - 1, refresh: 0 };
      const before = callsBefore(kind, others);
      const servedAt = planned().own.plan("visitor").timeAt(before);
      return servedAt > last.since + last.request.maxWaitMs + NOW_MS ? [last] : [];
    });
  }

  /** The refusal of a request that could not be served in time after all. */
  refuseLate(waiter: Waiter): ServiceError {
    const { request, key, kind } = waiter;
    const now = this.#settings.clock.monotonic();
    if (this.#returnClaim(waiter, now)) return this.#refuse(request, waiter, now, { isLate: true });
    const standing = this.#settings.reservations.standing(key, now);
    if (standing.kind === "early") return this.#refuseEarly(request, standing.ticket, now);
    // If its reservation is still there, it joined too early to claim it.
    const isOwed = kind === "reserved" || standing.kind === "reserved";
    const { askedAt } = standing.kind === "reserved" ? standing.ticket : waiter;
    return this.#refuse(request, { key, askedAt }, now, { isOwed, isLate: true });
  }

  /** The refusal of a request whose call the upstream rejected, asking for a pause. */
  refuseForPause(request: QuotaRequest, entry: Entry): ServiceError {
    const now = this.#settings.clock.monotonic();
    const isOwed = !this.#returnClaim({ request, key: entry.key }, now) && this.#claims.has(request);
    return this.#refuse(request, entry, now, { isOwed, isLate: true });
  }

  /** The refusal of a request whose call could not be recorded. */
  refuseForFault(waiter: Waiter): ServiceError {
    const { request } = waiter;
    this.#unclaim(waiter);
    const wait = { cause: "fault", inMs: this.#settings.windowMs / 60, kept: false } as const;
    return this.#refusal(request, wait, this.#settings.clock.monotonic());
  }

  /** Whether other clients wait for calls, or were refused within the last window. */
  othersWant(client: string): boolean {
    const { clock, windowMs, queue } = this.#settings;
    return queue.hasOthers(client) || this.#refused.atOfOthers(client) > clock.monotonic() - windowMs;
  }

  /** Whether the upstream has asked for a pause that outlasts the patience of a request made then. */
  #isPaused({ maxWaitMs }: QuotaRequest, at: number): boolean {
    return this.#settings.planned().pausedUntil > at + maxWaitMs + NOW_MS;
  }

  /** When a new request would be served if no later one went before it. */
  #servedAt({ maxWaitMs }: QuotaRequest, { kind, usage }: Entry, now: number): number {
    if (maxWaitMs === Infinity) return -Infinity;
    const { queue, reservations, planned, stats, windowMs } = this.#settings;
    const view = planned().of(kind);
    const { timeAt } = view.plan(urgencyOf(kind));
    if (kind !== "cart" && kind !== "newcomer" && kind !== "returner") return timeAt(queue.size);
    // While nobody waits, expected requests don't keep a new one from waiting; otherwise calls would stay unused.
    const expected =
      queue.visitors === 0
        ? NOBODY
        : {
            carts: (stats.cartsPerWindow(now) * maxWaitMs) / windowMs,
            reserved: Math.round(reservations.dueWithin(maxWaitMs, now) * view.part),
          };
    return timeAt(callsBefore(kind, queue.ahead(kind, usage, expected)));
  }

  /** `isOwed`: it has returned at its reserved second; `isLate`: it has waited. Both in vain. */
  #refuse(
    request: QuotaRequest,
    { key, askedAt }: Pick<Ticket, "key" | "askedAt">,
    now: number,
    { isOwed = false, isLate = false } = {},
  ): ServiceError {
    const { reservations, windowMs, planned, onNoCallInTime } = this.#settings;
    const { lane, client, maxWaitMs } = request;
    // Background work doesn't retry at a given second, so it gets no reservation.
    if (isBackground(lane)) {
      const pausedForMs = planned().pausedUntil - now;
      const inMs = pausedForMs > 0 ? pausedForMs : windowMs;
      return this.#refusal(request, { cause: "busy", inMs, kept: false }, now);
    }
    if (planned().own.plan("visitor").timeAt(0) > now + maxWaitMs) onNoCallInTime();
    const openPart = isOwed ? "owed" : this.#partOpenTo(request, now);
    const ticket = reservations.refuse({ key, client, askedAt, maxWaitMs, openPart }, this.#outlook(now));
    this.#fairShare.charge(request, now, REFUSED_COUNTS);
    const { isReserved: kept, dueAt } = ticket;
    const cause = isLate ? "late" : kept ? "reserved" : "busy";
    return this.#refusal(request, { cause, inMs: dueAt - now, kept }, now);
  }

  #refuseEarly(request: QuotaRequest, ticket: Ticket, now: number): ServiceError {
    if (ticket.isReserved && this.#isPaused(request, ticket.dueAt))
      return this.#refuse(request, ticket, now, { isOwed: true });
    // A search or cart requests several names, each with its own retry time, and returns at the first of them.
    const isForgiven = request.lane !== "exact";
    const again = this.#settings.reservations.askedEarly(ticket, isForgiven, this.#outlook(now));
    if (!isForgiven) this.#fairShare.charge(request, now, REFUSED_COUNTS);
    const wait = { cause: "early", inMs: again.dueAt - now, kept: again.isReserved } as const;
    return this.#refusal(request, wait, now);
  }

  #refusal({ lane, client }: QuotaRequest, wait: Wait, now: number): ServiceError {
    const { inMs, kept } = wait;
    this.#settings.stats.refused(lane, wait, now);
    if (lane !== "suggestion") this.#refused.note(client, now);
    return new ServiceError("quota_exhausted", "The registry service can't be asked in time.", {
      retryAfterMs: Math.max(1, Math.ceil(inMs - NOW_MS)),
      kept,
    });
  }

  /** The reservation with this key, now claimed for the request; null if there is none that is due. */
  #claimed(key: string, request: QuotaRequest): Ticket | null {
    const { clock, reservations, stats } = this.#settings;
    const standing = reservations.standing(key, clock.monotonic());
    if (standing.kind !== "reserved") return null;
    reservations.claim(standing.ticket);
    stats.claimed(request.lane);
    this.#claims.set(request, standing.ticket);
    return standing.ticket;
  }

  #unclaim({ request }: Waiter): void {
    const { clock, reservations } = this.#settings;
    const claimed = this.#claims.get(request);
    this.#claims.delete(request);
    if (claimed !== undefined) reservations.unclaim(claimed, clock.monotonic());
  }

  /** Returns a reservation that was claimed in vain for somebody who shares the request: they now make a request of their own, and can claim it. */
  #returnClaim({ request, key }: Pick<Waiter, "request" | "key">, now: number): boolean {
    const claimed = this.#claims.get(request);
    if (claimed === undefined || claimed.key === key) return false;
    this.#claims.delete(request);
    this.#settings.reservations.adopt({ ...claimed, dueAt: now }, now);
    return true;
  }

  /** Returning on time makes up for the refusal. */
  #forgive(request: QuotaRequest, ticket: Ticket): void {
    if (ticket.isForgiven) return;
    ticket.isForgiven = true;
    this.#fairShare.refund(request, ticket.refusedAt, REFUSED_COUNTS);
  }

  /** The reservable part that is open to the client: all of it, but while other clients also make requests, halved for each level above `BUSY_LEVEL`. */
  #partOpenTo(request: QuotaRequest, now: number): number {
    if (this.#asked.atOfOthers(request.client) <= now - this.#settings.windowMs) return 1;
    const { client, network } = this.#fairShare.of(request, now);
    return 2 ** -Math.max(0, Math.max(client, network) - BUSY_LEVEL);
  }

  #outlook(now: number): Outlook {
    const { windowMs, planned, queue } = this.#settings;
    const { pausedUntil, fleet } = planned();
    const { callsUntil } = fleet.plan("visitor");
    const urgent = fleet.plan("urgent");
    // Slots that are free together after a pause aren't used together, not even for reservations.
    const isAfterPause = now < pausedUntil + windowMs;
    return {
      now,
      windowMs,
      pausedForMs: Math.max(0, pausedUntil - now),
      callsUntil: isAfterPause ? (at) => Math.min(callsUntil(at), urgent.callsUntil(at)) : callsUntil,
      part: fleet.part,
      waiting: queue.visitors,
      backAndWaiting: queue.waiting("reserved"),
    };
  }
}

export function urgencyOf(kind: Kind): Urgency {
  if (kind === "cart" || kind === "reserved") return "urgent";
  return isBackground(kind) ? "background" : "visitor";
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
