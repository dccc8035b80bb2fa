/** Who asks the quota for a call, and what it gives. `Line` is the quota of one credential. */
import type { ServiceError } from "../errors.js";
import type { Lane } from "./lane.js";

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
  readonly waitUntilAt: number;
  /** Aborted when nobody waits for the answer any more. The request then leaves the line and spends nothing. */
  readonly signal: AbortSignal;
}

/** A request for one call. After a refusal, another one with the same client and query counts as a retry of the same visitor. */
export interface QuotaRequest {
  readonly ask: Ask;
  /** How long it may wait in this line; Infinity for background work. */
  readonly maxWaitMs: number;
  /** Whether the call is still of use; asked at `withdrawUseless`, and before it starts. */
  readonly isUseful: () => boolean;
  /** Opaque key of the upstream query. */
  readonly queryKey: string;
  /** The upstream's operation; it may be paused while others aren't. */
  readonly operation: string;
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
