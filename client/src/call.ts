/** The signal and deadline of one call. The signal aborts with the caller's, or with a StorefrontProblem when the deadline has passed. */
import { StorefrontProblem } from "./problem.js";

export interface Call {
  readonly signal: AbortSignal;
  readonly leftMs: () => number;
  /** Must be called when the call is over. */
  readonly end: () => void;
}

export function startCall(signal: AbortSignal | undefined, timeoutMs: number): Call {
  const own = new AbortController();
  const endsAtMs = Date.now() + timeoutMs;
  const stop = (): void => {
    own.abort(signal?.reason);
  };
  const timer = setTimeout(() => {
    own.abort(new StorefrontProblem("unreachable", "Too slow."));
  }, timeoutMs);
  signal?.addEventListener("abort", stop);
  if (signal?.aborted) stop();
  return {
    signal: own.signal,
    leftMs: () => endsAtMs - Date.now(),
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    },
  };
}

/** Resolves after that time; rejects with the reason of the signal if it aborts before. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const stop = (): void => {
      clearTimeout(timer);
      failed(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      done();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
}
