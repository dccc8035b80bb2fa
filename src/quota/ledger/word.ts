/**
 * What a replica leaves on its disk for the process that will start in its place: what it would say to Redis on leaving.
 *
 * The word is one file: the replica rewrites it, and its successor removes it and then reads it. A call without Redis is written to the file
 * first, and made only if the file is still there afterwards. So the successor knows of every such call.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../clock.js";
import { createFolder } from "../../state-dir.js";

const knownSchema = z.strictObject({
  /** When it was written. */
  monotonicMs: z.number(),
  /** Where the replica ran, and whether it had a share. */
  place: z.string(),
  hasShare: z.boolean(),
  /** The table as the replica knew it. */
  epoch: z.string(),
  generation: z.number(),
  revision: z.number(),
  /** Calls that Redis doesn't know of: with a slot that it has assigned, and with the rest of the share; monotonic. */
  reports: z.array(z.strictObject({ id: z.number(), grant: z.string(), at: z.number() })),
  extra: z.array(z.number()),
});
/** What a replica knew last. */
export type Known = Readonly<z.infer<typeof knownSchema>>;
const wordSchema = knownSchema.extend({ wallMs: z.number() });

export interface Word {
  /** Whether the successor will read this, and so a call may be made without Redis. */
  write(known: Known): boolean;
  /**
   * The word of the replica of that name, which has been silent for `silentMs` and can make no more calls without Redis; null if it has left
   * none, or none that can be believed.
   */
  take(name: string, silentMs: number): Known | null;
  /** Takes the word of the last replica in that place that had a share, was running less than `withinMs` ago and left one. */
  takeOfPlace(place: string, withinMs: number): { readonly name: string; readonly known: Known } | null;
  /** Whether a successor has taken the word of this replica. */
  isTaken(): boolean;
  /** This replica will leave in order. */
  end(): void;
}

/** Without a disk nobody can tell what a replica did. */
export const noWord: Word = {
  write: () => true,
  take: () => null,
  takeOfPlace: () => null,
  isTaken: () => false,
  end: () => {},
};

export interface WordSettings {
  readonly directory: string;
  /** The replica's own name. */
  readonly me: string;
  readonly clock: Clock;
  /** Called once, with what the operating system said. */
  readonly onFault: (error: unknown) => void;
}

/** A wall clock that was set by more than this, or a machine that was restarted, shows. */
const CLOCKS_AGREE_MS = 1000;
/** A word is rewritten twice a second at least, so one that is older than the last contact by more than this isn't the last one. */
const STALE_AFTER_MS = 2000;
const USELESS_AFTER_MS = 3_600_000;

/** Begins the word of a replica; where the folder can't be written there is none. */
export function leaveWord({ directory, me, clock, onFault }: WordSettings): Word {
  const pathOf = (name: string): string => pathIn(directory, name);

  function take(name: string, silentMs: number): Known | null {
    let file: number | null = null;
    try {
      file = openSync(pathOf(name), "r");
      unlinkSync(pathOf(name));
      return parseWord(readFileSync(file, "utf8"), clock, silentMs);
    } catch {
      return null;
    } finally {
      if (file !== null) closeSync(file);
    }
  }

  function takeOfPlace(place: string, withinMs: number): ReturnType<Word["takeOfPlace"]> {
    try {
      const [last] = namesIn(directory)
        .map((name) => ({ name, known: peek(pathOf(name)) }))
        .filter(({ name, known }) => name !== me && known?.place === place && known.hasShare)
        .sort((a, b) => (b.known?.monotonicMs ?? 0) - (a.known?.monotonicMs ?? 0));
      if (last === undefined) return null;
      const known = take(last.name, withinMs - STALE_AFTER_MS);
      return known && { name: last.name, known };
    } catch {
      return null;
    }
  }

  function peek(path: string): Known | null {
    try {
      return parseWord(readFileSync(path, "utf8"), clock, Infinity);
    } catch {
      return null;
    }
  }

  const mine = pathOf(me);
  try {
    createFolder(directory);
    writeFileSync(mine, "", { flag: "wx", mode: 0o600 });
  } catch (error) {
    onFault(error);
    return { ...noWord, take, takeOfPlace };
  }
  try {
    removeOld(directory, clock.now() - USELESS_AFTER_MS);
  } catch (error) {
    onFault(error);
  }
  let hasFailed = false;
  let length = 0;

  return {
    write(known) {
      const text = JSON.stringify({ ...known, wallMs: clock.now() });
      try {
        // In one piece, over all that was there; never a new file, because the successor may have removed it.
        writeFileSync(mine, text.padEnd(length), { flag: "r+" });
        length = text.length;
        return existsSync(mine);
      } catch (error) {
        if (!hasFailed) onFault(error);
        hasFailed = true;
        return false;
      }
    },
    take,
    takeOfPlace,
    isTaken: () => !existsSync(mine),
    end() {
      try {
        rmSync(mine, { force: true });
      } catch (error) {
        onFault(error);
      }
    },
  };
}

const pathIn = (directory: string, name: string): string => join(directory, `quota-${name}.word`);

/** Of all replicas that have left a word there. */
function namesIn(directory: string): string[] {
  return readdirSync(directory).flatMap((file) => /^quota-([\w-]+)\.word$/.exec(file)?.[1] ?? []);
}

/** Removes the words that nobody will ask for. */
function removeOld(directory: string, before: number): void {
  for (const path of namesIn(directory).map((name) => pathIn(directory, name))) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat !== undefined && stat.mtimeMs < before) rmSync(path, { force: true });
  }
}

/** Rejects what isn't a whole word; null if it isn't the last one, or if the machine was restarted since, which makes its times meaningless. */
function parseWord(text: string, clock: Clock, silentMs: number): Known | null {
  const { wallMs, ...known } = wordSchema.parse(JSON.parse(text));
  const agoMs = clock.monotonic() - known.monotonicMs;
  const isOfThisTime = agoMs >= 0 && Math.abs(clock.now() - wallMs - agoMs) <= CLOCKS_AGREE_MS;
  return isOfThisTime && agoMs <= silentMs + STALE_AFTER_MS ? known : null;
}
