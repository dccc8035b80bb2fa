/** Stores staff actions in a file that only its owner can read. */
import { appendFileSync, closeSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { bootedAtMs, type Clock } from "../clock.js";
import type { Log } from "../logger.js";
import { createFolder } from "../state-dir.js";
import { failureReason, systemCodeOf } from "../system-error.js";
import { type Act, type ActStore, KEPT_MS, lastOf, MAX_KEPT, parseAct } from "./audit.js";

const DAY_MS = 86_400_000;
/** A wall clock that is wrong after a start is usually set by then. */
const STEADY_AFTER_MS = 3_600_000;

/**
 * A file with one JSON line per act. It is rewritten when it has twice as many lines as needed, or its first line is a day too old. Acts that
 * can't be written are written with the next one. A second process may append to the same file.
 */
export function createActFile(path: string, clock: Clock, log: Log): ActStore {
  /** The acts in the file: those last read and those written since; null before the first read. */
  let written: Act[] | null = null;
  let unwritten: Act[] = [];
  /** Whether the file may end in the middle of a line. */
  let isTorn = false;
  const startedMs = clock.monotonic();
  const bootedMs = bootedAtMs(clock);

  function read(): Act[] {
    try {
      const text = readFileSync(path, "utf8");
      isTorn = text !== "" && !text.endsWith("\n");
      return text.split("\n").flatMap((line) => parseAct(line) ?? []);
    } catch {
      // The file doesn't exist yet, or isn't readable; then appending will log the error.
      return [];
    }
  }

  /**
   * The time by which acts are too old for the file. A wall clock that is wrong for a while must not erase any, so it counts only after an hour,
   * and only if it wasn't set by a day or more since the start.
   */
  function trustedNowMs(): number {
    const isSteady =
      clock.monotonic() - startedMs >= STEADY_AFTER_MS && Math.abs(bootedAtMs(clock) - bootedMs) < DAY_MS;
    return isSteady ? clock.now() : -Infinity;
  }

  function isTooLong(acts: readonly Act[]): boolean {
    const [first] = acts;
    return (
      acts.length > 2 * MAX_KEPT || (first !== undefined && first.whenMs < trustedNowMs() - KEPT_MS - DAY_MS)
    );
  }

  function rewrite(acts: readonly Act[]): Act[] {
    const kept = lastOf(acts, trustedNowMs()).slice(-MAX_KEPT);
    writeFileSync(`${path}.new`, kept.map(lineOf).join(""), { mode: 0o600 });
    renameSync(`${path}.new`, path);
    return kept;
  }

  function write(): void {
    createFolder(dirname(path));
    written ??= read();
    if (isTooLong(written)) written = rewrite([...read(), ...unwritten]);
    else {
      appendFileSync(path, (isTorn ? "\n" : "") + unwritten.map(lineOf).join(""), { mode: 0o600 });
      written.push(...unwritten);
    }
    isTorn = false;
    unwritten = [];
  }

  try {
    closeSync(openSync(path, "r+"));
  } catch (error) {
    // Logged now, because the first act may come weeks later. Usually there is no file on the first start.
    if (systemCodeOf(error) !== "ENOENT") log.error("audit.failed", { reason: failureReason(error) });
  }

  return {
    append(act) {
      unwritten = [...unwritten, act].slice(-MAX_KEPT);
      try {
        write();
      } catch (error) {
        isTorn = true;
        log.error("audit.failed", { reason: failureReason(error) });
      }
    },
    load() {
      written = read();
      return Promise.resolve([...written, ...unwritten].slice(-MAX_KEPT));
    },
  };
}

function lineOf(act: Act): string {
  return `${JSON.stringify(act)}\n`;
}
