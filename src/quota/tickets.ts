/**
 * What refused visitors were told. A ticket belongs to a client and its query, so people behind one address don't get in each other's way. A ticket
 * that is `kept` is a place: priority on return at its second, not a slot set aside. At most half of the calls up to any second are promised.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";

export const SECOND_MS = 1000;

/** The part of the calls up to any second that may be promised. */
const PROMISED = 0.5;
/** How much earlier or later than its second a place can be claimed. */
const EARLY_MS = 250;
const LATE_MS = 1500;
/** Coming back too early changes nothing once, because it may be somebody else at the same address. */
const EARLY_FORGIVEN = 1;
/** A visitor who comes back this late is a newcomer again. */
const FORGOTTEN_AFTER_MS = 60_000;
/** About 3 MB. When there are more, the oldest is dropped, and its holder is a newcomer. */
const MAX_TICKETS = 10_000;
/** The longest that a holder who is back on time waits for its call, or half of its patience if that is shorter. */
const SLACK_MS = 1000;
/** How long a call is held for an overdue place, as a part of its holder's patience: most of those who are this late don't come. */
const AWAITED = 1 / 10;

/** If no second has room, none is looked for again within this part of a window. */
const FULL_LASTS = 1 / 600;

export interface Ticket {
  readonly key: string;
  readonly client: string;
  /** When its holder first asked, or last came back too early. Monotonic, as all times here. */
  askedAt: number;
  /** The time given in its last refusal; null before the first. */
  dueAt: number | null;
  kept: boolean;
  early: number;
  /** Whether its holder is back and waits in the line. */
  waits: boolean;
  patienceMs: number;
}

/** A place as the next process gets it: times are in ms from the time of writing. */
export const handedPlace = z.strictObject({
  key: z.string(),
  dueInMs: z.number(),
  askedAgoMs: z.number(),
  patienceMs: z.number(),
});
export type HandedPlace = z.infer<typeof handedPlace>;

/** The coming calls, as seen by a visitor who is refused now. */
export interface Outlook {
  readonly now: number;
  readonly windowMs: number;
  readonly pausedUntilAt: number;
  /** How many calls can be made until then. */
  readonly callsUntil: (at: number) => number;
  /** When the next call can be made. */
  readonly nextAt: number;
  /** How many visitors wait, and how many of them have come back to a place. */
  readonly waiting: number;
  readonly waitingPlaces: number;
}

export type Standing = "newcomer" | "early" | "placed" | "returned";

/** Hides client and query from those who can't guess both. */
export function ticketKey(client: string, queryKey: string): string {
  return hash("sha256", `${client}\n${queryKey}`, "base64url");
}

export class Tickets {
  /** Oldest first. */
  readonly #tickets = new BoundedMap<string, Ticket>(MAX_TICKETS);
  /** The unclaimed places of each second of the monotonic clock. */
  readonly #places = new Map<number, Set<Ticket>>();
  #placed = 0;
  #expiredUntil = -Infinity;
  /** Until then no second has room for another place. */
  #fullUntil = -Infinity;
  #unclaimed = 0;

  /** The ticket of this client and query; a new one if there is none, or if another of its requests already waits. */
  of(client: string, queryKey: string, patienceMs: number, now: number): Ticket {
    this.#expire(now);
    const key = ticketKey(client, queryKey);
    const known = this.#tickets.get(key);
    const isOld = known !== undefined && known.dueAt !== null && known.dueAt + FORGOTTEN_AFTER_MS < now;
    if (known !== undefined && !known.waits && !isOld) return Object.assign(known, { patienceMs });
    return { key, client, askedAt: now, dueAt: null, kept: false, early: 0, waits: false, patienceMs };
  }

  standing({ dueAt, kept }: Ticket, now: number): Standing {
    if (dueAt === null) return "newcomer";
    if (now < dueAt - EARLY_MS) return "early";
    return kept ? "placed" : "returned";
  }

  /** The place of this client and query that is due and unclaimed. */
  dueFor(client: string, queryKey: string, now: number): Ticket | null {
    this.#expire(now);
    const ticket = this.#tickets.get(ticketKey(client, queryKey));
    return ticket !== undefined && !ticket.waits && this.standing(ticket, now) === "placed" ? ticket : null;
  }

