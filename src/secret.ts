/** A secret from the environment or from a file; a changed file (also by symlink swap) counts within a second, without a restart. */
import { readFileSync } from "node:fs";
import type { Clock } from "./clock.js";

export interface Secret {
  /**
   * The value now. A file that is missing or empty for a moment, as in a swap, leaves the last good value in force. `afresh` reads the
   * file even if that was done a moment ago.
   */
  current(how?: { readonly afresh: boolean }): string;
}

const REREAD_AFTER_MS = 1000;

/** A secret that never changes. */
export function fixedSecret(value: string): Secret {
  return { current: () => value };
}

/** A secret read from `path`, re-read at use. Throws when there is nothing to read at the start. */
export function fileSecret(path: string, clock: Clock): Secret {
  let value = readSecretFile(path);
  let readAtMs = clock.monotonic();
  return {
    current({ afresh } = { afresh: false }) {
      if (afresh || clock.monotonic() - readAtMs >= REREAD_AFTER_MS) {
        readAtMs = clock.monotonic();
        try {
          value = readSecretFile(path);
        } catch {
          // The last good value stays until the file is whole again.
        }
      }
      return value;
    },
  };
}

/** The file's text without one trailing newline; throws when that is empty. */
function readSecretFile(path: string): string {
  const text = readFileSync(path, "utf8").replace(/\r?\n$/, "");
  if (text === "") throw new Error("the file is empty");
  return text;
}
