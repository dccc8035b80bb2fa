/**
 * Runs a bundle with the code that V8 compiled in an earlier run, so that a start needn't compile it again. A cache of other text, or of another
 * V8, is ignored.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Script } from "node:vm";

export interface Loaded {
  /** What the bundle has exported. */
  readonly exports: unknown;
  /** Keeps what has been compiled so far for the next run, unless this one had a cache. Never throws. */
  save(): void;
}

/** `path`: a script whose value is a function with the parameters of a CommonJS module. `directory`: where the caches are. */
export function loadCached(path: string, directory: string): Loaded {
  const text = readFileSync(path);
  // V8 itself compares only the length. It refuses what another version has compiled, or the same with other flags, so each has its own.
  const file = join(
    directory,
    `${hashOf(text)}-${hashOf([process.versions.v8, ...process.execArgv].join(" "))}`,
  );
  const cachedData = read(file);
  const script = new Script(text.toString("latin1"), { filename: path, ...(cachedData && { cachedData }) });
  const isCached = cachedData !== undefined && script.cachedDataRejected !== true;
  const run: unknown = script.runInThisContext();
  if (typeof run !== "function") throw new Error(`${path} isn't a bundle`);
  const module: { exports: unknown } = { exports: {} };
  Reflect.apply(run, undefined, [module.exports, createRequire(path), module, path, dirname(path)]);
  let isSaved = isCached;
  return {
    get exports() {
      return module.exports;
    },
    save() {
      if (isSaved) return;
      isSaved = true;
      try {
        mkdirSync(directory, { recursive: true });
        // Another process may be reading it.
        const unfinished = `${file}.${process.pid}`;
        writeFileSync(unfinished, script.createCachedData());
        renameSync(unfinished, file);
      } catch {
        // Where nothing can be written, nothing is cached.
      }
    },
  };
}

function hashOf(text: Buffer | string): string {
  return createHash("sha256").update(text).digest("hex");
}

function read(file: string): Buffer | undefined {
  try {
    return readFileSync(file);
  } catch {
    return undefined;
  }
}
