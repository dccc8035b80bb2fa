/** A secret from the environment or a file. A changed file, also by symlink swap, takes effect within a second. */
import type { Clock } from "./clock.js";
import { fileProblem, readFileText } from "./file-text.js";

export interface Secret {
  /**
   * The current value. While a file is missing, empty or malformed, as during a swap, the last good value stays in use. `reread` reads the file
   * even if it was read less than a second ago.
   */
  current(how?: { readonly reread: boolean }): string;
}

export interface FileSecret extends Secret {
  /** Reads the file. Returns why the last good value stays in use, or null if the file's own value is in use. */
  problem(): string | null;
}

const REREAD_AFTER_MS = 1000;

/** A secret that never changes. */
export function fixedSecret(value: string): Secret {
  return { current: () => value };
}

/**
 * A secret read from `path`, and read again on use; from then on, a text in which `problemsIn` finds something isn't used. Throws if the file is
 * missing or empty at first.
 */
export function fileSecret(
  path: string,
  clock: Clock,
  problemsIn: (text: string) => readonly string[] = () => [],
): FileSecret {
  let value = readSecretFile(path);
  let readAt = clock.monotonic();

  function problem(): string | null {
    readAt = clock.monotonic();
    try {
      const text = readSecretFile(path);
      const problems = text === value ? [] : problemsIn(text);
      if (problems.length > 0) return problems.join("; ");
      value = text;
      return null;
    } catch (error) {
      return fileProblem(error);
    }
  }

  return {
    current({ reread } = { reread: false }) {
      if (reread || clock.monotonic() - readAt >= REREAD_AFTER_MS) problem();
      return value;
    },
    problem,
  };
}

/** The file's text without one trailing newline. Throws if it is empty. */
function readSecretFile(path: string): string {
  const text = readFileText(path).replace(/\r?\n$/, "");
  if (text === "") throw new Error("the file is empty");
  return text;
}
