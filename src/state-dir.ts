/** Checks by writing a file whether the folder of the ledger and the audit log is writable. */
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "./clock.js";

interface StateDir {
  /** Why the folder isn't usable; null while it is. */
  problem(): string | null;
  /** Starts the checks; returns a function that stops them. */
  watch(): () => void;
}

const CHECK_EVERY_MS = 2_000;

export function createStateDir(path: string, clock: Clock): StateDir {
  let identity: number | null = null;
  let problem: string | null = null;

  function check(): string | null {
    try {
      writeFileSync(join(path, ".writable"), "\n", { mode: 0o600 });
    } catch {
      return "STATE_DIR can't be written.";
    }
    const { ino } = statSync(path);
    identity ??= ino;
    // The open ledger is in the replaced folder.
    return ino === identity ? null : "STATE_DIR was replaced; restart the service.";
  }

  return {
    problem: () => problem,
    watch() {
      let cancel = (): void => {};
      const loop = (): void => {
        problem = check();
        cancel = clock.after(CHECK_EVERY_MS, loop);
      };
      loop();
      return () => {
        cancel();
      };
    },
  };
}
