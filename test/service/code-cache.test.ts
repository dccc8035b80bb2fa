/** Code compiled in an earlier run is used if it belongs to the same source text. Everything also works without it. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadCached } from "../../src/code-cache.js";
import { temporaryFolder } from "../support/service.js";

let folder: ReturnType<typeof temporaryFolder>;
let bundle: string;
let cacheFolder: string;

const bundleThatExports = (word: string): string =>
  `(function (exports, require, module, file, folder) { module.exports = { word: "${word}", file, folder, join: require("node:path").join }; })`;
const cacheFiles = (directory = cacheFolder): string[] => readdirSync(directory);

/** Compiles and caches a text at another path, because V8 remembers within a process what it has compiled for a path. */
function compileElsewhere(
  word = "one",
  directory = cacheFolder,
): { readonly file: string; readonly code: Buffer } {
  const elsewhere = join(folder.path, "elsewhere.cjs");
  writeFileSync(elsewhere, bundleThatExports(word));
  loadCached(elsewhere, directory).save();
  const file = join(directory, cacheFiles(directory)[0] ?? "");
  return { file, code: readFileSync(file) };
}

beforeEach(() => {
  folder = temporaryFolder();
  bundle = join(folder.path, "bundle.cjs");
  cacheFolder = join(folder.path, "compile-cache");
  writeFileSync(bundle, bundleThatExports("one"));
});
afterEach(() => {
  folder.remove();
});

test("a bundle gets the same arguments as a CommonJS module", () => {
  const { exports } = loadCached(bundle, cacheFolder);
  expect(exports).toEqual({ word: "one", file: bundle, folder: folder.path, join });
});

test("the code that a first run compiles is written once and used by the next run", () => {
  const { file } = compileElsewhere();
  // V8 also accepts the code of another text of the same length, so the exports show which code has run.
  const { code } = compileElsewhere("two", join(folder.path, "other-cache"));
  writeFileSync(file, code);
  const { exports, save } = loadCached(bundle, cacheFolder);
  expect(exports).toMatchObject({ word: "two", file: bundle });
  writeFileSync(file, "left as it is");
  save();
  expect(readFileSync(file, "utf8")).toBe("left as it is");
});

test("the code compiled from one text isn't used for another text of the same length", () => {
  loadCached(bundle, cacheFolder).save();
  writeFileSync(bundle, bundleThatExports("two"));
  const { exports, save } = loadCached(bundle, cacheFolder);
  save();
  expect(exports).toMatchObject({ word: "two" });
  expect(cacheFiles()).toHaveLength(2);
});

test.each([
  ["empty", () => Buffer.alloc(0)],
  ["garbage", () => Buffer.from("no compiled code at all, but some bytes")],
  ["truncated", (whole: Buffer) => whole.subarray(0, whole.length / 2)],
  ["of the right length but partly zero", (whole: Buffer) => whole.fill(0, whole.length / 2)],
  [
    "intact but not compiled code",
    () => Buffer.concat([createHash("sha256").update("code").digest(), Buffer.from("code")]),
  ],
])("a cache that is %s is ignored and replaced", (_what, damage) => {
  const { file, code } = compileElsewhere();
  writeFileSync(file, damage(Buffer.from(code)));
  const { exports, save } = loadCached(bundle, cacheFolder);
  save();
  expect(exports).toMatchObject({ word: "one" });
  const replaced = readFileSync(file);
  expect(replaced.length).toBeGreaterThan(100);
  expect(replaced.subarray(0, 32)).toEqual(createHash("sha256").update(replaced.subarray(32)).digest());
});

test("a bundle runs even if its cache can't be written", () => {
  writeFileSync(cacheFolder, "a file where the folder should be");
  const { exports, save } = loadCached(bundle, cacheFolder);
  save();
  expect(exports).toMatchObject({ word: "one" });
});
