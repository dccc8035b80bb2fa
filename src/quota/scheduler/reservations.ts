/**
 * What refused visitors were told. A ticket belongs to a client and its question, so people behind one address do not get in each other's
 * way. A reservation is a priority on return and not a slot set aside; at most a part of the calls up to any second is reserved. Replicas
 * know each other's reservations, and honour them.
 */
import { hash } from "node:crypto";
import { graceMsOf } from "../ledger/slot-table.js";
import { RESERVABLE } from "./priority.js";

/** Waits are told in whole seconds. */
export const SECOND_MS = 1000;

/** How much earlier and later than its second somebody may come back and still have the reservation. */
const EARLY_MS = 250;
const LATE_MS = 1500;

/** After this part of its holder's patience no call is held for it any more: most who come back come on time, and many never do. */
const AWAITED = 1 / 10;
/** The same where there are several replicas: each has few calls, and none knows which of them a holder returns to. */
const AWAITED_BY_MANY = 1;

/** A holder who is this late is a newcomer again. */
const FORGOTTEN_AFTER_MS = 60_000;

/** Asking early more often than this loses a reservation. */
const EARLY_ASKS_FORGIVEN = 1;

/** Most tickets without a reservation: some 3 MB. When full, the oldest is forgotten, and its holder is a newcomer. */
const MOST_TICKETS = 10_000;

/** How far before the end of the horizon a crowd without reservations is spread, and how many may return in a second before it is. */
const SPREAD = 1 / 4;
const RETURNS_PER_CALL = 4;

/** The holder of a reservation may have to wait this long for its call, or half of its patience. */
const SLACK_MS = 1000;

export interface Ticket {
  readonly key: string;
  readonly client: string;
  /** Monotonic. */
  readonly dueAt: number;
  readonly isReserved: boolean;
  /** When its holder first asked, or last asked too early: earlier goes first. */
  readonly askedAt: number;
  /** How long its holder waits at a time. */
  readonly maxWaitMs: number;
  readonly refusedAt: number;
  readonly earlyAsks: number;
  /** Its holder came back when told. */
  isForgiven: boolean;
  /** Another replica has made the reservation. */
  readonly isElsewhere: boolean;
}

/** What replicas tell each other of a reservation. */
export type Place = Pick<Ticket, "key" | "client" | "dueAt" | "askedAt" | "maxWaitMs" | "earlyAsks">;

export interface SharedPlaces {
  /** Tells the others of a reservation, or that it is over: soon, and again until they have heard. */
  changed(key: string, place: Place | null): void;
  /** How many replicas visitors may return to, as far as is known. */
  replicas(): number;
  close(): void;
}

/** `reserved` and `returner`: back when told; `early`: before that. */
export type Standing =
  | { readonly kind: "newcomer" }
  | { readonly kind: "early" | "reserved" | "returner"; readonly ticket: Ticket };

/** The calls to come, as somebody refused now may use them. */
export interface Outlook {
  readonly now: number;
  readonly windowMs: number;
  readonly pausedForMs: number;
  /** How many calls can go until then. */
  readonly callsUntil: (at: number) => number;
  /** How many visitors wait now, and how many of them are back at a reservation. */
  readonly waiting: number;
  readonly backAndWaiting: number;
}

export interface Refused {
  readonly key: string;
  readonly client: string;
  readonly askedAt: number;
  readonly maxWaitMs: number;
  /** The part of the reservable calls that is open to this client, up to 1. */
  readonly part: number;
}

/** The key of a ticket: neither the client nor what it asked can be read from it. */
export function ticketKey(client: string, question: string): string {
  return hash("sha256", `${client}\n${question}`, "base64url");
}

export class Reservations {
  readonly #shared: Omit<SharedPlaces, "close"> | null;
  /** Oldest first. */
  readonly #tickets = new Map<string, Ticket>();
  readonly #reserved = new Map<string, Ticket>();
  /** The reservations of each second of the monotonic clock. */
  readonly #dueIn = new Map<number, Set<string>>();
  /** How many were told to return in each second, without a reservation. */
  readonly #returningIn = new Map<number, number>();
  #firstSecond = 0;
  #overflow = 0;
  #patienceMs = 0;
  #fullUntil = -Infinity;
  #lapsed = 0;
  #elsewhere = 0;

