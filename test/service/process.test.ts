/** The service as a separate process, `node dist/main.js`: how it starts, what it keeps across restarts, and how it stops. */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { type Sandbox, startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { startFailure } from "../../src/start-failure.js";
import {
  callsOf,
  CHECK,
  PRICING,
  type ServiceProcess,
  spawnService,
  temporaryFolder,
  until,
} from "../support/service.js";
import { upstreamAt } from "../support/upstream.js";
import { AVAILABLE } from "../upstream/support/bench.js";
import { startStub, success } from "../upstream/support/stub.js";

let folder: ReturnType<typeof temporaryFolder>;
let running: ServiceProcess[];
let sandboxes: Sandbox[];

beforeEach(() => {
  folder = temporaryFolder();
  running = [];
  sandboxes = [];
});
afterEach(async () => {
  for (const { child, exited } of running) {
    child.kill("SIGKILL");
    await exited;
  }
  for (const sandbox of sandboxes) await sandbox.close();
  folder.remove();
});

function start(
  env: Readonly<Record<string, string>> = {},
  options?: Parameters<typeof spawnService>[1],
): ServiceProcess {
  const service = spawnService({ STATE_DIR: join(folder.path, "state"), ...env }, options);
  running.push(service);
  return service;
}

async function upstream(): Promise<{ sandbox: Sandbox; env: Readonly<Record<string, string>> }> {
  const sandbox = await startSandbox();
  sandboxes.push(sandbox);
  return {
    sandbox,
    env: {
      ...upstreamAt(sandbox),
      QUOTA_COLD_START: "assume-free",
    },
  };
}

/** Starts the service, expects it to exit with 1 and to print one line per invalid setting, and returns the names of these settings. */
async function rejectedSettings(env: Readonly<Record<string, string>>): Promise<string[]> {
  const service = start(env);
  expect(await service.exited).toBe(1);
  expect(service.stdout).toEqual([]);
  return service.stderr.map((line) => {
    expect(line).toMatch(/^[A-Z_]+: \S/);
    return line.slice(0, line.indexOf(":"));
  });
}

test("a body in a charset that isn't UTF-8 is refused and doesn't end the process", async () => {
  const service = start();
  await service.listening;
  for (const charset of ["utf-7", "utf-7-imap", "utf-16", "utf-32", "iso-8859-1", "gbk"]) {
    const headers = { "Content-Type": `application/json; charset=${charset}` };
    const { status } = await service.ask("/v1/quotes", { method: "POST", headers, body: "{}" });
    expect([charset, [400, 415].includes(status)]).toEqual([charset, true]);
  }
  expect((await service.ask("/livez")).status).toBe(200);
});

test("the service keeps running after the reader of its log has gone", async () => {
  const service = start();
  await service.listening;
  service.child.stdout?.destroy();
  for (let n = 0; n < 3; n += 1) expect((await service.ask("/livez")).status).toBe(200);
  expect(service.child.exitCode).toBeNull();
});

test("a request's ids are on all of its log lines and go upstream, and nothing else that the client sent does", async () => {
  const stub = await startStub((socket, seen) => {
    const isQuote = seen.path === "/api/v1/pricing";
    success(isQuote ? { amount: "12.34", currency: "USD" } : AVAILABLE)(socket, seen);
  });
  try {
    const service = start({
      UPSTREAM_BASE_URL: stub.url,
      UPSTREAM_SERVICE_KEY: "a-service-key",
      UPSTREAM_SERVICE_SECRET: "a-service-secret",
      QUOTA_COLD_START: "assume-free",
    });
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const ask = (headers: Readonly<Record<string, string>>) =>
      service.ask("/v1/availability?domain=kabul.af", { headers });
    await service.listening;
    const answers = await Promise.all([
      ask({
        "x-request-id": "one-of-two",
        traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
        tracestate: "vendor=inbound",
        baggage: "inbound=1",
        authorization: "Bearer inbound",
        cookie: "inbound=1",
        "user-agent": "inbound",
        "accept-language": "inbound",
        "x-forwarded-for": "203.0.113.7",
        "x-service-key": "inbound",
        "x-inbound": "inbound",
      }),
      service.ask("/v1/prices", { headers: { "x-request-id": "two-of-two", traceparent: "inbound" } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);

    const checks = stub.seen.filter(({ path }) => path === "/api/v1/domains/check");
    const [{ headers }] = z.tuple([z.looseObject({ headers: z.map(z.string(), z.string()) })]).parse(checks);
    expect([...headers.keys()].sort()).toEqual(
      [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "traceparent",
        "user-agent",
        "x-request-id",
        "x-service-key",
        "x-service-secret",
      ].sort(),
    );
    expect(headers.get("x-request-id")).toBe("one-of-two");
    expect(headers.get("traceparent")).toMatch(
      new RegExp(`^00-${traceId}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`),
    );
    expect(JSON.stringify(stub.seen.map((seen) => [...seen.headers]))).not.toMatch(/inbound|203\.0\.113/);

    await service.stop();
    const lines = service.stdout.map((line) =>
      z
        .looseObject({
          event: z.string(),
          operation: z.string().optional(),
          requestId: z.string().optional(),
        })
        .parse(JSON.parse(line)),
    );
    const idsOf = (event: string, operation?: string) =>
      lines
        .filter((line) => line.event === event && (operation === undefined || line.operation === operation))
        .map(({ requestId, traceId: trace }) => [requestId, trace]);
    expect(idsOf("upstream.call", "check")).toEqual([["one-of-two", traceId]]);
    expect(idsOf("http.request")).toEqual(
      expect.arrayContaining([
        ["one-of-two", traceId],
        ["two-of-two", undefined],
      ]),
    );
    expect(lines.find(({ event }) => event === "server.listening")).not.toHaveProperty("requestId");
  } finally {
    await stub.close();
  }
});

describe("a start", () => {
  test("logs the created staff token and where it listens even at log level error", async () => {
    const service = start({ LOG_LEVEL: "error" });
    const port = await service.listening;
    expect(await service.stop()).toBe(0);
    const events = service.stdout.map(
      (line) => z.looseObject({ event: z.string() }).parse(JSON.parse(line)).event,
    );
    expect(events).toEqual(["staff.token.created", "server.listening"]);
    expect(service.stdout[1]).toContain(`listening on port ${port}`);
  });

  test("without settings uses the embedded sandbox, says so, and logs once where it listens", async () => {
    const service = start();
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
    expect(existsSync(join(folder.path, "state"))).toBe(false);
  });

  test("in production without settings names each missing one on its own line, and exits with 1", async () => {
    const missing = await rejectedSettings({ NODE_ENV: "production" });
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
      RETAIL_CONFIG: join(folder.path, "absent.yaml"),
      SHUTDOWN_GRACE_MS: "1e3",
    };
    const [faults, service] = [await rejectedSettings(env), running[0]];
    expect(new Set(faults)).toEqual(
      new Set([
        ...Object.keys(env).filter((name) => name !== "UPSTREAM_SERVICE_KEY"),
        "UPSTREAM_SERVICE_SECRET",
      ]),
    );
    expect(service?.stderr.join("\n")).not.toMatch(/only-the-key|nothash/);
  });

  test("prints each fault of SANDBOX_CONFIG on its own line, together with faults of other settings", async () => {
    const file = join(folder.path, "sandbox.yaml");
    const world = readFileSync("config/sandbox.yaml", "utf8");
    writeFileSync(
      file,
      world.replace("takenPercent: ", "takenPercent: 1").replace("nameservers:", "nameserver:"),
    );
    const faults = await rejectedSettings({ SANDBOX_CONFIG: file, PORT: "80a" });
    expect(faults).toEqual(["PORT", "SANDBOX_CONFIG", "SANDBOX_CONFIG", "SANDBOX_CONFIG"]);
    writeFileSync(file, "a: [\n");
    expect(await rejectedSettings({ SANDBOX_CONFIG: file })).toEqual(["SANDBOX_CONFIG"]);
    expect(running[1]?.stderr).toEqual([
      expect.stringMatching(/^SANDBOX_CONFIG: not YAML: .* at line \d, column \d$/),
    ]);
  });

  test("with a secret given both by value and by file is rejected", async () => {
    const file = join(folder.path, "key");
    writeFileSync(file, "from-the-file");
    const faults = await rejectedSettings({
      UPSTREAM_BASE_URL: "https://registry.example",
      UPSTREAM_SERVICE_KEY: "by-value",
      UPSTREAM_SERVICE_KEY_FILE: file,
      UPSTREAM_SERVICE_SECRET: "a-secret",
    });
    expect(faults).toEqual(["UPSTREAM_SERVICE_KEY"]);
  });

  test("with a pipe or a device as a file is rejected instead of waiting for it", async () => {
    const pipe = join(folder.path, "pipe");
    execFileSync("mkfifo", [pipe]);
    const files = {
      RETAIL_CONFIG: pipe,
      CACHE_CONFIG: "/dev/zero",
      STAFF_TOKENS_FILE: pipe,
      PROMISE_PRIVATE_KEY_FILE: "/proc/kmsg",
    };
    expect(new Set(await rejectedSettings(files))).toEqual(new Set(Object.keys(files)));
  });

  test("with a secret's file that is missing or empty says which of the two", async () => {
    const empty = join(folder.path, "empty");
    writeFileSync(empty, "");
    await rejectedSettings({
      STAFF_TOKENS_FILE: join(folder.path, "absent"),
      PROMISE_PRIVATE_KEY_FILE: empty,
    });
    expect(new Set(running[0]?.stderr)).toEqual(
      new Set([
        "STAFF_TOKENS_FILE: names a file that doesn't exist",
        "PROMISE_PRIVATE_KEY_FILE: must name a regular file that isn't empty",
      ]),
    );
  });

  test("in production with an upstream on plain HTTP is rejected, unless the upstream is on loopback", async () => {
    const credential = { UPSTREAM_SERVICE_KEY: "k", UPSTREAM_SERVICE_SECRET: "s", NODE_ENV: "production" };
    const faults = await rejectedSettings({ ...credential, UPSTREAM_BASE_URL: "http://registry.example" });
    expect(faults).toEqual(["UPSTREAM_BASE_URL"]);
    const local = start({ ...credential, UPSTREAM_BASE_URL: "http://127.0.0.1:9" });
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
    expect(line.replaceAll(folder.path, "")).not.toMatch(/\bE[A-Z]{4,}\b/);
    return failure.parse(JSON.parse(line));
  }

  test("on a port that is in use exits with 1 and one line that names the port and the remedy", async () => {
    const first = start();
    const port = String(await first.listening);
    expect(await failureOf(start({ PORT: port }))).toMatchObject({
      setting: "PORT",
      reason: expect.stringContaining(port),
    });
  });

  test.each(["203.0.113.7", "no.such.host.invalid"])(
    "on %s, which isn't a local address, exits with 1 and one line that names the host",
    async (HOST) => {
      expect(await failureOf(start({ HOST }))).toMatchObject({
        setting: "HOST",
        reason: expect.stringContaining(HOST),
      });
    },
  );

  test("from an incomplete package doesn't blame a setting", async () => {
    const copied = join(folder.path, "package");
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
    const { env } = await upstream();
    await start(env).listening;
    const { setting, remedy } = await failureOf(start(env));
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
    const path = join(folder.path, "quota-0123.ledger");
    writeFileSync(path, "");
    const denied = Object.assign(new Error("EACCES"), { code: "EACCES", syscall: "open", path });
    const settings = { listen: { host: "::", port: 1 }, stateDir: folder.path };
    expect(failure.parse(JSON.parse(startFailure(denied, settings)))).toMatchObject({
      setting: "STATE_DIR",
      reason: `This user can't read and write ${path}.`,
      remedy: "make this user its owner (chown)",
    });
    const isNew = Object.assign(denied, { path: `${path}.new` });
    expect(failure.parse(JSON.parse(startFailure(isNew, settings))).reason).toBe(
      `This user can't write ${folder.path}.`,
    );
  });

  test("with a STATE_DIR that can't be a folder exits with 1 and one line that names the path", async () => {
    const { env } = await upstream();
    const file = join(folder.path, "a-file");
    writeFileSync(file, "");
    // In /proc, Node's own recursive mkdir never returns.
    for (const STATE_DIR of [file, "/proc/state/below"])
      expect(await failureOf(start({ ...env, STATE_DIR }))).toMatchObject({
        setting: "STATE_DIR",
        reason: expect.stringContaining(STATE_DIR),
      });
  });
});

test("an error that nothing catches ends the process with 1 and one line, without what its properties contain", async () => {
  const thrown = 'Object.assign(new RangeError("out of bounds"), { headers: { key: "SECRET" } })';
  const script = join(folder.path, "fails.mjs");
  writeFileSync(script, `process.on("SIGUSR2", () => { throw ${thrown}; });`);
  const service = start({}, { node: ["--import", script] });
  await service.listening;
  service.child.kill("SIGUSR2");
  expect(await service.exited).toBe(1);
  expect(JSON.parse(service.stdout.at(-1) ?? "")).toMatchObject({
    level: "error",
    event: "server.crashed",
    reason: "out of bounds",
    stack: expect.stringContaining("RangeError"),
  });
  expect(service.stderr).toEqual([]);
  expect(service.stdout.join("\n")).not.toContain("SECRET");
});

describe("stopping", () => {
  test("finishes requests in flight, accepts no new ones, and exits with 0", async () => {
    const { sandbox, env } = await upstream();
    const service = start(env);
    await service.listening;
    await until(() => callsOf(sandbox) >= 29, "the last startup call");
    sandbox.control.setBehaviour({ afterMs: 400 });
    const answer = service.ask("/v1/availability?domain=kabul.af");
    await until(() => callsOf(sandbox, CHECK) === 1, "the call");
    const ended = service.stop();
    expect(await answer).toMatchObject({ status: 200, body: { status: "available" } });
    expect(await ended).toBe(0);
    await expect(service.ask("/livez")).rejects.toThrow();
    expect(service.stdout.at(-1)).toContain("server.stopped");
  });

  test("still serves everything for DRAIN_MS, so that balancers can notice, before it closes the port", async () => {
    const service = start({ DRAIN_MS: "1500" });
    await service.listening;
    const stopped = service.stop();
    await until(() => service.stdout.some((line) => line.includes('"server.stopping"')), "the stop");
    const [ready, prices, page] = [
      await service.ask("/readyz"),
      await service.ask("/v1/prices"),
      await service.ask("/"),
    ];
    expect([ready.status, ready.body]).toEqual([503, { status: "draining" }]);
    for (const { status, headers } of [prices, page])
      expect([status, headers["connection"]]).toEqual([200, "close"]);
    expect(await stopped).toBe(0);
  });

  test("while it still starts, exits with 0 as well", async () => {
    let isStarting = false;
    const silentRedis = createServer(() => {
      isStarting = true;
    }).listen(0, "127.0.0.1");
    await once(silentRedis, "listening");
    const { port } = z.object({ port: z.int() }).parse(silentRedis.address());
    const { env } = await upstream();
    const service = start({ ...env, REDIS_URL: `redis://127.0.0.1:${port}` });
    await until(() => isStarting, "the connection to Redis");
    expect(service.stdout.join("\n")).not.toContain("listening");
    expect(await service.stop()).toBe(0);
    expect(service.stdout.at(-1)).toContain("server.stopped");
    silentRedis.close();
  }, 15_000);

  test("rejects requests that wait for a call which couldn't finish in time", async () => {
    const { env } = await upstream();
    const service = start({
      ...env,
      QUOTA_COLD_START: "assume-spent",
      UPSTREAM_RATE_HEADROOM: "0",
      UPSTREAM_RATE_WINDOW_MS: "10000",
      QUOTA_MAX_WAIT_MS: "60000",
      UPSTREAM_TIMEOUT_MS: "1000",
      SHUTDOWN_GRACE_MS: "1500",
    });
    await service.listening;
    const answer = service.ask("/v1/availability?domain=kabul.af");
    await service.ask("/livez");
    const ended = service.stop();
    expect(await answer).toMatchObject({ status: 503, body: { code: "shutting_down", retryAfter: 1 } });
    expect(await ended).toBe(0);
  });

  test("rejects requests whose call takes longer than SHUTDOWN_GRACE_MS, instead of closing their connections", async () => {
    const { sandbox, env } = await upstream();
    const service = start({ ...env, SHUTDOWN_GRACE_MS: "300" });
    await service.listening;
    await until(() => callsOf(sandbox) >= 29, "the last startup call");
    sandbox.control.setBehaviour({ afterMs: 3000 });
    const answers = ["/v1/availability?domain=kabul.af", "/v1/search?q=herat"].map((path) =>
      service.ask(path),
    );
    await until(() => callsOf(sandbox, CHECK) >= 2, "the calls");
    const ended = service.stop();
    for (const answer of answers)
      expect(await answer).toMatchObject({ status: 503, body: { code: "shutting_down", retryAfter: 1 } });
    expect(await ended).toBe(0);
  });

  test("waits at most SHUTDOWN_GRACE_MS for clients that never finish their request", async () => {
    const service = start({ SHUTDOWN_GRACE_MS: "300" });
    const port = await service.listening;
    const unfinished = [
      "GET /livez HTTP/1.1\r\nHost: a\r\n",
      "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{",
      "",
    ];
    const sockets = await Promise.all(
      unfinished.map(
        (text) =>
          new Promise<ReturnType<typeof connect>>((done) => {
            const socket = connect(port, "127.0.0.1", () => {
              socket.write(text, () => {
                done(socket);
              });
            });
            socket.on("error", () => undefined);
          }),
      ),
    );
    await service.ask("/livez");
    expect(await service.stop()).toBe(0);
    for (const socket of sockets) socket.destroy();
  }, 8000);
});

describe("a restart", () => {
  test("serves prices at once, even if none can be asked for, from files that only the owner can read", async () => {
    const { sandbox, env } = await upstream();
    const first = start(env);
    await first.listening;
    const stateDir = join(folder.path, "state");
    await until(() => existsSync(join(stateDir, "prices.json")), "the save of the prices");
    const before = await first.ask("/v1/prices");
    expect(await first.stop()).toBe(0);
    expect(callsOf(sandbox, PRICING)).toBe(28);

    const files = readdirSync(stateDir, { recursive: true, encoding: "utf8" }).map((name) =>
      join(stateDir, name),
    );
    expect(files.length).toBeGreaterThan(1);
    expect(statSync(stateDir).mode & 0o077).toBe(0);
    for (const file of files) expect([file, statSync(file).mode & 0o077]).toEqual([file, 0]);
    const { key, secret } = sandbox.credential();
    for (const file of files.filter((name) => statSync(name).isFile()))
      expect(readFileSync(file, "latin1")).not.toMatch(new RegExp(`${key}|${secret}`));

    sandbox.control.setFault("quote", { fault: "status-500" });
    const second = start({ ...env, QUOTA_COLD_START: "assume-spent" });
    await second.listening;
    const after = await second.ask("/v1/prices");
    expect([after.status, after.body]).toEqual([200, before.body]);
    expect(after.headers["etag"]).toBe(before.headers["etag"]);
    // The record of the window was kept as well: the second process knows what the first one spent.
    const name = await second.ask("/v1/availability?domain=kabul.af");
    expect(name.status).toBe(200);
  });

  test("remembers which names are premium, even after a kill and with another credential", async () => {
    const { sandbox, env } = await upstream();
    const first = start(env);
    await first.listening;
    await until(() => existsSync(join(folder.path, "state", "prices.json")), "the save of the prices");
    expect((await first.ask("/v1/availability?domain=gold.af")).body).toMatchObject({ premium: true });
    const saved = (): string[] =>
      readdirSync(join(folder.path, "state")).filter((file) => /^name-kinds\..*json$/.test(file));
    await until(() => saved().length > 0, "the save of the name");
    first.child.kill("SIGKILL");
    await first.exited;

    const loaded = callsOf(sandbox, PRICING) + 28;
    const { key, secret } = sandbox.control.rotate(sandbox.credential().key);
    const second = start({ ...env, UPSTREAM_SERVICE_KEY: key, UPSTREAM_SERVICE_SECRET: secret });
    await second.listening;
    await until(() => callsOf(sandbox, PRICING) >= loaded, "the load of the prices with the new credential");
    const items = ["gold.af", "khyber.af"].map((domain) => ({ domain, action: "renewal", years: 1 }));
    const cart = await second.ask("/v1/quotes", { method: "POST", body: { items } });
    expect(cart.body).toMatchObject({ items: [{ premium: true, price: null }, { premium: false }] });
    for (const file of saved())
      expect(readFileSync(join(folder.path, "state", file), "utf8")).not.toContain("gold");
  });

  test("with another credential doesn't use the prices of the previous one", async () => {
    const { sandbox, env } = await upstream();
    const first = start(env);
    await first.listening;
    await until(() => existsSync(join(folder.path, "state", "prices.json")), "the save of the prices");
    await first.stop();
    const other = sandbox.credential("big");
    const second = start({
      ...env,
      UPSTREAM_SERVICE_KEY: other.key,
      UPSTREAM_SERVICE_SECRET: other.secret,
    });
    await second.listening;
    await until(() => callsOf(sandbox, PRICING) === 56, "the load of the other credential's price list");
    expect(second.stdout.some((line) => line.includes("saved.foreign"))).toBe(true);
  });
});
