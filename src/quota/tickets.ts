/**
 * What refused visitors were told. A ticket belongs to a client and its query, so people behind one address don't get in each other's way. A ticket
 * that is `kept` is a place: priority on return at its second, not a slot set aside. At most half of the calls up to any second are promised.
 */
import { hash } from "node:crypto";
import { z } from "zod";
import { BoundedMap } from "../bounded-map.js";
import type { Lane } from "./lane.js";
import type { Plan } from "./pace.js";

const SECOND_MS = 1000;
/** The part of the calls up to any second that may be promised. */
const PROMISED = 1 / 2;
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
/** A call is held for a place that would otherwise wait for more than this part of its holder's patience. */
const HELD_AT = 3 / 4;

/** All times are monotonic. */
export interface Ticket {
  readonly key: string;
  readonly client: string;
  /** When its holder first asked, or last came back too early. */
  askedAt: number;
  /** The time given in its last refusal; null before the first. */
  dueAt: number | null;
  kept: boolean;
  early: number;
  /** Whether its holder is back and waits in the line. */
  waits: boolean;
  patienceMs: number;
}

interface Place extends Ticket {
  dueAt: number;
}

/** A place as the next process gets it: times are in ms from the time of writing. */
export const handedPlace = z.object({
  key: z.string(),
  dueInMs: z.number(),
  askedAgoMs: z.number(),
  patienceMs: z.number(),
});
type HandedPlace = z.infer<typeof handedPlace>;

/** The coming calls, as seen by a visitor who is refused now. */
interface Outlook {
  readonly now: number;
  readonly plan: Plan;
  readonly windowMs: number;
  /** A place isn't sooner, because the upstream has asked for a pause. */
  readonly soonestMs: number;
  /** How many visitors without a place wait. */
  readonly waiting: number;
  /** Which part of the calls that may be promised may be promised to this visitor. */
  readonly share: number;
}

export class Tickets {
  readonly #places = new Map<string, Place>();
  /** Those without a place. Oldest first. */
  readonly #tickets = new BoundedMap<string, Ticket>(MAX_TICKETS);
  #unclaimed = 0;

  /** The ticket of this client and query; a new one if there is none, or if another of its requests already waits. */
  of(client: string, queryKey: string, patienceMs: number, now: number): Ticket {
    this.#expire(now);
    const key = ticketKey(client, queryKey);
    const known = this.#places.get(key) ?? this.#tickets.get(key);
    const isOld = (known?.dueAt ?? now) + FORGOTTEN_AFTER_MS < now;
    if (known !== undefined && !known.waits && !isOld) return Object.assign(known, { patienceMs });
    return { key, client, askedAt: now, dueAt: null, kept: false, early: 0, waits: false, patienceMs };
  }

  isEarly({ dueAt }: Ticket, now: number): boolean {
    return dueAt !== null && now < dueAt - EARLY_MS;
  }

  /** Whether its holder is back at the second of its place. */
  canClaim(ticket: Ticket, now: number): boolean {
    return ticket.kept && !this.isEarly(ticket, now);
  }

  /** Whether this client has, or may have, a place that can be claimed now. */
  isDue(client: string, now: number): boolean {
    return this.#unclaimedBy(now + EARLY_MS, now).some((place) => ["", client].includes(place.client));
  }

  /** How many unclaimed places are due by then. */
  dueBy(at: number, now: number): number {
    return this.#unclaimedBy(at, now).length;
  }

  /** Its holder has its call. */
  forget({ key }: Ticket): void {
    this.#places.delete(key);
    this.#tickets.delete(key);
  }

  /**
   * Refuses the holder: with a place at the first second that fits, or for the whole time. Returns whether it came too early: once, that changes nothing,
   * and later, or without a place, the wait starts over.
   */
  refuse(ticket: Ticket, lane: Lane, outlook: Outlook): boolean {
    const { now, plan, windowMs, soonestMs, share } = outlook;
    this.#expire(now);
    const { dueAt, kept, patienceMs } = ticket;
    // A place that falls into a pause is moved as soon as its holder asks.
    const isPaused = kept && Math.max(now, dueAt ?? now) + patienceMs < now + soonestMs;
    const isEarly = this.isEarly(ticket, now) && !isPaused;
    // A search or cart asks for several names, each with its own second, and comes back at the first of them.
    if (isEarly && lane === "exact") ticket.early += 1;
    if (isEarly && kept && ticket.early <= EARLY_FORGIVEN) return true;
    this.forget(ticket);
    // A place that can't be honoured is replaced, at most a window after a pause.
    const isOwed = kept && !isEarly;
    const horizonMs = Math.max(windowMs, plan(0) - now, isOwed ? soonestMs + windowMs : 0);
    const part = isOwed ? 1 : PROMISED * share;
    const seconds = isEarly ? null : this.#secondFor(patienceMs, part, horizonMs, outlook);
    const inMs = SECOND_MS * (seconds ?? wholeSeconds(horizonMs, soonestMs));
    Object.assign(ticket, { kept: seconds !== null, dueAt: now + inMs });
    Object.assign(ticket, isEarly ? { askedAt: now } : { early: 0 });
    this.#keep(ticket);
    return isEarly;
  }

