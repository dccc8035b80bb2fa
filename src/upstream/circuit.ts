/**
 * A circuit for each operation. It opens after several failures in a row, or after one while another circuit is open; then calls are rejected
 * without being made. After a while it is half-open: trial requests are let through, and the first success closes it.
 *
 * Only one visitor call at a time can be a trial request. Background work makes trial requests earlier, so that a recovery is noticed within
 * seconds and without visitors. All operations share one schedule of trial requests, which becomes sparse in a long outage so as not to burden the
 * upstream.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { FailureCode } from "./failures.js";

/**
 * Any understood answer is a success. `rejected`: the upstream refused the request, perhaps only because of its name. `inconclusive`: the call
 * proves nothing about the upstream.
 */
export type Outcome = "success" | "rejected" | FailureCode | "inconclusive";

export interface Circuit {
  readonly isOpen: boolean;
  /** The ms until background work should make a trial request; null after a success. A rejected call also leads to one. */
  trialInMs(): number | null;
  /** Why no call can be made now; null if one can. Background work may make a trial request earlier than visitor calls. */
  rejection(isBackground: boolean): ServiceError | null;
  /** Begins a call, which may be the trial request; the returned function ends it. Null if no call can be made. */
  begin(isBackground: boolean): ((outcome: Outcome) => void) | null;
}

interface CircuitSettings {
  readonly clock: Clock;
  readonly log: Log;
  /** The maximum time between opening and the first trial request by a visitor call. */
  readonly halfOpenAfterMs: number;
}

/**
 * Consecutive failures, because an upstream that answers every second call still serves half of the callers. Few enough to occur within seconds, and too
 * many to be a coincidence.
 */
const FAILURES_TO_OPEN = 5;
/**
 * The time between two trial requests, as a part of `halfOpenAfterMs`: by default 3.75 s, or 12 s once an outage has lasted half a minute. If calls
 * are rejected rather than failing, only the first trial comes after 3.75 s, because rejections may never end.
 */
const SPACING_AT_FIRST = 0.125;
const SPACING = 0.4;

