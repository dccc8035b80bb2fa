/** One load for any number of callers: they join the load in flight, leave without failing the others, and the last to leave aborts it. */
import { ServiceError } from "../errors.js";

export interface Asker {
  /** Aborted when this caller no longer wants the answer. */
  readonly signal: AbortSignal;
}

/** A load in flight and its callers. */
export interface Flight<A extends Asker> {
  readonly askers: ReadonlySet<A>;
  /** Aborted when the last caller has left. */
  readonly signal: AbortSignal;
}

interface Shared<R, A extends Asker> extends Flight<A> {
  readonly askers: Set<A>;
  readonly abort: AbortController;
  readonly outcome: Promise<R>;
}

/** Loads by key. `start` must not throw; its rejection reaches every caller. */
export class SharedLoads<R, A extends Asker> {
  readonly #flights = new Map<string, Shared<R, A>>();

  get size(): number {
    return this.#flights.size;
  }

  has(key: string): boolean {
    return this.#flights.has(key);
  }

  /** Joins the load in flight, or starts one; rejects as soon as the caller leaves. */
  join(key: string, asker: A, start: (flight: Flight<A>) => Promise<R>): Promise<R> {
    const flight = this.#flights.get(key) ?? this.#launch(key, asker, start);
    flight.askers.add(asker);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        flight.askers.delete(asker);
        if (flight.askers.size === 0) {
          this.#end(key, flight);
          flight.abort.abort();
        }
        reject(callerGone());
      };
      asker.signal.addEventListener("abort", leave, { once: true });
      const settled = (): void => {
        asker.signal.removeEventListener("abort", leave);
      };
      flight.outcome.then(settled, settled);
      flight.outcome.then(resolve, reject);
    });
  }

  #launch(key: string, first: A, start: (flight: Flight<A>) => Promise<R>): Shared<R, A> {
    const abort = new AbortController();
    const askers = new Set([first]);
    const flight = { askers, abort, signal: abort.signal, outcome: start({ askers, signal: abort.signal }) };
    this.#flights.set(key, flight);
    const end = (): void => {
      this.#end(key, flight);
    };
    flight.outcome.then(end, end);
    return flight;
  }

  #end(key: string, flight: Shared<R, A>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}

export function callerGone(): ServiceError {
  return new ServiceError("internal", "The caller has left.");
}
