/**
 * A ledger that survives kill -9: each call is in the file before it is sent, and anything missing counts as spent.
 *
 * The file isn't synced to disk: writes survive the death of the process, but a power cut may lose some. That does no harm, because after a reboot
 * no time in the file is trusted (the uptime doesn't match), so every used slot counts as spent at the start.
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
import { join } from "node:path";
import type { Clock } from "../clock.js";
import { createFolder } from "../state-dir.js";
import { type SlotId, SlotTable } from "./slot-table.js";
import { type BudgetSettings, type Journal, Ledger, MAX_PAUSE_MS } from "./ledger.js";
import { headerLine, LINE_BYTES, type Moment, pauseLine, recall, slotLine } from "./record.js";
import { claimLock } from "./lock.js";
import { systemCodeOf } from "../system-error.js";

export interface FileLedgerSettings extends BudgetSettings {
  readonly directory: string;
  /** Identifies the credential without revealing it: letters, digits, `_` and `-`. */
  readonly fingerprint: string;
  readonly coldStart: "assume-spent" | "assume-free";
  readonly clock: Clock;
  readonly onFault: (what: string, error: unknown) => void;
  /** The time since the machine booted. */
  readonly uptimeMs?: () => number;
  readonly claim?: (path: string) => Promise<() => Promise<void>>;
}

const pathIn = (directory: string, fingerprint: string): string =>
  join(directory, `quota-${fingerprint}.ledger`);

function momentOf(clock: Clock, uptimeMs = clock.monotonic()): Moment {
  return { monotonicMs: clock.monotonic(), wallMs: clock.now(), uptimeMs };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

interface OwnFile {
  readonly file: number;
  readonly inode: number;
}

/** Writes a new file and renames it over the old one, so that a kill leaves one of the two intact. */
function replaceFile(path: string, text: string): OwnFile {
  const beside = `${path}.new`;
  rmSync(beside, { force: true });
  const file = openSync(beside, "wx+", 0o600);
  try {
    if (writeSync(file, text, 0, "latin1") !== text.length)
      throw new Error("the quota ledger was written in part");
    renameSync(beside, path);
    return { file, inode: fstatSync(file).ino };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

class LedgerReplacedError extends Error {
  override readonly name = "LedgerReplacedError";
  constructor() {
    super("another process has taken over the quota ledger");
  }
}

class FileJournal implements Journal {
  readonly #path: string;
  readonly #table: SlotTable;
  /** Earlier calls that have no slot; their lines follow those of the slots. */
  readonly #beyond: readonly number[];
  readonly #moment: () => Moment;
  readonly #release: () => Promise<void>;
  #pausedUntilAt: number;
  #own: OwnFile;

  constructor(
    path: string,
    table: SlotTable,
    beyond: readonly number[],
    pausedUntilAt: number,
    moment: () => Moment,
    release: () => Promise<void>,
  ) {
    this.#path = path;
    this.#table = table;
    this.#beyond = beyond;
    this.#pausedUntilAt = pausedUntilAt;
    this.#moment = moment;
    this.#release = release;
    this.#own = replaceFile(path, this.#whole());
  }

  slot(id: SlotId, lastArrivalAt: number): void {
    this.#stayOwner();
    this.#write(id + 2, slotLine(lastArrivalAt, this.#moment()));
  }

  pause(untilAt: number): void {
    this.#pausedUntilAt = untilAt;
    this.#stayOwner();
    this.#write(1, pauseLine(untilAt, this.#moment()));
  }

  close(): Promise<void> {
    closeSync(this.#own.file);
    return this.#release();
  }

  #whole(): string {
    const at = this.#moment();
    const calls = [...this.#table.lastArrivals(), ...this.#beyond];
    const slots = calls.map((lastArrivalAt) => slotLine(lastArrivalAt, at));
    const header = headerLine(slots.length, this.#table.windowMs);
    return [header, pauseLine(this.#pausedUntilAt, at), ...slots].join("");
  }

  #write(index: number, line: string): void {
    const written = writeSync(this.#own.file, line, index * LINE_BYTES, "latin1");
    if (written !== LINE_BYTES) throw new Error("the quota ledger was written in part");
  }

  /**
   * Throws if the file was replaced: every start replaces it, so another process owns it, even if the lock was granted. A deleted file is written
   * again.
   */
  #stayOwner(): void {
    let there: number;
    try {
      there = statSync(this.#path).ino;
    } catch (error) {
      if (systemCodeOf(error) !== "ENOENT") throw error;
      const own = replaceFile(this.#path, this.#whole());
      closeSync(this.#own.file);
      this.#own = own;
      return;
    }
    if (there !== this.#own.inode) throw new LedgerReplacedError();
  }
}

/** Opens the ledger of one credential; rejects with InUseError while another process holds it. */
export async function openFileLedger(settings: FileLedgerSettings): Promise<Ledger> {
  const { directory, fingerprint, limit, headroom, windowMs, clock, onFault } = settings;
  if (!/^[\w-]{1,64}$/.test(fingerprint))
    throw new Error("a ledger's fingerprint is 1 to 64 of [A-Za-z0-9_-]");
  const moment = (): Moment => momentOf(clock, settings.uptimeMs?.());

  createFolder(directory);
  const path = pathIn(directory, fingerprint);
  const release = await (settings.claim ?? claimLock)(path);
  try {
    const budget = limit - headroom;
    const at = moment();
    const recalled = recall(
      readIfThere(path),
      { budget, headroom, windowMs, coldStart: settings.coldStart },
      at,
    );
    const table = new SlotTable(budget, windowMs);
    table.restore(recalled.slots);
    const pausedUntilAt = Math.min(recalled.pausedUntilAt, at.monotonicMs + MAX_PAUSE_MS);
    const journal = new FileJournal(path, table, recalled.beyond, pausedUntilAt, moment, release);
    return new Ledger({ limit, table, clock, journal, onFault, pausedUntilAt });
  } catch (error) {
    await release();
    throw error;
  }
}