  /**
   * Null if somebody without a place may have the next call, because those after it still serve every place in time; otherwise when that may change.
   * For small budgets, whose calls are far apart.
   */
  heldUntil(now: number, plan: Plan): number | null {
    const due = this.#unclaimedBy(Infinity, now)
      .map(({ dueAt, patienceMs }) => ({ dueAt, patienceMs: Math.max(SECOND_MS, patienceMs) }))
      .filter(({ dueAt, patienceMs }) => dueAt <= now + patienceMs)
      .sort((a, b) => a.dueAt - b.dueAt);
    const isLate = due.some(
      ({ dueAt, patienceMs }, n) => plan(n + 1) > Math.max(now, dueAt) + HELD_AT * patienceMs,
    );
    return isLate ? (due[0]?.dueAt ?? now) + LATE_MS : null;
  }

  /** Places whose second has passed without their holders. */
  unclaimed(now: number): number {
    this.#expire(now);
    return this.#unclaimed;
  }

  handOver(now: number): HandedPlace[] {
    return this.#unclaimedBy(Infinity, now).map(({ key, dueAt, askedAt, patienceMs }) => ({
      key,
      dueInMs: dueAt - now,
      askedAgoMs: now - askedAt,
      patienceMs,
    }));
  }

  /** Honours the places of the process before this one. */
  adopt(places: readonly HandedPlace[], now: number): void {
    for (const { key, dueInMs, askedAgoMs, patienceMs } of places) {
      if (this.#places.has(key)) continue;
      const [askedAt, dueAt] = [now - askedAgoMs, now + dueInMs];
      this.#keep({ key, client: "", askedAt, dueAt, kept: true, early: 0, waits: false, patienceMs });
    }
  }

  /** The first second from which on less than the part is promised, and a call is left besides those that waiting visitors need. */
  #secondFor(patienceMs: number, part: number, horizonMs: number, outlook: Outlook): number | null {
    if (patienceMs === Infinity) return null;
    const { now, plan, waiting } = outlook;
    const soonest = Math.max(1, Math.ceil(outlook.soonestMs / SECOND_MS));
    const slackMs = Math.min(patienceMs / 2, SLACK_MS);
    const dueAts = [...this.#places.values()].map(({ dueAt }) => dueAt).sort((a, b) => a - b);
    let promised = dueAts.length;
    let calls = 0;
    while (plan(calls) <= now + horizonMs + slackMs) calls += 1;
    let found: number | null = null;
    for (let seconds = Math.floor(horizonMs / SECOND_MS); seconds >= soonest; seconds -= 1) {
      const at = now + seconds * SECOND_MS;
      while (calls > 0 && plan(calls - 1) > at + slackMs) calls -= 1;
      while (promised > 0 && (dueAts[promised - 1] ?? 0) > at) promised -= 1;
      if (promised >= part * calls || promised + waiting >= calls) break;
      found = seconds;
    }
    return found;
  }

  #unclaimedBy(at: number, now: number): Place[] {
    this.#expire(now);
    return [...this.#places.values()].filter(({ waits, dueAt }) => !waits && dueAt <= at);
  }

  #keep(ticket: Ticket): void {
    if (isPlace(ticket)) this.#places.set(ticket.key, ticket);
    else this.#tickets.set(ticket.key, ticket);
  }

  /** Ends overdue places; their holders still count as visitors who have waited. */
  #expire(now: number): void {
    for (const place of this.#places.values()) {
      if (place.waits || place.dueAt + LATE_MS >= now) continue;
      this.#places.delete(place.key);
      this.#tickets.set(place.key, Object.assign(place, { kept: false }));
      this.#unclaimed += 1;
    }
  }
}

function isPlace(ticket: Ticket): ticket is Place {
  return ticket.kept && ticket.dueAt !== null;
}

function wholeSeconds(horizonMs: number, soonestMs: number): number {
  return Math.max(1, Math.floor(horizonMs / SECOND_MS), Math.ceil(soonestMs / SECOND_MS));
}

/** Hides client and query from those who can't guess both. */
function ticketKey(client: string, queryKey: string): string {
  return hash("sha256", `${client}\n${queryKey}`, "base64url");
}
