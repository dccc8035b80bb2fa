/** How the upstream has answered of late: the calls of the last ten minutes by operation, in bounded memory; no names, no amounts. */
import type { Clock } from "../clock.js";
import { type Operation, OPERATIONS } from "./vocabulary.js";

interface OperationFigures {
  readonly operation: Operation;
  readonly calls: number;
  /** Of these, those without a usable answer: refused, broken off or too late. */
  readonly failed: number;
  readonly meanMs: number;
  /** Nineteen in twenty took no longer. */
  readonly p95Ms: number;
}

export interface RecentCalls {
  /** `outcome` is the status of the answer, or what kept it from coming. */
  note(operation: Operation, outcome: string, durationMs: number): void;
  /** Those that were called, in the order of the document. Of very many calls, the newest of each operation. */
  figures(): OperationFigures[];
  readonly windowMs: number;
}

interface Call {
  readonly endedAtMs: number;
  readonly durationMs: number;
  readonly isFailure: boolean;
}

const WINDOW_MS = 600_000;
/** The usual budget allows 570 in ten minutes. */
const MOST_OF_EACH = 1000;

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
      // That a domain is not the reseller's is an answer.
      const isFailure = outcome !== "200" && !(operation === "domain" && outcome === "404");
      list.push({ endedAtMs: clock.monotonic(), durationMs, isFailure });
      if (list.length > MOST_OF_EACH) list.shift();
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
