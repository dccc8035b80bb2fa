/** The folder of the ledger, the prices and the audit log: creates it, and checks that it is writable by writing a file. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import { rename, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, every } from "./clock.js";

interface StateDir {
  /** Why the folder wasn't usable when last checked; null if it was. */
  problem(): string | null;
  /** Starts the checks; returns a function that stops them. */
  watch(): () => void;
  /** Resolves when no check is in progress. */
  checked(): Promise<void>;
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
  let checking: Promise<void> | null = null;

  /** Off the event loop, because a rename can wait for the disk for a quarter of a second. */
  async function check(): Promise<string | null> {
    try {
      // A new file, because rewriting an existing one can succeed on a full disk.
      await writeFile(join(path, ".writable.new"), "\n", { mode: 0o600 });
      await rename(join(path, ".writable.new"), join(path, ".writable"));
      const { ino } = await stat(path);
      identity ??= ino;
      // The open ledger is still in the old folder.
      return ino === identity ? null : "STATE_DIR was replaced; restart the service.";
    } catch {
      return "STATE_DIR can't be written.";
    }
  }

  function look(): void {
    checking ??= check().then((found) => {
      problem = found;
      checking = null;
    });
  }

  return {
    problem: () => problem,
    watch() {
      look();
      return every(clock, CHECK_EVERY_MS, look);
    },
    checked: () => checking ?? Promise.resolve(),
  };
}
