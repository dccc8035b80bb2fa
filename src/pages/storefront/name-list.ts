/** Checks a list of names one after another, as the quota allows, and reports each as soon as it is known. */
import { type Availability, StorefrontProblem, type StorefrontClient } from "../../../client/src/client.js";

export interface ListEvents {
  readonly onResult: (name: string, result: Availability) => void;
  /** The service refuses this one, or it could not be had. */
  readonly onProblem: (name: string, problem: StorefrontProblem) => void;
  readonly onWait: (problem: StorefrontProblem, waitMs: number) => void;
}

/** Resolves when every name has an answer; rejects when the connection is lost or the signal ends it. */
export async function checkNames(
  client: StorefrontClient,
  names: readonly string[],
  signal: AbortSignal,
  { onResult, onProblem, onWait }: ListEvents,
): Promise<void> {
  for (const name of names) {
    try {
      onResult(name, await client.availability({ domain: name }, { signal, onWait }));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof StorefrontProblem) || error.code === "unreachable") throw error;
      onProblem(name, error);
    }
  }
}
