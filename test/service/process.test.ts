/**
 * `node dist/main.js`: how it starts, or says why it doesn't, what it does while it runs, also when secret files change, what it keeps across restarts, how it stops,
 * and that what hostile clients, and a log without a reader, cost is bounded, and others are answered in the meantime.
 */
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { Agent } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { z } from "zod";
import type { Sandbox } from "../../packages/sandbox/src/sandbox.js";
import { newPromiseKey } from "../../src/retail/promise.js";
import { startFailure } from "../../src/start-failure.js";
import { openStream } from "../support/event-stream.js";
import { FakeClock } from "../support/fake-clock.js";
import { processes } from "../support/processes.js";
import { exchange, get } from "../support/raw.js";
import { SMALL_SHOP } from "../support/retail.js";
import { asker, callsOf, CHECK, PRICING, type Service, startService, until } from "../support/service.js";
import type { ServiceProcess } from "../support/service-process.js";
import { upstreamAt } from "../support/upstream.js";
import { AVAILABLE } from "../upstream/support/bench.js";
import { startStub, success } from "../upstream/support/stub.js";

const here = processes();

describe("a start", () => {
  const failure = z.strictObject({
    time: z.string(),
    level: z.literal("error"),
    event: z.literal("server.start.failed"),
    setting: z.string().optional(),
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

  test("without settings uses the embedded sandbox, says so, and logs once where it listens; its port can't be used by another", async () => {
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
    expect((await service.ask("/")).text).toContain("<html");
    expect(await failureOf(here.start({ PORT: String(port) }))).toMatchObject({
      setting: "PORT",
      reason: expect.stringContaining(String(port)),
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

  test("in production with missing and malformed settings, and pipes or devices as files, prints one line for each, quotes no secret, and exits with 1", async () => {
    const pipe = join(here.folder, "pipe");
    execFileSync("mkfifo", [pipe]);
    const env = {
      NODE_ENV: "production",
      PORT: "80a",
      UPSTREAM_SERVICE_KEY: "only-the-key",
      UPSTREAM_RATE_LIMIT: "0",
      UPSTREAM_TIMEOUT_MS: "-1",
      QUOTA_COLD_START: "maybe",
      TRUST_PROXY_HOPS: "true",
      CORS_ORIGINS: "https://www.example.af/",
      STAFF_TOKENS: "me:nothash:read",
      LOG_LEVEL: "loud",
      SHUTDOWN_GRACE_MS: "1e3",
      RETAIL_CONFIG: pipe,
      CACHE_CONFIG: "/dev/zero",
      UPSTREAM_STANDBY_KEY_FILE: pipe,
      PROMISE_PRIVATE_KEY_FILE: "/proc/kmsg",
    };
    const { NODE_ENV: _, UPSTREAM_SERVICE_KEY: _key, ...malformed } = env;
    const service = here.start(env);
    expect(await service.exited).toBe(1);
    expect(service.stdout).toEqual([]);
    for (const line of service.stderr) expect(line).toMatch(/^[A-Z_]+: \S/);
    expect(new Set(service.stderr.map((line) => line.slice(0, line.indexOf(":"))))).toEqual(
      new Set([
        ...Object.keys(malformed),
        "UPSTREAM_BASE_URL",
        "UPSTREAM_SERVICE_SECRET",
        "UPSTREAM_STANDBY_SECRET",
      ]),
    );
    expect(service.stderr.join("\n")).not.toMatch(/only-the-key|nothash/);
  });

  /** Starts the service in this process, where it fails, and returns how `node dist/main.js` explains it. */
  async function explainedStart(sandbox: Sandbox, stateDir: string): Promise<z.infer<typeof failure>> {
    const env = { ...upstreamAt(sandbox), STATE_DIR: stateDir };
    const error: unknown = await startService({ clock: new FakeClock(), at: sandbox, env }).catch(
      (failed: unknown) => failed,
    );
    // Node's errors aren't instances of the Error that Jest gives a test.
    const details = z.looseObject({ message: z.string() }).parse(error);
    const line = startFailure(Object.assign(new Error(details.message), details), {
      listen: { host: "127.0.0.1", port: 1 },
      stateDir,
    });
    return failure.parse(JSON.parse(line));
  }

  test("beside another with the same credential and STATE_DIR is refused with advice that keeps both within one quota", async () => {
    const { sandbox, env } = await here.upstream();
    const STATE_DIR = join(here.folder, "shared");
    const first = await startService({ clock: new FakeClock(), at: sandbox, env: { ...env, STATE_DIR } });
    const { setting, remedy } = await explainedStart(sandbox, STATE_DIR);
    // Two folders alone would be two records, each with the whole budget.
    expect([setting, remedy]).toEqual(["STATE_DIR", "stop it, or run several replicas with REDIS_URL"]);
    await first.close();
  });

  test("with a STATE_DIR that can't be a folder fails with a line that names the path", async () => {
    const { sandbox } = await here.upstream();
    // In /proc, Node's own recursive mkdir never returns.
    expect(await explainedStart(sandbox, "/proc/state/below")).toMatchObject({
      setting: "STATE_DIR",
      reason: "/proc/state/below can't be a folder.",
    });
  });

  /** The explanation of a system error, in which FOLDER stands for STATE_DIR. */
  function explained(details: Record<"code" | "syscall" | "path", string>): z.infer<typeof failure> {
    const settings = { listen: { host: "203.0.113.7", port: 1 }, stateDir: here.folder };
    const line = startFailure(Object.assign(new Error(details.code), details), settings);
    return failure.parse(JSON.parse(line.replaceAll(here.folder, "FOLDER")));
  }
  const OTHER_FOLDER = "set STATE_DIR to a folder that this user can write";
  test.each([
    ["a full disk", "ENOSPC", "write", "There is no space left for FOLDER.", "free up space"],
    [
      "a file of another user, as after a probe by root,",
      "EACCES",
      "open",
      "This user can't read and write FOLDER/ledger.",
      "make this user its owner (chown)",
    ],
    ["a file where the folder should be", "EEXIST", "mkdir", "FOLDER can't be a folder.", OTHER_FOLDER],
    ["a folder of another user", "EACCES", "mkdir", "This user can't write FOLDER.", OTHER_FOLDER],
  ])("with %s explains it and says what helps", (_what, code, syscall, reason, remedy) => {
    if (syscall === "open") writeFileSync(join(here.folder, "ledger"), "");
    const path = join(here.folder, syscall === "mkdir" ? "ledger.new" : "ledger");
    expect(explained({ code, syscall, path })).toMatchObject({ setting: "STATE_DIR", reason, remedy });
  });

  test("on an address of another machine names the host, and from an incomplete package blames no setting", () => {
    expect(explained({ code: "EADDRNOTAVAIL", syscall: "listen", path: "" })).toMatchObject({
      setting: "HOST",
      reason: expect.stringContaining("203.0.113.7"),
    });
    const { setting, reason, remedy } = explained({
      code: "ENOENT",
      syscall: "open",
      path: "/srv/dist/pages",
    });
    expect(setting).toBeUndefined();
    expect(reason).toContain("/srv/dist/pages");
    expect(remedy).toBe("build or install the service again");
  });
});

const digestOf = (token: string): string => createHash("sha256").update(token).digest("hex");
const ANNA = `anna:${digestOf("hers")}:read`;
const BERT = `bert:${digestOf("his")}:read`;

describe("a secret file", () => {
  const pathOf = (name: string): string => join(here.folder, name);
  const write = (name: string, text: string): void => {
    writeFileSync(pathOf(name), text);
  };

  const SECRETS = {
    STAFF_TOKENS: ANNA,
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    CUSTOMER_JWT_SECRET: "a shared secret of 32 characters",
  };
  const clock = new FakeClock();
  let service: Service;
  beforeEach(async () => {
    service = await startService({
      clock,
      retail: SMALL_SHOP,
      env: (sandbox) => {
        const { UPSTREAM_BASE_URL, ...credential } = upstreamAt(sandbox);
        const secrets = Object.entries({ ...credential, ...SECRETS });
        for (const [name, text] of secrets) write(name, text);
        const files = secrets.flatMap(([name]) => [
          [name, ""],
          [`${name}_FILE`, pathOf(name)],
        ]);
        return {
          UPSTREAM_BASE_URL,
          QUOTA_COLD_START: "assume-free",
          STATE_DIR: pathOf("state"),
          ...z.record(z.string(), z.string()).parse(Object.fromEntries(files)),
        };
      },
    });
  });
  afterEach(() => service.close());

  const logged = (): string[] => service.log.filter((line) => line.includes("secret.file."));
  const statusOf = async (token: string): Promise<number> =>
    (await service.ask("/v1/staff/tier", { headers: { Authorization: `Bearer ${token}` } })).status;

  test("that becomes malformed isn't used, is reported once, and isn't quoted", async () => {
    const printable = "must be 1 to 512 printable characters without white space";
    const malformed: readonly (readonly [string, string, string])[] = [
      ["UPSTREAM_SERVICE_KEY", "two words", printable],
      ["UPSTREAM_SERVICE_SECRET", "line\nline", printable],
      ["STAFF_TOKENS", `# staff\n${ANNA}`, "entry 1 must be name:sha256hex:scope+scope"],
      ["PROMISE_PRIVATE_KEY", "a text", "must contain an Ed25519 private key"],
      ["CUSTOMER_JWT_SECRET", "short", "must have at least 32 characters"],
    ];
    for (const [name, text] of malformed) write(name, text);
    await clock.advance(10_000);
    expect(logged()).toHaveLength(malformed.length);
    for (const [name, text, problem] of malformed) {
      const line = logged().find((one) => one.includes(`${name}_FILE`)) ?? "";
      expect(line).toContain(problem);
      expect(line).not.toContain(text);
    }
    expect(service.log.join()).not.toContain("credential.refused");
    expect(await statusOf("hers")).toBe(200);
  });

  test("that is emptied, deleted or replaced by a folder is reported, because the tokens in it stay valid", async () => {
    const file = pathOf("STAFF_TOKENS");
    // As while it is replaced.
    rmSync(file);
    await clock.advance(1_000);
    write("STAFF_TOKENS", ANNA);
    await clock.advance(5_000);
    expect(logged()).toEqual([]);
    for (const [problem, replace] of [
      ["must name a regular file that isn't empty", () => write("STAFF_TOKENS", "")],
      ["names a file that doesn't exist", () => undefined],
      ["must name a regular file that isn't empty", () => mkdirSync(file)],
    ] as const) {
      const before = logged().length;
      rmSync(file);
      replace();
      await clock.advance(10_000);
      expect(await statusOf("hers")).toBe(200);
      rmSync(file, { recursive: true, force: true });
      write("STAFF_TOKENS", BERT);
      await clock.advance(2_000);
      // Reported without a request that uses it.
      expect(logged().slice(before)).toEqual([
        expect.stringContaining(problem),
        expect.stringMatching(/secret\.file\.applied.*STAFF_TOKENS_FILE/),
      ]);
      expect([await statusOf("hers"), await statusOf("his")]).toEqual([401, 200]);
      write("STAFF_TOKENS", ANNA);
      await clock.advance(2_000);
    }
  });
});

test("a request's ids are on all of its log lines and go upstream, and nothing else that the client sent does; an error that nothing catches ends the process with 1 and a last line", async () => {
  const stub = await startStub((socket, seen) => {
    const isQuote = seen.path === "/api/v1/pricing";
    success(isQuote ? { amount: "12.34", currency: "USD" } : AVAILABLE)(socket, seen);
  });
  const thrown = 'Object.assign(new RangeError("out of bounds"), { headers: { key: "SECRET" } })';
  const script = join(here.folder, "fails.mjs");
  writeFileSync(script, `process.on("SIGUSR2", () => { throw ${thrown}; });`);
  try {
    const upstream = {
      UPSTREAM_BASE_URL: stub.url,
      UPSTREAM_SERVICE_KEY: "a-service-key",
      UPSTREAM_SERVICE_SECRET: "a-service-secret",
      QUOTA_COLD_START: "assume-free",
    };
    const service = here.start(upstream, { node: ["--import", script] });
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
      service.ask("/health", { headers: { "x-request-id": "two-of-two", traceparent: "inbound" } }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);

    const checks = stub.seen.filter(({ path }) => path === "/api/v1/domains/check");
    const [{ headers }] = z.tuple([z.looseObject({ headers: z.map(z.string(), z.string()) })]).parse(checks);
    expect([...headers.keys()].toSorted().join(" ")).toBe(
      "accept accept-encoding connection content-length content-type host traceparent user-agent x-request-id x-service-key x-service-secret",
    );
    expect(headers.get("x-request-id")).toBe("one-of-two");
    expect(headers.get("traceparent")).toMatch(
      new RegExp(`^00-${traceId}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$`),
    );
    expect(JSON.stringify(stub.seen.map((seen) => [...seen.headers]))).not.toMatch(/inbound|203\.0\.113/);

    service.child.kill("SIGUSR2");
    expect(await service.exited).toBe(1);
    expect(service.stderr).toEqual([]);
    expect(service.stdout.join("\n")).not.toContain("SECRET");
    expect(JSON.parse(service.stdout.at(-1) ?? "")).toMatchObject({
      level: "error",
      event: "server.crashed",
      reason: "out of bounds",
      stack: expect.stringContaining("RangeError"),
    });
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

const UNFINISHED_CART =
  "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{";

describe("stopping", () => {
  test("serves everything for DRAIN_MS, so that balancers can notice, then finishes what is in flight and accepts nothing new", async () => {
    const { sandbox, env } = await here.upstream();
    const service = here.start({ ...env, NODE_ENV: "production", DRAIN_MS: "1500" });
    await service.listening;
    await until(() => callsOf(sandbox) >= 3, "the last startup call");
    const hold = sandbox.control.hold({ operation: "check", calls: 1 });
    const slow = service.ask("/v1/availability?domain=kabul.af");
    const call = await hold.caught();
    const ended = service.stop();
    await until(() => service.stdout.some((line) => line.includes('"server.stopping"')), "the stop");
    const ready = await service.ask("/readyz");
    expect([ready.status, ready.body]).toEqual([503, { status: "draining" }]);
    const cart = { method: "POST", body: { items: [{ domain: "herat.af", action: "renewal" }] } };
    for (const [path, question] of [
      ["/livez", {}],
      ["/v1/prices", {}],
      ["/staff", {}],
      ["/v1/quotes", cart],
    ] as const) {
      const { status, headers } = await service.ask(path, question);
      expect([path, status, headers["connection"]]).toEqual([path, 200, "close"]);
    }
    const isRefused = (): Promise<boolean> =>
      service.ask("/livez").then(
        () => false,
        () => true,
      );
    await until(isRefused, "the end of the drain");
    call.release();
    expect(await slow).toMatchObject({ status: 200, body: { status: "available" } });
    expect(await ended).toBe(0);
    expect(service.stdout.at(-1)).toContain("server.stopped");
  });

  test("while it still starts, exits with 0 as well", async () => {
    let isStarting = false;
    const silentRedis = createServer(() => {
      isStarting = true;
    }).listen(0, "127.0.0.1");
    await once(silentRedis, "listening");
    const { port } = z.object({ port: z.int() }).parse(silentRedis.address());
    const { env } = await here.upstream();
    const service = here.start({ ...env, REDIS_URL: `redis://127.0.0.1:${port}`, DRAIN_MS: "0" });
    await until(() => isStarting, "the connection to Redis");
    expect(service.stdout.join("\n")).not.toContain("listening");
    expect(await service.stop()).toBe(0);
    expect(service.stdout.at(-1)).toContain("server.stopped");
    silentRedis.close();
  });

  test("waits at most SHUTDOWN_GRACE_MS: for calls, whose requests are refused and streams ended then, for clients that never finish theirs, and for a log without a reader", async () => {
    const { sandbox, env } = await here.upstream();
    const service = here.start({ ...env, SHUTDOWN_GRACE_MS: "300" });
    const port = await service.listening;
    service.child.stdout?.destroy();
    await until(() => callsOf(sandbox) >= 3, "the last startup call");
    for (let n = 0; n < 3; n += 1) expect((await service.ask("/livez")).status).toBe(200);
    sandbox.control.setBehaviour({ afterMs: 3000 });
    const answers = ["/v1/availability?domain=kabul.af", "/v1/search?q=herat"].map((path) =>
      service.ask(path),
    );
    await until(() => callsOf(sandbox, CHECK) >= 2, "the calls");
    const stream = await openStream({ port }, "/v1/search?q=google");
    const unfinished = ["", "GET /livez HTTP/1.1\r\nHost: a\r\n", UNFINISHED_CART].map((text) =>
      exchange(port, text).catch(() => ""),
    );
    await service.ask("/livez");
    const ended = service.stop();
    for (const answer of answers)
      expect(await answer).toMatchObject({ status: 503, body: { code: "shutting_down", retryAfter: 1 } });
    expect((await stream.whole()).at(-1)).toMatchObject({ event: "done", data: { complete: false } });
    expect(await ended).toBe(0);
    await Promise.all(unfinished);
  });
});

test("after a restart the saved prices are shown even if the upstream fails, and premium names are still known; what is saved is only its owner's, and names nobody", async () => {
  const { sandbox, env } = await here.upstream();
  const stateDir = join(here.folder, "state");
  const savedNames = (): string[] =>
    readdirSync(stateDir).filter((file) => /^name-kinds\..*json$/.test(file));
  const clock = new FakeClock();
  const start = (more: Readonly<Record<string, string>> = {}): Promise<Service> =>
    startService({ clock, at: sandbox, warm: false, env: { ...env, STATE_DIR: stateDir, ...more } });
  const first = await start();
  await until(() => existsSync(join(stateDir, "prices.json")), "the save of the prices");
  expect(callsOf(sandbox, PRICING)).toBe(2);
  expect((await first.ask("/v1/availability?domain=gold.af")).body).toMatchObject({ premium: true });
  await until(() => savedNames().length > 0, "the save of the name");
  const before = await first.ask("/v1/prices");
  await first.close();

  const { key, secret } = sandbox.credential();
  expect(statSync(stateDir).mode & 0o077).toBe(0);
  for (const name of readdirSync(stateDir, { recursive: true, encoding: "utf8" })) {
    const file = join(stateDir, name);
    expect([file, statSync(file).mode & 0o077]).toEqual([file, 0]);
    if (statSync(file).isFile())
      expect(readFileSync(file, "latin1")).not.toMatch(new RegExp(`${key}|${secret}|gold`));
  }

  sandbox.control.setFault("quote", { fault: "status-500" });
  const second = await start({ QUOTA_COLD_START: "assume-spent" });
  const after = await second.ask("/v1/prices");
  expect([after.status, after.body]).toEqual([200, before.body]);
  expect(after.headers["etag"]).toBe(before.headers["etag"]);
  // The record of the window was kept as well: the second start knows what the first one spent.
  expect((await second.ask("/v1/availability?domain=kabul.af")).status).toBe(200);
  const items = [{ domain: "gold.af", action: "renewal", years: 1 }];
  expect((await second.ask("/v1/quotes", { method: "POST", body: { items } })).body).toMatchObject({
    code: "upstream_contract",
    detail: expect.stringContaining("premium name"),
  });
  await second.close();
});

const LOGGER = new URL("../../dist/logger.js", import.meta.url).href;
const MAX_RSS_MB = 600;
const SPARE_DESCRIPTORS = 100;
/** More than a connection serves. Node reads a whole packet of them at once, and V8 collects what they leave only later. */
const REQUESTS = 150;
const BURST = 600;

/** Memory and descriptors are read from /proc. */
const onLinux = existsSync("/proc/self/fd") ? describe : describe.skip;

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

/** Clients have different addresses, so that they don't share a limit. */
function open(port: number, localAddress = "127.0.0.2"): Socket {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => undefined);
  sockets.add(socket);
  return socket;
}

function rssMbOf({ pid }: ChildProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/** Expects that the process uses a bounded amount of memory and descriptors while `during` runs. */
async function expectBoundedUse({ child }: ServiceProcess, during: () => Promise<void>): Promise<void> {
  let [rssMb, descriptors] = [0, 0];
  const sample = (): void => {
    rssMb = Math.max(rssMb, rssMbOf(child));
    descriptors = Math.max(descriptors, readdirSync(`/proc/${child.pid}/fd`).length);
  };
  const timer = setInterval(sample, 20);
  try {
    await during();
    sample();
  } finally {
    clearInterval(timer);
  }
  expect(rssMb).toBeLessThan(MAX_RSS_MB);
  expect(descriptors).toBeLessThan(sockets.size + SPARE_DESCRIPTORS);
}

/** Three times what is longest: its answers alone would be too much if they were kept. */
const ROUTES = [
  ...Array.from({ length: 3 }, () => "/docs/assets/swagger-ui-bundle.js"),
  "/openapi.json",
  "/v1/prices",
  "/v1/availability?domain=google.af",
  "/v1/availability?domain=-.af",
  "/livez",
];

onLinux("a hostile client", () => {
  test("that opens many connections while the service is busy, never reads, or sends and reads slowly, costs bounded memory and descriptors, and keeps neither others from an answer nor the service from stopping", async () => {
    const service = here.start({
      CLIENT_RATE_PER_MINUTE: "1000000000",
      SHUTDOWN_GRACE_MS: "300",
      LOG_LEVEL: "error",
    });
    const port = await service.listening;
    // More than Node's default backlog, and as many as the system allows: they wait, and are then served.
    const clients = Math.min(BURST, Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8")));
    let [connected, served] = [0, 0];
    service.child.kill("SIGSTOP");
    for (let client = 0; client < clients; client += 1) {
      const socket = open(port, "127.0.0.1").setEncoding("latin1");
      socket.once("data", (text: string) => {
        if (text.startsWith("HTTP/1.1 200 ")) served += 1;
      });
      socket.once("connect", () => {
        connected += 1;
        socket.write(get("/livez"));
      });
    }
    // A dropped connection would be retried, but in vain while the process is stopped.
    await until(() => connected === clients, "every connection").finally(() => service.child.kill("SIGCONT"));
    await until(() => served === clients, "every answer");

    const ask = asker(port, new Agent({ keepAlive: false }));
    expect((await ask("/v1/availability?domain=google.af")).status).toBe(200);
    await expectBoundedUse(service, async () => {
      for (const path of ROUTES) open(port).pause().write(get(path).repeat(REQUESTS));
      for (let count = 0; count < 30; count += 1) {
        open(port).write("GET /livez HTTP/1.1\r\nHost: a\r\nX-");
        open(port).write(
          "POST /v1/quotes HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 30000\r\n\r\n{",
        );
        open(port, `127.0.1.${1 + (count % 4)}`)
          .pause()
          .write(get(`/v1/search?q=slow-${count}`, { Accept: "text/event-stream" }));
      }
      await until(() =>
        [...sockets].every(({ bytesWritten, connecting }) => !connecting && bytesWritten > 0),
      );
      for (let count = 0; count < 5; count += 1)
        for (const path of ["/livez", "/v1/availability?domain=google.af"])
          expect((await ask(path)).status).toBe(200);
    });
    expect(await service.stop()).toBe(0);
    // At this level the log has only what somebody waits for.
    const events = service.stdout.map((line) => /"event":"([^"]+)"/.exec(line)?.[1]);
    expect(events).toEqual(["staff.token.created", "server.listening"]);
  });
});

onLinux("a log that nobody reads", () => {
  const LINES = 40_000;
  /** More than the buffer keeps. */
  const script = `
    import { createLog } from ${JSON.stringify(LOGGER)};
    const log = createLog("info");
    for (let n = 0; n < ${LINES}; n += 1) {
      log.info("line", { text: "${"x".repeat(200)}" });
      if (n % 100 === 0) await new Promise(setImmediate);
    }
    process.stderr.write("logged");
  `;

  test("costs bounded memory, and says how many lines are missing", async () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", script]);
    child.stdout.pause();
    await once(child.stderr, "data");
    expect(rssMbOf(child)).toBeLessThan(MAX_RSS_MB);
    const lines = (await text(child.stdout)).trim().split("\n");
    const kept = lines.filter((line) => line.includes('"event":"line"')).length;
    const dropped = lines
      .map((line) => Number(/"event":"log\.dropped","lines":(\d+)/.exec(line)?.[1] ?? 0))
      .reduce((sum, missing) => sum + missing, 0);
    expect([kept < LINES, kept + dropped]).toEqual([true, LINES]);
  });
});
