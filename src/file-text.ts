/** Reads files that an operator names. Some of them are read again while the service runs, so reading must return at once. */
import { readFileSync, statSync } from "node:fs";

/** The file's text. Throws unless it is a regular file with something in it, of at most `mostBytes`. */
export function readFileText(path: string, mostBytes = Infinity): string {
  const found = statSync(path);
  // Reading a pipe or a device may never return. Nor may reading a file of /proc, which looks regular, and empty.
  if (!found.isFile() || found.size === 0 || found.size > mostBytes)
    throw new Error("not a regular file, empty or too large");
  return readFileSync(path, "utf8");
}
