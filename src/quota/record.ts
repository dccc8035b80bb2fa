/**
 * The record of a table in STATE_DIR, which survives kill -9: it is written before each call, in place, and the next process reads it. Anything
 * that can't be trusted counts as spent.
 *
 * The file isn't synced to disk: writes survive the death of the process, but a power cut may lose some. That does no harm, because after a reboot
 * every slot counts as spent, but for the headroom.
 */
import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { hash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { bootedAt, type Clock } from "../clock.js";
import { parseJson } from "../json.js";
import { createFolder } from "../state-dir.js";
import { systemCodeOf } from "../system-error.js";
import { claimLock } from "./lock.js";
import { aged, type NoteStore, type Note, noteShape, nothingKnown } from "./note.js";
import type { BudgetSettings } from "./slot-table.js";

/** If the machine seems to have booted at another time than before, it did, or a clock was set or stood still. */
const CLOCKS_AGREE_MS = 2000;

const recordShape = noteShape.extend({ atMs: z.number(), bootedAtMs: z.number() });

class LedgerReplacedError extends Error {
  override readonly name = "LedgerReplacedError";
  constructor() {
    super("another process has taken over the quota ledger");
  }
}

/** Keeps one record for each credential. `take` rejects with InUseError while another process holds it. */
export function createRecords(directory: string, budget: BudgetSettings, clock: Clock): NoteStore {
  const closing = new Map<string, (note: Note) => Promise<void>>();
  return {
    async take(fingerprint, coldStart) {
      createFolder(directory);
      const path = join(directory, `quota-${fingerprint}.ledger`);
      const release = await claimLock(path);
      try {
        const { former, write, leave } = openFile(path, 200 + 16 * budget.limit);
        closing.set(fingerprint, async (note) => {
          try {
            leave(textOf(note, clock));
          } finally {
            await release();
          }
        });
        const isFree = former === null && coldStart === "assume-free";
        return {
          note: isFree ? null : noteOf(former ?? "", budget, clock),
          record: (rests) => {
            write(textOf({ ...rests, places: [] }, clock));
          },
        };
      } catch (error) {
        await release();
        throw error;
      }
    },
    async giveUp(fingerprint, note) {
      const close = closing.get(fingerprint);
      closing.delete(fingerprint);
      await close?.(note);
    },
  };
}

function textOf(note: Note, clock: Clock): string {
  const json = JSON.stringify({ ...note, atMs: clock.monotonic(), bootedAtMs: bootedAt(clock) });
  return `${sumOf(json)} ${json}`;
}

/** What the text of a record says now. */
function noteOf(text: string, budget: BudgetSettings, clock: Clock): Note {
  const [, sum = "", json = ""] = /^(\w+) (.*\S) *\n$/s.exec(text) ?? [];
  const record = sum === sumOf(json) ? recordShape.safeParse(parseJson(json)).data : undefined;
  if (record === undefined) return nothingKnown(budget);
  const ageMs = clock.monotonic() - record.atMs;
  if (ageMs >= 0 && Math.abs(bootedAt(clock) - record.bootedAtMs) <= CLOCKS_AGREE_MS)
    return aged(record, ageMs);
  // A power cut may have lost the writes of the next calls of those that had rested. There were at most `budget`, so `headroom` more stay within the limit.
  let free = budget.headroom;
  return {
    ...record,
    slots: record.slots.map((ms) => (ms === 0 && (free -= 1) >= 0 ? 0 : null)),
    places: [],
  };
}

function sumOf(text: string): string {
  return hash("sha256", text, "hex").slice(0, 16);
}

/** `former`: what the file of the process before this one said; null without one. `write` throws once another process has replaced the file. */
function openFile(path: string, chars: number) {
  // The former file is read once it has been replaced: its process sends nothing more, because it looks for that after each write.
  const formerFile = openIfThere(path);
  let file = replaced(path, " ".repeat(chars));
  const former = formerFile === null ? null : readFileSync(formerFile, "latin1");
  if (formerFile !== null) closeSync(formerFile);
  let hasLeft = false;
  const isOwn = (): boolean => statSync(path).ino === fstatSync(file).ino;
  return {
    former,
    /** In the blocks that the file has, so that it succeeds on a full disk too. */
    write(text: string): void {
      if (hasLeft) throw new Error("the quota ledger is closed");
      if (statSync(path, { throwIfNoEntry: false }) === undefined) {
        const next = replaced(path, text.padEnd(chars));
        closeSync(file);
        file = next;
      } else writeWhole(file, text.padEnd(chars));
      if (!isOwn()) throw new LedgerReplacedError();
    },
    leave(text: string): void {
      try {
        if (isOwn()) closeSync(replaced(path, text));
      } finally {
        hasLeft = true;
        closeSync(file);
      }
    },
  };
}

/** Writes a new file and renames it over the old one, so that a kill leaves one of the two intact. Returns the open file. */
function replaced(path: string, text: string): number {
  rmSync(`${path}.new`, { force: true });
  const file = openSync(`${path}.new`, "wx+", 0o600);
  try {
    writeWhole(file, text);
    renameSync(`${path}.new`, path);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function writeWhole(file: number, text: string): void {
  const line = `${text}\n`;
  if (writeSync(file, line, 0, "latin1") !== line.length)
    throw new Error("the quota ledger was written in part");
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, "r+");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return null;
    throw error;
  }
}
