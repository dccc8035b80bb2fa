/**
 * A circuit for each operation. It opens after several failures in a row, or after one while another circuit is open; then calls are rejected
 * without being made. After a while it is half-open: one trial request at a time is let through, and the first success closes it. Trial
 * requests of all operations together are few enough not to burden an upstream that is down.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { FailureCode } from "./failures.js";

/** Any answer, whatever its content, is a success; a call that proves nothing about the upstream is inconclusive. */
export type Outcome = "success" | FailureCode | "inconclusive";

export interface Circuit {
  readonly isOpen: boolean;
  /** Why no call can be made now, or null. Background work may send a trial request earlier than calls that somebody waits for. */
  rejection(isBackground: boolean): ServiceError | null;
  /** Begins a call, which may be the trial request; the returned function ends it. Null if no call can be made. */
  begin(isBackground: boolean): ((outcome: Outcome) => void) | null;
}

interface CircuitSettings {
  readonly clock: Clock;
  readonly log: Log;
  /** The longest time between opening and the first trial request. */
  readonly halfOpenAfterMs: number;
  /**
   * In a row, because an upstream that answers every second call still serves half of the callers. Few enough to be over within seconds,
   * enough not to be a coincidence.
   */
  readonly failuresToOpen?: number | undefined;
}

const FAILURES_TO_OPEN = 5;
/** Keeps replicas, and operations that failed together, from sending trial requests together. */
const JITTER = 0.1;
const BACKGROUND_EARLIER = 0.25;
/** Trial requests of all operations during one `halfOpenAfterMs`: 6 a minute. */
const TRIALS_TOGETHER = 3;

/** One closed circuit for each operation. */
export function createCircuits<O extends string>(
  operations: readonly O[],
  settings: CircuitSettings,
): (operation: O) => Circuit {
  const trials = new TrialSpacing(settings.halfOpenAfterMs / TRIALS_TOGETHER);
  const circuits = new Map(
    operations.map((operation) => [operation, new OperationCircuit(operation, settings, trials)]),
  );
  return (operation) => {
    const circuit = circuits.get(operation);
    if (circuit === undefined) throw new Error(`there is no circuit for ${operation}`);
    return circuit;
  };
}

/** Spaces the trial requests of all operations, until one of them succeeds. */
class TrialSpacing {
  openCircuits = 0;
  readonly #spacingMs: number;
  #nextAtMs = -Infinity;

  constructor(spacingMs: number) {
    this.#spacingMs = spacingMs;
  }

  get nextAtMs(): number {
    return this.#nextAtMs;
  }

  began(nowMs: number): void {
    this.#nextAtMs = nowMs + this.#spacingMs;
  }

  succeeded(): void {
    this.#nextAtMs = -Infinity;
  }
}

interface OpenState {
  readonly by: FailureCode;
  readonly halfOpenAtMs: number;
  readonly backgroundHalfOpenAtMs: number;
}

class OperationCircuit implements Circuit {
  readonly #operation: string;
  readonly #settings: CircuitSettings;
  readonly #trials: TrialSpacing;
  #failures = 0;
  #open: OpenState | null = null;
  #isTrialUnderWay = false;

  constructor(operation: string, settings: CircuitSettings, trials: TrialSpacing) {
    this.#operation = operation;
    this.#settings = settings;
    this.#trials = trials;
  }

  get isOpen(): boolean {
    return this.#open !== null;
  }

  rejection(isBackground: boolean): ServiceError | null {
    if (this.#open === null) return null;
    const { by, halfOpenAtMs, backgroundHalfOpenAtMs } = this.#open;
    if (this.#isTrialUnderWay) return circuitOpen(by);
    const dueAtMs = Math.max(isBackground ? backgroundHalfOpenAtMs : halfOpenAtMs, this.#trials.nextAtMs);
    const inMs = dueAtMs - this.#settings.clock.monotonic();
    return inMs > 0 ? circuitOpen(by, inMs) : null;
  }

  begin(isBackground: boolean): ((outcome: Outcome) => void) | null {
    if (this.rejection(isBackground) !== null) return null;
    if (this.#open === null) {
      return (outcome) => {
        // A call from before the circuit opened shows nothing about now; the trial request does.
        if (this.#open === null) this.#count(outcome);
      };
    }
    this.#isTrialUnderWay = true;
    this.#trials.began(this.#settings.clock.monotonic());
    return (outcome) => {
      this.#isTrialUnderWay = false;
      if (outcome === "success") this.#close();
      else if (outcome !== "inconclusive") this.#setOpen(outcome);
    };
  }

  #count(outcome: Outcome): void {
    if (outcome === "inconclusive") return;
    this.#failures = outcome === "success" ? 0 : this.#failures + 1;
    if (outcome === "success") return;
    // While another circuit is open, another failure isn't a coincidence.
    const failuresToOpen =
      this.#trials.openCircuits > 0 ? 1 : (this.#settings.failuresToOpen ?? FAILURES_TO_OPEN);
    if (this.#failures < failuresToOpen) return;
    this.#trials.openCircuits += 1;
    this.#trials.began(this.#settings.clock.monotonic());
    this.#settings.log.warn("upstream.circuit.opened", { operation: this.#operation, code: outcome });
    this.#setOpen(outcome);
  }

  #setOpen(by: FailureCode): void {
    const now = this.#settings.clock.monotonic();
    const openMs = this.#settings.halfOpenAfterMs * (1 - JITTER * Math.random());
    this.#open = {
      by,
      halfOpenAtMs: now + openMs,
      backgroundHalfOpenAtMs: now + openMs * (1 - BACKGROUND_EARLIER),
    };
  }

  #close(): void {
    this.#open = null;
    this.#failures = 0;
    this.#trials.openCircuits -= 1;
    this.#trials.succeeded();
    this.#settings.log.info("upstream.circuit.closed", { operation: this.#operation });
  }
}

function circuitOpen(by: FailureCode, retryAfterMs?: number): ServiceError {
  return new ServiceError(
    by,
    "The registry service keeps failing, so it isn't called at the moment.",
    retryAfterMs === undefined ? {} : { retryAfterMs },
  );
}
