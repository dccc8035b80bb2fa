/** Settings that aren't part of the documented service: rate limit, latency and failures. */
import { setMaxListeners } from "node:events";
import { Faults } from "./faults.js";
import type { RateLimit } from "./rolling-window.js";

interface Latency {
  /** Elapses before the request counts, like network latency. */
  readonly beforeMs: number;
  /** Elapses after the request counted and before the answer. */
  readonly afterMs: number;
  /** Up to this much is added at random, separately to each of the two. */
  readonly jitterMs: number;
}

function checked(rateLimit: RateLimit): RateLimit {
  const { limit, windowMs } = rateLimit;
  if (!Number.isInteger(limit) || limit < 1 || !(windowMs > 0)) throw new RangeError("not a rate limit");
  return rateLimit;
}

export type LatencyChange = { readonly [Part in keyof Latency]?: number | undefined };

/** Calls `run` once after `delayMs`; returns a function that cancels it. */
export type After = (delayMs: number, run: () => void) => () => void;

export const realTime: After = (delayMs, run) => {
  const timer = setTimeout(run, delayMs);
  timer.unref();
  return () => {
    clearTimeout(timer);
  };
};

export class Behaviour {
  readonly faults = new Faults();
  readonly #after: After;
  #rateLimit: RateLimit;
  #latency: Latency = { beforeMs: 0, afterMs: 0, jitterMs: 0 };
  readonly #closing = new AbortController();

  constructor(rateLimit: RateLimit, latency: LatencyChange, after: After) {
    this.#after = after;
    this.#rateLimit = checked(rateLimit);
    this.changeLatency(latency);
    // Every request under way is a listener, so there is no useful maximum.
    setMaxListeners(0, this.#closing.signal);
  }

  get rateLimit(): RateLimit {
    return this.#rateLimit;
  }

  set rateLimit(rateLimit: RateLimit) {
    this.#rateLimit = checked(rateLimit);
  }

  changeLatency({ beforeMs, afterMs, jitterMs }: LatencyChange): void {
    this.#latency = {
      beforeMs: beforeMs ?? this.#latency.beforeMs,
      afterMs: afterMs ?? this.#latency.afterMs,
      jitterMs: jitterMs ?? this.#latency.jitterMs,
    };
  }

  /** Resolves early when the sandbox closes. */
  async delay(side: "beforeMs" | "afterMs"): Promise<void> {
    const delayMs = this.#latency[side] + Math.random() * this.#latency.jitterMs;
    const { signal } = this.#closing;
    if (delayMs <= 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        cancel();
        signal.removeEventListener("abort", end);
        resolve();
      };
      const cancel = this.#after(delayMs, end);
      signal.addEventListener("abort", end);
    });
  }

  stop(): void {
    this.faults.stop();
    this.#closing.abort();
  }
}
