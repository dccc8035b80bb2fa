/** What the tests of the pools share: callers who can leave, and loads whose end the test decides. */
import type { Asker, FailureKind, Flight } from "../../../src/cache/cache.js";
import type { Fact } from "../../../src/cache/facts.js";
import { ServiceError } from "../../../src/errors.js";
import { settle } from "../../support/fake-clock.js";

export const UPSTREAM_DOWN = new ServiceError("upstream_failed", "The registry service is down.");
export const NO_QUOTA = new ServiceError("quota_exhausted", "Later.", { retryAfterMs: 10 });
export const TOO_MANY = new ServiceError("rate_limited", "Too many requests.");

export function failureKind(error: unknown): FailureKind {
  if (error === TOO_MANY) return "own";
  return error === NO_QUOTA ? "shared" : "remembered";
}

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

/** An answer that comes as soon as it is asked for. */
export function factNow(value: string, stamp: () => number): Fact<string> {
  const askedMs = stamp();
  return { value, askedMs, answeredMs: stamp() };
}

interface OpenLoad {
  resolve(value: string): void;
  reject(error: Error): void;
}

/** Counts its loads, stamps them as they leave, and answers when the test says so. */
export class Source {
  asked = 0;
  /** The most that were open at once. */
  most = 0;
  flight: Flight<Asker> | undefined;
  #open: OpenLoad[] = [];
  readonly #stamp: () => number;

  constructor(stamp: () => number) {
    this.#stamp = stamp;
  }

  readonly load = (flight: Flight<Asker>): Promise<Fact<string>> => {
    const askedMs = this.#stamp();
    this.asked += 1;
    this.flight = flight;
    return new Promise((resolve, reject) => {
      this.#open.push({
        resolve: (value) => {
          resolve({ value, askedMs, answeredMs: this.#stamp() });
        },
        reject,
      });
      this.most = Math.max(this.most, this.#open.length);
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
