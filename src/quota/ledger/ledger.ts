/** The record of spent calls, in memory, in a file or shared by replicas. It decides how many calls may be made, not whose. */
export type SlotId = number;

/** How a call ended: answered, abandoned although it may still arrive, or never sent. */
export type Outcome = "answered" | "abandoned" | "unsent";

export interface TakenSlot {
  readonly slot: SlotId;
  /** Whether the slot belongs to another replica; only an urgent request may use it. */
  readonly isBorrowed?: boolean;
  /** Whether the call may still be sent: not once others may use the slot. Default: always. */
  readonly mayBeSent?: () => boolean;
}
export type Taken = TakenSlot | { readonly retryInMs: number };

/** When slots become usable, as far as is known; valid until the ledger changes. */
export interface Forecast {
  /** The number of slots that aren't in flight. */
  readonly resting: number;
  /** The ms until the n-th of these can be used, without a pause; 0 = now. Never decreases with n, which starts at 0. */
  usableInMs(n: number): number;
  /** The same for each slot that urgent requests can borrow from other replicas, or that these are expected to use. */
  readonly borrowableInMs: readonly number[];
  /** The ms until the next update from other replicas; Infinity without others. */
  readonly updateInMs: number;
  /** For each slot in flight, how long ago it was taken, in ms. */
  readonly inFlightForMs: readonly number[];
  readonly pausedForMs: number;
  /** How long a slot stays unusable after its call was settled. */
  readonly occupiedMs: number;
}

export interface Usage {
  readonly used: number;
  readonly largestWindowToday: number;
}

export interface Ledger {
  readonly limit: number;
  readonly budget: number;
  readonly windowMs: number;
  /** Records one call before it is sent. If this rejects, nothing was recorded, so nothing may be sent. */
  take(): Promise<Taken>;
  /** Sets since when each urgent request waits; monotonic. Slots of other replicas go to those that have waited longest at any replica. */
  urgent(waitingSince: readonly number[]): void;
  /** Records that a visitor wants a call. Replicas divide the slots that belong to none of them by how many are wanted at each. */
  wanted(): void;
  /** Ends the call of a taken slot; repeating it for the same slot has no effect. */
  settle(slot: SlotId, outcome: Outcome): Promise<void>;
  pause(forMs: number): Promise<void>;
  forecast(): Forecast;
  usage(): Usage;
  close(): Promise<void>;
}
