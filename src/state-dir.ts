/** The folder of the ledger, the prices and the audit log: creates it, and checks that it is writable by writing a file. */
import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Clock, every } from "./clock.js";

interface StateDir {
  /** Why the folder isn't usable; null while it is. */
  problem(): string | null;
  /** Starts the checks; returns a function that stops them. */
  watch(): () => void;
}

const CHECK_EVERY_MS = 2_000;

/**
 * Creates the folder and its parents, accessible only to this user. Node's recursive mkdir never returns if the kernel answers ENOENT, as in /proc.
 */
export function createFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
    const parent = dirname(path);
    if (existsSync(parent)) throw error;
    createFolder(parent);
    createFolder(path);
  }
}

export function createStateDir(path: string, clock: Clock): StateDir {
  let identity: number | null = null;
  let problem: string | null = null;

  function check(): string | null {
    try {
      // A new file, because rewriting an existing one can succeed on a full disk.
      writeFileSync(join(path, ".writable.new"), "\n", { mode: 0o600 });
      renameSync(join(path, ".writable.new"), join(path, ".writable"));
      const { ino } = statSync(path);
      identity ??= ino;
      // The open ledger is still in the old folder.
      return ino === identity ? null : "STATE_DIR was replaced; restart the service.";
    } catch {
      return "STATE_DIR can't be written.";
    }
  }

  return {
    problem: () => problem,
    watch() {
      const look = (): void => {
        problem = check();
      };
      look();
      return every(clock, CHECK_EVERY_MS, look);
    },
  };
}
