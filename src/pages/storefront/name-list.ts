/** Checks a list of names one after another, as the quota allows, and reports each as soon as it's known. */
import { type Availability, StorefrontProblem, type StorefrontClient } from "../../../client/src/client.js";

export interface ListEvents {
  readonly onResult: (name: string, result: Availability) => void;
  /** The service rejects this name, or couldn't check it. */
  readonly onProblem: (name: string, problem: StorefrontProblem) => void;
  readonly onWait: (problem: StorefrontProblem, waitMs: number) => void;
  readonly onRetry: () => void;
}

/** Resolves when every name has a result or a problem; rejects when the connection is lost or the signal aborts. */
export async function checkNames(
  client: StorefrontClient,
  names: readonly string[],
  signal: AbortSignal,
  { onResult, onProblem, onWait, onRetry }: ListEvents,
): Promise<void> {
  for (const name of names) {
    try {
      onResult(name, await client.availability({ domain: name }, { signal, onWait, onRetry }));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof StorefrontProblem) || error.code === "unreachable") throw error;
      onProblem(name, error);
    }
  }
}
