/**
 * Handover files (`Handover`): what a replica leaves on disk for the next process in its place. It has the contents of the leave request that the
 * replica can't send once it is dead.
 *
 * The replica rewrites its file, and its successor deletes the file and then reads it. A call without Redis is first recorded in the file, and made
 * only if the file still exists afterwards. So the successor knows of every such call.
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
  /** Where the replica ran, and how many slots it could use alone. */
  place: z.string(),
  share: z.number(),
  /** The last table that the replica knew. */
  epoch: z.string(),
  generation: z.number(),
  revision: z.number(),
  /** Calls that Redis doesn't know of: `reports` on slots that it has assigned, `extra` on the rest of the share. Times are monotonic. */
  reports: z.array(z.strictObject({ id: z.number(), grant: z.string(), at: z.number() })),
  extra: z.array(z.number()),
  /** The end of the last pause that the upstream has asked for, monotonic; Redis may not know of it. */
  pausedUntil: z.number(),
});
/** The last known state of a replica. */
export type Known = Readonly<z.infer<typeof knownSchema>>;
const fileSchema = knownSchema.extend({ wallMs: z.number() });

export interface Handover {
  /** Returns whether a successor would read this; if so, a call may be made without Redis. */
  write(known: Known): boolean;
  /**
   * Deletes and returns the handover of this replica, which has been silent for `silentMs` and can make no more calls without Redis; null if there
   * is none, or none that can be trusted.
   */
  take(name: string, silentMs: number): Known | null;
  /** Deletes and returns the handover of the last replica in this place that had a share, if it was running less than `withinMs` ago. */
  takeOfPlace(place: string, withinMs: number): { readonly name: string; readonly known: Known } | null;
  /** Whether a successor has taken this replica's handover. */
  isTaken(): boolean;
  /** Deletes the handover, because this replica is about to leave properly. */
  end(): void;
}

/** Used without a disk: there are no handovers. */
export const noHandover: Handover = {
  write: () => true,
  take: () => null,
  takeOfPlace: () => null,
  isTaken: () => false,
  end: () => {},
};

export interface HandoverSettings {
  readonly directory: string;
  /** The replica's own name. */
  readonly me: string;
  readonly clock: Clock;
  /** Called when a file operation fails; for writes, only the first time. */
  readonly onFault: (error: unknown) => void;
}

/** If wall and monotonic clock disagree by more than this, the wall clock was set or the machine rebooted. */
const CLOCKS_AGREE_MS = 1000;
/** A handover is rewritten at least twice a second, so one that is this much older than the last contact isn't the latest. */
const STALE_AFTER_MS = 2000;
const USELESS_AFTER_MS = 3_600_000;

/** Creates the handover of a replica. If the folder can't be written, there is none. */
export function openHandover({ directory, me, clock, onFault }: HandoverSettings): Handover {
  const pathOf = (name: string): string => pathIn(directory, name);

  function take(name: string, silentMs: number): Known | null {
    let file: number | null = null;
    try {
      file = openSync(pathOf(name), "r");
      unlinkSync(pathOf(name));
      return parseHandover(readFileSync(file, "utf8"), clock, silentMs);
    } catch {
      return null;
    } finally {
      if (file !== null) closeSync(file);
    }
  }

  function takeOfPlace(place: string, withinMs: number): ReturnType<Handover["takeOfPlace"]> {
    try {
      const [last] = namesIn(directory)
        .map((name) => ({ name, known: peek(pathOf(name)) }))
        .filter(({ name, known }) => name !== me && known?.place === place && known.share > 0)
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
      return parseHandover(readFileSync(path, "utf8"), clock, Infinity);
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
    return { ...noHandover, take, takeOfPlace };
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
        // Overwrites the file in a single write. Never creates it, because the successor may have deleted it.
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

const pathIn = (directory: string, name: string): string => join(directory, `quota-${name}.handover`);

/** The names of all replicas with a handover in the folder. */
function namesIn(directory: string): string[] {
  return readdirSync(directory).flatMap((file) => /^quota-([\w-]+)\.handover$/.exec(file)?.[1] ?? []);
}

/** Deletes handovers that are too old to be used. */
function removeOld(directory: string, before: number): void {
  for (const path of namesIn(directory).map((name) => pathIn(directory, name))) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat !== undefined && stat.mtimeMs < before) rmSync(path, { force: true });
  }
}

/**
 * Throws if the text is incomplete. Null if it isn't the latest handover, or if the machine has rebooted since, which makes its times meaningless.
 */
function parseHandover(text: string, clock: Clock, silentMs: number): Known | null {
  const { wallMs, ...known } = fileSchema.parse(JSON.parse(text));
  const agoMs = clock.monotonic() - known.monotonicMs;
  const isOfThisTime = agoMs >= 0 && Math.abs(clock.now() - wallMs - agoMs) <= CLOCKS_AGREE_MS;
  return isOfThisTime && agoMs <= silentMs + STALE_AFTER_MS ? known : null;
}
