/** Programs that tests run only if they are installed. */
import { expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";

export function isInstalled(tool: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${tool}`]).status === 0;
}

/** A test that is skipped if one of the tools isn't installed. */
export const testWithTool = (...tools: readonly string[]): typeof test.skip =>
  tools.every(isInstalled) ? test : test.skip;

/** Runs a command and expects it to succeed. */
export function succeeds(command: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  expect({ status, output: status === 0 ? "" : stdout + stderr }).toEqual({ status: 0, output: "" });
}
