/** Used by the tests of pages: callers that can leave, and loads that end when the test says so. */
import type { Answered } from "../../src/clock.js";
import { ServiceError } from "../../src/errors.js";
import type { Asker, Flight } from "../../src/facts/shared-load.js";
import { settle } from "../support/fake-clock.js";

export const UPSTREAM_DOWN = new ServiceError("upstream_failed", "The registry service is down.");
export const STOPPING = new ServiceError("shutting_down", "This process is stopping.");
export const TOO_MANY = new ServiceError("rate_limited", "Too many requests.");

export interface Caller extends Asker {
  leave(): void;
}

export function caller(): Caller {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    leave: () => {
      controller.abort();
    },
  };
}

/** A fact that was requested and answered just now. */
export function factNow(value: string, stamp: () => number): Answered<string> {
  const askedAt = stamp();
  return { value, askedAt, answeredAt: stamp() };
}

interface OpenLoad {
  resolve(value: string): void;
  reject(error: Error): void;
}

/** Counts its loads, stamps them when they start, and answers them when the test says so. */
export class Source {
  loads = 0;
  /** The maximum number of simultaneous loads. */
  maxOpen = 0;
  flight: Flight<Asker> | undefined;
  #open: OpenLoad[] = [];
  readonly #stamp: () => number;

  constructor(stamp: () => number) {
    this.#stamp = stamp;
  }

  readonly load = (flight: Flight<Asker>): Promise<Answered<string>> => {
    const askedAt = this.#stamp();
    this.loads += 1;
    this.flight = flight;
    return new Promise((resolve, reject) => {
      this.#open.push({
        resolve: (value) => {
          resolve({ value, askedAt, answeredAt: this.#stamp() });
        },
        reject,
      });
      this.maxOpen = Math.max(this.maxOpen, this.#open.length);
    });
  };

  answer(value: string): Promise<void> {
    for (const { resolve } of this.#open.splice(0)) resolve(value);
    return settle();
  }

  fail(error: Error): Promise<void> {
    for (const { reject } of this.#open.splice(0)) reject(error);
    return settle();
  }
}
