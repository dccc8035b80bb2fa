/** Explains why the service could not start, and how to fix it if the cause is known. */
import { existsSync } from "node:fs";
import { relative } from "node:path";
import type { Config } from "./config/env.js";

type StartSettings = Pick<Config, "listen" | "stateDir">;

interface Explanation {
  readonly setting?: string;
  readonly reason: string;
  readonly remedy?: string;
}

/** Why STATE_DIR can't be used, and what helps, by the codes of the system. */
const FOLDER_REASONS: readonly (readonly [
  codes: readonly string[],
  reason: (folder: string) => string,
  remedy?: string,
])[] = [
  [["EACCES", "EPERM"], (folder) => `This user can't write ${folder}.`],
  [["EROFS"], (folder) => `${folder} is read-only.`],
  [["ENOSPC", "EDQUOT"], (folder) => `There is no space left for ${folder}.`, "free up space"],
  [["ENOTDIR", "EEXIST", "ENOENT", "ELOOP", "ENAMETOOLONG"], (folder) => `${folder} can't be a folder.`],
];

/**
 * One line: like other faults of settings if the error names the setting, otherwise JSON. Known system errors are explained in our own words,
 * because the system's message names neither the setting nor the remedy.
 */
export function startFailure(error: unknown, config: StartSettings): string {
  if (error instanceof Error && !("code" in error) && /^[A-Z_]+: /.test(error.message)) return error.message;
  const time = new Date().toISOString();
  return JSON.stringify({ time, level: "error", event: "server.start.failed", ...explained(error, config) });
}

function explained(error: unknown, { listen, stateDir }: StartSettings): Explanation {
  if (!(error instanceof Error)) return { reason: "The service could not start." };
  if (error.name === "InUseError")
    return {
      setting: "STATE_DIR",
      reason: `Another process with this credential uses ${stateDir}.`,
      // Two folders alone would be two records of one quota, each with the whole budget.
      remedy:
        "stop it, or share the quota: with REDIS_URL, or with REPLICAS_MAX in each process and a folder for each",
    };
  const { code, syscall, path } = systemErrorOf(error);
  if (code === "EMFILE" || code === "ENFILE")
    return {
      reason: "Too many files and connections are open.",
      remedy: "raise the limit of open files (ulimit -n, LimitNOFILE)",
    };
  if (syscall === "listen") return notListening(code, listen);
  if (path !== "" && !isWithin(path, stateDir) && !isWithin(stateDir, path))
    return { reason: `${path} can't be used.`, remedy: "build or install the service again" };
  if (
    ["EACCES", "EPERM"].includes(code) &&
    relative(stateDir, path) !== "" &&
    isWithin(path, stateDir) &&
    existsSync(path)
  )
    return {
      setting: "STATE_DIR",
      reason: `This user can't read and write ${path}.`,
      remedy: "make this user its owner (chown)",
    };
  const found = FOLDER_REASONS.find(([codes]) => codes.includes(code));
  if (found === undefined) return { reason: error.message };
  const [, reasonOf, remedy = "set STATE_DIR to a folder that this user can write"] = found;
  return { setting: "STATE_DIR", reason: reasonOf(stateDir), remedy };
}

function isWithin(path: string, folder: string): boolean {
  return !relative(folder, path).startsWith("..");
}

function notListening(code: string, { host, port }: Config["listen"]): Explanation {
  switch (code) {
    case "EADDRINUSE":
      return {
        setting: "PORT",
        reason: `Another process listens on port ${port}.`,
        remedy: "stop it, or set PORT to another port",
      };
    case "EACCES":
      return {
        setting: "PORT",
        reason: `This user can't listen on port ${port}.`,
        remedy: "set PORT to 1024 or above, and let a proxy listen on this one",
      };
    default:
      return {
        setting: "HOST",
        reason: `The service can't listen on ${host}.`,
        remedy: "set HOST to an address of this machine, or to 0.0.0.0 for all of them",
      };
  }
}

/** The details of a system error; empty strings for other errors. */
function systemErrorOf(error: Error): Record<"code" | "syscall" | "path", string> {
  const { code = "", syscall = "", path = "" }: NodeJS.ErrnoException = error;
  // Only HOST is resolved at startup.
  return { code, syscall: syscall === "getaddrinfo" ? "listen" : syscall, path };
}