/** One closed circuit for each operation. */
export function createCircuits<O extends string>(
  operations: readonly O[],
  settings: CircuitSettings,
): (operation: O) => Circuit {
  const trials = new TrialTimes(settings);
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
class TrialTimes {
  openCircuits = 0;
  readonly #settings: CircuitSettings;
  #outageFromAt = -Infinity;
  nextAt = -Infinity;
  #succeededAt = -Infinity;

  constructor(settings: CircuitSettings) {
    this.#settings = settings;
  }

  get spacingMs(): number {
    const { clock, halfOpenAfterMs } = this.#settings;
    const isLong = this.openCircuits > 0 && clock.monotonic() - this.#outageFromAt >= halfOpenAfterMs;
    return halfOpenAfterMs * (isLong ? SPACING : SPACING_AT_FIRST);
  }

  /** When background work may make the next trial request of an operation: immediately after a success of another one. */
  dueAt({ lastTrialAt, turnAt }: Outage): number {
    return lastTrialAt < this.#succeededAt ? -Infinity : Math.max(this.nextAt, turnAt);
  }

  opened(): void {
    if (this.openCircuits === 0) this.#outageFromAt = this.#settings.clock.monotonic();
    this.openCircuits += 1;
    this.began();
  }

  began(): void {
    this.nextAt = this.#settings.clock.monotonic() + this.spacingMs;
  }

  succeeded(): void {
    this.openCircuits -= 1;
    this.nextAt = -Infinity;
    this.#succeededAt = this.#settings.clock.monotonic();
  }
}

/** The state of an open circuit. */
interface Outage {
  by: FailureCode;
  halfOpenAt: number;
  /** The time of opening if there was none yet. */
  lastTrialAt: number;
  /** By then each failing operation has had a trial request. */
  turnAt: number;
  trialsUnderWay: number;
}

class OperationCircuit implements Circuit {
  readonly #operation: string;
  readonly #settings: CircuitSettings;
  readonly #trials: TrialTimes;
  /** Consecutive ones. */
  #failures = 0;
  #rejections = 0;
  /** When the last call failed or was rejected, or when a later trial request started; null after a success. */
  #doubtedAt: number | null = null;
  #outage: Outage | null = null;

  constructor(operation: string, settings: CircuitSettings, trials: TrialTimes) {
    this.#operation = operation;
    this.#settings = settings;
    this.#trials = trials;
  }

  get isOpen(): boolean {
    return this.#outage !== null;
  }

  trialInMs(): number | null {
    if (this.#doubtedAt === null) return null;
    const spacingMs =
      this.#rejections > 1 ? this.#settings.halfOpenAfterMs * SPACING : this.#trials.spacingMs;
    const atMs = this.#outage === null ? this.#doubtedAt + spacingMs : this.#trials.dueAt(this.#outage);
    return Math.max(0, atMs - this.#settings.clock.monotonic());
  }

  rejection(isBackground: boolean): ServiceError | null {
    if (this.#outage === null) return null;
    const { by, halfOpenAt, trialsUnderWay } = this.#outage;
    const now = this.#settings.clock.monotonic();
    // A trial request that hangs doesn't keep background work from making the next one; visitor calls aren't made at the same time as another
    // trial.
    if (!isBackground && trialsUnderWay > 0) return circuitOpen(by);
    const inMs = isBackground ? (this.trialInMs() ?? 0) : Math.max(halfOpenAt, this.#trials.nextAt) - now;
    return inMs > 0 ? circuitOpen(by, inMs) : null;
  }

  begin(isBackground: boolean): ((outcome: Outcome) => void) | null {
    if (this.rejection(isBackground) !== null) return null;
    const outage = this.#outage;
    if (outage === null) {
      if (isBackground && this.#doubtedAt !== null) this.#doubtedAt = this.#settings.clock.monotonic();
      return (outcome) => {
        // A call from before the circuit opened shows nothing about now; the trial request does.
        if (this.#outage === null) this.#count(outcome);
      };
    }
    outage.trialsUnderWay += 1;
    outage.lastTrialAt = this.#settings.clock.monotonic();
    outage.turnAt = outage.lastTrialAt + this.#trials.openCircuits * this.#trials.spacingMs;
    this.#trials.began();
    return (outcome) => {
      outage.trialsUnderWay -= 1;
      if (this.#outage !== outage || outcome === "inconclusive") return;
      if (outcome === "success" || outcome === "rejected") {
        this.#close();
        this.#count(outcome);
      } else {
        outage.by = outcome;
        outage.halfOpenAt = this.#settings.clock.monotonic() + this.#settings.halfOpenAfterMs;
      }
    };
  }

  #count(outcome: Outcome): void {
    if (outcome === "inconclusive") return;
    const now = this.#settings.clock.monotonic();
    this.#doubtedAt = outcome === "success" ? null : now;
    this.#rejections = outcome === "rejected" ? this.#rejections + 1 : 0;
    if (outcome === "success" || outcome === "rejected") {
      this.#failures = 0;
      return;
    }
    this.#failures += 1;
    // While another circuit is open, another failure isn't a coincidence.
    const failuresToOpen = this.#trials.openCircuits > 0 ? 1 : FAILURES_TO_OPEN;
    if (this.#failures < failuresToOpen) return;
    this.#trials.opened();
    this.#settings.log.warn("upstream.circuit.opened", { operation: this.#operation, code: outcome });
    this.#outage = {
      by: outcome,
      halfOpenAt: now + this.#settings.halfOpenAfterMs,
      lastTrialAt: now,
      turnAt: -Infinity,
      trialsUnderWay: 0,
    };
  }

  #close(): void {
    this.#outage = null;
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
