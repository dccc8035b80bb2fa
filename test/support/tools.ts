/** Programs that tests run if they are installed. */
import { expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";

export function isInstalled(tool: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${tool}`]).status === 0;
}

/** A test that is skipped where one of the tools isn't installed. */
export const testWithTool = (...tools: readonly string[]): typeof test.skip =>
  tools.every(isInstalled) ? test : test.skip;

/** Runs it; expects that it ends without a fault. */
export function succeeds(command: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  expect({ status, said: status === 0 ? "" : stdout + stderr }).toEqual({ status: 0, said: "" });
}
