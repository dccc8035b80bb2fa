/**
 * Leaves alone what fails: after some failures in a row, or one while others are left alone, an operation is not called any more, but for
 * one trial at a time, until a trial works. Each has its own circuit; all trials together are too few to burden an upstream that is down.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";

/** How a call ended: with an answer, whatever it said, with what counts as a failure, or without telling anything of the upstream. */
export type Ending = "works" | "upstream_failed" | "upstream_contract" | "upstream_timeout" | "unknown";
type Failure = Exclude<Ending, "works" | "unknown">;

export interface Circuit {
  readonly isOpen: boolean;
  /** Why no call may be made now, or null. Background work may make a trial earlier than those for whom somebody waits. */
  refusal(isBackground: boolean): ServiceError | null;
  /** Begins a call, which may be the trial; the answer ends it. Null where none may be made. */
  begin(isBackground: boolean): ((ending: Ending) => void) | null;
}

export interface CircuitSettings {
  readonly clock: Clock;
  readonly log: Log;
  /** How long an operation that fails is left alone before a trial, at most. */
  readonly trialAfterMs: number;
  /**
   * In a row, because an upstream that answers every second call still serves half of those who ask. Few enough to be over within
   * seconds, enough not to be a coincidence.
   */
  readonly failuresToOpen?: number | undefined;
}

const FAILURES_TO_OPEN = 5;
/** So that replicas, and operations that failed together, are not tried together. */
const JITTER = 0.1;
const BACKGROUND_EARLIER = 0.25;
/** Trials of all operations in the time in which one of them is left alone: 6 a minute. */
const TRIALS_TOGETHER = 3;

/** One circuit for each operation, all of them closed. */
export function createCircuits<O extends string>(
  operations: readonly O[],
  settings: CircuitSettings,
): (operation: O) => Circuit {
  const trials = new Trials(settings.trialAfterMs / TRIALS_TOGETHER);
  const circuits = new Map(
    operations.map((operation) => [operation, new OperationCircuit(operation, settings, trials)]),
  );
  return (operation) => {
    const circuit = circuits.get(operation);
    if (circuit === undefined) throw new Error(`there is no circuit for ${operation}`);
    return circuit;
  };
}

/** What circuits know of each other: it keeps the trials of all operations apart, as long as none of them works. */
class Trials {
  /** How many operations are left alone. */
  open = 0;
  readonly #apartMs: number;
  #nextAtMs = -Infinity;

  constructor(apartMs: number) {
    this.#apartMs = apartMs;
  }

  get nextAtMs(): number {
    return this.#nextAtMs;
  }

  began(nowMs: number): void {
    this.#nextAtMs = nowMs + this.#apartMs;
  }

  worked(): void {
    this.#nextAtMs = -Infinity;
  }
}

interface Opened {
  readonly by: Failure;
  readonly trialAtMs: number;
  readonly backgroundTrialAtMs: number;
}

class OperationCircuit implements Circuit {
  readonly #operation: string;
  readonly #settings: CircuitSettings;
  readonly #trials: Trials;
  #failures = 0;
  #opened: Opened | null = null;
  #isTrying = false;

  constructor(operation: string, settings: CircuitSettings, trials: Trials) {
    this.#operation = operation;
    this.#settings = settings;
    this.#trials = trials;
  }

  get isOpen(): boolean {
    return this.#opened !== null;
  }

  refusal(isBackground: boolean): ServiceError | null {
    if (this.#opened === null) return null;
    const { by, trialAtMs, backgroundTrialAtMs } = this.#opened;
    if (this.#isTrying) return leftAlone(by);
    const dueAtMs = Math.max(isBackground ? backgroundTrialAtMs : trialAtMs, this.#trials.nextAtMs);
    const inMs = dueAtMs - this.#settings.clock.monotonic();
    return inMs > 0 ? leftAlone(by, inMs) : null;
  }

  begin(isBackground: boolean): ((ending: Ending) => void) | null {
    if (this.refusal(isBackground) !== null) return null;
    if (this.#opened === null) {
      return (ending) => {
        // What was sent before it opened proves nothing about now: the trial does.
        if (this.#opened === null) this.#count(ending);
      };
    }
    this.#isTrying = true;
    this.#trials.began(this.#settings.clock.monotonic());
    return (ending) => {
      this.#isTrying = false;
      if (ending === "works") this.#close();
      else if (ending !== "unknown") this.#open(ending);
    };
  }

  #count(ending: Ending): void {
    if (ending === "unknown") return;
    this.#failures = ending === "works" ? 0 : this.#failures + 1;
    if (ending === "works") return;
    // Where others have failed already, one more failure is no coincidence.
    const enough = this.#trials.open > 0 ? 1 : (this.#settings.failuresToOpen ?? FAILURES_TO_OPEN);
    if (this.#failures < enough) return;
    this.#trials.open += 1;
    this.#trials.began(this.#settings.clock.monotonic());
    this.#settings.log.warn("upstream.circuit.opened", { operation: this.#operation, code: ending });
    this.#open(ending);
  }

  #open(by: Failure): void {
    const now = this.#settings.clock.monotonic();
    const aloneMs = this.#settings.trialAfterMs * (1 - JITTER * Math.random());
    this.#opened = {
      by,
      trialAtMs: now + aloneMs,
      backgroundTrialAtMs: now + aloneMs * (1 - BACKGROUND_EARLIER),
    };
  }

  #close(): void {
    this.#opened = null;
    this.#failures = 0;
    this.#trials.open -= 1;
    this.#trials.worked();
    this.#settings.log.info("upstream.circuit.closed", { operation: this.#operation });
  }
}

function leftAlone(by: Failure, retryAfterMs?: number): ServiceError {
  return new ServiceError(
    by,
    "The registry service has failed several times and is left alone for a moment.",
    retryAfterMs === undefined ? {} : { retryAfterMs },
  );
}
