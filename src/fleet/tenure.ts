/**
 * The time in which this process is the owner: it first reads what the former owner knew, then does the owner's work, until another replica is the owner
 * or the process stops.
 */
import type { Fleet } from "./lease.js";

export interface Tenure {
  /** While this process becomes the owner: resolves when it knows what the former one knew. Otherwise null. */
  takingOver(): Promise<void> | null;
  stop(): void;
}

/** `takeOver` reads what the former owner knew; `work` starts the owner's work, and returns a function that stops it. */
export function createTenure(
  fleet: Pick<Fleet, "role" | "onChange" | "onLost">,
  takeOver: () => Promise<void>,
  work: () => () => void,
): Tenure {
  let isOwner = false;
  let isStopped = false;
  let stopWork: (() => void) | null = null;
  let taking: Promise<void> | null = null;

  async function begin(): Promise<void> {
    await takeOver();
    if (fleet.role() === "owner" && !isStopped) stopWork ??= work();
  }

  function end(): void {
    isOwner = false;
    stopWork?.();
    stopWork = null;
  }

  fleet.onLost(end);
  fleet.onChange(() => {
    if (fleet.role() !== "owner") return end();
    if (isOwner) return;
    isOwner = true;
    const now = begin().finally(() => {
      if (taking === now) taking = null;
    });
    taking = now;
  });

  return {
    takingOver: () => taking,
    stop() {
      isStopped = true;
      end();
    },
  };
}
