/**
 * Runs calls in slots of the quota. A call that becomes useless while it waits leaves the queue immediately and spends nothing, because an
 * open circuit or a refused credential would otherwise use up the slots of other calls.
 */
import type { Lane } from "../quota/lane.js";
import type { Quota } from "../quota/line.js";
import type { Ask, Permit, QuotaRequest } from "../quota/quota.js";

interface Demand {
  readonly ask: Ask;
  readonly queryKey: string;
  readonly operation: string;
  readonly maxWaitMs: number;
}

export interface Slots {
  /** The result of the work, or "withdrawn" if it was useless before it could start. */
  run<R>(
    quota: Quota,
    demand: Demand,
    isUseful: () => boolean,
    work: (permit: Permit) => Promise<R>,
  ): Promise<R | "withdrawn">;
  /** Withdraws the waiting calls that have become useless. */
  withdrawUseless(): void;
}

interface Waiting {
  readonly isUseful: () => boolean;
  readonly withdrawal: AbortController;
}

/** The lane and the askers may change while it waits. */
class Queued implements QuotaRequest {
  readonly queryKey: string;
  readonly operation: string;
  readonly maxWaitMs: number;
  readonly signal: AbortSignal;
  readonly #ask: Ask;

  constructor({ ask, queryKey, operation, maxWaitMs }: Demand, signal: AbortSignal) {
    this.queryKey = queryKey;
    this.operation = operation;
    this.maxWaitMs = maxWaitMs;
    this.signal = signal;
    this.#ask = ask;
  }

  get lane(): Lane {
    return this.#ask.lane;
  }

  get completes(): boolean | undefined {
    return this.#ask.completes;
  }

  get client(): string {
    return this.#ask.client;
  }

  get sharedBy(): QuotaRequest["sharedBy"] {
    return this.#ask.sharedBy;
  }

  get network(): string | undefined {
    return this.#ask.network;
  }
}

export function createSlots(): Slots {
  const waiting = new Set<Waiting>();

  return {
    async run(quota, demand, isUseful, work) {
      if (!isUseful()) return "withdrawn";
      const { ask } = demand;
      const withdrawal = new AbortController();
      const entry: Waiting = { isUseful, withdrawal };
      const onAbort = (): void => {
        withdrawal.abort();
      };
      ask.signal.addEventListener("abort", onAbort, { once: true });
      if (ask.signal.aborted) onAbort();
      waiting.add(entry);
      let isStarted = false;
      try {
        return await quota.run(new Queued(demand, withdrawal.signal), (permit) => {
          isStarted = true;
          waiting.delete(entry);
          return work(permit);
        });
      } catch (error) {
        if (!isStarted && withdrawal.signal.aborted && !ask.signal.aborted) return "withdrawn";
        throw error;
      } finally {
        waiting.delete(entry);
        ask.signal.removeEventListener("abort", onAbort);
      }
    },
    withdrawUseless() {
      for (const { isUseful, withdrawal } of waiting) if (!isUseful()) withdrawal.abort();
    },
  };
}
