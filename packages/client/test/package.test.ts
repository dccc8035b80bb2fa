/** The client package as websites use it: its examples build against it, and it stays small. */
import { expect, test } from "@jest/globals";
import { build } from "esbuild";
import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";

const CLIENT = fileURLToPath(new URL("../", import.meta.url));
const COMPILER = join(
  dirname(
    createRequire(new URL("../../../package.json", import.meta.url)).resolve("typescript/package.json"),
  ),
  "bin/tsc",
);

async function bundle(entry: string, platform: "browser" | "node" = "browser"): Promise<Uint8Array> {
  const { outputFiles, warnings } = await build({
    entryPoints: [join(CLIENT, entry)],
    alias: { "af-storefront-client": join(CLIENT, "src/index.ts") },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform,
    logLevel: "silent",
  });
  expect(warnings).toEqual([]);
  return outputFiles[0]?.contents ?? new Uint8Array();
}

test("the whole package is at most 4.5 kB compressed", async () => {
  expect(gzipSync(await bundle("src/index.ts"), { level: 9 }).length).toBeLessThanOrEqual(4.5 * 1024);
});

test.each([
  ["a plain page", "examples/browser/main.js", "browser"],
  ["React", "examples/react/NameSearch.tsx", "browser"],
  ["a server", "examples/server/server.ts", "node"],
] as const)("the example for %s builds", async (_what, entry, platform) => {
  expect((await bundle(entry, platform)).length).toBeGreaterThan(1000);
});

test("the examples compile strictly", async () => {
  await promisify(execFile)(process.execPath, [COMPILER, "-p", join(CLIENT, "examples")]);
});