  /** Its holder is back and waits. */
  claim(ticket: Ticket): void {
    ticket.waits = true;
    this.#unplace(ticket);
  }

  /** Its holder has its call, or is served without the ticket. */
  forget(ticket: Ticket): void {
    ticket.waits = false;
    this.#unplace(ticket);
    if (this.#tickets.get(ticket.key) === ticket) this.#tickets.delete(ticket.key);
  }

  /** Its holder has left the line. The connection may have been lost, so a place stays for a return soon after, once. */
  left(ticket: Ticket, now: number): void {
    ticket.waits = false;
    if (ticket.dueAt === null) return;
    if (ticket.kept && now >= ticket.dueAt - EARLY_MS) {
      ticket.early += 1;
      if (ticket.early > EARLY_FORGIVEN) return this.forget(ticket);
      ticket.dueAt = now;
    }
    this.#keep(ticket);
  }

  /**
   * Refuses the holder: with a place at the first second that fits, or for the whole window. `part`: how much of what can be promised is open to
   * it; "owed" if it came back to its place in vain.
   */
  refuse(ticket: Ticket, part: number | "owed", outlook: Outlook): void {
    const { now } = outlook;
    this.#expire(now);
    this.#unplace(ticket);
    const second = this.#secondFor(ticket, part, outlook);
    ticket.waits = false;
    ticket.early = 0;
    ticket.kept = second !== null;
    ticket.dueAt = now + (second ?? horizonSeconds(outlook)) * SECOND_MS;
    this.#keep(ticket);
  }

  /** The holder came back too early. Once, or if it is forgiven, a place stays; otherwise the wait starts over. */
  askedEarly(ticket: Ticket, isForgiven: boolean, outlook: Outlook): void {
    if (!isForgiven) ticket.early += 1;
    if (ticket.kept && ticket.early <= EARLY_FORGIVEN) return;
    this.#unplace(ticket);
    ticket.kept = false;
    ticket.askedAt = outlook.now;
    ticket.dueAt = outlook.now + horizonSeconds(outlook) * SECOND_MS;
    this.#keep(ticket);
  }

  /** Whether this client has a place that can be claimed now. */
  isDue(client: string, now: number): boolean {
    this.#expire(now);
    return [...this.#places].some(
      ([second, due]) =>
        second <= secondOf(now + EARLY_MS) &&
        [...due].some((ticket) => ticket.client === client || ticket.client === ""),
    );
  }

  /** How many unclaimed places are due by then. */
  dueBy(at: number, now: number): number {
    this.#expire(now);
    let due = 0;
    for (const [second, tickets] of this.#places) if (second <= secondOf(at)) due += tickets.size;
    return due;
  }

  /** When the next place is due; Infinity without one. */
  firstDueAt(now: number): number {
    this.#expire(now);
    return Math.min(Infinity, ...this.#places.keys()) * SECOND_MS;
  }

  /**
   * Null if somebody without a place may have the next call, because the calls after it still serve every place in time; otherwise when that may
   * change. Matters only for small budgets, whose calls are far apart.
   */
  heldUntil(now: number, callsUntil: (at: number) => number): number | null {
    this.#expire(now);
    let due = 0;
    let first: number | null = null;
    for (const [second, tickets] of [...this.#places].sort(([a], [b]) => a - b)) {
      const patienceMs = Math.max(SECOND_MS, ...[...tickets].map((ticket) => ticket.patienceMs));
      const awaitedMs = AWAITED * patienceMs;
      if (second * SECOND_MS > now + patienceMs) break;
      if ((second + 1) * SECOND_MS + awaitedMs <= now) continue;
      due += tickets.size;
      first ??= (second + 1) * SECOND_MS + awaitedMs;
      if (due > callsUntil(Math.max(now, second * SECOND_MS) + (3 / 4) * patienceMs) - 1) return first;
    }
    return null;
  }

  /** Places whose second has passed without their holders. */
  unclaimed(now: number): number {
    this.#expire(now);
    return this.#unclaimed;
  }

  handOver(now: number): HandedPlace[] {
    this.#expire(now);
    return [...this.#places.values()].flatMap((due) =>
      [...due].map(({ key, dueAt, askedAt, patienceMs }) => ({
        key,
        dueInMs: (dueAt ?? now) - now,
        askedAgoMs: now - askedAt,
        patienceMs,
      })),
    );
  }

  /** Honours the places of the process before this one. */
  adopt(places: readonly HandedPlace[], now: number): void {
    for (const { key, dueInMs, askedAgoMs, patienceMs } of places)
      this.#keep({
        key,
        client: "",
        askedAt: now - askedAgoMs,
        dueAt: Math.max(now, now + dueInMs),
        kept: true,
        early: 0,
        waits: false,
        patienceMs,
      });
  }

  #secondFor(ticket: Ticket, part: number | "owed", outlook: Outlook): number | null {
    if (!Number.isFinite(ticket.patienceMs)) return null;
    const { now, windowMs } = outlook;
    if (part !== "owed") {
      if (now < this.#fullUntil) return null;
      const second = this.#firstWithRoom(PROMISED * part, ticket.patienceMs, outlook);
      if (second === null && part === 1) this.#fullUntil = now + windowMs * FULL_LASTS;
      return second;
    }
    // After a pause of the upstream, up to a window more.
    const later = { ...outlook, nextAt: Math.max(outlook.nextAt, outlook.pausedUntilAt + windowMs) };
    return (
      this.#firstWithRoom(PROMISED, ticket.patienceMs, later) ??
      this.#firstWithRoom(1, ticket.patienceMs, later)
    );
  }

  /** The first second from which on less than this part of the calls is promised, and a call is left besides those that waiting visitors need. */
  #firstWithRoom(promised: number, patienceMs: number, outlook: Outlook): number | null {
    const { now, callsUntil, waiting, waitingPlaces, pausedUntilAt } = outlook;
    const slackMs = Math.min(patienceMs / 2, SLACK_MS);
    const soonest = Math.max(1, Math.ceil((pausedUntilAt - now) / SECOND_MS));
    let before = waitingPlaces + this.#placed;
    let found: number | null = null;
    for (let inSeconds = horizonSeconds(outlook); inSeconds >= soonest; inSeconds -= 1) {
      const at = now + inSeconds * SECOND_MS;
      const calls = callsUntil(at + slackMs);
      if (before >= promised * calls || before + waiting - waitingPlaces >= calls) break;
      found = inSeconds;
      before -= this.#places.get(secondOf(at))?.size ?? 0;
    }
    return found;
  }

  #keep(ticket: Ticket): void {
    this.#tickets.set(ticket.key, ticket);
    if (!ticket.kept || ticket.dueAt === null) return;
    const second = secondOf(ticket.dueAt);
    const due = this.#places.get(second) ?? new Set();
    this.#places.set(second, due);
    if (!due.has(ticket)) this.#placed += 1;
    due.add(ticket);
  }

