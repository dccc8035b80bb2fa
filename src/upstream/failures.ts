/** The three ways in which a call to the upstream fails, as errors that contain nothing of the upstream's own text. */
import { ServiceError } from "../errors.js";

export type FailureCode = "upstream_failed" | "upstream_contract" | "upstream_timeout";

/** The code of an error that the upstream caused, or null for any other error. */
export function failureCodeOf(error: unknown): FailureCode | null {
  if (!(error instanceof ServiceError)) return null;
  const { code } = error;
  return code === "upstream_failed" || code === "upstream_contract" || code === "upstream_timeout"
    ? code
    : null;
}

/** `what` completes "The registry service …"; `rest`: the wait until it can be tried again, if that is known. */
export function upstreamFailed(what: string, rest: { readonly retryAfterMs?: number } = {}): ServiceError {
  return new ServiceError("upstream_failed", `The registry service ${what}.`, rest);
}

/** `part` names the part of the answer that can't be interpreted. */
export function notUnderstood(part: string): ServiceError {
  return new ServiceError("upstream_contract", `The registry service's answer wasn't understood (${part}).`);
}

export function timedOut(): ServiceError {
  return new ServiceError("upstream_timeout", "The registry service didn't answer in time.");
}
