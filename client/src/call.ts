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
    own.abort(new StorefrontProblem("unreachable", "The service did not answer in time."));
  }, timeoutMs);
  signal?.addEventListener("abort", stop);
  if (signal?.aborted === true) stop();
  return {
    signal: own.signal,
    leftMs: () => endsAtMs - Date.now(),
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    },
  };
}
