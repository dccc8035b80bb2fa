/** Switches that are not part of the documented service: how strict its limit is, how slow its network, and what goes wrong. */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Faults } from "./faults.js";
import type { RateLimit } from "./rolling-window.js";

export interface Latency {
  /** Spent before the request counts, as the network would. */
  readonly beforeMs: number;
  /** Spent after the request counted, before the answer. */
  readonly afterMs: number;
  /** Up to this much more, drawn anew for each of the two. */
  readonly jitterMs: number;
}

function checked(rateLimit: RateLimit): RateLimit {
  const { limit, windowMs } = rateLimit;
  if (!Number.isInteger(limit) || limit < 1 || !(windowMs > 0)) throw new RangeError("not a rate limit");
  return rateLimit;
}

export interface LatencyChange {
  readonly beforeMs?: number | undefined;
  readonly afterMs?: number | undefined;
  readonly jitterMs?: number | undefined;
}

export class Behaviour {
  readonly faults = new Faults();
  #rateLimit: RateLimit;
  #latency: Latency = { beforeMs: 0, afterMs: 0, jitterMs: 0 };
  readonly #closing = new AbortController();

  constructor(rateLimit: RateLimit, latency: LatencyChange) {
    this.#rateLimit = checked(rateLimit);
    this.changeLatency(latency);
    // Every request under way listens: as many as there are.
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
    if (delayMs <= 0) return;
    await sleep(delayMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  stop(): void {
    this.faults.stop();
    this.#closing.abort();
  }
}
