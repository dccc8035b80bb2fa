/** The signal and deadline of one call. React Native's older signals have neither a reason nor `throwIfAborted`, so the reason is kept here. */
import { now } from "./clock.js";
import { StorefrontProblem } from "./problem.js";

/** How often a wait reads the clock: timers stand still while the device sleeps. */
const LOOK_MS = 1_000;

export interface Call {
  /** Aborts with the caller's, or when the deadline has passed. */
  readonly signal: AbortSignal;
  /** Once it has aborted: throws the reason of the caller's signal, or a StorefrontProblem. */
  readonly throwIfEnded: () => void;
  /** The time that is left after the current second. It stands still while the device sleeps or the page is frozen. */
  readonly leftMs: () => number;
  /** Must be called when the call is over. */
  readonly end: () => void;
}

export function startCall(signal: AbortSignal | undefined, timeoutMs: number): Call {
  const own = new AbortController();
  let leftMs = timeoutMs;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let tooSlow: StorefrontProblem | undefined;
  const stop = (): void => own.abort(signal?.reason);
  // In steps: a single timer would be overdue when a frozen page continues, and end a retry as soon as it starts.
  const count = (): void => {
    if (leftMs > 0) timer = setTimeout(count, Math.min(leftMs, LOOK_MS));
    else own.abort((tooSlow = new StorefrontProblem("unreachable", "Too slow.")));
    leftMs -= LOOK_MS;
  };
  count();
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  return {
    signal: own.signal,
    throwIfEnded() {
      if (own.signal.aborted) throw tooSlow ?? reasonOf(signal);
    },
    leftMs: () => leftMs,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    },
  };
}

function reasonOf(signal: AbortSignal | undefined): unknown {
  const reason: unknown = signal?.reason;
  return reason ?? Object.assign(new Error("Cancelled."), { name: "AbortError" });
}

/** Resolves at that time of `now()`; rejects with the reason of the signal if it aborts before. */
export function waitUntil(timeMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = (): void => {
      clearTimeout(timer);
      if (signal.aborted) failed(reasonOf(signal));
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
