/**
 * What outlives this process: in files in STATE_DIR, or, with several replicas, in Redis for the next owner. Two implementations: `createFileStore`
 * here, and `createRedisStore` in `fleet/`.
 */
import { join } from "node:path";
import type { Clock } from "./clock.js";
import type { Log } from "./logger.js";
import { createRecordFile, type Records } from "./record-file.js";
import { createSavedFile, type SavedFile, type SavedFileSettings } from "./saved-file.js";
import { type Act, acts } from "./staff/audit.js";
import { type SignedCart, signedCarts } from "./staff/signed-cart.js";

export type SavedSettings<T> = Pick<SavedFileSettings<T>, "shape" | "source"> & { readonly name: string };

/** Lines of text, of which the newest are kept. */
export interface Lines {
  /** Never rejects. */
  append(line: string): Promise<void>;
  /** The kept ones, the newest last; may reject. */
  load(): Promise<readonly string[]>;
}

export interface Store {
  /** One document; null if nothing is to outlive the process. */
  saved<T>(settings: SavedSettings<T>): SavedFile<T> | null;
  readonly acts: Records<Act>;
  readonly carts: Records<SignedCart>;
  /** The rows of the charts; null: they end with the process. */
  readonly history: Lines | null;
}

/** `isSandbox`: what is known about the embedded sandbox ends with it. */
export function createFileStore(directory: string, isSandbox: boolean, clock: Clock, log: Log): Store {
  return {
    saved: ({ name, ...settings }) =>
      isSandbox ? null : createSavedFile({ ...settings, path: join(directory, `${name}.json`), clock, log }),
    acts: createRecordFile(join(directory, "audit.jsonl"), acts, clock, (reason) => {
      log.error("audit.failed", { reason });
    }),
    carts: createRecordFile(join(directory, "carts.jsonl"), signedCarts, clock, (reason) => {
      log.error("carts.failed", { reason });
    }),
    history: null,
  };
}
