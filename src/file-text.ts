/** Reads files named in the settings. Some are reread while the service runs, so reading must never block. */
import { readFileSync, statSync } from "node:fs";
import { systemCodeOf } from "./system-error.js";

/** The file's text. Throws unless it is a non-empty regular file of at most `mostBytes`. */
export function readFileText(path: string, mostBytes = Infinity): string {
  const found = statSync(path);
  // Reading a pipe or a device may block forever. So may a file of /proc, which looks like an empty regular file.
  if (!found.isFile() || found.size === 0 || found.size > mostBytes)
    throw new Error("not a regular file, empty or too large");
  return readFileSync(path, "utf8");
}

/** Why `readFileText` threw, as a sentence about the setting that names the file. */
export function fileProblem(error: unknown): string {
  switch (systemCodeOf(error)) {
    case "ENOENT":
    case "ENOTDIR":
      return "names a file that doesn't exist";
    case "EACCES":
    case "EPERM":
      return "names a file that this user can't read";
    default:
      return "must name a regular file that isn't empty";
  }
}
