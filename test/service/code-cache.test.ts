/** Compiled code of an earlier run is used where it belongs to the same text, and never needed. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadCached } from "../../src/code-cache.js";
import { temporaryFolder } from "../support/service.js";

let folder: ReturnType<typeof temporaryFolder>;
let bundle: string;
let caches: string;

const saying = (word: string): string =>
  `(function (exports, require, module, file, folder) { module.exports = { word: "${word}", file, folder, join: require("node:path").join }; })`;
const cached = (): string[] => readdirSync(caches);

/** Of the same text, but at another path: within a process, V8 remembers what it has compiled for a path. */
function compiledElsewhere(): { readonly file: string; readonly code: Buffer } {
  const elsewhere = join(folder.path, "elsewhere.cjs");
  writeFileSync(elsewhere, readFileSync(bundle));
  loadCached(elsewhere, caches).save();
  const file = join(caches, cached()[0] ?? "");
  return { file, code: readFileSync(file) };
}

beforeEach(() => {
  folder = temporaryFolder();
  bundle = join(folder.path, "bundle.cjs");
  caches = join(folder.path, "compile-cache");
  writeFileSync(bundle, saying("one"));
});
afterEach(() => {
  folder.remove();
});

test("a bundle gets what a CommonJS module gets", () => {
  const { exports } = loadCached(bundle, caches);
  expect(exports).toEqual({ word: "one", file: bundle, folder: folder.path, join });
});

test("what a first run has compiled is written once, and used by the next one", () => {
  const { file, code } = compiledElsewhere();
  expect(code.length).toBeGreaterThan(100);
  const { exports, save } = loadCached(bundle, caches);
  writeFileSync(file, "left as it is");
  save();
  expect(exports).toMatchObject({ word: "one" });
  expect(readFileSync(file, "utf8")).toBe("left as it is");
});

test("a text of the same length is not taken for the one that was compiled", () => {
  loadCached(bundle, caches).save();
  writeFileSync(bundle, saying("two"));
  const { exports, save } = loadCached(bundle, caches);
  save();
  expect(exports).toMatchObject({ word: "two" });
  expect(cached()).toHaveLength(2);
});

test.each([
  ["empty", () => Buffer.alloc(0)],
  ["noise", () => Buffer.from("no compiled code at all, but some bytes")],
  ["cut off", (whole: Buffer) => whole.subarray(0, whole.length / 2)],
  ["of the right length, but partly zero", (whole: Buffer) => whole.fill(0, whole.length / 2)],
  ["of other code", () => Buffer.concat([createHash("sha256").update("code").digest(), Buffer.from("code")])],
])("a cache that is %s is ignored and replaced", (_what, damage) => {
  const { file, code } = compiledElsewhere();
  writeFileSync(file, damage(Buffer.from(code)));
  const { exports, save } = loadCached(bundle, caches);
  save();
  expect(exports).toMatchObject({ word: "one" });
  const replaced = readFileSync(file);
  expect(replaced.length).toBeGreaterThan(100);
  expect(replaced.subarray(0, 32)).toEqual(createHash("sha256").update(replaced.subarray(32)).digest());
});

test("where nothing can be written, everything else works", () => {
  writeFileSync(caches, "a file where the folder should be");
  const { exports, save } = loadCached(bundle, caches);
  save();
  expect(exports).toMatchObject({ word: "one" });
});
