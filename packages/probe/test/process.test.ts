/** `npm run probe` and `npm run sandbox -- --preset` as processes: what they print, to which stream, and their exit codes. */
import { afterEach, describe, expect, test } from "@jest/globals";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { openPoints } from "../../sandbox/src/open-points.js";
import { processes } from "../../../test/support/processes.js";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const here = processes();
const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill("SIGKILL");
  running.clear();
});

function start(script: string, args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  const child = spawn(process.execPath, [join(ROOT, script), ...args], {
    env: { PATH: process.env["PATH"], STATE_DIR: join(here.folder, "state"), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  return child;
}

async function run(
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  script = "dist/probe/main.js",
): Promise<Ended> {
  const child = start(script, args, env);
  let [stdout, stderr] = ["", ""];
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = await new Promise<number | null>((done) => child.once("close", done));
  return { code, stdout, stderr };
}

/** The environment for a sandbox that takes the place of a live upstream. */
const upstream = async (shapes: object = {}) => (await here.upstream({ shapes })).env;

const resultShape = z.object({
  verdict: z.string(),
  points: z.array(z.unknown()),
  shapes: z.record(z.string(), z.unknown()),
});

describe("npm run probe", () => {
  test("without an upstream calls the embedded sandbox, prints a row for every point, and exits with 0", async () => {
    const { code, stdout, stderr } = await run();
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("First contact with the embedded sandbox");
    for (const { name, point } of openPoints()) expect(stdout).toContain(`§${point.section} ${name}`);
    expect(existsSync(join(here.folder, "state"))).toBe(false);
  });

  test("exits with 1 if the service can't handle what was seen", async () => {
    const { code, stdout } = await run([], await upstream({ quoteFields: "unit" }));
    expect(code).toBe(1);
    expect(stdout).toMatch(/quoteFields .* NO$/m);
    expect(stdout).toContain("cannot handle something that was seen");
  });

  test("exits with 2 if the upstream doesn't answer, or if settings are invalid, with one line for each", async () => {
    const unreachable = { ...(await upstream()), UPSTREAM_BASE_URL: "http://127.0.0.1:9" };
    expect(await run([], unreachable)).toMatchObject({ code: 2, stderr: "" });
    const faulty = await run([], { NODE_ENV: "production", UPSTREAM_RATE_LIMIT: "none" });
    expect([faulty.code, faulty.stdout]).toEqual([2, ""]);
    const named = faulty.stderr
      .trim()
      .split("\n")
      .map((line) => line.split(":")[0]);
    expect(new Set(named)).toEqual(
      new Set([
        "UPSTREAM_BASE_URL",
        "UPSTREAM_RATE_LIMIT",
        "UPSTREAM_SERVICE_KEY",
        "UPSTREAM_SERVICE_SECRET",
      ]),
    );
    expect(await run(["--jsno"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/--jsno/),
    });
  });
});

describe("npm run sandbox -- --preset", () => {
  async function urlOf(child: ChildProcess): Promise<string> {
    let text = "";
    return new Promise((done, failed) => {
      child.stdout?.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        const [, url] = /listening on (\S+),/.exec(text) ?? [];
        if (url !== undefined) done(url);
      });
      child.once("close", () => {
        failed(new Error(`the sandbox exited: ${text}`));
      });
    });
  }
  const anyPorts = { SANDBOX_PORT: "0", SANDBOX_CONTROL_PORT: "0" };

  test("with a probe result as npm printed it makes the sandbox play what was seen", async () => {
    const env = await upstream({ preset: "legacy" });
    const first = await run(["--json"], env);
    const result = resultShape.parse(JSON.parse(first.stdout));
    expect(result.shapes).toMatchObject({ takenStatus: "UNAVAILABLE", notManaged: "refusal-in-200" });
    const file = join(here.folder, "seen.json");
    writeFileSync(file, `\n> af-storefront@0.1.0 probe\n> node dist/probe/main.js --json\n\n${first.stdout}`);
    const url = await urlOf(start("packages/sandbox/dist/main.js", ["--preset", file], anyPorts));
    const again = await run(["--json"], {
      ...env,
      UPSTREAM_BASE_URL: url,
      STATE_DIR: join(here.folder, "other"),
    });
    expect(again.code).toBe(first.code);
    expect(resultShape.parse(JSON.parse(again.stdout)).points).toEqual(result.points);
  });

  test("also accepts a handwritten file or the name of a preset, and rejects anything else with a message", async () => {
    const file = join(here.folder, "own.json");
    writeFileSync(file, '{"preset":"rails","limitStatus":403}');
    const children = [
      start("packages/sandbox/dist/main.js", ["--preset", file], anyPorts),
      start("packages/sandbox/dist/main.js", ["--preset", "terse"], anyPorts),
    ];
    for (const url of await Promise.all(children.map(urlOf))) expect(url).toMatch(/^http:/);
    writeFileSync(file, '{"shapes":{"takenStatus":"gone"}}');
    const wrong = await Promise.all(
      [file, join(here.folder, "absent")].map((preset) =>
        run(["--preset", preset], anyPorts, "packages/sandbox/dist/main.js"),
      ),
    );
    expect(wrong.map(({ code, stdout }) => [code, stdout])).toEqual([
      [1, ""],
      [1, ""],
    ]);
    expect(wrong[0]?.stderr).toMatch(/^takenStatus: there is no setting "gone"; allowed: taken,/);
    expect(wrong[1]?.stderr).toMatch(
      /^--preset must be one of documented, .* or a JSON file: \S+absent is neither/,
    );
  });
});
