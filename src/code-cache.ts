/**
 * Runs a bundle with the code that V8 compiled in an earlier run, so that a start needn't compile it again. A cache that was
 * made from another text or by another V8, or that is damaged, is ignored.
 */
import { hash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Script } from "node:vm";

export interface Loaded {
  /** The bundle's exports. */
  readonly exports: unknown;
  /** Stores what has been compiled so far for the next run, unless this run used a cache. Never throws. */
  save(): void;
}

/** `path`: a script whose value is a function with the parameters of a CommonJS module. `directory`: where the caches are. */
export function loadCached(path: string, directory: string): Loaded {
  const text = readFileSync(path);
  // V8 itself compares only the length. It refuses what another version has compiled, or the same with other flags, so each has its own.
  const runtime = [process.versions.v8, ...process.execArgv].join(" ");
  const file = join(directory, `${hashOf(text).toString("hex")}-${hashOf(runtime).toString("hex")}`);
  const cachedData = read(file);
  const script = new Script(text.toString("latin1"), { filename: path, ...(cachedData && { cachedData }) });
  const run: unknown = script.runInThisContext();
  if (typeof run !== "function") throw new Error(`${path} isn't a bundle`);
  const module: { exports: unknown } = { exports: {} };
  Reflect.apply(run, undefined, [module.exports, createRequire(path), module, path, dirname(path)]);
  let isSaved = cachedData !== undefined && script.cachedDataRejected !== true;
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
        const code = script.createCachedData();
        writeFileSync(unfinished, Buffer.concat([hashOf(code), code]));
        renameSync(unfinished, file);
      } catch {
        // Without write access, nothing is cached.
      }
    },
  };
}

const HASH_BYTES = 32;

function hashOf(content: Buffer | string): Buffer {
  return hash("sha256", content, "buffer");
}

/** The compiled code in the file; undefined if there is none. V8 would crash on code that the file system has damaged. */
function read(file: string): Buffer | undefined {
  try {
    const content = readFileSync(file);
    const code = content.subarray(HASH_BYTES);
    return content.subarray(0, HASH_BYTES).equals(hashOf(code)) ? code : undefined;
  } catch {
    return undefined;
  }
}
