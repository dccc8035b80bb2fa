/** Data in a JSON file that only its owner can read, so that it survives a restart. */
import { existsSync, readFileSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { z } from "zod";
import type { Clock } from "./clock.js";
import { parseJson } from "./json.js";
import type { Log } from "./logger.js";
import { createFolder } from "./state-dir.js";
import { failureReason } from "./system-error.js";

export interface SavedFile<T> {
  /** The saved data; null if there is none, if it can't be read, or if it belongs to another upstream or credential. */
  load(): Promise<T | null>;
  /** Replaces the whole file soon, with the latest data. Never throws; after a failure, which is logged, it is tried again until it succeeds. */
  save(data: T): void;
  /** Resolves once the latest data has been written, or writing it has failed once more. */
  saved(): Promise<void>;
}

export interface SavedFileSettings<T> {
  readonly path: string;
  readonly shape: z.ZodType<T>;
  /** Identifies the upstream, the credential or both: what belongs to another one may be another reseller's. */
  readonly source: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

/** How soon a failed save is tried again. */
const RETRY_MS = 10_000;

export function createSavedFile<T>({ path, shape, source, clock, log }: SavedFileSettings<T>): SavedFile<T> {
  const file = basename(path);
  const unfinished = `${path}.new`;
  const fileShape = z.strictObject({ source: z.string(), data: z.unknown() });

  function unreadable(): null {
    log.warn("saved.unreadable", { file });
    return null;
  }

  /** The latest data, until it is being written. */
  let unwritten: { readonly source: string; readonly data: T } | null = null;
  let writing: Promise<void> | null = null;
  /** Logged once, until a save succeeds. */
  let isFailing = false;
  let cancelRetry = (): void => {};

  async function writeAll(): Promise<void> {
    cancelRetry();
    while (unwritten !== null) {
      const latest: NonNullable<typeof unwritten> = unwritten;
      unwritten = null;
      try {
        createFolder(dirname(path));
        await writeFile(unfinished, JSON.stringify(latest), { mode: 0o600 });
        await rename(unfinished, path);
        isFailing = false;
      } catch (error) {
        if (!isFailing) log.error("saved.failed", { file, reason: failureReason(error) });
        isFailing = true;
        // On a full disk, a part of it has been written.
        await rm(unfinished, { force: true }).catch(() => {});
        unwritten ??= latest;
        cancelRetry = clock.after(RETRY_MS, () => void written());
        break;
      }
    }
    writing = null;
  }

  function written(): Promise<void> {
    if (unwritten !== null) writing ??= writeAll();
    return writing ?? Promise.resolve();
  }

  return {
    async load() {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch {
        return existsSync(path) ? unreadable() : null;
      }
      const read = fileShape.safeParse(parseJson(text));
      if (!read.success) return unreadable();
      if (read.data.source !== source()) {
        log.warn("saved.foreign", { file });
        return null;
      }
      const { success, data } = shape.safeParse(read.data.data);
      return success ? data : unreadable();
    },
    save(data) {
      unwritten = { source: source(), data };
      void written();
    },
    saved: written,
  };
}
