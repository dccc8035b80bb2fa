/**
 * Records what refused visitors were promised. A ticket belongs to a client and its query, so people behind one address don't get in each
 * other's way. A reservation is a priority on return, not a slot set aside; at most the part `RESERVABLE` of the calls before any second is
 * reserved. Replicas honour each other's reservations.
 */
import { hash } from "node:crypto";
import { BoundedMap } from "../../bounded-map.js";
import { graceMsOf } from "../ledger/slot-table.js";
import { RESERVABLE } from "./priority.js";

/** Waits are whole seconds. */
export const SECOND_MS = 1000;

/** How much earlier or later than its second a reservation can be claimed. */
const EARLY_MS = 250;
const LATE_MS = 1500;

/** How long a call is held for an overdue reservation, as a part of its holder's patience. Short, because holders this late rarely come back. */
const AWAITED = 1 / 10;

/**
 * A reservation survives this many early retries, because they may come from somebody else at the same address, or from a connection that was lost.
 * More of them end it, so that those who wait are served sooner than those who keep retrying.
 */
const EARLY_ASKS_FORGIVEN = 2;

/** A visitor who returns this late is a newcomer again. */
const FORGOTTEN_AFTER_MS = 60_000;

/** The maximum number of tickets without a reservation, about 3 MB. When full, the oldest is dropped, and its holder is a newcomer. */
const MAX_TICKETS = 10_000;

/** A crowd without reservations is spread over this last part of the horizon, once so many would return in the same second. */
const SPREAD = 1 / 4;
const RETURNS_PER_CALL = 4;

/** The longest that a holder who returned on time has to wait for its call, or half of its patience if that is shorter. */
const SLACK_MS = 1000;

export interface Ticket {
  readonly key: string;
  /** Empty if a former process made it. */
  readonly client: string;
  /** Monotonic. */
  readonly dueAt: number;
  readonly isReserved: boolean;
  /** When its holder first asked, or last asked too early. Returners without a reservation are served in this order. */
  readonly askedAt: number;
  /** How long a request of its holder waits. */
  readonly maxWaitMs: number;
  readonly refusedAt: number;
  readonly earlyAsks: number;
  /** Whether its holder returned on time. */
  isForgiven: boolean;
  /** Whether another replica made the reservation. */
  readonly isElsewhere: boolean;
}

/** The part of a ticket that replicas share. */
export type Reservation = Pick<Ticket, "key" | "client" | "dueAt" | "askedAt" | "maxWaitMs" | "earlyAsks">;

export interface SharedReservations {
  /** Publishes a reservation, or that it is over (null): soon, and repeatedly until Redis has confirmed it. */
  changed(key: string, reservation: Reservation | null): void;
  /** Whether a reservation made now will be known wherever its holder may return. */
  canPublish(): boolean;
  /** The number of replicas that visitors may return to, as far as known, and the cart calls per window of the others. */
  replicas(): number;
  cartsElsewhere(): number;
  /** Resolves when the last changes are published or saved, as far as possible. */
  close(): Promise<void>;
}

/** `reserved` and `returner`: back on time, with and without a reservation; `early`: back before that. */
export type Standing =
  | { readonly kind: "newcomer" }
  | { readonly kind: "early" | "reserved" | "returner"; readonly ticket: Ticket };

/** The coming calls, as seen by a request that is refused now. */
export interface Outlook {
  readonly now: number;
  readonly windowMs: number;
  readonly pausedForMs: number;
  /** The number of calls possible until then. */
  readonly callsUntil: (at: number) => number;
  /** The part of all reservations that these calls must serve: 1, or less if they are only this replica's. */
  readonly part: number;
  /** The number of waiting visitors, and how many of them have claimed a reservation. */
  readonly waiting: number;
  readonly backAndWaiting: number;
}

export interface Refused extends Pick<Ticket, "key" | "client" | "askedAt" | "maxWaitMs"> {
  /**
   * The part of the reservable calls that is open to it, up to 1; or "owed" if it returned at a reserved second in vain. It may have a later
   * second than others, and if there is none, any call that is left.
   */
  readonly openPart: number | "owed";
}

/** The key of a ticket: a hash of the client and the query. It hides them only from those who can't guess both. */
export function ticketKey(client: string, queryKey: string): string {
  return hash("sha256", `${client}\n${queryKey}`, "base64url");
}

