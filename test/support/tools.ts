/** Programs that some tests need. Without them these tests are skipped, with the command that installs them in their name. */
import { describe, expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";

/** The Debian package of each. */
const PACKAGES = {
  "redis-server": "redis-server",
  chromium: "chromium",
  nginx: "nginx",
  promtool: "prometheus",
  php: "php-cli",
  openssl: "openssl",
  "systemd-analyze": "systemd",
  kotlinc: "kotlin",
} as const;

type Tool = keyof typeof PACKAGES;

/** Other programs that are as good, and preferred. */
const PREFERRED: Partial<Readonly<Record<Tool, string>>> = { chromium: "chromium-headless-shell" };

const paths = new Map<Tool, string | null>();

/** The path of the program, or null if it isn't installed. */
export function pathOf(tool: Tool): string | null {
  const known = paths.get(tool);
  if (known !== undefined) return known;
  const names = [PREFERRED[tool] ?? tool, tool];
  const command = names.map((name) => `command -v ${name}`).join(" || ");
  const { status, stdout } = spawnSync("/bin/sh", ["-c", command], { encoding: "utf8" });
  const path = status === 0 ? stdout.trim() : null;
  paths.set(tool, path);
  return path;
}

/** Those that `.ci/run` installs: it sets REQUIRE_TOOLS=1, and then tests that need them fail where they are missing. */
const INSTALLED_IN_CI = new Set<Tool>(["redis-server", "chromium", "nginx", "promtool", "php", "openssl"]);

function missing(tools: readonly Tool[]): string | null {
  const absent = tools.filter((tool) => pathOf(tool) === null);
  if (absent.length === 0) return null;
  const isRequired = process.env["REQUIRE_TOOLS"] === "1";
  if (isRequired && absent.some((tool) => INSTALLED_IN_CI.has(tool)))
    throw new Error(`${absent.join(", ")} must be installed, because REQUIRE_TOOLS=1 is set`);
  return `(skipped: apt-get install ${absent.map((tool) => PACKAGES[tool]).join(" ")})`;
}

/** A suite that needs a program. */
export function describeWith(tool: Tool, name: string, suite: () => void): void {
  const reason = missing([tool]);
  if (reason === null) describe(name, suite);
  else describe.skip(`${name} ${reason}`, suite);
}

/** A test that needs programs. */
export function testWith(tools: readonly Tool[], name: string, run: () => void | Promise<void>): void {
  const reason = missing(tools);
  if (reason === null) test(name, run);
  else test.skip(`${name} ${reason}`, run);
}

/** Runs a command and expects it to succeed. */
export function succeeds(command: string, ...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  expect({ status, output: status === 0 ? "" : stdout + stderr }).toEqual({ status: 0, output: "" });
}
