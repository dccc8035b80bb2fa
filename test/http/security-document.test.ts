/** docs/security.md refers to tests that exist, and its figures match the code. */
import { expect, test } from "@jest/globals";
import { existsSync, readFileSync } from "node:fs";
import { ROOT } from "../../src/root.js";

const read = (path: string): string => readFileSync(new URL(path, ROOT), "utf8");
const text = read("docs/security.md");

test("every requirement refers to tests that exist", () => {
  const rows = text.split("\n").filter((line) => /^- `(?:packages|test)\//.test(line));
  expect(rows.flatMap((row) => row.match(/\d+\.\d+\.\d+/g) ?? []).length).toBeGreaterThan(60);
  for (const row of rows) {
    const tests = [...row.matchAll(/`((?:packages\/\w+\/)?test\/[^`]+)`/g)].map(([, path]) => path ?? "");
    expect([row, tests.length]).not.toEqual([row, 0]);
    for (const path of tests) expect([path, existsSync(new URL(path, ROOT))]).toEqual([path, true]);
  }
});

test.each([
  ["src/http/edge/server.ts", /MAX_CONNECTIONS = (\d+_?\d*)/, /at most (\d+,?\d*) connections/],
  ["src/http/edge/server.ts", /MAX_REQUESTS_PER_CONNECTION = (\d+)/, /ends after (\d+) requests/],
  ["src/http/edge/limits.ts", /WRONG_PER_MINUTE = (\d+)/, /After (\d+) wrong tokens/],
  ["src/http/edge/server.ts", /headersTimeout: (\d+)_000/, /Header fields must arrive within (\d+) s/],
  ["src/http/edge/server.ts", /requestTimeout: (\d+)_000/, /a whole request within (\d+) s/],
])("a figure matches the one in %s: %s", (path, inCode, inText) => {
  expect(inText.exec(text)?.[1]).toBe(inCode.exec(read(path))?.[1]?.replace("_", ","));
});
