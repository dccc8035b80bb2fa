/** `npm run probe` and `npm run sandbox -- --preset` as processes: what they print, to which stream, and their exit codes. */
import { afterEach, expect, test } from "@jest/globals";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { openPoints } from "../../sandbox/src/open-points.js";
import { shapeSettings } from "../../sandbox/src/presets.js";
import { processes } from "../../../test/support/processes.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PROBE = "dist/probe/main.js";
const SANDBOX = "packages/sandbox/dist/main.js";

const here = processes();
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});

function start(script: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const anyPorts = { SANDBOX_PORT: "0", SANDBOX_CONTROL_PORT: "0" };
  const STATE_DIR = join(here.folder, "state");
  const child = spawn(process.execPath, [join(ROOT, script), ...args], {
    env: { PATH: process.env["PATH"], STATE_DIR, ...anyPorts, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  return child;
}

async function run(...given: Parameters<typeof start>) {
  const child = start(...given);
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { code: child.exitCode, stdout, stderr };
}

/** The shapes that a sandbox plays with this `--preset`, as its control port says. */
async function shapesWith(preset: string): Promise<unknown> {
  const sandbox = start(SANDBOX, ["--preset", preset]);
  let printed = "";
  for await (const part of sandbox.stdout.setEncoding("utf8")) {
    printed += String(part);
    const [, url] = /^sandbox listening on \S+, control on (\S+),/.exec(printed) ?? [];
    if (url === undefined) continue;
    return z.object({ shapes: z.unknown() }).parse(await (await fetch(`${url}/shapes`)).json()).shapes;
  }
  throw new Error(`the sandbox exited: ${printed}`);
}

test("the probe without an upstream calls the embedded sandbox, prints a row for every point, and exits with 0", async () => {
  const { code, stdout, stderr } = await run(PROBE);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("First contact with the embedded sandbox");
  for (const { name, point } of openPoints()) expect(stdout).toContain(`§${point.section} ${name}`);
  expect(existsSync(join(here.folder, "state"))).toBe(false);
});

test("the probe exits with 1 if the service can't handle what was seen; the sandbox plays the result as npm printed it", async () => {
  const { env } = await here.upstream({ shapes: { preset: "legacy", quoteFields: "unit" } });
  // The shipped prices, because a price for one year is right where only one year is sold.
  const { code, stdout } = await run(PROBE, ["--json"], { ...env, RETAIL_CONFIG: "" });
  expect(code).toBe(1);
  const result = z.looseObject({ shapes: z.unknown() }).parse(JSON.parse(stdout));
  expect(result).toMatchObject({ verdict: "fails", shapes: { notManaged: "refusal-in-200" } });

  const file = join(here.folder, "seen.json");
  writeFileSync(file, `\n> af-storefront@0.1.0 probe\n> node dist/probe/main.js --json\n\n${stdout}`);
  expect(await shapesWith(file)).toEqual(shapeSettings(result.shapes));
});

test("the probe exits with 2 if the upstream doesn't answer, or if settings are invalid, with one line for each", async () => {
  const { env } = await here.upstream();
  const [unanswered, faulty, misspelled] = await Promise.all([
    run(PROBE, [], { ...env, UPSTREAM_BASE_URL: "http://127.0.0.1:9" }),
    run(PROBE, [], { NODE_ENV: "production", UPSTREAM_RATE_LIMIT: "none" }),
    run(PROBE, ["--jsno"]),
  ]);
  expect(unanswered).toMatchObject({ code: 2, stderr: "" });
  expect(faulty).toMatchObject({ code: 2, stdout: "" });
  const named = faulty.stderr.trim().split("\n");
  expect(named.map((line) => line.split(":")[0] ?? "").sort()).toEqual([
    "UPSTREAM_BASE_URL",
    "UPSTREAM_RATE_LIMIT",
    "UPSTREAM_SERVICE_KEY",
    "UPSTREAM_SERVICE_SECRET",
  ]);
  expect(misspelled).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/--jsno/) });
});

test("the sandbox also accepts the name of a preset, and rejects anything else with a message", async () => {
  const [shapes, absent] = await Promise.all([shapesWith("terse"), run(SANDBOX, ["--preset", "absent"])]);
  expect(shapes).toEqual(shapeSettings({ preset: "terse" }));
  expect(absent).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(
      /^--preset must be one of documented, .* or a JSON file: \S*absent is neither/,
    ),
  });
});
