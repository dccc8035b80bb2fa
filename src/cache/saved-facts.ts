/** Facts in files: how their times are written, and lists of which each replica writes its own. */
import { readdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { bootedAtMs, type Clock } from "../clock.js";
import { createSavedFile, type SavedFile, type SavedFileSettings } from "../saved-file.js";
import type { Fact } from "./facts.js";

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
