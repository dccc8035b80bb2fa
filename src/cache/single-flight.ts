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

interface Entry<R, A extends Asker> extends Flight<A> {
  readonly askers: Set<A>;
  readonly abort: AbortController;
  outcome: Promise<R>;
}

/** Loads by key. `start` must not throw; its rejection reaches every caller. */
export class SingleFlight<R, A extends Asker> {
  readonly #flights = new Map<string, Entry<R, A>>();

  get size(): number {
    return this.#flights.size;
  }

  has(key: string): boolean {
    return this.#flights.has(key);
  }

  /** Joins the load in flight, or starts one; rejects as soon as the caller leaves. */
  join(key: string, asker: A, start: (flight: Flight<A>) => Promise<R>): Promise<R> {
    const existing = this.#flights.get(key);
    const flight = existing ?? this.#open(key);
    flight.askers.add(asker);
    if (existing === undefined) this.#launch(key, flight, start);
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

  /** Loads in flight finish for their callers, but can't be joined any more. */
  detachAll(): void {
    this.#flights.clear();
  }

  #open(key: string): Entry<R, A> {
    const abort = new AbortController();
    const flight: Entry<R, A> = {
      askers: new Set(),
      abort,
      signal: abort.signal,
      outcome: new Promise(() => {}),
    };
    this.#flights.set(key, flight);
    return flight;
  }

  #launch(key: string, flight: Entry<R, A>, start: (flight: Flight<A>) => Promise<R>): void {
    flight.outcome = start(flight);
    const end = (): void => {
      this.#end(key, flight);
    };
    flight.outcome.then(end, end);
  }

  #end(key: string, flight: Entry<R, A>): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
  }
}

export function callerGone(): ServiceError {
  return new ServiceError("internal", "The caller has left.");
}
