/** What was spent, behind one small interface: in memory, in a file, or shared by replicas. It decides how many calls, never whose. */
export type SlotId = number;

/** How a call ended: answered, given up while it may still arrive, or never sent at all. */
export type Ending = "answered" | "abandoned" | "unsent";

export interface TakenSlot {
  readonly slot: SlotId;
  /** It is another replica's, so only an urgent request may use it. */
  readonly isBorrowed?: boolean;
  /** Monotonic: from then on the call must not leave, because others may use the slot. Default: it may whenever. */
  readonly sendBefore?: number;
}
export type Taken = TakenSlot | { readonly retryInMs: number };

/** When slots can be used, as far as is known; valid until the ledger changes. */
export interface Forecast {
  /** Slots that are not in flight. */
  readonly resting: number;
  /** Ms until the n-th of them can be used, ascending from 0 on and without a pause; 0 = now. */
  usableInMs(n: number): number;
  /** The same of each slot of other replicas that urgent requests can borrow. */
  readonly borrowableInMs: readonly number[];
  /** How long until it is known what other replicas have done meanwhile; Infinity without others. */
  readonly newsInMs: number;
  /** For each slot in flight, the ms since it was taken. */
  readonly inFlightForMs: readonly number[];
  readonly pausedForMs: number;
  /** How long a slot stays unusable once its call is settled. */
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
  /** Records one call before it leaves. A rejection means that nothing could be recorded, so nothing may be sent. */
  take(): Promise<Taken>;
  /** How many requests wait that go before all others, here and on other replicas: they may get slots of other replicas. */
  urgent(count: number): void;
  /** Ends a taken slot; the second time for the same slot does nothing. */
  settle(slot: SlotId, ending: Ending): Promise<void>;
  pause(forMs: number): Promise<void>;
  forecast(): Forecast;
  usage(): Usage;
  close(): Promise<void>;
}
