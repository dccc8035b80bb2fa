/** The signal and deadline of one call. The signal aborts with the caller's, or with a StorefrontProblem when the deadline has passed. */
import { now } from "./clock.js";
import { StorefrontProblem } from "./problem.js";

/** How often a wait reads the clock: timers stand still while the device sleeps. */
const LOOK_MS = 1_000;

export interface Call {
  readonly signal: AbortSignal;
  /** The time that is left after the current second. It stands still while the device sleeps or the page is frozen. */
  readonly leftMs: () => number;
  /** Must be called when the call is over. */
  readonly end: () => void;
}

export function startCall(signal: AbortSignal | undefined, timeoutMs: number): Call {
  const own = new AbortController();
  let leftMs = timeoutMs;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => own.abort(signal?.reason);
  // In steps: a single timer would be overdue when a frozen page continues, and end a retry as soon as it starts.
  const count = (): void => {
    if (leftMs > 0) timer = setTimeout(count, Math.min(leftMs, LOOK_MS));
    else own.abort(new StorefrontProblem("unreachable", "Too slow."));
    leftMs -= LOOK_MS;
  };
  count();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  return {
    signal: own.signal,
    leftMs: () => leftMs,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    },
  };
}

/** Resolves at that time of `now()`; rejects with the reason of the signal if it aborts before. */
export function waitUntil(timeMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void => {
      clearTimeout(timer);
      if (signal.aborted) failed(signal.reason);
      else if (now() < timeMs) timer = setTimeout(look, Math.min(timeMs - now(), LOOK_MS));
      else done();
    };
    signal.addEventListener("abort", look);
    look();
  });
}

/** Calls `act` at that time of `now()` unless the signal aborts before. */
export function callAt(timeMs: number, signal: AbortSignal, act: () => void): void {
  waitUntil(timeMs, signal).then(act, () => {});
}
