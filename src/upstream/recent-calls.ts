/** Statistics of the last ten minutes' calls by operation, in bounded memory. They contain no names and no amounts. */
import type { Clock } from "../clock.js";
import { type Operation, OPERATIONS } from "./vocabulary.js";

export type RecentCalls = ReturnType<typeof createRecentCalls>;

interface Call {
  readonly endedAt: number;
  readonly durationMs: number;
  readonly isFailure: boolean;
}

const WINDOW_MS = 600_000;
/** Of each operation. The default budget allows 570 calls in ten minutes. */
const MAX_CALLS = 1000;

export function createRecentCalls(clock: Clock) {
  const calls = new Map<Operation, Call[]>();

  function recent(operation: Operation): Call[] {
    const sinceAt = clock.monotonic() - WINDOW_MS;
    const list = (calls.get(operation) ?? []).filter(({ endedAt }) => endedAt > sinceAt);
    return list.slice(-MAX_CALLS);
  }

  return {
    windowMs: WINDOW_MS,
    /** `outcome` is the status of the answer, or an error code. */
    note(operation: Operation, outcome: string, durationMs: number): void {
      // "Not managed" is an answer, too, however an upstream says it.
      const isAnswer = outcome === "200" || (operation === "domain" && ["403", "404"].includes(outcome));
      calls.set(operation, [
        ...recent(operation),
        { endedAt: clock.monotonic(), durationMs, isFailure: !isAnswer },
      ]);
    },
    /** One entry for each operation with calls, in the document's order. `failed`: without a usable answer; `p95Ms`: 95 % took at most this long. */
    figures: () =>
      OPERATIONS.flatMap((operation) => {
        const list = recent(operation);
        if (list.length === 0) return [];
        const durations = list.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
        return {
          operation,
          calls: list.length,
          failed: list.filter(({ isFailure }) => isFailure).length,
          meanMs: Math.round(durations.reduce((sum, ms) => sum + ms, 0) / list.length),
          p95Ms: durations[Math.ceil(0.95 * list.length) - 1] ?? 0,
        };
      }),
  };
}
