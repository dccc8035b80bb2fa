/** The quota's interface: a call runs in time and within the upstream budget, or is refused with an accurate retry time. */
import type { ServiceError } from "../errors.js";
import type { Lane } from "./lane.js";
import type { Rests } from "./ledger.js";
import type { HandedPlace } from "./tickets.js";

/** Who requests a call, for what, and how long they will wait for it. */
export interface Ask {
  /** May be a getter: the urgency can rise during the wait. */
  readonly lane: Lane;
  /** It completes what has been paid for with a call, so it goes first, as carts do, whatever its lane. */
  readonly completes?: boolean | undefined;
  /** Opaque key of the client. Among visitors, the client with the least recent usage goes first. */
  readonly client: string;
  /** Opaque key of the client's network, whose usage is compared before the client's. */
  readonly network?: string | undefined;
  /** Until when it may wait for a call; monotonic clock, ms. Several calls for the same request share this. Infinity for background work. */
  readonly waitUntilMs: number;
  /** Everyone who waits for the answer, if they are several. It changes while they wait. */
  readonly sharedBy?: ReadonlySet<Pick<Ask, "client">> | undefined;
  /** Aborted when nobody waits for the answer any more. The request then leaves the line and spends nothing. */
  readonly signal: AbortSignal;
}

/** A request for one call. After a refusal, another one with the same client and query counts as a retry of the same visitor. */
export interface QuotaRequest extends Omit<Ask, "waitUntilMs"> {
  /** Infinity for background work. */
  readonly maxWaitMs: number;
  /** Opaque key of the upstream query. */
  readonly queryKey: string;
  /** The upstream's operation; it may be paused while others aren't. */
  readonly operation: string;
}

/**
 * Why a request was refused. `reserved`: it has a place; `busy`: it has none; `early`: it came back too early; `late`: it waited in vain; `fault`:
 * the call couldn't be recorded.
 */
export type RefusalCause = "reserved" | "busy" | "early" | "late" | "fault";

/** The retry times given to refused visitors, and whether they were accurate. */
export interface WaitFigures {
  /** Recent retry times, in whole seconds. */
  readonly retryAfter: {
    readonly count: number;
    readonly p50Seconds: number;
    readonly p99Seconds: number;
    readonly maxSeconds: number;
  };
  /** Places since startup: given; claimed by a holder who still needed the call; served; and not claimed. */
  readonly reservations: {
    readonly made: number;
    readonly claimed: number;
    readonly honoured: number;
    readonly unclaimed: number;
  };
  readonly refused: Readonly<Record<RefusalCause, number>>;
  /** Calls that were due, with a visitor waiting and a free slot, but weren't made. */
  readonly idleCalls: number;
  /** The time since the last refusal; null without one. */
  readonly refusedAgoMs: number | null;
}

/** The figures of one lane since startup. */
export interface LaneFigures {
  readonly queued: number;
  readonly served: number;
  readonly refused: number;
  /** Requests that left the line because nobody waited any more. */
  readonly left: number;
  /** Requests that claimed their place, and how many of these were served. */
  readonly retried: number;
  readonly retriedServed: number;
  readonly waitedMsTotal: number;
  readonly longestWaitMs: number;
}

export interface QuotaSnapshot {
  /** Slots that can't be used now, including those assumed spent at startup. */
  readonly used: number;
  readonly budget: number;
  readonly limit: number;
  readonly windowMs: number;
  /** The maximum number of calls that can have arrived in one rolling window today (UTC). */
  readonly largestWindowToday: number;
  /** The longest pause of an operation, or of all. */
  readonly pausedForMs: number;
  readonly lanes: Readonly<Record<Lane, LaneFigures>>;
  readonly waits: WaitFigures;
}

/** A slot of the quota, for one call. */
export interface Permit {
  /** Whether the call may be sent now. False once the process was suspended for so long that another one may be the owner. */
  isValid(): boolean;
  /** Reports that the upstream has answered. A call that ends without an answer may still arrive, so its slot is held for an extra grace period. */
  answered(): void;
  /** The refusal if the upstream rejected the call and asked for a pause; call it after `pause`. A place is put off until after it. */
  refusal(): ServiceError;
}

/** What an orderly stop hands to the next process. */
export interface Note extends Rests {
  readonly places: readonly HandedPlace[];
}

export interface Quota {
  /** Runs `call` in a slot, or rejects with `quota_exhausted`, with `retryAfterMs` and whether that is a place. */
  run<T>(request: QuotaRequest, call: (permit: Permit) => Promise<T>): Promise<T>;
  /**
   * Whether a call for this client would be at the expense of others: requests are waiting, other clients want quota or were refused recently, and
   * no place is due that is, or may be, of this client.
   */
  isContested(client: string): boolean;
  /**
   * Calls this operation no more for this long, because the upstream reported that its limit is exceeded; or none, if another operation was refused
   * too and its pause isn't over.
   */
  pause(operation: string, forMs: number): void;
  snapshot(): QuotaSnapshot;
  /** The ms until there is room for background work; 0 = now. Part of the budget is left for requests that people wait for. */
  roomInMs(): number;
  /** Whether a suggestion could be called immediately: there is room, nobody waits, and the pace isn't exceeded. */
  hasSpare(): boolean;
  /** Refuses all waiting requests, waits for calls in flight, and releases the ledger. Returns what the next process should know. */
  close(): Promise<Note>;
}
