/** One load for any number of callers: they join the load in flight, leave without failing the others, and the last to leave aborts it. */
import { ServiceError } from "../errors.js";
import { type Lane, LANES } from "../quota/lane.js";
import type { Ask } from "../quota/quota.js";

/**
 * The request of all callers that wait for the same answer: as urgent as the most urgent of them, and attributed to the one who has waited longest. A class,
 * because V8 keeps everything that the getters of an object literal refer to until the next full garbage collection.
 */
class SharedAsk implements Ask {
  readonly askers: Set<Ask>;
  readonly waitUntilAt: number;
  readonly #leader: Ask;
  readonly #abort = new AbortController();

  constructor(leader: Ask) {
    this.#leader = leader;
    this.askers = new Set([leader]);
    this.waitUntilAt = leader.waitUntilAt;
  }

  /** Aborted when the last caller has left. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get lane(): Lane {
    // Without new objects, because the queue looks at all its requests for every call.
    let urgency: number = LANES.length;
    for (const { lane } of this.askers) urgency = Math.min(urgency, LANES.indexOf(lane));
    return LANES[urgency] ?? this.#leader.lane;
  }

  get completes(): boolean {
    for (const { completes } of this.askers) if (completes === true) return true;
    return false;
  }

  get client(): string {
    return this.#payer.client;
  }

  get network(): string | undefined {
    return this.#payer.network;
  }

  get #payer(): Ask {
    const [first = this.#leader] = this.askers;
    return first;
  }

  leave(asker: Ask): void {
    this.askers.delete(asker);
    if (this.askers.size === 0) this.#abort.abort();
  }
}

/** Loads by key. `start` must not throw; its rejection reaches every caller. */
export class SharedLoads<R> {
  readonly #loads = new Map<string, { readonly ask: SharedAsk; readonly outcome: Promise<R> }>();

  get size(): number {
    return this.#loads.size;
  }

  has(key: string): boolean {
    return this.#loads.has(key);
  }

  /** Joins the load in flight, or starts one, with an ask for all who wait; rejects as soon as the caller leaves. */
  join(key: string, asker: Ask, start: (ask: Ask) => Promise<R>): Promise<R> {
    const { ask, outcome } = this.#loads.get(key) ?? this.#launch(key, asker, start);
    ask.askers.add(asker);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        ask.leave(asker);
        if (ask.signal.aborted) this.#end(key, ask);
        reject(callerGone());
      };
      asker.signal.addEventListener("abort", leave, { once: true });
      const settled = (): void => {
        asker.signal.removeEventListener("abort", leave);
      };
      outcome.then(settled, settled);
      outcome.then(resolve, reject);
    });
  }

  #launch(key: string, first: Ask, start: (ask: Ask) => Promise<R>) {
    const ask = new SharedAsk(first);
    const load = { ask, outcome: start(ask) };
    this.#loads.set(key, load);
    const end = (): void => {
      this.#end(key, ask);
    };
    load.outcome.then(end, end);
    return load;
  }

  #end(key: string, ask: SharedAsk): void {
    if (this.#loads.get(key)?.ask === ask) this.#loads.delete(key);
  }
}

export function callerGone(): ServiceError {
  return new ServiceError("internal", "The caller has left.");
}