  #unplace(ticket: Ticket): void {
    if (ticket.dueAt === null) return;
    const second = secondOf(ticket.dueAt);
    const due = this.#places.get(second);
    if (due?.delete(ticket) === true) this.#placed -= 1;
    if (due?.size === 0) this.#places.delete(second);
  }

  /** Ends overdue places; their holders still count as visitors who have waited. */
  #expire(now: number): void {
    const first = secondOf(now - LATE_MS);
    if (first <= this.#expiredUntil) return;
    this.#expiredUntil = first;
    for (const [second, due] of this.#places) {
      if (second >= first) continue;
      this.#places.delete(second);
      this.#unclaimed += due.size;
      this.#placed -= due.size;
      for (const ticket of due) ticket.kept = false;
    }
  }
}

function secondOf(at: number): number {
  return at === Infinity ? Infinity : Math.floor(at / SECOND_MS);
}

/** The longest retry time: a window, or the time until the first call after a cold start or a pause if that is longer. */
function horizonSeconds({ now, windowMs, pausedUntilAt, nextAt }: Outlook): number {
  const seconds = Math.floor(Math.max(windowMs, nextAt - now) / SECOND_MS);
  return Math.max(1, seconds, Math.ceil((pausedUntilAt - now) / SECOND_MS));
}
