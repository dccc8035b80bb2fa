/** The quota as its callers see it: a call runs inside the upstream budget, in time, or is refused with a true time to retry. */
import type { ServiceError } from "../errors.js";
import type { Lane } from "./lane.js";

/** Who asks for a call, and how long the answer is worth waiting for. */
export interface Ask {
  /** May be a getter: a waiting ask can become more urgent. */
  readonly lane: Lane;
  /** Opaque key of who asks; who was served least of late goes first in a lane. */
  readonly client: string;
  /** A wider key that the client is part of, counted before it. */
  readonly network?: string | undefined;
  /** Infinity for work that nobody waits for. */
  readonly maxWaitMs: number;
  /** Aborted when nobody waits any more: the place is given back and nothing is spent. */
  readonly signal: AbortSignal;
}

/** An ask as it reaches the quota: one that comes back with the same client and question after a refusal is the same visitor. */
export interface QuotaRequest extends Ask {
  /** What is asked of the upstream, as an opaque key. */
  readonly question: string;
}

/**
 * Why a request was refused: with a reservation, for want of one, because it came back too early, because it waited in vain, or because
 * the ledger failed.
 */
export const REFUSAL_CAUSES = ["reserved", "busy", "early", "late", "fault"] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** The waits given to refused visitors, and whether they held. */
export interface WaitFigures {
  /** Recent waits, in whole seconds. */
  readonly told: {
    readonly count: number;
    readonly p50Seconds: number;
    readonly p99Seconds: number;
    readonly maxSeconds: number;
  };
  /** Since the start: given, come back to and still wanted, served, and never come back to. */
  readonly reservations: {
    readonly made: number;
    readonly claimed: number;
    readonly honoured: number;
    readonly unclaimed: number;
  };
  readonly refused: Readonly<Record<RefusalCause, number>>;
  /** Calls that were due while somebody waited, and were not made although a slot was free. */
  readonly idleCalls: number;
  /** Since the last refusal; null = there was none. */
  readonly refusedAgoMs: number | null;
}

/** What one lane has seen since the start. */
export interface LaneFigures {
  readonly queued: number;
  readonly served: number;
  readonly refused: number;
  /** Asks that left the queue because nobody waited any more. */
  readonly left: number;
  /** Requests that came back to their reservation, and how many of these were served. */
  readonly retried: number;
  readonly retriedServed: number;
  readonly waitedMsTotal: number;
  readonly longestWaitMs: number;
}

export interface QuotaSnapshot {
  /** Slots that cannot be used now, those assumed spent at the start included. */
  readonly used: number;
  readonly budget: number;
  readonly limit: number;
  readonly windowMs: number;
  /** The most calls that can have fallen into one rolling window today (UTC). */
  readonly largestWindowToday: number;
  readonly pausedForMs: number;
  readonly lanes: Readonly<Record<Lane, LaneFigures>>;
  readonly waits: WaitFigures;
}

/** A slot of the quota, for one call. */
export interface Permit {
  /** Whether the call may leave now. No more once this process was stopped for so long that others may use the slot. */
  isValid(): boolean;
  /** The upstream has answered. A call that ends without this may still arrive, so its slot is held for a grace longer. */
  answered(): void;
}

export interface Quota {
  /** Runs `call` in a slot, or rejects with `quota_exhausted`, a `retryAfterMs` of at most a window, and whether a call is reserved for then. */
  run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T>;
  /** The refusal that `run` would reject with at once; null, and nothing has happened, when it would not. */
  refusal(request: QuotaRequest): ServiceError | null;
  /**
   * Whether a call for this client would be at the expense of another: calls are waited for, others wait or were refused of late, and the
   * client was not asked to come back now.
   */
  isContested(client: string): boolean;
  /** The upstream said 429: nothing is sent for that long. */
  pause(forMs: number): Promise<void>;
  snapshot(): QuotaSnapshot;
  /** How long until there is room for work that nobody waits for, in ms; 0 = now. A part of the budget is left to those who wait. */
  roomInMs(): number;
  /** Whether a suggestion could go at once: there is room, nobody waits, and it is not ahead of the pace. */
  hasSpare(): boolean;
  /** Refuses everyone who waits, lets calls in flight settle, and lets the ledger go. */
  close(): Promise<void>;
}
