/** How `node dist/main.js` starts, or says why it doesn't. */
import { describe, expect, test } from "@jest/globals";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { startFailure } from "../../src/start-failure.js";
import { processes } from "../support/processes.js";
import type { ServiceProcess } from "../support/service.js";

const here = processes();

/** Starts the service, expects it to exit with 1 and to print one line per invalid setting, and returns these lines. */
async function rejection(env: Readonly<Record<string, string>>): Promise<string[]> {
  const service = here.start(env);
  expect(await service.exited).toBe(1);
  expect(service.stdout).toEqual([]);
  for (const line of service.stderr) expect(line).toMatch(/^[A-Z_]+: \S/);
  return service.stderr;
}

const settingsIn = (lines: readonly string[]): string[] =>
  lines.map((line) => line.slice(0, line.indexOf(":")));

describe("a start", () => {
  test("logs the created staff token and where it listens even at log level error", async () => {
    const service = here.start({ LOG_LEVEL: "error" });
    const port = await service.listening;
    expect(await service.stop()).toBe(0);
    const events = service.stdout.map(
      (line) => z.looseObject({ event: z.string() }).parse(JSON.parse(line)).event,
    );
    expect(events).toEqual(["staff.token.created", "server.listening"]);
    expect(service.stdout[1]).toContain(`listening on port ${port}`);
  });

  test("without settings uses the embedded sandbox, says so, and logs once where it listens", async () => {
    const service = here.start();
    const port = await service.listening;
    const found = await service.ask("/v1/availability?domain=kabul.af");
    expect([found.status, found.body]).toEqual([
      200,
      expect.objectContaining({ status: "available", price: { amount: "26.99", currency: "USD" } }),
    ]);
    expect((await service.ask("/health")).body).toMatchObject({
      description: expect.stringMatching(/sandbox/),
    });
    expect(await service.stop()).toBe(0);
    const listeningLines = service.stdout.filter((line) => line.includes("listening"));
    expect(listeningLines).toHaveLength(1);
    expect(listeningLines[0]).toContain(`listening on port ${port}`);
    expect(listeningLines[0]).toMatch(/sandbox/);
    const line = z.looseObject({ time: z.iso.datetime(), level: z.string(), event: z.string() });
    for (const text of service.stdout) expect(() => line.parse(JSON.parse(text))).not.toThrow();
    expect(service.stderr).toEqual([]);
    expect(service.stdout.join("\n")).not.toMatch(/kabul|sandbox-demo-(?:key|secret)/);
    expect(existsSync(join(here.folder, "state"))).toBe(false);
  });

  test("in production without settings names each missing one on its own line, and exits with 1", async () => {
    const missing = settingsIn(await rejection({ NODE_ENV: "production" }));
    expect(missing.sort()).toEqual(["UPSTREAM_BASE_URL", "UPSTREAM_SERVICE_KEY", "UPSTREAM_SERVICE_SECRET"]);
  });

  test("with malformed settings names each of them and quotes no secret", async () => {
    const env = {
      PORT: "80a",
      UPSTREAM_BASE_URL: "ftp://registry.example",
      UPSTREAM_SERVICE_KEY: "only-the-key",
      UPSTREAM_RATE_LIMIT: "0",
      UPSTREAM_TIMEOUT_MS: "-1",
      QUOTA_COLD_START: "maybe",
      TRUST_PROXY_HOPS: "true",
      STAFF_TOKENS: "me:nothash:read",
      CORS_ORIGINS: "https://www.example.af/",
      LOG_LEVEL: "loud",
      RETAIL_CONFIG: join(here.folder, "absent.yaml"),
      SHUTDOWN_GRACE_MS: "1e3",
    };
    const lines = await rejection(env);
    expect(new Set(settingsIn(lines))).toEqual(
      new Set([
        ...Object.keys(env).filter((name) => name !== "UPSTREAM_SERVICE_KEY"),
        "UPSTREAM_SERVICE_SECRET",
      ]),
    );
    expect(lines.join("\n")).not.toMatch(/only-the-key|nothash/);
  });

  test("prints each fault of SANDBOX_CONFIG on its own line, together with faults of other settings", async () => {
    const file = join(here.folder, "sandbox.yaml");
    const world = readFileSync("config/sandbox.yaml", "utf8");
    writeFileSync(
      file,
      world.replace("takenPercent: ", "takenPercent: 1").replace("nameservers:", "nameserver:"),
    );
    const faults = settingsIn(await rejection({ SANDBOX_CONFIG: file, PORT: "80a" }));
    expect(faults).toEqual(["PORT", "SANDBOX_CONFIG", "SANDBOX_CONFIG", "SANDBOX_CONFIG"]);
    writeFileSync(file, "a: [\n");
    expect(await rejection({ SANDBOX_CONFIG: file })).toEqual([
      expect.stringMatching(/^SANDBOX_CONFIG: not YAML: .* at line \d, column \d$/),
    ]);
  });

  test("with a secret given both by value and by file is rejected", async () => {
    const file = join(here.folder, "key");
    writeFileSync(file, "from-the-file");
    const lines = await rejection({
      UPSTREAM_BASE_URL: "https://registry.example",
      UPSTREAM_SERVICE_KEY: "by-value",
      UPSTREAM_SERVICE_KEY_FILE: file,
      UPSTREAM_SERVICE_SECRET: "a-secret",
    });
    expect(settingsIn(lines)).toEqual(["UPSTREAM_SERVICE_KEY"]);
  });

  test("with a pipe or a device as a file is rejected instead of waiting for it", async () => {
    const pipe = join(here.folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const files = {
      RETAIL_CONFIG: pipe,
      CACHE_CONFIG: "/dev/zero",
      STAFF_TOKENS_FILE: pipe,
      PROMISE_PRIVATE_KEY_FILE: "/proc/kmsg",
    };
    expect(new Set(settingsIn(await rejection(files)))).toEqual(new Set(Object.keys(files)));
  });

  test("with a secret's file that is missing or empty says which of the two", async () => {
    const empty = join(here.folder, "empty");
    writeFileSync(empty, "");
    const lines = await rejection({
      STAFF_TOKENS_FILE: join(here.folder, "absent"),
      PROMISE_PRIVATE_KEY_FILE: empty,
    });
    expect(new Set(lines)).toEqual(
      new Set([
        "STAFF_TOKENS_FILE: names a file that doesn't exist",
        "PROMISE_PRIVATE_KEY_FILE: must name a regular file that isn't empty",
      ]),
    );
  });

  test("in production with an upstream on plain HTTP is rejected, unless the upstream is on loopback", async () => {
    const credential = { UPSTREAM_SERVICE_KEY: "k", UPSTREAM_SERVICE_SECRET: "s", NODE_ENV: "production" };
    const lines = await rejection({ ...credential, UPSTREAM_BASE_URL: "http://registry.example" });
    expect(settingsIn(lines)).toEqual(["UPSTREAM_BASE_URL"]);
    const local = here.start({ ...credential, UPSTREAM_BASE_URL: "http://127.0.0.1:9" });
    expect(await local.listening).toBeGreaterThan(0);
  });

  const failure = z.strictObject({
    time: z.string(),
    level: z.literal("error"),
    event: z.literal("server.start.failed"),
    setting: z.string(),
    reason: z.string(),
    remedy: z.string(),
  });

  /** Expects the start to fail, and returns the only line that it printed. */
  async function failureOf(service: ServiceProcess): Promise<z.infer<typeof failure>> {
    expect(await service.exited).toBe(1);
    expect(service.stderr).toHaveLength(1);
    const [line = ""] = service.stderr;
    // A folder's random name can look like one of Node's codes.
    expect(line.replaceAll(here.folder, "")).not.toMatch(/\bE[A-Z]{4,}\b/);
    return failure.parse(JSON.parse(line));
  }

  test("on a port that is in use exits with 1 and one line that names the port and the remedy", async () => {
    const first = here.start();
    const port = String(await first.listening);
    expect(await failureOf(here.start({ PORT: port }))).toMatchObject({
      setting: "PORT",
      reason: expect.stringContaining(port),
    });
  });

  test.each(["203.0.113.7", "no.such.host.invalid"])(
    "on %s, which isn't a local address, exits with 1 and one line that names the host",
    async (HOST) => {
      expect(await failureOf(here.start({ HOST }))).toMatchObject({
        setting: "HOST",
        reason: expect.stringContaining(HOST),
      });
    },
  );

  test("from an incomplete package doesn't blame a setting", async () => {
    const copied = join(here.folder, "package");
    for (const part of ["dist", "config", "package.json"])
      cpSync(part, join(copied, part), { recursive: true });
    symlinkSync(join(process.cwd(), "node_modules"), join(copied, "node_modules"));
    const pages = join(copied, "dist", "pages");
    rmSync(pages, { recursive: true });
    const incomplete = spawnSync(process.execPath, [join(copied, "dist", "main.js")], { encoding: "utf8" });
    expect(incomplete.status).toBe(1);
    expect(JSON.parse(incomplete.stderr)).toEqual({
      time: expect.any(String),
      level: "error",
      event: "server.start.failed",
      reason: expect.stringContaining(pages),
      remedy: "build or install the service again",
    });
  });

  test("beside a process with the same credential and STATE_DIR is advised only what keeps both within one quota", async () => {
    const { env } = await here.upstream();
    await here.start(env).listening;
    const { setting, remedy } = await failureOf(here.start(env));
    // Two folders alone would be two records, each with the whole budget.
    expect([setting, remedy]).toEqual(["STATE_DIR", "stop it, or run several replicas with REDIS_URL"]);
  });

  test("without space for STATE_DIR is advised to free it, not to choose another folder", () => {
    const full = Object.assign(new Error("ENOSPC"), {
      code: "ENOSPC",
      syscall: "write",
      path: "/data/ledger",
    });
    const line = startFailure(full, { listen: { host: "::", port: 1 }, stateDir: "/data" });
    expect(failure.parse(JSON.parse(line))).toMatchObject({
      setting: "STATE_DIR",
      reason: "There is no space left for /data.",
      remedy: "free up space",
    });
  });

  test("with a file of another user in STATE_DIR, as after a probe by root, names the file and not the folder", () => {
    const path = join(here.folder, "quota-0123.ledger");
    writeFileSync(path, "");
    const denied = Object.assign(new Error("EACCES"), { code: "EACCES", syscall: "open", path });
    const settings = { listen: { host: "::", port: 1 }, stateDir: here.folder };
    expect(failure.parse(JSON.parse(startFailure(denied, settings)))).toMatchObject({
      setting: "STATE_DIR",
      reason: `This user can't read and write ${path}.`,
      remedy: "make this user its owner (chown)",
    });
    const isNew = Object.assign(denied, { path: `${path}.new` });
    expect(failure.parse(JSON.parse(startFailure(isNew, settings))).reason).toBe(
      `This user can't write ${here.folder}.`,
    );
  });

  test("with a STATE_DIR that can't be a folder exits with 1 and one line that names the path", async () => {
    const { env } = await here.upstream();
    const file = join(here.folder, "a-file");
    writeFileSync(file, "");
    // In /proc, Node's own recursive mkdir never returns.
    for (const STATE_DIR of [file, "/proc/state/below"])
      expect(await failureOf(here.start({ ...env, STATE_DIR }))).toMatchObject({
        setting: "STATE_DIR",
        reason: expect.stringContaining(STATE_DIR),
      });
  });
});