export class Reservations {
  readonly #shared: Pick<SharedReservations, "changed" | "canPublish"> | null;
  /** Oldest first. */
  readonly #tickets = new BoundedMap<string, Ticket>(MAX_TICKETS);
  readonly #reserved = new Map<string, Ticket>();
  /** Claimed reservations whose holders still wait. The other replicas and the next process keep these, because the connection may be lost. */
  readonly #claimed = new Map<string, Ticket>();
  /** The reservations of each second of the monotonic clock. */
  readonly #dueIn = new Map<number, Set<string>>();
  /** How many will return in each second without a reservation. */
  readonly #returningIn = new Map<number, number>();
  #firstSecond = 0;
  #overflow = 0;
  #patienceMs = 0;
  #fullUntil = -Infinity;
  #lapsed = 0;

  constructor(shared: Pick<SharedReservations, "changed" | "canPublish"> | null = null) {
    this.#shared = shared;
  }

  /** Reservations that can still be claimed. */
  get size(): number {
    return this.#reserved.size;
  }

  /** The number of unclaimed reservations since startup. */
  lapsed(now: number): number {
    this.#expire(now);
    return this.#lapsed;
  }

  standing(key: string, now: number): Standing {
    this.#expire(now);
    const ticket = this.#reserved.get(key) ?? this.#tickets.get(key);
    if (ticket === undefined) return { kind: "newcomer" };
    if (now < ticket.dueAt - EARLY_MS) return { kind: "early", ticket };
    return { kind: ticket.isReserved ? "reserved" : "returner", ticket };
  }

  /** Call when the holder has been admitted without a reservation, or when its call is made. */
  forget(key: string): void {
    this.#tickets.delete(key);
    const ticket = this.#reserved.get(key);
    if (ticket !== undefined) this.#release(ticket);
    const wasClaimed = this.#claimed.delete(key);
    if (ticket !== undefined || wasClaimed) this.#shared?.changed(key, null);
  }

  /** Call when the holder of a reservation that is due waits for its call. It then ends with `forget`, `unclaim`, `adopt` or `refuse`. */
  claim(ticket: Ticket): void {
    this.#release(ticket);
    this.#claimed.set(ticket.key, ticket);
  }

  /** Takes over a reservation of another replica; null: it is over. */
  learn(key: string, reservation: Reservation | null, now: number): void {
    this.#expire(now);
    const known = this.#reserved.get(key);
    if (known !== undefined) this.#release(known);
    if (reservation !== null) this.#take(reservation, now, true);
  }

