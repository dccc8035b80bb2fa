import { serving } from "./request-ids.js";

/** The source of time for every part; only tests replace it. Durations never jump with the wall clock. */
export interface Clock {
  /** Wall-clock time in ms since the epoch, for timestamps that people read. */
  now(): number;
  /** Monotonic time in ms, for durations, waits and the quota. All processes of this machine share it, until the machine restarts. */
  monotonic(): number;
  /** Calls `run` once after `delayMs`; returns a function that cancels it. A pending timer never keeps the process alive. */
  after(delayMs: number, run: () => void): () => void;
}

/** Node's timers fire immediately for longer delays. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The time from the start of the machine to that of this process. Retries until both clocks are read within a millisecond. */
function machineAheadMs(): number {
  for (;;) {
    const before = process.hrtime.bigint();
    const ownMs = performance.now();
    if (process.hrtime.bigint() - before < 1_000_000n) return Number(before / 1000n) / 1000 - ownMs;
  }
}
const MACHINE_AHEAD_MS = machineAheadMs();

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now() + MACHINE_AHEAD_MS,
  after(delayMs, run) {
    // Otherwise a timer that sets the next one would belong forever to the request that set the first.
    const timer = serving(null, () => setTimeout(run, Math.min(Math.max(delayMs, 0), MAX_TIMER_MS)));
    timer.unref();
    return () => {
      clearTimeout(timer);
    };
  },
};

/** The wall-clock time at which the monotonic clock was 0. */
export function bootedAt(clock: Clock): number {
  return clock.now() - clock.monotonic();
}

/** Calls `run` whenever `everyMs` have passed; returns a function that stops it. */
export function every(clock: Clock, everyMs: number, run: () => void): () => void {
  let cancel = (): void => {};
  const next = (): void => {
    cancel = clock.after(everyMs, () => {
      next();
      run();
    });
  };
  next();
  return () => {
    cancel();
  };
}

/** Gradual adjustments add up to this before they count. */
const STEP_MS = 1_000;

/**
 * The same clock, but its monotonic time also advances whenever the wall clock is set forward: the machine may have been suspended, so nothing known
 * from before seems younger than it is. Only for the ages of facts, and for how long a call may still be sent: slots that rest, and waits that were
 * promised, must not count time that may not have passed. Times of one clock can't be compared with those of the other.
 */
export function countingSuspensions(clock: Clock): Clock {
  let bootAt = bootedAt(clock);
  let suspendedMs = 0;
  return {
    now: () => clock.now(),
    monotonic() {
      const runningMs = clock.monotonic();
      const stepMs = clock.now() - runningMs - bootAt;
      if (Math.abs(stepMs) >= STEP_MS) {
        bootAt += stepMs;
        suspendedMs += Math.max(0, stepMs);
      }
      return runningMs + suspendedMs;
    },
    after: (delayMs, run) => clock.after(delayMs, run),
  };
}

/** Smaller than any measured duration. */
const STAMP_STEP_MS = 0.0001;

/** Creates monotonic timestamps in ms that never repeat, so the order of two events is always known. */
export function createStamps(clock: Clock): () => number {
  let last = -Infinity;
  return () => (last = Math.max(clock.monotonic(), last + STAMP_STEP_MS));
}

/** A value with the stamps at which its request left and its answer was complete. */
export interface Answered<T> {
  readonly value: T;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** A moment later than the stamp and earlier than every stamp after it. */
export function justAfter(stampMs: number): number {
  return stampMs + STAMP_STEP_MS / 2;
}

/** RFC 3339, UTC. */
export function instant(atMs: number): string {
  return new Date(atMs).toISOString();
}

/** Resolves after `forMs`, or as soon as the signal is aborted. */
export function pause(clock: Clock, forMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(forMs, end);
    signal.addEventListener("abort", end);
  });
}
