/** The Nodes that a benchmark compares: the one that runs it, or those given with `--node PATH`. */
import { spawnSync } from "node:child_process";

export interface NodeProgram {
  readonly path: string;
  /** `v24.1.0`. */
  readonly version: string;
}

export const THIS_NODE: NodeProgram = { path: process.execPath, version: process.version };

/** Throws if there is no Node at this path. */
export function nodeAt(path: string): NodeProgram {
  const version = spawnSync(path, ["--version"], { encoding: "utf8" }).stdout?.trim() ?? "";
  if (!/^v\d+\.\d+\.\d+$/.test(version)) throw new Error(`there is no Node at ${path}`);
  return { path, version };
}
