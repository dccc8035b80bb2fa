/** Facts in a JSON file that only its owner can read, so that they survive a restart. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { parseJson } from "../json.js";
import type { Log } from "../logger.js";
import { createFolder } from "../state-dir.js";
import type { Fact } from "./facts.js";

export interface SavedFile<T> {
  /** The saved data; null if there is none, if it can't be read, or if it belongs to another upstream or credential. */
  load(): T | null;
  /** Replaces the whole file soon, with the latest data. Never throws; after a failure, which is logged, it is tried again until it succeeds. */
  save(data: T): void;
  /** Resolves once the latest data has been written, or writing it has failed once more. */
  saved(): Promise<void>;
}

interface SavedFileSettings<T> {
  readonly path: string;
  readonly shape: z.ZodType<T>;
  /** Identifies the upstream and the configured credential, because facts of another one may be another reseller's. */
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

  /** The latest text, until it is being written. */
  let unwritten: string | null = null;
  let writing: Promise<void> | null = null;
  /** Logged once, until a save succeeds. */
  let isFailing = false;
  let cancelRetry = (): void => {};

  async function writeAll(): Promise<void> {
    cancelRetry();
    while (unwritten !== null) {
      const text: string = unwritten;
      unwritten = null;
      try {
        createFolder(dirname(path));
        await writeFile(unfinished, text, { mode: 0o600 });
        await rename(unfinished, path);
        isFailing = false;
      } catch (error) {
        if (!isFailing)
          log.error("saved.failed", { file, reason: error instanceof Error ? error.name : "unknown" });
        isFailing = true;
        // On a full disk, a part of it has been written.
        await rm(unfinished, { force: true }).catch(() => {});
        unwritten ??= text;
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
    load() {
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
      unwritten = JSON.stringify({ source: source(), data });
      void written();
    },
    saved: written,
  };
}

export interface SavedLists<T> {
  /** The entries in the files of all replicas. Files last written more than `keptMs` before the newest of them are deleted instead. */
  load(): readonly T[];
  /** As `SavedFile`, for this replica's file. */
  save(list: readonly T[]): void;
  saved(): Promise<void>;
}

interface SavedListsSettings<T> extends Omit<SavedFileSettings<readonly T[]>, "path"> {
  readonly directory: string;
  readonly name: string;
  /** Which replica this is, in characters for file names. */
  readonly replica: string;
  readonly keptMs: number;
}

/** A list for each replica in a folder that they share: each replaces only its own file, so none loses what another has saved. */
export function createSavedLists<T>(settings: SavedListsSettings<T>): SavedLists<T> {
  const { directory, name, replica, keptMs, clock } = settings;
  const at = (path: string): SavedFile<readonly T[]> => createSavedFile({ ...settings, path });
  const { save, saved } = at(join(directory, `${name}.${replica}.json`));

  function paths(): string[] {
    try {
      return readdirSync(directory)
        .filter((file) => file.startsWith(`${name}.`) && file.endsWith(".json"))
        .map((file) => join(directory, file));
    } catch {
      return [];
    }
  }

  return {
    load() {
      const files = paths().map((path) => ({
        path,
        writtenAtMs: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? clock.now(),
      }));
      // By the files too, because a clock that is ahead for a while must not delete what the others have saved.
      const lastMs = files.reduce((last, { writtenAtMs }) => Math.max(last, writtenAtMs), -Infinity);
      const oldMs = Math.min(lastMs, clock.now()) - keptMs;
      return files.flatMap(({ path, writtenAtMs }) => {
        if (writtenAtMs >= oldMs) return at(path).load() ?? [];
        rm(path, { force: true }).catch(() => {});
        return [];
      });
    },
    save,
    saved,
  };
}

/** When a saved fact was requested and answered. Wall-clock ms, because the machine may restart before it is read. */
export const savedTimes = { askedAtMs: z.number().positive(), answeredAtMs: z.number().positive() };

type Times = Pick<Fact<unknown>, "askedMs" | "answeredMs">;
interface SavedTimes {
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
}

const bootedAtMs = (clock: Clock): number => clock.now() - clock.monotonic();

/** The times of a fact, as saved. */
export function toSavedTimes(clock: Clock, { askedMs, answeredMs }: Times): SavedTimes {
  return {
    askedAtMs: Math.floor(bootedAtMs(clock) + askedMs),
    answeredAtMs: Math.floor(bootedAtMs(clock) + answeredMs),
  };
}

/** The reverse, on the monotonic clock: negative if before the machine booted. Null for times in the future, because the clock has been set back since. */
export function fromSavedTimes(clock: Clock, { askedAtMs, answeredAtMs }: SavedTimes): Times | null {
  if (answeredAtMs > clock.now()) return null;
  return { askedMs: askedAtMs - bootedAtMs(clock), answeredMs: answeredAtMs - bootedAtMs(clock) };
}
