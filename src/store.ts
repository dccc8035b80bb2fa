/**
 * What outlives this process: in files in STATE_DIR, or, with several replicas, in Redis for the next owner. Two implementations: `createFileStore`
 * here, and `createRedisStore` in `fleet/`.
 */
import { join } from "node:path";
import type { ActStore } from "./staff/audit.js";
import { createActFile } from "./staff/act-file.js";
import type { Clock } from "./clock.js";
import type { Log } from "./logger.js";
import type { PromiseStore } from "./retail/promise.js";
import { createSavedFile, type SavedFile, type SavedFileSettings } from "./saved-file.js";

export type SavedSettings<T> = Pick<SavedFileSettings<T>, "shape" | "source"> & { readonly name: string };

/** Lines of text, of which the newest are kept. */
export interface Lines {
  /** Never throws. */
  append(line: string): void;
  /** The kept ones, the newest last; may reject. */
  load(): Promise<readonly string[]>;
}

export interface Store {
  /** One document; null if nothing is to outlive the process. */
  saved<T>(settings: SavedSettings<T>): SavedFile<T> | null;
  readonly acts: ActStore;
  /** Null: only this process finds its promises. */
  readonly promises: PromiseStore | null;
  /** The rows of the charts; null: they end with the process. */
  readonly history: Lines | null;
}

/** `isSandbox`: what is known about the embedded sandbox ends with it. */
export function createFileStore(directory: string, isSandbox: boolean, clock: Clock, log: Log): Store {
  return {
    saved: ({ name, ...settings }) =>
      isSandbox ? null : createSavedFile({ ...settings, path: join(directory, `${name}.json`), clock, log }),
    acts: createActFile(join(directory, "audit.jsonl"), clock, log),
    promises: null,
    history: null,
  };
}
