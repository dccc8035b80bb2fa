/** Whether the folder of the ledger and the audit can be written, found out by writing. */
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "./clock.js";

export interface StateDir {
  /** Why it isn't usable now; null while it is. */
  problem(): string | null;
  /** Starts looking; returns a function that stops it. */
  watch(): () => void;
}

const LOOK_EVERY_MS = 2_000;

export function createStateDir(path: string, clock: Clock): StateDir {
  let identity: number | null = null;
  let problem: string | null = null;

  function look(): string | null {
    try {
      writeFileSync(join(path, ".writable"), "\n", { mode: 0o600 });
    } catch {
      return "STATE_DIR can't be written.";
    }
    const { ino } = statSync(path);
    identity ??= ino;
    // The ledger that is in use went with the former folder.
    return ino === identity ? null : "STATE_DIR was replaced; restart the service.";
  }

  return {
    problem: () => problem,
    watch() {
      let cancel = (): void => {};
      const lookAgain = (): void => {
        problem = look();
        cancel = clock.after(LOOK_EVERY_MS, lookAgain);
      };
      lookAgain();
      return () => {
        cancel();
      };
    },
  };
}
