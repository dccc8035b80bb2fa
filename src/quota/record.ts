/**
 * The record of a table in STATE_DIR, which survives kill -9: it is written before each call, in place, and the next process reads it. Anything
 * that can't be trusted counts as spent.
 *
 * The file isn't synced to disk: writes survive the death of the process, but a power cut may lose some. That does no harm, because after a reboot
 * no time in the file is trusted.
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
import { bootedAtMs, type Clock } from "../clock.js";
import { parseJson } from "../json.js";
import { createFolder } from "../state-dir.js";
import { systemCodeOf } from "../system-error.js";
import { claimLock } from "./lock.js";
import { aged, type Home, type Note, noteShape, nothingKnown } from "./note.js";
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
export function createRecords(directory: string, budget: BudgetSettings, clock: Clock): Home {
  const open = new Map<string, RecordFile>();
  return {
    async take(fingerprint, coldStart) {
      createFolder(directory);
      const file = await RecordFile.open(join(directory, `quota-${fingerprint}.ledger`), budget, clock);
      open.set(fingerprint, file);
      const isCold = file.former === undefined;
      return {
        note: isCold && coldStart === "assume-free" ? null : noteOf(file.former, budget, clock),
        record: (rests) => {
          file.write({ ...rests, places: [] });
        },
      };
    },
    async giveUp(fingerprint, note) {
      await open.get(fingerprint)?.close(note);
      open.delete(fingerprint);
    },
  };
}

/** What the text of a record says now. */
function noteOf(text: string | undefined, budget: BudgetSettings, clock: Clock): Note {
  const [, sum = "", json = ""] = /^(\w+) (.*?) *\n$/s.exec(text ?? "") ?? [];
  const record = sum === sumOf(json) ? recordShape.safeParse(parseJson(json)).data : undefined;
  if (record === undefined) return nothingKnown(budget);
  const ageMs = clock.monotonic() - record.atMs;
  if (ageMs >= 0 && Math.abs(bootedAtMs(clock) - record.bootedAtMs) <= CLOCKS_AGREE_MS)
    return aged(record, ageMs);
  return { ...record, slots: record.slots.map((ms) => (ms === 0 ? 0 : null)), places: [] };
}

function sumOf(text: string): string {
  return hash("sha256", text, "hex").slice(0, 16);
}

/** A file in which each write replaces the whole text, in the blocks that it has, so that it succeeds on a full disk too. */
class RecordFile {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #release: () => Promise<void>;
  readonly #chars: number;
  #file: number;
  #inode: number;
  /** What the process before this one has left; undefined: nothing. */
  readonly former: string | undefined;

  static async open(path: string, { limit }: BudgetSettings, clock: Clock): Promise<RecordFile> {
    const release = await claimLock(path);
    try {
      return new RecordFile(path, limit, clock, release);
    } catch (error) {
      await release();
      throw error;
    }
  }

  private constructor(path: string, slots: number, clock: Clock, release: () => Promise<void>) {
    this.#path = path;
    this.#clock = clock;
    this.#release = release;
    this.#chars = 200 + 16 * slots;
    // The former file is read once it has been replaced: its process sends nothing more, because it looks for that after each write.
    const former = openIfThere(path);
    [this.#file, this.#inode] = this.#replace("");
    this.former = former === null ? undefined : readFileSync(former, "latin1");
    if (former !== null) closeSync(former);
  }

  write(note: Note): void {
    const text = this.#textOf(note);
    const there = statSync(this.#path, { throwIfNoEntry: false })?.ino;
    if (there === undefined) {
      closeSync(this.#file);
      [this.#file, this.#inode] = this.#replace(text);
      return;
    }
    writeWhole(this.#file, text);
    if (statSync(this.#path).ino !== this.#inode) throw new LedgerReplacedError();
  }

  async close(note: Note): Promise<void> {
    try {
      if (statSync(this.#path).ino === this.#inode) closeSync(this.#replace(this.#textOf(note))[0]);
    } finally {
      closeSync(this.#file);
      await this.#release();
    }
  }

  #textOf(note: Note): string {
    const at = { atMs: this.#clock.monotonic(), bootedAtMs: bootedAtMs(this.#clock) };
    const json = JSON.stringify({ ...note, ...at });
    return `${sumOf(json)} ${json}`.padEnd(this.#chars) + "\n";
  }

  /** Writes a new file and renames it over the old one, so that a kill leaves one of the two intact. */
  #replace(text: string): [file: number, inode: number] {
    const beside = `${this.#path}.new`;
    rmSync(beside, { force: true });
    const file = openSync(beside, "wx+", 0o600);
    try {
      writeWhole(file, text || `${" ".repeat(this.#chars)}\n`);
      renameSync(beside, this.#path);
      return [file, fstatSync(file).ino];
    } catch (error) {
      closeSync(file);
      throw error;
    }
  }
}

function writeWhole(file: number, text: string): void {
  if (writeSync(file, text, 0, "latin1") !== text.length)
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
