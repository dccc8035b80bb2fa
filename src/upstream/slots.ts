/**
 * Runs calls in slots of the quota. A call that becomes useless while it waits leaves the queue immediately and spends nothing, because an
 * open circuit or a refused credential would otherwise use up the slots of other calls.
 */
import type { Ask, Permit, Quota, QuotaRequest } from "../quota/quota.js";

export interface Slots {
  /** The result of the work, or "withdrawn" if it was useless before it could start. */
  run<R>(
    quota: Quota,
    waiting: { readonly ask: Ask; readonly question: string; readonly maxWaitMs: number },
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

export function createSlots(): Slots {
  const waiting = new Set<Waiting>();

  return {
    async run(quota, { ask, question, maxWaitMs }, isUseful, work) {
      if (!isUseful()) return "withdrawn";
      const withdrawal = new AbortController();
      const entry: Waiting = { isUseful, withdrawal };
      const onAbort = (): void => {
        withdrawal.abort();
      };
      ask.signal.addEventListener("abort", onAbort, { once: true });
      if (ask.signal.aborted) onAbort();
      waiting.add(entry);
      // The lane and the askers may change while it waits.
      const queued: QuotaRequest = {
        get lane() {
          return ask.lane;
        },
        get client() {
          return ask.client;
        },
        get network() {
          return ask.network;
        },
        question,
        maxWaitMs,
        signal: withdrawal.signal,
      };
      let isStarted = false;
      try {
        return await quota.run(queued, (permit) => {
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
