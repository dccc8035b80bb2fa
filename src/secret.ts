/** A secret from the environment or a file. A changed file, also by symlink swap, takes effect within a second. */
import type { Clock } from "./clock.js";
import { readFileText } from "./file-text.js";

export interface Secret {
  /**
   * The current value. While a file is missing or empty, as during a swap, the last good value stays in use. `reread` reads the file even
   * if it was read less than a second ago.
   */
  current(how?: { readonly reread: boolean }): string;
}

const REREAD_AFTER_MS = 1000;

/** A secret that never changes. */
export function fixedSecret(value: string): Secret {
  return { current: () => value };
}

/** A secret read from `path`, and read again on use. Throws if the file is missing or empty at first. */
export function fileSecret(path: string, clock: Clock): Secret {
  let value = readSecretFile(path);
  let readAtMs = clock.monotonic();
  return {
    current({ reread } = { reread: false }) {
      if (reread || clock.monotonic() - readAtMs >= REREAD_AFTER_MS) {
        readAtMs = clock.monotonic();
        try {
          value = readSecretFile(path);
        } catch {
          // Keep the last good value until the file is complete again.
        }
      }
      return value;
    },
  };
}

/** The file's text without one trailing newline. Throws if it is empty. */
function readSecretFile(path: string): string {
  const text = readFileText(path).replace(/\r?\n$/, "");
  if (text === "") throw new Error("the file is empty");
  return text;
}
