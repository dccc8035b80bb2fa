/** One ask for everyone who waits for the same answer: always as urgent as the most urgent of those who currently wait. */
import { type Lane, LANES } from "./lane.js";
import type { Ask } from "./quota.js";

/** Those who wait for the same answer. */
interface Together {
  readonly askers: ReadonlySet<Ask>;
  /** Aborted when the last of them has left. */
  readonly signal: AbortSignal;
  /** How much of its patience the leader had used up before. */
  readonly waitedMs: number;
}

/**
 * The leader's ask while it waits; after that it is on behalf of the first who remains. A class, because V8 keeps everything that the getters
 * of an object literal refer to until the next full garbage collection.
 */
export class SharedAsk implements Ask {
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  readonly #askers: ReadonlySet<Ask>;
  readonly #leader: Ask;

  constructor({ askers, signal, waitedMs }: Together, leader: Ask) {
    this.maxWaitMs = Math.max(0, leader.maxWaitMs - waitedMs);
    this.signal = signal;
    this.#askers = askers;
    this.#leader = leader;
  }

  get lane(): Lane {
    const lanes = new Set([...this.#askers].map(({ lane }) => lane));
    return LANES.find((lane) => lanes.has(lane)) ?? this.#leader.lane;
  }

  get client(): string {
    return this.#payer.client;
  }

  get network(): string | undefined {
    return this.#payer.network;
  }

  get #payer(): Ask {
    if (this.#askers.has(this.#leader)) return this.#leader;
    const [first = this.#leader] = this.#askers;
    return first;
  }
}
