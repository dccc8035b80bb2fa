/** Records that are kept for a while, in a file that only its owner can read. */
import { appendFileSync, closeSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { bootedAt, type Clock } from "./clock.js";
import { createFolder } from "./state-dir.js";
import { failureReason, systemCodeOf } from "./system-error.js";

/** Storage beyond the process. A later record with the same id replaces the earlier one. */
export interface Records<T> {
  /** Resolves once the record is stored, or once that has failed; then it is stored later. Never rejects. */
  append(record: T): Promise<void>;
  /** The last records in the order in which they were appended; may reject. */
  load(): Promise<readonly T[]>;
}

export interface RecordKind<T> {
  /** Parses a stored line; undefined if it isn't such a record. */
  parse(line: string): T | undefined;
  /** Those that are still kept, each in its latest version. */
  latest(records: Iterable<T>, nowMs: number): T[];
  /** When what it records happened. */
  whenMs(record: T): number;
  readonly keptMs: number;
  /** How many are kept. */
  readonly most: number;
}

const DAY_MS = 86_400_000;
/** A wall clock that is wrong after a start is usually set by then. */
const STEADY_AFTER_MS = 3_600_000;

/**
 * A file with one JSON line per record. It is rewritten when it has twice as many lines as needed, or its first line is a day too old. Records
 * that can't be written are written with the next one. A second process may append to the same file.
 */
export function createRecordFile<T>(
  path: string,
  { parse, latest, whenMs, keptMs, most }: RecordKind<T>,
  clock: Clock,
  onFailure: (reason: string) => void,
): Records<T> {
  /** How many lines are in the file, and when the first was recorded; null before the first read. */
  let written: { readonly lines: number; readonly firstMs: number } | null = null;
  let unwritten: T[] = [];
  /** Whether the file may end in the middle of a line. */
  let isTorn = false;
  const startedAt = clock.monotonic();
  const firstBootedAt = bootedAt(clock);

  function read(): T[] {
    let records: T[] = [];
    try {
      const text = readFileSync(path, "utf8");
      isTorn = text !== "" && !text.endsWith("\n");
      records = text.split("\n").flatMap((line) => parse(line) ?? []);
    } catch {
      // The file doesn't exist yet, or isn't readable; then appending will report the error.
    }
    written = extentOf(records);
    return records;
  }

  function extentOf(records: readonly T[]): { lines: number; firstMs: number } {
    const [first] = records;
    return { lines: records.length, firstMs: first === undefined ? Infinity : whenMs(first) };
  }

  /**
   * The time by which records are too old for the file. A wall clock that is wrong for a while must not erase any, so it counts only after an
   * hour, and only if it wasn't set by a day or more since the start.
   */
  function trustedNowMs(): number {
    const isSteady =
      clock.monotonic() - startedAt >= STEADY_AFTER_MS && Math.abs(bootedAt(clock) - firstBootedAt) < DAY_MS;
    return isSteady ? clock.now() : -Infinity;
  }

  function rewrite(records: readonly T[]): void {
    const kept = latest(records, trustedNowMs()).slice(-most);
    writeFileSync(`${path}.new`, kept.map(lineOf).join(""), { mode: 0o600 });
    renameSync(`${path}.new`, path);
    written = extentOf(kept);
  }

  function write(): void {
    createFolder(dirname(path));
    const { lines, firstMs } = written ?? extentOf(read());
    if (lines > 2 * most || firstMs < trustedNowMs() - keptMs - DAY_MS) rewrite([...read(), ...unwritten]);
    else {
      appendFileSync(path, (isTorn ? "\n" : "") + unwritten.map(lineOf).join(""), { mode: 0o600 });
      written = {
        lines: lines + unwritten.length,
        firstMs: lines > 0 ? firstMs : extentOf(unwritten).firstMs,
      };
    }
    isTorn = false;
    unwritten = [];
  }

  try {
    closeSync(openSync(path, "r+"));
  } catch (error) {
    // Reported now, because the first record may come weeks later. Usually there is no file on the first start.
    if (systemCodeOf(error) !== "ENOENT") onFailure(failureReason(error));
  }

  return {
    append(record) {
      unwritten = [...unwritten, record].slice(-most);
      try {
        write();
      } catch (error) {
        isTorn = true;
        onFailure(failureReason(error));
      }
      return Promise.resolve();
    },
    load: () => Promise.resolve([...read(), ...unwritten].slice(-2 * most)),
  };
}

function lineOf(record: unknown): string {
  return `${JSON.stringify(record)}\n`;
}
