/** One request for all callers that wait for the same answer: always as urgent as the most urgent of them. */
import { type Lane, LANES } from "../quota/lane.js";
import type { Ask } from "../quota/quota.js";

/** The callers that wait for the same answer. */
interface Together {
  readonly askers: ReadonlySet<Ask>;
  /** Aborted when the last caller has left. */
  readonly signal: AbortSignal;
}

/**
 * Attributed to the leader while it waits, then to the first remaining caller. A class, because V8 keeps everything that the getters of an object
 * literal refer to until the next full garbage collection.
 */
export class SharedAsk implements Ask {
  readonly waitUntilMs: number;
  readonly signal: AbortSignal;
  readonly #askers: ReadonlySet<Ask>;
  readonly #leader: Ask;

  constructor({ askers, signal }: Together, leader: Ask) {
    this.waitUntilMs = leader.waitUntilMs;
    this.signal = signal;
    this.#askers = askers;
    this.#leader = leader;
  }

  get lane(): Lane {
    // Without new objects, because the queue looks at all its requests for every call.
    let urgency: number = LANES.length;
    for (const { lane } of this.#askers) urgency = Math.min(urgency, LANES.indexOf(lane));
    return LANES[urgency] ?? this.#leader.lane;
  }

  get completes(): boolean {
    for (const { completes } of this.#askers) if (completes === true) return true;
    return false;
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
