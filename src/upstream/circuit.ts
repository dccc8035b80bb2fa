/**
 * A circuit for each operation. It opens after several failures in a row, or after one while another circuit is open; then calls are rejected
 * without being made, except for trial requests. The first success closes it. All failing operations share one schedule of trial requests in the
 * background, so a recovery is noticed within seconds and without visitors; in a long outage it becomes sparse so as not to burden the upstream.
 */
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import type { FailureCode } from "./failures.js";
import { type Operation, OPERATIONS } from "./vocabulary.js";

/**
 * Any understood answer is a success. `rejected`: the upstream refused the request, perhaps only because of its name. `inconclusive`: the call
 * proves nothing about the upstream.
 */
export type Outcome = "success" | "rejected" | FailureCode | "inconclusive";

export interface Trials {
  readonly operations: readonly Operation[];
  readonly inMs: number;
}

export interface Circuits {
  /** Why no call can be made now; null if one can. Background work may make a trial request earlier than visitors. */
  rejection(operation: Operation, isBackground: boolean): ServiceError | null;
  /** Begins a call, which may be a trial request; the returned function ends it. */
  begin(operation: Operation, isBackground: boolean): (outcome: Outcome) => void;
  open(): Operation[];
  /** Whether the last call of an operation failed or was rejected. */
  isFailing(): boolean;
  /** The next trial requests that background work should make; null if nothing fails. */
  nextTrials(): Trials | null;
}

interface CircuitSettings {
  readonly clock: Clock;
  readonly log: Log;
  /** How long after a failure a visitor's call may be the trial request. */
  readonly visitorAfterMs: number;
  /**
   * Consecutive failures, because an upstream that answers every second call still serves half of the callers. Few enough to occur within seconds,
   * and too many to be a coincidence.
   */
  readonly failuresToOpen?: number | undefined;
}

const FAILURES_TO_OPEN = 5;
/** The time between two trial requests, as a part of `visitorAfterMs`: by default 3.75 s, or 12 s once something has failed for half a minute. */
const SPACING_AT_FIRST = 0.125;
const SPACING = 0.4;

interface State {
  /** Consecutive ones. */
  failures: number;
  rejections: number;
  /** The last failure while the circuit is open; null while it is closed. */
  openBy: FailureCode | null;
  /** When it last failed or began a trial request. */
  triedAtMs: number;
  /** The number of calls that had begun at the last success: what began earlier shows nothing about now. */
  begunBeforeSuccess: number;
}

export function createCircuits(settings: CircuitSettings): Circuits {
  const { clock, log, visitorAfterMs, failuresToOpen = FAILURES_TO_OPEN } = settings;
  const states = new Map<Operation, State>();
  let begun = 0;
  let failingSinceMs = 0;
  let nextTrialAtMs = -Infinity;

  function stateOf(operation: Operation): State {
    const state = states.get(operation) ?? {
      failures: 0,
      rejections: 0,
      openBy: null,
      triedAtMs: -Infinity,
      begunBeforeSuccess: 0,
    };
    states.set(operation, state);
    return state;
  }

  const isFailing = ({ failures, rejections }: State): boolean => failures + rejections > 0;
  const failing = (): Operation[] => OPERATIONS.filter((operation) => isFailing(stateOf(operation)));
  const open = (): Operation[] => OPERATIONS.filter((operation) => stateOf(operation).openBy !== null);

  function delayTrials(isSparse = false): void {
    const isLong = failing().length > 0 && clock.monotonic() - failingSinceMs >= visitorAfterMs;
    const spacingMs = visitorAfterMs * (isSparse || isLong ? SPACING : SPACING_AT_FIRST);
    nextTrialAtMs = Math.max(nextTrialAtMs, clock.monotonic() + spacingMs);
  }

  function fail(operation: Operation, outcome: "rejected" | FailureCode): void {
    const state = stateOf(operation);
    const isFirst = failing().length === 0;
    if (isFirst) failingSinceMs = clock.monotonic();
    if (!isFailing(state)) delayTrials();
    state.triedAtMs = clock.monotonic();
    if (outcome === "rejected") {
      close(operation);
      state.failures = 0;
      state.rejections += 1;
      // Rejections may never end.
      if (state.rejections > 1) delayTrials(true);
      return;
    }
    state.failures += 1;
    state.rejections = 0;
    // While another circuit is open, another failure isn't a coincidence.
    if (state.openBy === null && state.failures < (open().length > 0 ? 1 : failuresToOpen)) return;
    if (state.openBy === null) log.warn("upstream.circuit.opened", { operation, code: outcome });
    state.openBy = outcome;
  }

  function close(operation: Operation): void {
    const state = stateOf(operation);
    if (state.openBy === null) return;
    state.openBy = null;
    log.info("upstream.circuit.closed", { operation });
  }

  return {
    open,
    isFailing: () => failing().length > 0,
    rejection(operation, isBackground) {
      const { openBy, triedAtMs } = stateOf(operation);
      if (openBy === null) return null;
      const atMs = isBackground ? nextTrialAtMs : Math.max(nextTrialAtMs, triedAtMs + visitorAfterMs);
      const retryAfterMs = atMs - clock.monotonic();
      if (retryAfterMs <= 0) return null;
      const detail = "The registry service keeps failing, so it isn't called at the moment.";
      return new ServiceError(openBy, detail, { retryAfterMs });
    },
    begin(operation, isBackground) {
      begun += 1;
      const number = begun;
      const state = stateOf(operation);
      const isTrial = state.openBy !== null || (isBackground && isFailing(state));
      if (isTrial) {
        state.triedAtMs = clock.monotonic();
        delayTrials();
      }
      return (outcome) => {
        if (outcome === "inconclusive") return;
        if (outcome !== "success") {
          if (number > state.begunBeforeSuccess) fail(operation, outcome);
          return;
        }
        state.begunBeforeSuccess = begun;
        state.failures = 0;
        state.rejections = 0;
        close(operation);
        // The others have probably recovered, too.
        if (isTrial || failing().length === 0) nextTrialAtMs = -Infinity;
      };
    },
    nextTrials() {
      const operations = failing().sort((one, other) => stateOf(one).triedAtMs - stateOf(other).triedAtMs);
      if (operations.length === 0) return null;
      if (nextTrialAtMs === -Infinity) return { operations, inMs: 0 };
      const inMs = Math.max(0, nextTrialAtMs - clock.monotonic());
      return { operations: operations.slice(0, 1), inMs };
    },
  };
}
