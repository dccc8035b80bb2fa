/** Statistics of the last ten minutes' calls by operation, in bounded memory. They contain no names and no amounts. */
import type { Clock } from "../clock.js";
import { type Operation, OPERATIONS } from "./vocabulary.js";

interface OperationFigures {
  readonly operation: Operation;
  readonly calls: number;
  /** How many of these had no usable answer: an error, a broken connection or a timeout. */
  readonly failed: number;
  readonly meanMs: number;
  /** 95 % of the calls took at most this long. */
  readonly p95Ms: number;
}

export interface RecentCalls {
  /** `outcome` is the status of the answer, or an error code. */
  note(operation: Operation, outcome: string, durationMs: number): void;
  /** One entry for each operation with calls, in the document's order. Only the newest 1000 calls of an operation count. */
  figures(): OperationFigures[];
  readonly windowMs: number;
}

interface Call {
  readonly endedAtMs: number;
  readonly durationMs: number;
  readonly isFailure: boolean;
}

const WINDOW_MS = 600_000;
/** The default budget allows 570 calls in ten minutes. */
const MAX_CALLS = 1000;

export function createRecentCalls(clock: Clock): RecentCalls {
  const calls = new Map<Operation, Call[]>();

  function recent(operation: Operation): Call[] {
    const since = clock.monotonic() - WINDOW_MS;
    const list = calls.get(operation) ?? [];
    const first = list.findIndex(({ endedAtMs }) => endedAtMs > since);
    list.splice(0, first < 0 ? list.length : first);
    return list;
  }

  return {
    windowMs: WINDOW_MS,
    note(operation, outcome, durationMs) {
      const list = recent(operation);
      // "Not managed" is an answer, too.
      const isFailure = outcome !== "200" && !(operation === "domain" && outcome === "404");
      list.push({ endedAtMs: clock.monotonic(), durationMs, isFailure });
      if (list.length > MAX_CALLS) list.shift();
      calls.set(operation, list);
    },
    figures: () =>
      OPERATIONS.flatMap((operation) => {
        const list = recent(operation);
        if (list.length === 0) return [];
        const durations = list.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
        return [
          {
            operation,
            calls: list.length,
            failed: list.filter(({ isFailure }) => isFailure).length,
            meanMs: Math.round(durations.reduce((sum, ms) => sum + ms, 0) / list.length),
            p95Ms: durations[Math.ceil(0.95 * list.length) - 1] ?? 0,
          },
        ];
      }),
  };
}