  /** Takes over a reservation of the process before this one, or of another credential's quota, as if it had been made here. */
  adopt(reservation: Reservation, now: number): void {
    this.#expire(now);
    this.#claimed.delete(reservation.key);
    if (this.#reserved.has(reservation.key)) return;
    this.#take(reservation, now, false);
    this.#shared?.changed(reservation.key, reservation);
  }

  /**
   * Call when a claim has ended without a call because nobody waits for it any more. The connection may have been lost, so the reservation stays for a
   * return soon after. That counts as an early retry; otherwise somebody could hold a call for ever without using it.
   */
  unclaim(ticket: Ticket, now: number): void {
    const earlyAsks = ticket.earlyAsks + 1;
    if (earlyAsks <= EARLY_ASKS_FORGIVEN) this.adopt({ ...ticket, dueAt: now, earlyAsks }, now);
    else this.forget(ticket.key);
  }

  /** The reservations made by this replica that haven't had their call. */
  own(): readonly Reservation[] {
    return [...this.#reserved.values(), ...this.#claimed.values()].filter(({ isElsewhere }) => !isElsewhere);
  }

  /** Returns the unclaimed reservations made by this replica and ends them here; other replicas keep theirs. */
  handOver(): readonly Reservation[] {
    const unclaimed = [...this.#reserved.values()].filter(({ isElsewhere }) => !isElsewhere);
    for (const reservation of unclaimed) this.#release(reservation);
    return unclaimed;
  }

  /** Makes a ticket: with the first second that can be reserved, or without a reservation and for the whole window. */
  refuse(refused: Refused, outlook: Outlook): Ticket {
    const { key, client, askedAt, maxWaitMs } = refused;
    const { now } = outlook;
    this.forget(key);
    this.#expire(now);
    const seconds = horizonSeconds(outlook);
    const reservedIn = this.#shared?.canPublish() === false ? null : this.#secondFor(refused, outlook);
    const inSeconds = reservedIn ?? this.#spread(outlook, seconds);
    const dueAt = now + inSeconds * SECOND_MS;
    const ticket: Ticket = {
      key,
      client,
      dueAt,
      isReserved: reservedIn !== null,
      askedAt,
      maxWaitMs,
      refusedAt: now,
      earlyAsks: 0,
      isForgiven: false,
      isElsewhere: false,
    };
    if (ticket.isReserved) this.#shared?.changed(key, ticket);
    this.#keep(ticket);
    return ticket;
  }

  /** Call when the holder asked too early. The first times, or if `isForgiven`, a reservation stays; otherwise the wait starts over. */
  askedEarly(ticket: Ticket, isForgiven: boolean, outlook: Outlook): Ticket {
    const { now } = outlook;
    this.forget(ticket.key);
    const earlyAsks = ticket.earlyAsks + (isForgiven ? 0 : 1);
    const stays = ticket.isReserved && earlyAsks <= EARLY_ASKS_FORGIVEN;
    const inSeconds = stays ? 0 : this.#spread(outlook, horizonSeconds(outlook));
    const again: Ticket = stays
      ? { ...ticket, earlyAsks, isElsewhere: false }
      : { ...ticket, earlyAsks, isReserved: false, askedAt: now, dueAt: now + inSeconds * SECOND_MS };
    this.#keep(again);
    if (again.isReserved) this.#shared?.changed(again.key, again);
    return again;
  }

  /** Whether a reservation can be claimed now that is, or may be, of this client. */
  isDue(client: string, now: number): boolean {
    this.#expire(now);
    if (this.#reserved.size === 0) return false;
    for (let second = this.#firstSecond; second <= secondOf(now + EARLY_MS); second += 1)
      for (const key of this.#dueIn.get(second) ?? []) {
        const holder = this.#reserved.get(key)?.client;
        if (holder === client || holder === "") return true;
      }
    return false;
  }

  /** The number of reservations that will be due within `ms`. */
  dueWithin(ms: number, now: number): number {
    this.#expire(now);
    if (this.#reserved.size === 0) return 0;
    let due = 0;
    for (let second = this.#firstSecond; second <= secondOf(now + ms); second += 1)
      due += this.#dueIn.get(second)?.size ?? 0;
    return due;
  }

  /** When the next reservation is due, or was if its holder is overdue; monotonic, Infinity without one. */
  firstDueAt(now: number): number {
    this.#expire(now);
    if (this.#reserved.size === 0) return Infinity;
    for (let second = this.#firstSecond; ; second += 1)
      if (this.#dueIn.has(second)) return second * SECOND_MS;
  }

  /**
   * Null if a request without a reservation may have the next call, because the following ones still serve every reservation in time.
   * Otherwise the time at which that may change.
   */
  heldUntil(now: number, { callsUntil, part }: Pick<Outlook, "callsUntil" | "part">): number | null {
    this.#expire(now);
    if (this.#reserved.size === 0) return null;
    let due = 0;
    let first: number | undefined;
    const patienceMs = Math.max(this.#patienceMs, SECOND_MS);
    const awaitedMs = AWAITED * patienceMs;
    const lastSecond = secondOf(now + patienceMs);
    for (let second = secondOf(now - awaitedMs); second <= lastSecond; second += 1) {
      due += (this.#dueIn.get(second)?.size ?? 0) * part;
      if (due === 0) continue;
      first ??= second;
      const lastAt = Math.max(now, second * SECOND_MS) + (3 / 4) * patienceMs;
      if (due > callsUntil(lastAt) - part) return (first + 1) * SECOND_MS + awaitedMs;
    }
    return null;
  }

  #secondFor(refused: Refused, outlook: Outlook): number | null {
    const { openPart, maxWaitMs } = refused;
    const { now, windowMs } = outlook;
    if (!Number.isFinite(maxWaitMs)) return null;
    if (openPart === "owed") {
      const seconds = horizonSeconds(outlook, 1);
      return (
        this.#firstWithRoom(RESERVABLE, maxWaitMs, seconds, outlook) ??
        this.#firstWithRoom(1, maxWaitMs, seconds, outlook)
      );
    }
    if (now < this.#fullUntil) return null;
    const found = this.#firstWithRoom(RESERVABLE * openPart, maxWaitMs, horizonSeconds(outlook), outlook);
    if (found === null && openPart === 1) this.#fullUntil = now + windowMs / 600;
    return found;
  }

  /**
   * The first second that can be reserved: from it on, less than this part of the calls is reserved, and at least one call is left besides those
   * that the waiting requests need.
   */
  #firstWithRoom(reservable: number, maxWaitMs: number, seconds: number, outlook: Outlook): number | null {
    const { now, callsUntil, part, waiting, backAndWaiting, pausedForMs } = outlook;
    const slackMs = Math.min(maxWaitMs / 2, SLACK_MS);
    const others = waiting - backAndWaiting;
    let before = backAndWaiting + this.#reserved.size * part;
    let found: number | null = null;
    const soonest = Math.max(1, Math.ceil(pausedForMs / SECOND_MS));
    for (let inSeconds = seconds; inSeconds >= soonest; inSeconds -= 1) {
      const calls = callsUntil(now + inSeconds * SECOND_MS + slackMs);
      if (before >= reservable * calls || before + others >= calls) break;
      found = inSeconds;
      before -= (this.#dueIn.get(secondOf(now + inSeconds * SECOND_MS))?.size ?? 0) * part;
    }
    return found;
  }

  /** The whole horizon; a little less in a crowd, so that it doesn't return in the same second. */
  #spread({ now, windowMs, pausedForMs, callsUntil }: Outlook, seconds: number): number {
    const perSecond = Math.max(
      RETURNS_PER_CALL,
      (RETURNS_PER_CALL * SECOND_MS * callsUntil(now + windowMs)) / windowMs,
    );
    const least = Math.max(Math.ceil(seconds * (1 - SPREAD)), Math.ceil(pausedForMs / SECOND_MS));
    let inSeconds = seconds;
    while (inSeconds > least && this.#returning(now, inSeconds) >= perSecond) inSeconds -= 1;
    if (this.#returning(now, inSeconds) >= perSecond) {
      this.#overflow += 1;
      inSeconds = seconds - (this.#overflow % (seconds - least + 1));
    }
    const second = secondOf(now + inSeconds * SECOND_MS);
    this.#returningIn.set(second, (this.#returningIn.get(second) ?? 0) + 1);
    return inSeconds;
  }

  #returning(now: number, inSeconds: number): number {
    return this.#returningIn.get(secondOf(now + inSeconds * SECOND_MS)) ?? 0;
  }

  #take(reservation: Reservation, now: number, isElsewhere: boolean): void {
    if (secondOf(reservation.dueAt) < this.#firstSecond) return;
    this.#tickets.delete(reservation.key);
    this.#keep({ ...reservation, isReserved: true, refusedAt: now, isForgiven: true, isElsewhere });
  }

  #keep(ticket: Ticket): void {
    const { key, dueAt, isReserved } = ticket;
    if (!isReserved) {
      this.#tickets.set(key, ticket);
      return;
    }
    this.#reserved.set(key, ticket);
    this.#patienceMs = ticket.maxWaitMs;
    const second = secondOf(dueAt);
    const due = this.#dueIn.get(second) ?? new Set();
    this.#dueIn.set(second, due.add(key));
  }

  #release({ key, dueAt }: Reservation): void {
    this.#reserved.delete(key);
    const second = secondOf(dueAt);
    const due = this.#dueIn.get(second);
    due?.delete(key);
    if (due?.size === 0) this.#dueIn.delete(second);
  }

  /** Ends overdue reservations; their holders still count as visitors who have waited. */
  #expire(now: number): void {
    const first = secondOf(now - LATE_MS);
    if (first <= this.#firstSecond) return;
    if (this.#reserved.size > 0 || this.#returningIn.size > 0) {
      for (let second = this.#firstSecond; second < first; second += 1) {
        this.#returningIn.delete(second);
        for (const key of this.#dueIn.get(second) ?? []) this.#lapse(key);
      }
    }
    this.#firstSecond = first;
    this.#forgetOld(now);
  }

  #lapse(key: string): void {
    const ticket = this.#reserved.get(key);
    if (ticket === undefined) return;
    this.#release(ticket);
    if (!ticket.isElsewhere) this.#lapsed += 1;
    this.#keep({ ...ticket, isReserved: false });
  }

  #forgetOld(now: number): void {
    for (;;) {
      const oldest = this.#tickets.first();
      if (oldest === undefined || oldest.dueAt + FORGOTTEN_AFTER_MS > now) return;
      this.#tickets.delete(oldest.key);
    }
  }
}

function secondOf(at: number): number {
  return Math.floor(at / SECOND_MS);
}

/**
 * The longest wait given: one window; a sixth more if no call is possible within it; or until `afterPause` of a window after a pause of the upstream.
 */
function horizonSeconds({ now, windowMs, pausedForMs, callsUntil }: Outlook, afterPause = SPREAD): number {
  const isCold = callsUntil(now + windowMs + SLACK_MS) === 0;
  const seconds = Math.floor((isCold ? windowMs + graceMsOf(windowMs) : windowMs) / SECOND_MS);
  const paused = Math.ceil((pausedForMs + windowMs * afterPause) / SECOND_MS);
  return Math.max(1, seconds, paused);
}