  constructor(shared: Omit<SharedPlaces, "close"> | null = null) {
    this.#shared = shared;
  }

  /** Reservations that can still be claimed. */
  get size(): number {
    return this.#reserved.size;
  }

  /** Reservations that nobody claimed, since the start. */
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

  /** The holder has been admitted. */
  forget(key: string): void {
    this.#tickets.delete(key);
    const ticket = this.#reserved.get(key);
    if (ticket === undefined) return;
    this.#release(ticket);
    this.#shared?.changed(key, null);
  }

  /** What another replica says of a reservation; `null`: it is over. */
  learn(key: string, place: Place | null, now: number): void {
    this.#expire(now);
    const known = this.#reserved.get(key);
    if (known !== undefined) this.#release(known);
    if (place === null || secondOf(place.dueAt) < this.#firstSecond) return;
    this.#tickets.delete(key);
    this.#keep({ ...place, isReserved: true, refusedAt: now, isForgiven: true, isElsewhere: true });
  }

  /** The reservations that were made here. */
  places(): readonly Place[] {
    return [...this.#reserved.values()].filter(({ isElsewhere }) => !isElsewhere);
  }

  /** A new ticket: with the first second that can be promised, or without one and the whole window. */
  refuse(refused: Refused, outlook: Outlook): Ticket {
    const { key, client, askedAt, maxWaitMs } = refused;
    const { now } = outlook;
    this.forget(key);
    this.#expire(now);
    const seconds = horizonSeconds(outlook);
    const reservedIn = this.#secondFor(refused, outlook, seconds);
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

  /** Its holder asked too early: a reservation stays the first time; else the wait starts over. `isForgiven`: always stays. */
  askedEarly(ticket: Ticket, isForgiven: boolean, outlook: Outlook): Ticket {
    const { now } = outlook;
    this.forget(ticket.key);
    const earlyAsks = ticket.earlyAsks + (isForgiven ? 0 : 1);
    const stays = ticket.isReserved && earlyAsks <= EARLY_ASKS_FORGIVEN;
    const inSeconds = stays ? 0 : this.#spread(outlook, horizonSeconds(outlook));
    const again: Ticket = stays
      ? { ...ticket, earlyAsks }
      : { ...ticket, earlyAsks, isReserved: false, askedAt: now, dueAt: now + inSeconds * SECOND_MS };
    this.#keep(again);
    if (again.isReserved) this.#shared?.changed(again.key, again);
    return again;
  }

  /** Whether a reservation of this client can be claimed now. */
  isDue(client: string, now: number): boolean {
    this.#expire(now);
    if (this.#reserved.size === 0) return false;
    for (let second = this.#firstSecond; second <= secondOf(now + EARLY_MS); second += 1)
      for (const key of this.#dueIn.get(second) ?? [])
        if (this.#reserved.get(key)?.client === client) return true;
    return false;
  }

  /** Reservations that are due here within so many ms. */
  dueWithin(ms: number, now: number): number {
    this.#expire(now);
    if (this.#reserved.size === 0) return 0;
    let due = 0;
    for (let second = this.#firstSecond; second <= secondOf(now + ms); second += 1)
      due += this.#dueIn.get(second)?.size ?? 0;
    return Math.round(due * this.#partHere());
  }

  /** When the next reservation is due, or its holder is overdue: monotonic, Infinity = there is none. */
  firstDueAt(now: number): number {
    this.#expire(now);
    if (this.#reserved.size === 0) return Infinity;
    for (let second = this.#firstSecond; ; second += 1)
      if (this.#dueIn.has(second)) return second * SECOND_MS;
  }

  /**
   * Null when somebody without a reservation may have the next call: those after it, of all replicas together, still serve every
   * reservation in time. Else when that may change.
   */
  heldUntil(now: number, callsUntil: (at: number) => number): number | null {
    this.#expire(now);
    if (this.#reserved.size === 0) return null;
    const part = this.#partHere();
    let due = 0;
    let first: number | undefined;
    const patienceMs = Math.max(this.#patienceMs, SECOND_MS);
    const awaitedMs = (part < 1 ? AWAITED_BY_MANY : AWAITED) * patienceMs;
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

  /** The part of all reservations whose holders will return to this replica: one as much as another. */
  #partHere(): number {
    return 1 / Math.max(1, this.#shared?.replicas() ?? 1);
  }

  /**
   * The first second by which, and by every later one, fewer than the reservable part of the calls until then are reserved, and there is
   * one more than those who wait now need.
   */
  #secondFor(refused: Refused, outlook: Outlook, seconds: number): number | null {
    const { now, callsUntil, waiting, backAndWaiting, windowMs } = outlook;
    if (now < this.#fullUntil || !Number.isFinite(refused.maxWaitMs)) return null;
    const slackMs = Math.min(refused.maxWaitMs / 2, SLACK_MS);
    const others = waiting - backAndWaiting;
    // Others promise what they can serve: as many come here for them as go there for us.
    let before = backAndWaiting + this.#reserved.size - this.#elsewhere;
    let found: number | null = null;
    const soonest = Math.max(1, Math.ceil(outlook.pausedForMs / SECOND_MS));
    for (let inSeconds = seconds; inSeconds >= soonest; inSeconds -= 1) {
      const calls = callsUntil(now + inSeconds * SECOND_MS + slackMs);
      if (before >= refused.part * RESERVABLE * calls || before + others >= calls) break;
      found = inSeconds;
      before -= this.#madeHereFor(secondOf(now + inSeconds * SECOND_MS));
    }
    if (found === null && refused.part === 1) this.#fullUntil = now + windowMs / 600;
    return found;
  }

  #madeHereFor(second: number): number {
    const due = this.#dueIn.get(second) ?? new Set<string>();
    if (this.#elsewhere === 0) return due.size;
    return [...due].filter((key) => this.#reserved.get(key)?.isElsewhere === false).length;
  }

  /** The whole horizon, or in a crowd a little less, so that it does not return in one second. */
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

  #keep(ticket: Ticket): void {
    const { key, dueAt, isReserved, isElsewhere } = ticket;
    if (!isReserved) {
      this.#tickets.set(key, ticket);
      if (this.#tickets.size <= MOST_TICKETS) return;
      const [oldest] = this.#tickets.keys();
      if (oldest !== undefined) this.#tickets.delete(oldest);
      return;
    }
    this.#reserved.set(key, ticket);
    this.#patienceMs = ticket.maxWaitMs;
    if (isElsewhere) this.#elsewhere += 1;
    const second = secondOf(dueAt);
    const due = this.#dueIn.get(second) ?? new Set();
    this.#dueIn.set(second, due.add(key));
  }

  #release({ key, dueAt, isElsewhere }: Ticket): void {
    this.#reserved.delete(key);
    if (isElsewhere) this.#elsewhere -= 1;
    const second = secondOf(dueAt);
    const due = this.#dueIn.get(second);
    due?.delete(key);
    if (due?.size === 0) this.#dueIn.delete(second);
  }

  /** Those who come later than this have no reservation any more, but return as one who waited. */
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
    for (const [key, { dueAt }] of this.#tickets) {
      if (dueAt + FORGOTTEN_AFTER_MS > now) return;
      this.#tickets.delete(key);
    }
  }
}

function secondOf(at: number): number {
  return Math.floor(at / SECOND_MS);
}

/** The longest wait that is told: a window, longer only when the upstream asks for a pause, or when no call at all can go within one. */
function horizonSeconds({ now, windowMs, pausedForMs, callsUntil }: Outlook): number {
  const isCold = callsUntil(now + windowMs + SLACK_MS) === 0;
  const seconds = Math.floor((isCold ? windowMs + graceMsOf(windowMs) : windowMs) / SECOND_MS);
  const paused = Math.ceil((pausedForMs + windowMs * SPREAD) / SECOND_MS);
  return Math.max(1, seconds, pausedForMs > 0 && paused > seconds ? paused : 0);
}
