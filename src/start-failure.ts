/** Explains why the service could not start, and how to fix it if the cause is known. */
import { existsSync } from "node:fs";
import { dirname, relative } from "node:path";
import type { Config } from "./config/env.js";

type StartSettings = Pick<Config, "listen" | "stateDir">;

interface Explanation {
  readonly setting?: string;
  readonly reason: string;
  readonly remedy?: string;
}

/** Why STATE_DIR, or a file that is there, can't be used, and what helps, by the codes of the system. The first that applies counts. */
const STATE_DIR_REASONS: readonly (readonly [
  codes: readonly string[],
  of: "file" | "folder",
  reason: (path: string) => string,
  remedy?: string,
])[] = [
  [
    ["EACCES", "EPERM"],
    "file",
    (path) => `This user can't read and write ${path}.`,
    "make this user its owner (chown)",
  ],
  [["EACCES", "EPERM"], "folder", (path) => `This user can't write ${path}.`],
  [["EROFS"], "folder", (path) => `${path} is read-only.`],
  [["ENOSPC", "EDQUOT"], "folder", (path) => `There is no space left for ${path}.`, "free up space"],
  [
    ["ENOTDIR", "EEXIST", "ENOENT", "ELOOP", "ENAMETOOLONG"],
    "folder",
    (path) => `${path} can't be a folder.`,
  ],
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
      // Two folders would be two records of one quota, each with the whole budget.
      remedy: "stop it, or run several replicas with REDIS_URL",
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
  const isFile = dirname(path) === stateDir && existsSync(path);
  const found = STATE_DIR_REASONS.find(([codes, of]) => codes.includes(code) && (isFile || of === "folder"));
  if (found === undefined) return { reason: error.message };
  const [, of, reasonOf, remedy = "set STATE_DIR to a folder that this user can write"] = found;
  return { setting: "STATE_DIR", reason: reasonOf(of === "file" ? path : stateDir), remedy };
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
